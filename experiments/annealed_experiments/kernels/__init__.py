"""Tables of sparse Fourier features (Ma (thesis), section 4.2), compared with other kernels that
select or weight columns.
"""
