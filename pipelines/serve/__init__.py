"""Local web page of ``annealed serve``: a web server, worker processes, and a module per tab."""
