"""Reversible-jump Markov chains over sparse frequencies, with their prior and diagnostics."""
