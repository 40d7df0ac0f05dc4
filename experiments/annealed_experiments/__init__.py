"""The papers' tables and figures, public data sets and stored results of annealed."""
