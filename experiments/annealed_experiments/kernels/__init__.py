"""Tables of sparse Fourier features (Ma (thesis), section 4.2) beside other kernels that select or
weigh columns.
"""
