"""The kernels that the primitives' examples start from, in the printed form of the IR."""

SCALE = """\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=spatial(y.j)):
                y[i, j] = x[i, j] * 2.0
"""

TWICE = """\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
"""

STENCIL = """\
def stencil(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[max(i - 1, 0)] + t[i]
"""

ROW_SUM = """\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                y[i] = combine.sum(y[i], x[i, j])
"""

SHARE = """\
def share(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[()]):
        for t.i in range(n):
            with block("t", i=reduction(t.i), initialises=True):
                t[()] = combine.sum(t[()], x[i])
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = x[i] / t[()]
"""

TRIANGLE = """\
def triangle(n, x: float32[n, n], y: Out[float32[n]]):
    for y.i in range(n):
        for y.j in range(y.i + 1):
            with block("y", i=spatial(y.i), j=reduction(y.j, i + 1), initialises=True):
                y[i] = combine.sum(y[i], x[i, j])
"""

ROW_SQUARES = """\
def row_squares(m, n, x: float32[m, n], y: Out[float32[m]]):
    with allocate(t=float32[m, n]):
        for t.i in range(m):
            for t.j in range(n):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[i, j] = x[i, j] * x[i, j]
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    y[i] = combine.sum(y[i], t[i, j])
"""

PAIR = """\
def pair(n, x: float32[n], y: Out[float32[n]], z: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
        for z.i in range(n):
            with block("z", i=spatial(z.i)):
                z[i] = t[i] - 1.0
"""

BLUR = """\
def blur(n, x: float32[n + 2], y: Out[float32[n]]):
    with allocate(t=float32[n + 2]):
        for t.i in range(n + 2):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + t[i + 1] + t[i + 2]
"""

STRIDED = """\
def strided(n, x: float32[2 * n + 1], y: Out[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[2 * i] + x[2 * i + 1] + x[2 * i + 2]
"""

RUNNING_SUM = """\
def running_sum(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j in range(n):
            for y.k in range(y.j + 1):
                with block(
                    "y",
                    i=spatial(y.i),
                    j=spatial(y.j),
                    k=reduction(y.k, j + 1),
                    initialises=True,
                ):
                    y[i, j] = combine.sum(y[i, j], x[i, k])
"""
