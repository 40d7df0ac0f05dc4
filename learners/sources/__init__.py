"""Data that do not fit into memory: files and arrays that are read in blocks of rows."""
