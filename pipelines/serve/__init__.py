"""Local web page (``annealed serve``): a web server, worker processes, and one answer module per
tab."""
