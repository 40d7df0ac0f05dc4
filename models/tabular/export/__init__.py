"""A fitted model of few columns as one formula, and that formula as SQL, ONNX, C, JSON or a
spreadsheet."""
