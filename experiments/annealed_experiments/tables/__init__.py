"""The papers' tables, one module per topic."""
