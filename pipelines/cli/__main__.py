"""``python -m annealed.pipelines.cli``."""

from .app import main

main()
