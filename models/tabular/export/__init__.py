"""Export of a fitted model with few columns as a formula in SQL, ONNX, C, JSON or a spreadsheet."""
