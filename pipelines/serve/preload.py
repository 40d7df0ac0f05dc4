"""What all workers need, imported once: they are forks of the process that did."""

from .answers import faces, motion, pets, select

__all__ = ["faces", "motion", "pets", "select"]
