"""Public data as people download them, brought into the folders that the commands read."""
