"""Data that do not fit into memory, read in blocks from files and arrays."""
