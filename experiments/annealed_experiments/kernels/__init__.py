"""Tables that compare sparse Fourier features (Ma (thesis), section 4.2) with other kernels.

The other kernels select or weight columns.
"""
