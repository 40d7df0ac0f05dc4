"""Learnt kernels: sparse random Fourier features under a Markov prior (Ma (thesis),
section 4.2).
"""
