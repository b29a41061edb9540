"""Kernels read nothing before or past their arrays, whatever their rows leave of a vector."""

import subprocess
import sys

import pytest

CHILD = """
import ctypes, mmap
import numpy as np, tilesmith as ts

libc, page, held = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE, []

def between(n, dtype, at_end):
    '''n numbers that begin, or end, where a page begins that nobody may touch.'''
    size = -(-n * np.dtype(dtype).itemsize // page) * page
    memory = mmap.mmap(-1, size + 2 * page)
    held.append(memory)
    whole = np.frombuffer(memory, np.uint8)
    for guard in (0, page + size):
        address = ctypes.c_void_p(whole.ctypes.data + guard)
        assert libc.mprotect(address, ctypes.c_size_t(page), 0) == 0
    inside = whole[page : page + size].view(dtype)
    array = inside[len(inside) - n :] if at_end else inside[:n]
    array[:] = np.arange(n) % 7 - 3
    return array

for dtype in {dtypes}:
    for n in (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 37, 63, 65, 130):
        for at_end in (False, True):
            gaps = between(2 * n - 1, dtype, at_end)[::2]
            np.testing.assert_array_equal(ts.{name}(gaps, axis=-1), ts.{name}(gaps.copy(), axis=-1))
            for rows in (1, 3):
                x = between(rows * n, dtype, at_end).reshape(rows, n)
                ts.{name}(x, axis=-1)
                ts.{name}(x, axis=-1, out=between(rows * n, dtype, at_end).reshape(rows, n))
print("done")
"""
FLOATS = ["float32", "float64"]
KERNELS = {
    "cumsum": [*FLOATS, "int64"],
    "exclusive_cumsum": [*FLOATS, "int64"],
    "reverse_cumsum": [*FLOATS, "int64"],
    "cumprod": FLOATS,
    "softmax": FLOATS,
}


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by mprotect")
@pytest.mark.parametrize("name", KERNELS)
def test_scans_and_rows_stay_within_their_arrays(name: str) -> None:
    """`reverse_cumsum` read the lanes that its last vector leaves out, before the first element."""
    code = CHILD.replace("{name}", name).replace("{dtypes}", repr(KERNELS[name]))
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert child.returncode == 0 and child.stdout == "done\n", child.stderr[-2000:]
