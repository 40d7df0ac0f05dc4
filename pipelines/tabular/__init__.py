"""Reading, selection and prediction of tables in files."""
