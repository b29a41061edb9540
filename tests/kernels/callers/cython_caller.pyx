# cython: language_level=3
"""A Cython module that calls tilesmith's kernels on memory views, without the GIL."""

from libc.stdint cimport int64_t

from tilesmith cimport (
    import_tilesmith, tilesmith_matmul_float64, tilesmith_message, tilesmith_raise, ts_array
)

import_tilesmith()


def matmul(double[:, :] a, double[:, :] b, double[:, :] c):
    """c = a @ b, without the GIL."""
    cdef ts_array left, right, result
    cdef int status
    with nogil:
        left = ts_array(&a[0, 0], 2, <const int64_t *> a.shape, <const int64_t *> a.strides)
        right = ts_array(&b[0, 0], 2, <const int64_t *> b.shape, <const int64_t *> b.strides)
        result = ts_array(&c[0, 0], 2, <const int64_t *> c.shape, <const int64_t *> c.strides)
        status = tilesmith_matmul_float64(&left, &right, &result, 2)
    tilesmith_raise(status)


def message():
    return tilesmith_message().decode()
