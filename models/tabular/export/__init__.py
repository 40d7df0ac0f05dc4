"""Export of a fitted model with few columns to SQL, ONNX, C, JSON or a spreadsheet."""
