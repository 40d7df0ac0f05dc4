"""Export of a fitted model of few columns as a formula in SQL, ONNX, C, JSON or a spreadsheet."""
