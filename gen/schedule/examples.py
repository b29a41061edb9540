"""The kernels that the primitives' examples start from, in the printed form of the IR."""

SCALE = """\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=spatial(y.j)):
                y[i, j] = x[i, j] * 2.0
"""

BLOCKED = """\
def blocked(m, n, x: float32[m, n], y: Out[float32[m, n]], b: int64):
    assume(b >= 1)
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=spatial(y.j)):
                y[i, j] = x[i, j] * 2.0
"""

FIRST = """\
def first(m, n, x: float32[m, n], y: InOut[float32[m, n]], s: int64):
    for y.i in range(m):
        for y.j in range(min(s, n)):
            with block("y", i=spatial(y.i), j=spatial(y.j, n)):
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

RUNNING = """\
def running(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] + (t[max(i - 1, 0)] if i > 0 else 0.0)
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] * 2.0
"""

RANKS = """\
def ranks(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i_0 in distributed((n + 3) // 4):
            for t.i_1 in range(4):
                with block("t", i=spatial(t.i_0 * 4 + t.i_1, n), where=t.i_0 * 4 + t.i_1 < n):
                    t[i] = x[i] * 2.0
        for y.i_0 in distributed((n + 3) // 4):
            for y.i_1 in range(4):
                with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                    y[i] = t[max(i - 1, 0)] + t[i]
"""

NEIGHBOURS = RANKS.replace("+ t[i]", "+ t[min(i + 1, n - 1)]")
"""The same with a neighbour on each side."""

RING = """\
def ring(p, x: float32[p], y: Out[float32[p]]):
    with allocate(t=float32[p]):
        for t.r in distributed(p):
            with block("t", r=spatial(t.r)):
                t[r] = x[r] * 2.0
        for y.r in distributed(p):
            with block("y", r=spatial(y.r)):
                y[r] = t[(r - 1) % p] + t[r]
"""

ROW_SUM = """\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                y[i] = combine.sum(y[i], x[i, j])
"""

SUMS = """\
def sums(m, n, x: float32[m, n], y: Out[float32[m]]):
    with allocate(s=float32[()]):
        for s.i in range(m):
            for s.k in range(n):
                with block("s", i=spatial(s.i), k=reduction(s.k), initialises=True):
                    s[()] = combine.sum(s[()], x[i, k])
            with block("y", i=spatial(s.i)):
                y[i] = s[()] / float32(n)
"""
"""A sum in a `for` loop of a spec: one element, used over and over."""

TRIANGLE_SUMS = """\
def triangle(n, m, z: float32[n, m], c: InOut[float32[m, m]]):
    with allocate(s=float32[()]):
        for s.i in range(m):
            for s.j in range(s.i + 1, m):
                for s.k in range(n):
                    with block(
                        "s",
                        i=spatial(s.i),
                        j=spatial(s.j, i + 1, m),
                        k=reduction(s.k),
                        initialises=True,
                    ):
                        s[()] = combine.sum(s[()], z[k, i] * z[k, j])
                with block("c", i=spatial(s.i), j=spatial(s.j, i + 1, m)):
                    c[i, j] = s[()] / float32(n)
"""

ROW_EXPONENTIALS = """\
def row_exponentials(m, n, x: float32[m, n], y: Out[float32[m]]):
    with allocate(peak=float32[m], e=float32[m, n]):
        for peak.i in range(m):
            for peak.j in range(n):
                with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                    peak[i] = combine.max(peak[i], x[i, j])
        for e.i in range(m):
            for e.j in range(n):
                with block("e", i=spatial(e.i), j=spatial(e.j)):
                    e[i, j] = exp(x[i, j] - peak[i])
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    y[i] = combine.sum(y[i], e[i, j])
"""

ROW_SPREAD = """\
def row_spread(m, n, x: float32[m, n], y: Out[float32[m]]):
    with allocate(total=float32[m], mean=float32[m]):
        for total.i in range(m):
            for total.j in range(n):
                with block("total", i=spatial(total.i), j=reduction(total.j), initialises=True):
                    total[i] = combine.sum(total[i], x[i, j])
        for mean.i in range(m):
            with block("mean", i=spatial(mean.i)):
                mean[i] = total[i] / float32(n)
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    y[i] = combine.sum(y[i], (x[i, j] - mean[i]) * (x[i, j] - mean[i]))
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

BELOW = """\
def below(n, x: float32[n, n], y: InOut[float32[n]]):
    for y.i in range(n):
        for y.j in range(y.i):
            with block("y", i=spatial(y.i), j=reduction(y.j, i)):
                y[i] = combine.sum(y[i], x[i, j])
"""

UPPER = """\
def upper(n, x: float32[n, n], y: InOut[float32[n, n]]):
    for y.i in range(n):
        for y.j in range(y.i, n):
            with block("y", i=spatial(y.i), j=spatial(y.j, i, n)):
                y[i, j] = x[i, j] * 2.0
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

CHAIN = """\
def chain(n, x: float32[n + 1], y: Out[float32[n]]):
    with allocate(t=float32[n + 1]):
        for t.i in range(n + 1):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + t[i + 1]
"""

TURNED = """\
def turned(m, n, x: float32[n, m], y: Out[float32[m]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                y[i] = combine.sum(y[i], x[j, i])
"""

SPREAD = """\
def spread(n, x: float32[n], y: InOut[float32[2*n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[2*i] = x[i] * 2.0
"""

PADDED = """\
def padded(n, x: float32[n], y: Out[float32[n + 2]]):
    with allocate(t=float32[n + 2]):
        for t.i in range(n + 2):
            with block("t", i=spatial(t.i)):
                t[i] = x[i - 1] if 1 <= i and i <= n else 0.0
        for y.i in range(n + 2):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] * 2.0
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

REVERSED = """\
def reversed_rows(m, x: float32[m, 4], y: Out[float32[m, 4]]):
    with allocate(t=float32[m, 4]):
        for y.i in range(m):
            for t.j in range(4):
                with block("t", i=spatial(y.i), j=spatial(t.j)):
                    t[i, j] = x[i, j] * 2.0
            for y.j in range(4):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[i, 3 - j]
"""

MATMUL = """\
def matmul(m, n, k, a: float32[m, k], b: float32[k, n], c: Out[float32[m, n]]):
    for c.i in range(m):
        for c.j in range(n):
            for c.p in range(k):
                with block(
                    "c", i=spatial(c.i), j=spatial(c.j), p=reduction(c.p), initialises=True
                ):
                    c[i, j] = combine.sum(c[i, j], a[i, p] * b[p, j])
"""

ROTATED = """\
def rotated(m, n, x: float32[m, n, 4], y: Out[float32[m, n, 4]]):
    for y.i in blockIdx.x(m):
        for y.k in range(n):
            with allocate(t=float32[m, n, 4] @ shared):
                barrier()
                for t.j in threadIdx.x(4):
                    with block("t", i=spatial(y.i), k=spatial(y.k), j=spatial(t.j)):
                        t[i, k, j] = x[i, k, j] * 2.0
                barrier()
                for y.j in threadIdx.x(4):
                    with block("y", i=spatial(y.i), k=spatial(y.k), j=spatial(y.j)):
                        y[i, k, j] = t[i, k, 3 - j]
"""

BYTES = """\
def bytes(c: InOut[int32[8]], a: uint8[4], b: int8[8, 4]):
    with allocate(packed=int8[8, 4]):
        for packed.i in range(8):
            for packed.j in range(4):
                with block("packed", i=spatial(packed.i), j=spatial(packed.j)):
                    packed[i, j] = b[i, j]
        for c.i in range(8):
            for c.j in range(4):
                with block("c", i=spatial(c.i), j=reduction(c.j)):
                    c[i] = combine.sum(c[i], int32(a[j]) * int32(packed[i, j]))
"""
