"""Scheduled kernels as scripts, as recipes would leave them, and how to lower and compile them."""

# ruff: noqa: E501 (the scripts)

from dataclasses import dataclass

from gen.ir.nodes import Expr, Kernel
from gen.ir.rules.verify import verify
from gen.ir.text.parser import from_text
from gen.lower.finish import Finished, finish
from gen.lower.lower import lower
from gen.poly.certificate import Flow, Scheduled, Source
from gen.poly.values.flow import plain_flow
from gen.targets.c.library import Compiled
from gen.targets.cpu.jit import compile_kernel
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


@dataclass(frozen=True)
class Case:
    """A kernel's plain schedule, the one that a recipe made of it, and where reads come from."""

    plain: str
    scheduled: str
    sources: dict[tuple[str, int], Source]

    def state(self) -> Scheduled:
        flow: Flow = {**plain_flow(from_text(self.plain)), **self.sources}
        return Scheduled(from_text(self.scheduled), flow)


def lowered(text: str, level: Level = Level.V3) -> Kernel:
    kernel = from_text(text)
    verify(kernel)
    result = lower(Scheduled(kernel, {}), Cpu(level).lowering).kernel
    verify(result, lowered=True)
    return result


def finished(kernel: Kernel, level: Level, name: str = "0", when: Expr | None = None) -> Finished:
    """A lowered kernel as a variant to emit."""
    return Finished(name, finish(kernel, Cpu(level).finishing), when)


def compiled(
    text: str,
    level: Level,
    *,
    packed: tuple[str, ...] | None = None,
    flags: tuple[str, ...] = WARNINGS,
) -> Compiled:
    return compile_kernel(lowered(text, level), level, packed=packed, flags=("-O1", *flags))


def elementwise(w: int) -> str:
    return f"""
def axpb(m, n, a: float32, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in parallel(m):
        for y.j_0 in range((n + {w - 1})//{w}):
            for y.j_1 in vectorized({w}):
                with block("y", i=spatial(y.i), j=spatial(y.j_0*{w} + y.j_1, n), where=y.j_0*{w} + y.j_1 < n):
                    y[i, j] = a*x[i, j] + 1.5
"""


PLAIN_SOFTMAX = """
def softmax(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    with allocate(peak=float32[m], e=float32[m, n], total=float32[m]):
        for peak.i in range(m):
            for peak.j in range(n):
                with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                    peak[i] = combine.max(peak[i], x[i, j])
        for e.i in range(m):
            for e.j in range(n):
                with block("e", i=spatial(e.i), j=spatial(e.j)):
                    e[i, j] = exp(x[i, j] - peak[i])
        for total.i in range(m):
            for total.j in range(n):
                with block("total", i=spatial(total.i), j=reduction(total.j), initialises=True):
                    total[i] = combine.sum(total[i], e[i, j])
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = e[i, j] / total[i]
"""


def softmax(w: int, accumulators: int = 2) -> Case:
    c = accumulators * w
    row = f"jo=reduction({{0}}.j_0, (n + {c - 1})//{c}), where={{0}}.j_0*{c} + {{0}}.j_1*{w} + {{0}}.j_2 < n"
    part = f"jo*{c} + a*{w} + l"
    text = f"""
def softmax(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in parallel(m):
        with allocate(peak=float32[m], e=float32[m, n], total=float32[m], p_rf=float32[m, {accumulators}, {w}], t_rf=float32[m, {accumulators}, {w}] @ register):
            for p.j_0 in range((n + {c - 1})//{c}):
                for p.j_1 in unrolled({accumulators}):
                    for p.j_2 in vectorized({w}):
                        with block("p_rf", i=spatial(y.i), a=spatial(p.j_1), l=spatial(p.j_2), {row.format("p")}, initialises=True, origin=peak[i, {part}]):
                            p_rf[i, a, l] = combine.max(p_rf[i, a, l], x[i, {part}])
            for p.a in unrolled({accumulators}):
                for p.l in vectorized({w}):
                    with block("peak", i=spatial(y.i), a=reduction(p.a), l=reduction(p.l), initialises=True, origin=None):
                        peak[i] = combine.max(peak[i], p_rf[i, a, l])
            for t.j_0 in range((n + {c - 1})//{c}):
                for t.j_1 in unrolled({accumulators}):
                    for t.j_2 in vectorized({w}):
                        with block("e", i=spatial(y.i), j=spatial(t.j_0*{c} + t.j_1*{w} + t.j_2, n), where=t.j_0*{c} + t.j_1*{w} + t.j_2 < n):
                            e[i, j] = exp(x[i, j] - peak[i])
                        with block("t_rf", i=spatial(y.i), a=spatial(t.j_1), l=spatial(t.j_2), {row.format("t")}, initialises=True, origin=total[i, {part}]):
                            t_rf[i, a, l] = combine.sum(t_rf[i, a, l], e[i, {part}])
            for t.a in unrolled({accumulators}):
                for t.l in vectorized({w}):
                    with block("total", i=spatial(y.i), a=reduction(t.a), l=reduction(t.l), initialises=True, origin=None):
                        total[i] = combine.sum(total[i], t_rf[i, a, l])
            for y.j_0 in range((n + {w - 1})//{w}):
                for y.j_1 in vectorized({w}):
                    with block("y", i=spatial(y.i), j=spatial(y.j_0*{w} + y.j_1, n), where=y.j_0*{w} + y.j_1 < n):
                        y[i, j] = e[i, j] / total[i]
"""
    row_of = ("y.i",)
    sources = {
        ("p_rf", 0): Source(initial=True),
        ("peak", 0): Source(("p_rf",), shared=row_of),
        ("e", 0): Source(initial=True),
        ("e", 1): Source(("peak",), shared=row_of),
        ("t_rf", 0): Source(("e",), shared=row_of),
        ("total", 0): Source(("t_rf",), shared=row_of),
        ("y", 0): Source(("e",), shared=row_of),
        ("y", 1): Source(("total",), shared=row_of),
    }
    return Case(PLAIN_SOFTMAX, text, sources)


PLAIN_MATMUL = """
def matmul(m, n, k, a: float32[m, k], b: float32[k, n], c: Out[float32[m, n]]):
    with allocate(acc=float32[m, n]):
        for acc.i in range(m):
            for acc.j in range(n):
                for acc.p in range(k):
                    with block("acc", i=spatial(acc.i), j=spatial(acc.j), p=reduction(acc.p), initialises=True):
                        acc[i, j] = combine.sum(acc[i, j], a[i, p]*b[p, j])
        for c.i in range(m):
            for c.j in range(n):
                with block("c", i=spatial(c.i), j=spatial(c.j)):
                    c[i, j] = acc[i, j]
"""


def matmul(w: int, rows: int = 3, vectors: int = 2, steps: int = 2) -> Case:
    """A tile of `rows` x `vectors` accumulators in registers."""
    t = rows, vectors * w

    def at(b: str) -> str:
        i, j = f"acc.i_0*{t[0]} + {b}.i_1", f"acc.j_0*{t[1]} + {b}.j_1*{w} + {b}.j_2"
        return f"i=spatial({i}, m), j=spatial({j}, n)", f"{i} < m and {j} < n"

    (acc, acc_in), (c, c_in) = at("acc"), at("c")
    text = f"""
def matmul(m, n, k, a: float32[m, k], b: float32[k, n], c: Out[float32[m, n]]):
    for acc.i_0 in parallel((m + {t[0] - 1})//{t[0]}):
        for acc.j_0 in range((n + {t[1] - 1})//{t[1]}):
            with allocate(acc=float32[m, n] @ register):
                for acc.p_0 in range((k + {steps - 1})//{steps}):
                    for acc.p_1 in unrolled({steps}):
                        for acc.i_1 in unrolled({rows}):
                            for acc.j_1 in unrolled({vectors}):
                                for acc.j_2 in vectorized({w}):
                                    with block("acc", {acc}, p=reduction(acc.p_0*{steps} + acc.p_1, k), where={acc_in} and acc.p_0*{steps} + acc.p_1 < k, initialises=True):
                                        acc[i, j] = combine.sum(acc[i, j], a[i, p]*b[p, j])
                for c.i_1 in unrolled({rows}):
                    for c.j_1 in unrolled({vectors}):
                        for c.j_2 in vectorized({w}):
                            with block("c", {c}, where={c_in}):
                                c[i, j] = acc[i, j]
"""
    tile = ("acc.i_0", "acc.j_0")
    return Case(PLAIN_MATMUL, text, {("c", 0): Source(("acc",), shared=tile)})


PLAIN_BLUR = """
def blur(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    with allocate(t=float32[m, n]):
        for t.i in range(m):
            for t.j in range(n):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[i, j] = x[max(i - 1, 0), j] + x[i, j] + x[min(i + 1, m - 1), j]
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[i, max(j - 1, 0)] + t[i, j] + t[i, min(j + 1, n - 1)]
"""


def blur(w: int) -> Case:
    text = f"""
def blur(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in parallel(m):
        with allocate(t=float32[m, n]):
            for t.j_0 in range((n + {w - 1})//{w}):
                for t.j_1 in vectorized({w}):
                    with block("t", i=spatial(y.i), j=spatial(t.j_0*{w} + t.j_1, n), where=t.j_0*{w} + t.j_1 < n):
                        t[i, j] = x[max(i - 1, 0), j] + x[i, j] + x[min(i + 1, m - 1), j]
            for y.j_0 in range((n + {w - 1})//{w}):
                for y.j_1 in vectorized({w}):
                    with block("y", i=spatial(y.i), j=spatial(y.j_0*{w} + y.j_1, n), where=y.j_0*{w} + y.j_1 < n):
                        y[i, j] = t[i, max(j - 1, 0)] + t[i, j] + t[i, min(j + 1, n - 1)]
"""
    return Case(PLAIN_BLUR, text, {("y", r): Source(("t",), shared=("y.i",)) for r in range(3)})


def argmax(w: int, t: str = "float32") -> str:
    return f"""
def argmax(m, n, x: {t}[m, n], v: Out[{t}[m]], y: Out[int64[m]]):
    for y.i in parallel(m):
        with allocate(v_rf={t}[m, {w}] @ register, y_rf=int64[m, {w}] @ register):
            for y.j_0 in range((n + {w - 1})//{w}):
                for y.j_1 in vectorized({w}):
                    with block("rf", i=spatial(y.i), l=spatial(y.j_1), jo=reduction(y.j_0, (n + {w - 1})//{w}), where=y.j_0*{w} + y.j_1 < n, initialises=True, origin=y[i, jo*{w} + l]):
                        v_rf[i, l], y_rf[i, l] = combine.argmax((v_rf[i, l], y_rf[i, l]), (x[i, jo*{w} + l], jo*{w} + l))
            for y.l in vectorized({w}):
                with block("y", i=spatial(y.i), l=reduction(y.l), initialises=True, origin=None):
                    v[i], y[i] = combine.argmax((v[i], y[i]), (v_rf[i, l], y_rf[i, l]))
"""


def wide(w: int) -> str:
    """What has to be converted between widths and types: int32 and float32 in, float64 out, a bool,
    remainders and gathers, with the lanes of float64, a part of a vector of the others.
    """
    return f"""
def wide(n, shift: int32, i: int32[n], x: float32[n], flag: bool[n], y: Out[float64[n]], z: Out[int32[n]], big: Out[bool[n]]):
    for y.j_0 in range((n + {w - 1})//{w}):
        for y.j_1 in vectorized({w}):
            with block("y", j=spatial(y.j_0*{w} + y.j_1, n), where=y.j_0*{w} + y.j_1 < n):
                y[j] = float64(x[j])*float64(i[j]) if x[j] > 0.0 and j != 2 else float64(j) - float64(x[n - 1 - j])
            with block("z", j=spatial(y.j_0*{w} + y.j_1, n), where=y.j_0*{w} + y.j_1 < n):
                z[j] = (i[j] % 3 + int32(x[j*j % n]) if flag[j] else (i[j] << 2) - int32(j)) + shift
    for big.j in range(n):
        with block("big", j=spatial(big.j)):
            big[j] = x[j] > 1.0
"""


def columns(w: int) -> str:
    """Sums over the first axis, in an out array; the argument is read down its columns, too."""
    return f"""
def columns(m, n, x: float32[m, n], total: Out[float32[n]], y: Out[float32[n, m]]):
    for total.j_0 in range((n + {w - 1})//{w}):
        for total.i in range(m):
            for total.j_1 in vectorized({w}):
                with block("total", j=spatial(total.j_0*{w} + total.j_1, n), i=reduction(total.i), where=total.j_0*{w} + total.j_1 < n, initialises=True):
                    total[j] = combine.sum(total[j], x[i, j]*x[i, j])
    for y.j_0 in range((m + {w - 1})//{w}):
        for y.i in range(n):
            for y.j_1 in vectorized({w}):
                with block("y", i=spatial(y.i), j=spatial(y.j_0*{w} + y.j_1, m), where=y.j_0*{w} + y.j_1 < m):
                    y[i, j] = x[j, i]
"""


def sides(w: int) -> str:
    """Reads that are there only for the lanes that take them: the sixth element, and clamped ones."""
    return f"""
def sides(n, x: float32[n], y: Out[float32[n]]):
    for y.i_0 in range((n + {w - 1})//{w}):
        for y.i_1 in vectorized({w}):
            with block("y", i=spatial(y.i_0*{w} + y.i_1, n), where=y.i_0*{w} + y.i_1 < n):
                y[i] = (x[5] if i > 5 else 1.0) + x[max(i - 3, 0)] + x[min(max(i + 2, 1), n - 1)]
"""


def parts(w: int) -> str:
    """Vectors of `w` lanes, the last one masked: a temporary with rows, all lanes combined into one
    place, rows of any stride, and a choice that is the same in all lanes.
    """
    return f"""
def parts(m, n, x: float32[m, n], total: Out[float32[m]], y: Out[float32[n, m]]):
    with allocate(t=float32[m, n] @ heap):
        for t.i in range(m):
            for t.j_0 in range((n + {w - 1})//{w}):
                for t.j_1 in vectorized({w}):
                    with block("t", i=spatial(t.i), j=spatial(t.j_0*{w} + t.j_1, n), where=t.j_0*{w} + t.j_1 < n):
                        t[i, j] = x[i, j] + 1.0 if i % 2 == 0 else x[i, j] - 1.0
        for total.i in range(m):
            for total.j_0 in range((n + {w - 1})//{w}):
                for total.j_1 in vectorized({w}):
                    with block("total", i=spatial(total.i), j=reduction(total.j_0*{w} + total.j_1, n), where=total.j_0*{w} + total.j_1 < n, initialises=True):
                        total[i] = combine.sum(total[i], t[i, j] + 2.0)
        for y.i in range(m):
            for y.j_0 in range((n + {w - 1})//{w}):
                for y.j_1 in vectorized({w}):
                    with block("y", i=spatial(y.i), j=spatial(y.j_0*{w} + y.j_1, n), where=y.j_0*{w} + y.j_1 < n):
                        y[j, i] = t[i, j]
"""
