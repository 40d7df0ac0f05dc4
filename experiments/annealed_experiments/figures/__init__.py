"""Reproduced figures of the papers (``annealed reproduce NAME --figures DIR``): one function per
name in ``registry.FIGURES``.
"""
