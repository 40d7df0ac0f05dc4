"""Local web page of ``annealed serve``: web server, worker processes and a module for each tab."""
