"""Kernels, in the printed form of the IR, with steps: what edits of trees start from, next to
the examples of all primitives. They have what those lack: tuples of which one part is read, tables
that data looks up, conditions on inputs, values that go from one iteration to the next.
"""

ARGMAX = """\
def argmax(m, n, x: float32[m, n], y: Out[int64[m]]):
    with allocate(v=float32[m]):
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    v[i], y[i] = combine.argmax((v[i], y[i]), (x[i, j], j))
"""

ARGMIN = """\
def argmin(m, n, x: int64[n, m], z: Out[int64[m]]):
    with allocate(v=int64[m], y=int64[m]):
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    v[i], y[i] = combine.argmin((v[i], y[i]), (x[j, i], j))
        for z.i in range(m):
            with block("z", i=spatial(z.i)):
                z[i] = y[i] * 2
"""

SOFTMAX = """\
def softmax(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    with allocate(peak=float32[m], total=float32[m]):
        for peak.i in range(m):
            for peak.j in range(n):
                with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                    peak[i] = combine.max(peak[i], x[i, j])
        for total.i in range(m):
            for total.j in range(n):
                with block("total", i=spatial(total.i), j=reduction(total.j), initialises=True):
                    total[i] = combine.sum(total[i], exp(x[i, j] - peak[i]))
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = exp(x[i, j] - peak[i]) / total[i]
"""

TOTAL = """\
def total(m, n, x: float32[m, n], y: Out[float32[m]]):
    with allocate(peak=float32[m]):
        for peak.i in range(m):
            for peak.j in range(n):
                with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                    peak[i] = combine.max(peak[i], x[i, j])
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    y[i] = combine.sum(y[i], exp(x[i, j] - peak[i]))
"""

DEFINED = """\
def defined(m, n, x: int64[m, n], y: Out[int64[m]]):
    @combiner(most=int64(-9223372036854775808), times=int64(0), sum=int64(0))
    def counted(a, b, c):
        c.most = max(a.most, b.most)
        c.times = (a.times if a.most == c.most else 0) + (b.times if b.most == c.most else 0)
        c.sum = a.sum + b.sum
    with allocate(p=int64[m], s=int64[m]):
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    p[i], y[i], s[i] = combine.counted((p[i], y[i], s[i]), (x[i, j], 1, x[i, j]))
"""

TRIANGLE = """\
def last_largest(n, x: float32[n], y: Out[int64[n]]):
    with allocate(v=float32[n]):
        for y.i in range(n):
            for y.j in range(y.i + 1):
                with block("y", i=spatial(y.i), j=reduction(y.j, i + 1), initialises=True):
                    v[i], y[i] = combine.argmax((v[i], y[i]), (x[j], j))
"""

GATHER = """\
def gather(m, n, x: float32[n], k: int64[m], y: Out[float32[m]]):
    assume(n >= 1)
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(m):
            with block("y", i=spatial(y.i)):
                y[i] = t[min(max(k[i], 0), n - 1)] + x[min(max(k[i], 0), n - 1)]
"""

CHOSEN = """\
def chosen(m, n, x: float32[m, n], k: int64[n], y: Out[int64[m]], z: Out[float32[m]]):
    with allocate(v=float32[m]):
        for y.i in range(m):
            for y.j in range(n):
                with block(
                    "y", i=spatial(y.i), j=reduction(y.j), where=k[y.j] < 3, initialises=True
                ):
                    v[i], y[i] = combine.argmax((v[i], y[i]), (x[i, j], j))
        for z.i in range(m):
            for z.j in range(n):
                with block(
                    "z", i=spatial(z.i), j=reduction(z.j), where=k[z.j] < 3, initialises=True
                ):
                    z[i] = combine.sum(z[i], x[i, j])
"""

HEAT = """\
def heat(n, s, u: InOut[float32[n]]):
    with allocate(w=float32[n]):
        for w.t in range(s):
            for w.i in range(n):
                with block("w", t=spatial(w.t), i=spatial(w.i)):
                    w[i] = u[max(i - 1, 0)] + u[min(i + 1, n - 1)]
            for u.i in range(n):
                with block("u", t=spatial(w.t), i=spatial(u.i)):
                    u[i] = w[i] - u[i]
"""

SEIDEL = """\
def seidel(m, n, u: InOut[float32[m, n]]):
    for u.i in range(1, m):
        for u.j in range(1, n):
            with block("u", i=spatial(u.i, 1, m), j=spatial(u.j, 1, n)):
                u[i, j] = u[i - 1, j] + u[i, j - 1] - u[i, j]
"""

PLUS = """\
def plus(m, n, x: float32[m, n], y: InOut[float32[m]], z: Out[float32[m]]):
    for z.i in range(m):
        with block("z", i=spatial(z.i)):
            z[i] = y[i]
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j)):
                y[i] = combine.sum(y[i], x[i, j])
"""

NEAREST = """\
def nearest(m, n, p, x: float32[m, p], c: float32[n, p], y: Out[int64[m]]):
    with allocate(v=float32[m], d=float32[m, n]):
        for d.i in range(m):
            for d.j in range(n):
                for d.k in range(p):
                    with block(
                        "d", i=spatial(d.i), j=spatial(d.j), k=reduction(d.k), initialises=True
                    ):
                        d[i, j] = combine.sum(d[i, j], (x[i, k] - c[j, k]) * (x[i, k] - c[j, k]))
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    v[i], y[i] = combine.argmin((v[i], y[i]), (d[i, j], j))
"""

WHOLE = """\
def whole(m, n, x: float32[m, n], y: Out[int64[()]]):
    with allocate(v=float32[()]):
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=reduction(y.i), j=reduction(y.j), initialises=True):
                    v[()], y[()] = combine.argmax((v[()], y[()]), (x[i, j], i * 100 + j))
"""

PARTS = """\
def parts(m, n, x: float32[m, n], y: InOut[float32[m, n]], b: int64, c: int64):
    assume(b >= 1 and c >= 1)
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=spatial(y.j)):
                y[i, j] = x[i, j] + (y[i - 1, j] if i >= 1 else float32(0))
"""

AROUND = """\
def around(m, n, x: float32[n], k: int32[m], u: uint64[m], y: Out[float32[m]]):
    assume(n >= 1)
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(m):
            with block("y", i=spatial(y.i)):
                y[i] = t[int64(k[i]) % n] + x[int64(min(u[i], uint64(n - 1)))]
"""

RESCALE = "- rescale: {blocks: [peak, total]}\n"

STARTS: tuple[tuple[str, str, str], ...] = (
    ("argmax", ARGMAX, ""),
    ("argmax, decomposed", ARGMAX, "- decompose_reduction: {block: y, loop: y.i}"),
    ("argmax, inside", ARGMAX, "- decompose_reduction: {block: y, loop: y.j}"),
    ("argmax, reordered", ARGMAX, "- reorder: {loops: [y.j, y.i]}"),
    (
        "argmax, tiled",
        ARGMAX,
        "- tile: {loops: [y.i, y.j], sizes: [2, 3]}\n- parallel: {loop: y.i_0}",
    ),
    (
        "argmax, of partials",
        ARGMAX,
        "- split: {loop: y.j, factors: [null, 2]}\n- rfactor: {block: y, loop: y.j_1}",
    ),
    ("argmax, cached", ARGMAX, "- cache_write: {block: y, buffer: y}"),
    ("argmax, value cached", ARGMAX, "- cache_write: {block: y, buffer: v}"),
    ("argmax, vectorized", ARGMAX, "- vectorize: {loop: y.j, width: 4}"),
    ("argmax, wide", ARGMAX, "- vectorize: {loop: y.i, width: 4}"),
    ("argmax, cascade", ARGMAX, "- cascade: {block: y, loop: y.j, lengths: [3]}"),
    ("argmin", ARGMIN, ""),
    ("argmin, at", ARGMIN, "- compute_at: {block: y, loop: z.i}"),
    (
        "argmin, tiles",
        ARGMIN,
        "- split: {loop: z.i, factors: [null, 3]}\n- compute_at: {block: y, loop: z.i_0}\n"
        "- parallel: {loop: z.i_0}",
    ),
    ("whole", WHOLE, ""),
    ("whole, of partials", WHOLE, "- rfactor: {block: y, loop: y.i}"),
    ("whole, fused", WHOLE, "- fuse: {loops: [y.i, y.j]}"),
    ("softmax", SOFTMAX, RESCALE),
    ("softmax, merged", SOFTMAX, RESCALE + "- compute_at: {block: peak, loop: y.i}"),
    (
        "softmax, lanes",
        SOFTMAX,
        RESCALE + "- compute_at: {block: peak, loop: y.i}\n- vectorize: {loop: peak.j, width: 4}\n"
        "- parallel: {loop: y.i}",
    ),
    (
        "softmax, partials",
        SOFTMAX,
        RESCALE
        + "- split: {loop: peak.j, factors: [null, 2]}\n- rfactor: {block: peak, loop: peak.j_1}",
    ),
    ("total", TOTAL, "- rescale: {blocks: [peak, y]}"),
    (
        "total, reordered",
        TOTAL,
        "- rescale: {blocks: [peak, y]}\n- reorder: {loops: [peak.j, peak.i]}",
    ),
    ("defined", DEFINED, ""),
    ("defined, decomposed", DEFINED, "- decompose_reduction: {block: y, loop: y.i}"),
    (
        "defined, partials",
        DEFINED,
        "- split: {loop: y.j, factors: [null, 2]}\n- rfactor: {block: y, loop: y.j_1}",
    ),
    ("triangle", TRIANGLE, ""),
    ("gather", GATHER, ""),
    ("gather, cached", GATHER, "- cache_read: {block: y, buffer: t}"),
    ("chosen", CHOSEN, ""),
    ("chosen, merged", CHOSEN, "- merge: {loops: [y.i, z.i]}"),
    ("heat", HEAT, ""),
    ("seidel", SEIDEL, ""),
    ("seidel, skewed", SEIDEL, "- skew: {loops: [u.i, u.j], factor: 1}"),
    ("plus", PLUS, ""),
    ("nearest", NEAREST, ""),
    ("nearest, at", NEAREST, "- compute_at: {block: d, loop: y.j}"),
    (
        "nearest, tiles",
        NEAREST,
        "- tile: {loops: [y.i, y.j], sizes: [2, 2]}\n- compute_at: {block: d, loop: y.j_0}\n"
        "- parallel: {loop: y.i_0}",
    ),
    (
        "parts",
        PARTS,
        "- vectorize: {loop: y.j, width: 2}\n- split: {loop: y.j_0, factors: [null, b]}",
    ),
    (
        "parts, tiled",
        PARTS,
        "- vectorize: {loop: y.j, width: 2}\n- tile: {loops: [y.i, y.j_0], sizes: [c, b]}",
    ),
    (
        "parts, unrolled",
        PARTS,
        "- tile: {loops: [y.i, y.j], sizes: [2, b]}\n- unroll: {loop: y.i_1}",
    ),
    (
        "around, cut",
        AROUND,
        "- transform_layout: {buffer: t, axis: 0, factors: [null, 2], order: [1, 0]}",
    ),
)
