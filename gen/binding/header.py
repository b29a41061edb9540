"""The package's kernels for C and Cython: its header and its `.pxd`.

Input: manifest entries. Output: `<package>.h`, an inline function for each kernel and choice of
dtypes over the capsule `_C_API` of the extension, and Cython's declarations of the same. Invariant:
a function is found in the extension by its declaration, all that its callers depend on, so that a
module that was compiled against one version of a package calls another version rightly or is told.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from ..ir.nodes import Intent
from ..ir.types import DType, Kind
from ..targets.c.names import Distinct, is_word_of_c
from ..targets.runtime import RUNTIME
from .descriptors import declaration, overloads
from .manifest import Entry, EntryArgument, EntryParameter

_CALLER = RUNTIME / "ts_caller.h"

_WORDS = frozenset(  # of C++ and Cython, beyond those of C
    {
        "and", "and_eq", "bint", "bitand", "bitor", "by", "catch", "cdef", "char8_t", "char16_t",
        "char32_t", "cimport", "class", "co_await", "co_return", "co_yield", "compl", "concept",
        "const_cast", "consteval", "constinit", "cpdef", "ctypedef", "decltype", "delete",
        "dynamic_cast", "explicit", "export", "friend", "gil", "include", "mutable", "namespace",
        "new", "noexcept", "nogil", "not", "not_eq", "operator", "or", "or_eq", "packed", "private",
        "protected", "public", "reinterpret_cast", "requires", "static_cast", "template", "this",
        "throw", "try", "typeid", "typename", "using", "virtual", "xor", "xor_eq",
    }
)  # fmt: skip
_MACROS = re.compile(r"Py.*|PRI.*|SCN.*|[A-Z]_.*|st_[acm]time|sched_priority")  # of Python.h

_HEADER = """\
/* Generated: the kernels of {module}, for C and C++.

   import_{name}(), with the GIL held, makes them callable in the file that includes this: 0, or -1
   with a Python exception set. The kernels need no GIL and touch nothing of Python. Each returns
   TS_OK or another status of those below, of which {name}_message() tells the reason, and
   {name}_raise(), with the GIL held, makes an exception.

   An array's core axes are its last ones, leading axes (...) broadcast; permuted shapes and strides
   run a kernel along other axes. An `out` array has the shape that follows from the others. What is
   written shares memory with no other argument, but may be the very array that its comment names.
   num_threads: the most to use; 0 is the default of calls from Python. */
#ifndef {guard}
#define {guard}

#include <Python.h>
#include <stdbool.h>

{caller}
static const ts_caller_api *{name}_api;

static ts_function {name}_functions[] = {{
{functions}}};

__attribute__((unused)) static int import_{name}(void)
{{
    PyObject *module = PyImport_ImportModule("{module}._kernels");
    PyObject *capsule = module ? PyObject_GetAttrString(module, "_C_API") : NULL;
    Py_XDECREF(module);
    const ts_caller_api *api =
        capsule ? (const ts_caller_api *)PyCapsule_GetPointer(capsule, "{module}._kernels._C_API")
                : NULL;
    Py_XDECREF(capsule); /* the extension, which is never unloaded, holds what it points to */
    if (!api)
        return -1;
    for (size_t k = 0; k < sizeof {name}_functions / sizeof {name}_functions[0]; k++)
        {name}_functions[k].kernel = api->find({name}_functions[k].declaration);
    {name}_api = api;
    return 0;
}}

static inline int {name}_call(int number, const ts_array *const *arrays,
                             const void *const *scalars, int num_threads)
{{
    return {name}_api ? {name}_api->call(&{name}_functions[number], arrays, scalars, num_threads)
                     : TS_NO_KERNEL;
}}

/* Why this thread's latest call returned what it did, unless that was TS_OK. */
static inline const char *{name}_message(void)
{{
    return {name}_api ? {name}_api->message() : "import_{name}() has not been called";
}}

/* 0 for TS_OK; for any other status -1, with a Python exception set. */
__attribute__((unused)) static int {name}_raise(int status)
{{
    if (status == TS_OK)
        return 0;
    PyErr_SetString(status == TS_NO_MEMORY       ? PyExc_MemoryError
                    : status == TS_WRONG_ARGUMENT ? PyExc_ValueError
                                                  : PyExc_ImportError,
                    {name}_message());
    return -1;
}}

{kernels}
#endif
"""

_PXD = """\
# Generated: the kernels of {module}, for Cython. {name}.h has their documentation; import_{name}()
# is called once in each module, as numpy's import_array() is.
from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
)
from libcpp cimport bool

cdef extern from "{name}.h":
    int import_{name}() except -1
    int {name}_raise(int status) except -1

cdef extern from "{name}.h" nogil:
    ctypedef struct ts_array:
        void *data
        int ndim
        const int64_t *shape
        const int64_t *strides
    ctypedef struct ts_complex64:
        float re
        float im
    ctypedef struct ts_complex128:
        double re
        double im
    enum:
        TS_OK
        TS_NO_MEMORY
        TS_WRONG_ARGUMENT
        TS_NO_KERNEL
    const char *{name}_message()
"""


def c_name(package: str) -> str:
    """The name of a package in C: `tilesmith`, `some_package` of some.package."""
    return package.replace(".", "_")


def header(entries: Sequence[Entry], package: str) -> str:
    """`<package>.h` for the entries; `package` is the importable name, such as some.package."""
    name = c_name(package)
    listed = list(_functions(entries))
    return _HEADER.format(
        module=package,
        name=name,
        guard=f"TS_PACKAGE_{name}",
        caller=_CALLER.read_text("utf-8"),
        functions="".join(f'    {{"{declaration(e, t)}", 0}},\n' for e, t in listed),
        kernels="\n".join(_function(name, k, e, t) for k, (e, t) in enumerate(listed)),
    )


def pxd(entries: Sequence[Entry], package: str) -> str:
    """`<package>.pxd` for the entries."""
    name = c_name(package)
    lines = (f"    int {_signature(name, e, t)}\n" for e, t in _functions(entries))
    return _PXD.format(module=package, name=name) + "".join(lines)


def _functions(entries: Sequence[Entry]) -> Iterator[tuple[Entry, Mapping[str, str]]]:
    for entry in sorted(entries, key=lambda entry: entry.kernel):
        for dtypes in overloads(entry):
            yield entry, dict(zip(entry.types, dtypes, strict=True))


def _function(name: str, number: int, entry: Entry, types: Mapping[str, str]) -> str:
    safe = _names(name, entry)
    arrays = ", ".join(safe[a.name] for a in entry.arguments)
    scalars = ", ".join(f"&{safe[p.name]}" for p in entry.parameters)
    given = f"_arrays, {'_scalars' if scalars else 'NULL'}, num_threads"
    lines = [
        _comment(entry, types, safe),
        f"static inline int {_signature(name, entry, types)}",
        "{",
        f"    const ts_array *const _arrays[] = {{{arrays}}};",
        f"    const void *const _scalars[] = {{{scalars}}};" if scalars else "",
        f"    return {name}_call({number}, {given});",
        "}",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _signature(name: str, entry: Entry, types: Mapping[str, str]) -> str:
    function, safe = "_".join([name, entry.kernel, *types.values()]), _names(name, entry)
    arrays = [f"const ts_array *{safe[a.name]}" for a in entry.arguments]
    scalars = [f"{_c_type(p, types)} {safe[p.name]}" for p in entry.parameters]
    return f"{function}({', '.join([*arrays, *scalars, 'int num_threads'])})"


def _comment(entry: Entry, types: Mapping[str, str], safe: Mapping[str, str]) -> str:
    doc = " ".join(entry.doc.replace("*/", "* /").replace("/*", "/ *").split())
    lines = [_array(a, types, safe) for a in entry.arguments]
    lines += [f"{safe[p.name]}: {_default(p)}" for p in entry.parameters]
    if rules := entry.size_rules:
        lines.append(f"Sizes: {', '.join(rules)}")
    return f"/* {doc}\n" + "".join(f"\n   {line}" for line in lines) + " */"


def _array(argument: EntryArgument, types: Mapping[str, str], safe: Mapping[str, str]) -> str:
    axes = ", ".join(["...", *map(str, argument.core)])
    may = f"; may be {' or '.join(safe[n] for n in argument.in_place)}" if argument.in_place else ""
    intent = f", {argument.intent.value}{may}" if argument.intent is not Intent.IN else ""
    dtype = types.get(argument.dtype, argument.dtype)
    return f"{safe[argument.name]}: {dtype} ({axes}){intent}"


def _default(parameter: EntryParameter) -> str:
    words = "".join(f"{number} for {word}, " for number, word in enumerate(parameter.members))
    if parameter.default is None:
        return words.removesuffix(", ") or "a scalar"
    return f"{words}{parameter.default} by default in Python"


def _c_type(parameter: EntryParameter, types: Mapping[str, str]) -> str:
    dtype = DType(types.get(parameter.dtype, parameter.dtype))
    match dtype.kind:
        case Kind.BOOL:
            return "bool"
        case Kind.FLOAT:
            return "float" if dtype.computed is DType.FLOAT32 else "double"
        case Kind.COMPLEX:
            return f"ts_{dtype.value}"
        case _:
            return f"{dtype.value}_t"


def _names(package: str, entry: Entry) -> Mapping[str, str]:
    """The C names of the kernel's arguments and scalars, in a header with the package's names."""

    def reserved(name: str) -> bool:
        own = name.startswith(f"{package}_") or name == "num_threads"
        return own or name in _WORDS or is_word_of_c(name) or bool(_MACROS.fullmatch(name))

    def other(name: str) -> str:  # a macro's form it may have with anything behind it, too
        return f"v_{name}" if reserved(f"{name}_") else f"{name}_"

    distinct = Distinct(reserved=reserved, other=other)
    return distinct.names([a.name for a in entry.arguments] + [p.name for p in entry.parameters])
