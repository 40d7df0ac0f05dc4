"""Tables of the papers, with one module per topic."""
