"""The local page (``annealed serve``): a web server, worker processes, one answer per tab."""
