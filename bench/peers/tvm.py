"""TVM: the matrix product by a schedule by hand, for sizes that its tiles divide.

Its arrays are aligned to 64 bytes; it takes no others.
"""

import os
from typing import Any

import numpy as np
import tvm
from tvm import te
from tvm.s_tir import Schedule

from ..worker import Array, Call

VERSION = tvm.__version__

ROWS, COLUMNS, LANES, UNROLLED = 4, 64, 16, 4


def _schedule(m: int, n: int, k: int) -> Any:
    """A tile of 4 x 64 in registers over all of k, nothing packed."""
    a = te.placeholder((m, k), "float32", name="a")
    b = te.placeholder((k, n), "float32", name="b")
    over = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, over] * b[over, j], axis=over), name="c")
    schedule = Schedule(te.create_prim_func([a, b, c]))
    product = schedule.get_sblock("c")
    i, j, l = schedule.get_loops(product)  # noqa: E741
    i0, i1 = schedule.split(i, [None, ROWS])
    j0, j1, j2 = schedule.split(j, [None, COLUMNS // LANES, LANES])
    k0, k1 = schedule.split(l, [None, UNROLLED])
    tile = schedule.cache_write(product, 0, "local")
    schedule.reorder(j0, i0, k0, k1, i1, j1, j2)
    schedule.reverse_compute_at(tile, i0)
    schedule.parallel(j0)
    schedule.vectorize(j2)
    for loop in (i1, j1, k1):
        schedule.unroll(loop)
    *_, row, column = schedule.get_loops(tile)
    vectors, lanes = schedule.split(column, [None, LANES])
    schedule.vectorize(lanes)
    schedule.unroll(vectors)
    schedule.unroll(row)
    start = schedule.decompose_reduction(product, k0)
    *_, row, vectors, lanes = schedule.get_loops(start)
    schedule.vectorize(lanes)
    schedule.unroll(vectors)
    schedule.unroll(row)
    return schedule.mod


def _matmul(out: Array | None, a: Array, b: Array) -> Call | None:
    (m, k), n = a.shape, b.shape[1]
    if m % ROWS or n % COLUMNS or k % UNROLLED:
        return None
    cpu = os.environ.get("BENCH_LLVM_CPU") or tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu})
    function = tvm.compile(_schedule(m, n, k), target=target)["main"]
    arguments = [tvm.runtime.tensor(x) for x in (a, b, np.zeros((m, n), np.float32))]

    def call() -> Any:
        function(*arguments)
        return arguments[-1]

    return call


KERNELS = {"matmul": _matmul}
