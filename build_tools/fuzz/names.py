"""Names that C, its headers or the generated code have a use for.

Input: a draft. Output: the same kernel, with such names for arrays, dims, scalars and indices.
"""

import ast
from random import Random

from .draft import Draft, names_in, renamed

HOSTILE = (
    # of the code that is emitted: strides, parts of arrays, the call and its own variables
    *("s0", "s1", "y_s0", "x_s0", "x_s1", "n_s0", "lower", "upper", "lanes", "lanes0", "call"),
    *("env", "status", "unit", "best", "best_at", "held", "first", "top", "stream", "ahead", "l"),
    *("value", "value0", "active", "line", "kept", "half", "old0", "new0_1", "at0", "wins", "v_s0"),
    *("ts_max", "TS_MAX", "ts", "y_value", "y_init", "y_sum", "x_cache", "y_i", "t0_i", "stack"),
    # of C, of its headers and of compilers
    *("linux", "unix", "int64_t", "INT64_MAX", "restrict", "main", "I", "NULL", "register", "auto"),
    *("y0", "y1", "j0", "jn", "gamma", "signgam", "index", "stdin", "errno", "size_t", "bool_"),
    *("double", "float", "short", "inline", "static", "union", "void", "NAN", "INFINITY", "M_PI"),
    *("omp", "asm", "typeof", "printf", "malloc", "memcpy", "abort", "fabs", "i386", "unsigned"),
    # of Python and of NumPy, and alike but for capitals
    *("self", "np", "print", "range_", "object", "T_", "E", "M", "N", "X0", "Y", "eps", "ulp"),
    *("dims", "strides", "arrays", "threads", "out", "signature", "axis", "dtype", "None_", "sum_"),
)
KERNELS = ("main", "linux", "unix", "exp", "call", "free", "ts", "s0", "I", "register", "y0", "jit")


def hostile(draft: Draft, random: Random) -> Draft:
    """The draft with some names of the pool."""
    indices = {
        n.id
        for n in ast.walk(ast.parse(draft.compute))
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in ("i", "j", "k", "t")
    }
    dims = dict.fromkeys(d for shape in draft.shapes.values() for d in names_in(shape))
    own = [*draft.shapes, *dims, *draft.scalars, *sorted(indices)]
    chosen = random.sample(own, random.randint(1, min(4, len(own))))
    given = zip(chosen, random.sample(HOSTILE, len(chosen)), strict=True)
    kernel = random.choice(KERNELS) if random.random() < 0.2 else draft.kernel
    return renamed(draft, dict(given), kernel)
