"""Tables and figures of the papers, public data sets and stored results of annealed."""
