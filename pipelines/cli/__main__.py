"""``python -m annealed.pipelines.cli``."""

from . import main

main()
