"""The extension module around kernels: `manifest` (what is known of a compiled kernel),
`cython`, `stubs`, `header` (for callers in C and Cython), `descriptors` (the same as tables in
C).
"""
