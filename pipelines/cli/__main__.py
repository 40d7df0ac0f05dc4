"""Entry point of ``python -m annealed.pipelines.cli``."""

from . import main

main()
