"""Reversible-jump Markov chains over sparse frequencies: prior, moves, Gram matrices, likelihoods
and diagnostics.
"""
