"""Names of specs and recipes in emitted code: whatever they are, they are theirs alone."""

# ruff: noqa: E501 (the scripts)

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gen import language as specs
from gen.errors import SpecError, TilesmithError
from gen.ir.interpret.interp import run
from gen.ir.nodes import Kernel
from gen.ir.text.script_names import to_script
from gen.language import KernelSpec, choices
from gen.lower.index_limits import index_limits
from gen.lower.variants import suffix
from gen.pipeline import emit, schedule
from gen.poly.prove import prove
from gen.targets.c.library import Compiled, build
from gen.targets.c.names import c_names, check, is_reserved
from gen.targets.cpu import jit
from gen.targets.cpu.emit import emit_file, emit_kernel
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.runtime import RUNTIME
from gen.targets.target import joined

from .kernels import WARNINGS, finished, lowered

POOL = (
    *("register", "restrict", "typeof", "nullptr", "double", "float"),  # words of C
    *("linux", "unix", "NULL", "INT64_MAX", "M_PI", "I", "errno", "true"),  # macros
    *("int64_t", "uint16_t", "uintptr_t", "size_t"),
    *("exp", "y0", "main", "memcpy"),
    *("ts_call", "ts_f32", "ts_exp_f32", "TS_OK", "_x", "_mm_add_ps", "__builtin_inff"),
    *("x_s0", "x_s1", "y_s0", "y_s1", "n_end", "i_end", "l_end", "v_x", "x", "y", "i", "n"),
    *("data", "strides", "dims", "f64"),  # members of structs
    *("call", "env", "lower", "upper", "status", "unit", "self", "moved", "stream", "ahead"),
    *("grain", "hits", "lanes1", "active", "active2", "value", "at", "best", "best_at", "on0"),
    *("exps1", "first1", "kept1", "half", "old0", "new0", "both0", "class", "v_class"),
)
DERIVED = ("x_s0", "x_s1", "r_end")
ROLES = (2, 2, 4, 3, 7)  # dims, scalars, arguments, temporaries, loops


def hostile(names: Sequence[str]) -> Kernel:
    """A kernel with a name in each role: arrays of any strides, loops, one of them fused, around
    masks, gathers, exponentials and reductions to pairs.
    """
    m, n, a, k, x, y, v, p, t, s, u, i, j, l, f, g, r, w = map(to_script, names)  # noqa: E741
    return lowered(f"""
def hostile({m}, {n}, {a}: float32, {k}: int64, {x}: float32[{m}, {n}], {y}: Out[float32[{m}, {n}]], {v}: Out[float32[{m}]], {p}: Out[int64[{m}]]):
    @combiner(peak=float32("-inf"), total=float32(0.0))
    def rescale(a, b):
        c.peak = max(a.peak, b.peak)
        c.total = a.total*(a.peak - c.peak) + b.total
    with allocate({t}=float32[{m}, {n}], {s}=float32[{m}], {u}=float32[{m}]):
        for {f} in parallel({m}*{n}):
            with delinearize({f}, {m}, {n}) as ({i}, {g}):
                with block("t", qi=spatial({i}), qj=spatial({g})):
                    {t}[qi, qj] = {x}[qi, qj] * {a}
        for {j} in parallel({m}):
            for {r} in range(({n} + 7)//8):
                for {l} in vectorized(8):
                    with block("y", qi=spatial({j}), qj=spatial({r}*8 + {l}, {n}), where={r}*8 + {l} < {n}):
                        {y}[qi, qj] = sqrt({t}[qi, qj]) if {k} < qj else {x}[qi, qj*qj % {n}]
            for {w} in range({n}):
                with block("vp", qi=spatial({j}), qj=reduction({w}), initialises=True, origin=None):
                    {v}[qi], {p}[qi] = combine.argmax(({v}[qi], {p}[qi]), ({t}[qi, qj], qj))
                with block("su", qi=spatial({j}), qj=reduction({w}), initialises=True, origin=None):
                    {s}[qi], {u}[qi] = combine.rescale(({s}[qi], {u}[qi]), ({t}[qi, qj], 1.0))
            with block("z", qi=spatial({j})):
                {v}[qi] = {v}[qi] + {u}[qi]
""")


def rotated() -> Iterator[list[str]]:
    """Names for all roles, so that each of the pool is once at least in a role of each kind."""
    offsets = [sum(ROLES[:kind]) + 6 * kind + k for kind, n in enumerate(ROLES) for k in range(n)]
    for q in range(0, len(POOL), min(ROLES)):
        yield [POOL[(q + offset) % len(POOL)] for offset in offsets]


def derived() -> Iterator[list[str]]:
    """Names for all roles, three of them those that are made of others', each in every role."""
    own = [f"q{k}" for k in range(sum(ROLES))]
    own[4], own[16] = "x", "r"
    others = [k for k, name in enumerate(own) if name.startswith("q")]
    for q in range(len(others)):
        names = dict(zip((others[(q + k) % len(others)] for k in range(3)), DERIVED, strict=True))
        yield [names.get(k, name) for k, name in enumerate(own)]


def test_each_name_in_each_role() -> None:
    """Compiled without a warning, run on arrays of any strides, compared with the interpreter."""
    kernels = [
        replace(hostile(names), name=f"hostile_{k}")
        for k, names in enumerate([*rotated(), *derived()])
    ]
    level = Level.V2
    parts = [emit_kernel(k.name, "jit", [finished(k, level)], level, packed=()) for k in kernels]
    source = emit_file("hostile", parts, level)
    flags = ("-O0", *WARNINGS)
    library = build(source, jit.compiler_command(level, flags))
    x = np.random.default_rng(3).standard_normal((11, 3)).astype("f").T
    for k in kernels:
        limits = index_limits([(k, None)])
        compiled = Compiled(k, source, library, f"ts_{k.name}_jit_v2", 1, limits)
        arrays = (x, np.zeros((3, 11), "f"), np.zeros(3, "f"), np.zeros(3, int))
        given = {p.buffer.name: z for p, z in zip(k.parameters, arrays, strict=True)}
        scalars = {s.name: z for s, z in zip(k.scalars, (1.5, 4), strict=True)}
        wanted = run(k, {k.parameters[0].buffer.name: x}, scalars)
        compiled(given, scalars, threads=2)
        for name, z in wanted.items():
            np.testing.assert_allclose(given[name], z, rtol=1e-5, err_msg=f"{k.name}: {name}")


def test_a_loop_may_have_the_name_of_an_array() -> None:
    """`as:` takes any name: loops and arrays are two kinds of things."""
    text = """
def k(n, x: float32[n], y: Out[float32[n]]):
    for x in range(n):
        with block("y", i=spatial(x)):
            y[i] = x[i] + 1.0
"""
    compiled = jit.compile_kernel(lowered(text), Level.V2, flags=WARNINGS)
    y = np.zeros(3, "f")
    compiled({"x": np.arange(3, dtype="f"), "y": y})
    assert y.tolist() == [1, 2, 3]


ROLES_OF_SPECS = """\
tilesmith: 1
kernel: $0
doc: Each thing that a spec names.
signature: ($1)->($2)
dtypes: {T: [float32]}
arguments:
  $3: {type: "T[$1]"}
  $4: {type: "T[$2]", intent: out}
sizes: {$2: "$1 + 1"}
scalars:
  $5: {type: float32, default: 2.0}
externals:
  $6:
    arguments: {v: float32}
    result: float32
    c: own_f
    source: static float own_f(float v) { return v + 1; }
    oracle: v + 1
constraints: ["$1 >= 1"]
compute: |
  $7[$8] = $3[$8] * $5
  $4[$9] = $6($7[min($9, $1 - 1)])
"""


def test_each_name_in_each_role_of_a_spec() -> None:
    """What the spec takes for a name: for its kernel, dims, sizes, functions and indices, too."""
    taken = [name for name in POOL if is_name(name)]
    sources, loaded = [], []
    for first in range(0, len(taken), 4):
        text = ROLES_OF_SPECS
        for role in range(10):
            text = text.replace(f"${role}", taken[(first + 5 * role) % len(taken)])
        spec = specs.loads(text, "k.yaml")
        sources.append(emitted(spec))
        loaded.append(spec)
    assert len(sources) > 10
    source = "\n".join(sources).replace("static float own_f(float v) { return v + 1; }", "")
    source = "static float own_f(float v) { return v + 1; }\n" + source
    for spec in loaded:
        x, y = np.arange(3, dtype="f"), np.zeros(4, "f")
        call = jit.load(spec, choices(spec)[0], source, Level.V2, flags=("-O0", *WARNINGS))
        call(dict(zip((a.name for a in spec.arguments), (x, y), strict=True)), {})
        assert y.tolist() == [1, 3, 5, 5], spec.name


def is_name(text: str) -> bool:
    spec = SPEC.replace("$K", text).replace(" x", f" {text}").replace("x[", f"{text}[")
    try:
        specs.loads(spec, "k.yaml")
    except SpecError:
        return False
    return True


EXTERNAL = """
externals:
  f:
    arguments: {v: float32}
    result: float32
    c: $C
    source: |
      #define y_i 7
      static float $C(float v) { return v + 1; }
    oracle: v + 1
"""
SPEC = """\
tilesmith: 1
kernel: $K
doc: One more.
signature: (n)->(n)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[n]"}
  y: {type: "T[n]", intent: out}
compute: y[i] = x[i] + 1
oracle: x + 1
"""


def emitted(spec: KernelSpec) -> str:
    dtypes = choices(spec)[0]
    variants = schedule(spec, dtypes, Cpu(Level.V2), prove)
    return joined(emit(spec, {suffix(dtypes): variants}, Cpu(Level.V2)))


def with_external(symbol: str) -> KernelSpec:
    text = SPEC.replace("$K", "k").replace("x[i] + 1", "f(x[i])") + EXTERNAL.lstrip("\n")
    return specs.loads(text.replace("$C", symbol), "k.yaml")


def test_an_external_function_and_its_macros_keep_their_names() -> None:
    """The C function is named as an argument, a macro of its source as a loop."""
    spec = with_external("x")
    loaded = jit.load(spec, choices(spec)[0], emitted(spec), Level.V2)
    y = np.zeros(3, "f")
    loaded({"x": np.arange(3, dtype="f"), "y": y}, {"n": 3})
    assert y.tolist() == [1, 2, 3]


def test_an_external_function_is_not_hidden_by_a_variable() -> None:
    with pytest.raises(TilesmithError) as refused:
        emitted(with_external("active"))
    words = "the C function 'active' has the name of a variable of emitted code"
    assert refused.value.message == words
    assert refused.value.hint == "define a function of another name that calls it, in 'source'"


def test_no_macro_of_a_header_is_handed_out(tmp_path: Path) -> None:
    source = tmp_path / "all.c"
    headers = ["math.h", "limits.h", "stdlib.h", "complex.h", "errno.h", "omp.h"]
    ours = {p.name for p in RUNTIME.glob("ts_*.h")} - {"ts_processors.h"}  # which the pool includes
    own = [f'#include "{name}"\n' for name in sorted(ours)]
    source.write_text("".join(own) + "".join(f"#include <{name}>\n" for name in headers))
    command = [*jit.compiler_command(jit.lowest_level(), ()), "-dM", "-E", str(source)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    macros = re.findall(r"^#define (\w+)(?!\()\b", text, re.MULTILINE)
    assert (len(macros) > 400 and "linux" in macros) or sys.platform != "linux"
    assert [name for name in macros if not is_reserved(name)] == []


def test_a_name_that_no_one_gave_out_is_seen() -> None:
    """What holds the emitter's own variables to be reserved."""
    names = c_names(hostile([f"q{k}" for k in range(sum(ROLES))]), ())
    check("const int64_t active = q16_end + call->dims[3] + 1.5e3f;", names)
    with pytest.raises(AssertionError, match="'stray' is in the text, and is not reserved"):
        check("const int64_t stray = q0;", names)


def test_a_pragma_has_no_names() -> None:
    """Of a loop that is too long to be written out."""
    script = """def k(n, x: float32[n], y: Out[float32[n]]):
    for y.a in range((n + 99) // 100):
        for y.b in unrolled(100):
            with block("y", i=spatial(y.a * 100 + y.b, n), where=y.a * 100 + y.b < n):
                y[i] = x[i]
"""
    kernel = lowered(script)
    text = "".join(
        emit_kernel(kernel.name, "jit", [finished(kernel, Level.V3)], Level.V3, packed=())
    )
    assert "#pragma GCC unroll 8" in text
