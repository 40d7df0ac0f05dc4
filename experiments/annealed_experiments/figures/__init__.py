"""The papers' figures, drawn again (``annealed reproduce NAME --figures DIR``): one function per
name in ``registry.FIGURES``.
"""
