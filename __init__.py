"""Sparse learners that see: feature selection with annealing, and vision tools built on it."""

import lazy_loader

__version__ = "0.2.0"

# Names are listed in __init__.pyi and resolved on first use: `import annealed` stays cheap, and
# nothing of ours is imported when a test runner executes this file under the checkout's own folder
# name.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
