"""Learnt kernels: sparse Fourier features with a Markov prior, Ma (thesis), section 4.2."""
