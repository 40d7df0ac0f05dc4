"""Reproduced figures of the papers, with one function per name in ``registry.FIGURES``."""
