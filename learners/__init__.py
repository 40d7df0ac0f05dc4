"""Sparse learners for numeric data: losses, priors, schedules, designs and estimators.

The public names are declared in ``__init__.pyi``, and each is imported on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
