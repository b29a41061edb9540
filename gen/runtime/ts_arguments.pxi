# Inputs: arrays from what the caller gave, their dtypes, extents and strides; scalars; axis=.

import operator
import sys
from numpy.exceptions import AxisError

cdef object _LAST = -1
cdef tuple _WEAK = (bool, int, float, complex)  # Python scalars: NEP 50 gives them no dtype

cdef int *_TYPE_NUMBERS = [
    cnp.NPY_BOOL, cnp.NPY_INT8, cnp.NPY_INT16, cnp.NPY_INT32, cnp.NPY_INT64, cnp.NPY_UINT8,
    cnp.NPY_UINT16, cnp.NPY_UINT32, cnp.NPY_UINT64, cnp.NPY_FLOAT16, cnp.NPY_FLOAT32,
    cnp.NPY_FLOAT64, cnp.NPY_COMPLEX64, cnp.NPY_COMPLEX128,
]


cdef inline str _text(const char *name):
    return name.decode("ascii")


cdef object _dtype(ts_dtype dtype):
    return np.dtype(cnp.PyArray_DescrFromType(_TYPE_NUMBERS[<int> dtype]))


cdef inline ts_dtype _dtype_of(int type_variable, ts_dtype fixed, const ts_overload *overload) noexcept:
    return fixed if type_variable < 0 else overload.types[type_variable]


# ---- dtypes ----

cdef const ts_overload *_exact_overload(const ts_kernel *kernel, tuple given) noexcept:
    """The overload for arrays that need no conversion; NULL for anything else."""
    cdef int i, k, taken
    cdef const ts_argument *argument
    cdef object array
    for i in range(kernel.overloads_count):
        taken = 0
        for k in range(kernel.arguments_count):
            argument = &kernel.arguments[k]
            if argument.intent == TS_OUT:
                continue
            array = given[taken]
            if not cnp.PyArray_CheckExact(array) or cnp.PyArray_TYPE(
                <cnp.ndarray> array
            ) != _TYPE_NUMBERS[
                <int> _dtype_of(argument.type_variable, argument.dtype, &kernel.overloads[i])
            ]:
                break
            taken += 1
        else:
            return &kernel.overloads[i]
    return NULL


cdef object _as_array(const ts_kernel *kernel, const ts_argument *argument, object given):
    cdef str where = f"{_text(kernel.name)}: argument {_text(argument.name)}"
    if argument.intent == TS_INOUT and not isinstance(given, np.ndarray):
        raise TypeError(f"{where} is changed in place and must be an ndarray, "
                        f"got {type(given).__name__}")
    masked = sys.modules.get("numpy.ma")  # not imported: nobody can have made one
    if masked is not None and isinstance(given, masked.MaskedArray):
        raise TypeError(f"{where} is a masked array, whose mask would be lost; "
                        "pass its .data or .filled(...)")
    if getattr(type(given), "__array_ufunc__", True) is None:
        raise TypeError(f"{where}: {type(given).__name__} does not take part in NumPy's functions "
                        "(__array_ufunc__ is None)")
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as error:  # a ragged list, say
        raise type(error)(f"{where}: {error}") from None


cdef tuple _converted(const ts_kernel *kernel, tuple given, const ts_overload **overload):
    """The inputs as arrays of the dtypes of an overload, by NumPy's rules for ufuncs."""
    cdef int k, i, taken = 0
    cdef list arguments = []  # (number, what was given, array)
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent != TS_OUT:
            array = _as_array(kernel, &kernel.arguments[k], given[taken])
            arguments.append((k, given[taken], array))
            taken += 1
    cdef list types = [
        _variable_dtype(kernel, i, arguments) for i in range(kernel.type_variables_count)
    ]
    overload[0] = NULL
    for i in range(kernel.overloads_count):
        if [_dtype(kernel.overloads[i].types[k]) for k in range(kernel.type_variables_count)] == types:
            overload[0] = &kernel.overloads[i]
    if overload[0] is NULL:
        raise TypeError(f"{_text(kernel.name)}: no overload for dtypes {_names(types)}")
    return tuple([_cast(kernel, overload[0], k, original, array)
                  for k, original, array in arguments])


cdef object _variable_dtype(const ts_kernel *kernel, int variable, list arguments):
    """What the type variable stands for, given the arguments that have its type."""
    cdef list choices = [], operands = []
    cdef int i, k
    for i in range(kernel.overloads_count):
        choice = _dtype(kernel.overloads[i].types[variable])
        if choice not in choices:
            choices.append(choice)
    for number, original, array in arguments:
        k = number
        if kernel.arguments[k].type_variable != variable:
            continue
        if array.dtype.kind not in "biu" and array.dtype.newbyteorder("=") not in choices:
            raise _unsupported(kernel, k, array.dtype, choices)
        operands.append(original if type(original) in _WEAK else array.dtype)
    common = np.result_type(*operands)
    for choice in choices:
        if choice == common:
            return choice
    for choice in choices:
        if np.can_cast(common, choice, "safe"):
            return choice
    for number, original, array in arguments:
        k = number
        if kernel.arguments[k].type_variable == variable:
            raise _unsupported(kernel, k, common, choices)


cdef str _names(list dtypes):
    return ", ".join([dtype.name for dtype in dtypes])


cdef object _unsupported(const ts_kernel *kernel, int k, object dtype, list choices):
    return TypeError(f"{_text(kernel.name)}: argument {_text(kernel.arguments[k].name)} has dtype "
                     f"{dtype}; supported: {_names(choices)}")


cdef object _cast(const ts_kernel *kernel, const ts_overload *overload, int k, object original,
                  object array):
    cdef const ts_argument *argument = &kernel.arguments[k]
    dtype = _dtype(_dtype_of(argument.type_variable, argument.dtype, overload))
    if array.dtype.newbyteorder("=") == dtype:
        return array
    if argument.intent == TS_INOUT:
        raise _unsupported(kernel, k, array.dtype, [dtype])
    weak = type(original) in _WEAK
    if argument.type_variable < 0 and not (
        np.result_type(original, dtype) == dtype if weak else np.can_cast(array.dtype, dtype, "safe")
    ):
        raise _unsupported(kernel, k, array.dtype, [dtype])
    return array.astype(dtype, order="K")


# ---- extents and strides ----

cdef int _axis_number(const ts_kernel *kernel, object axis) except? -1:
    try:
        return operator.index(axis)
    except TypeError:
        raise TypeError(f"{_text(kernel.name)}: axis must be an integer, "
                        f"got {type(axis).__name__}") from None


cdef int _core_axis(const ts_kernel *kernel, int k, int ndim, int axis) except -1:
    """Which axis of argument k is its first core axis: the last ones unless axis= moved it."""
    if kernel.arguments[k].core != 1 or axis == -1 or ndim == 1:
        return ndim - kernel.arguments[k].core
    if not -ndim <= axis < ndim:
        raise AxisError(axis, ndim, f"{_text(kernel.name)}: argument {_text(kernel.arguments[k].name)}")
    return axis + ndim if axis < 0 else axis


cdef int _measure(ts_invocation *v, tuple inputs, int axis) except -1:
    """Finds the leading axes' broadcast extents and the dims from the inputs' shapes."""
    cdef const ts_kernel *kernel = v.kernel
    cdef int d, k, i, taken = 0, leading
    cdef cnp.ndarray array
    v.outer_count = 0
    for d in range(kernel.dims_count):
        v.dims[d] = -1
    if kernel.loop_dim >= 0:
        v.dims[kernel.loop_dim] = 1
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent == TS_OUT:
            continue
        array = <cnp.ndarray> inputs[taken]
        taken += 1
        leading = cnp.PyArray_NDIM(array) - kernel.arguments[k].core
        if leading < 0:
            raise ValueError(f"{_text(kernel.name)}: argument {_text(kernel.arguments[k].name)} must "
                             f"have the axes {_core_axes(kernel, k)} at its end, "
                             f"got shape {(<object> array).shape}")
        if leading > v.outer_count:
            v.outer_count = leading
    for i in range(v.outer_count):
        v.outer_shape[i] = 1
    taken = 0
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent != TS_OUT:
            _measure_argument(v, k, <cnp.ndarray> inputs[taken], axis)
            taken += 1
    return 0


cdef str _core_axes(const ts_kernel *kernel, int k):
    """The core axes as a shape in the spec's words: `(m, k)`, `(n,)`, `(3,)`."""
    cdef int i
    cdef int64_t dim
    cdef list names = []
    for i in range(kernel.arguments[k].core):
        dim = kernel.arguments[k].axes[i]
        names.append(_text(kernel.dims[dim]) if dim >= 0 else str(-1 - dim))
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


cdef int _measure_argument(ts_invocation *v, int k, cnp.ndarray array, int axis) except -1:
    cdef const ts_kernel *kernel = v.kernel
    cdef const ts_argument *argument = &kernel.arguments[k]
    cdef int ndim = cnp.PyArray_NDIM(array), i, dim
    cdef int core = _core_axis(kernel, k, ndim, axis) if kernel.has_axis else ndim - argument.core
    cdef int at = v.outer_count - (ndim - argument.core)
    cdef int64_t extent
    for i in range(ndim):
        extent = cnp.PyArray_DIMS(array)[i]
        if core <= i < core + argument.core:
            dim = <int> argument.axes[i - core]
            if dim < 0:
                if extent != -1 - dim:
                    raise ValueError(f"{_text(kernel.name)}: argument {_text(argument.name)}: axis {i} "
                                     f"must have extent {-1 - dim}, got {extent}")
            elif v.dims[dim] < 0:
                v.dims[dim] = extent
            elif v.dims[dim] != extent:
                raise ValueError(f"{_text(kernel.name)}: argument {_text(argument.name)}: dim "
                                 f"{_text(kernel.dims[dim])} (axis {i}) must be {v.dims[dim]}, as in "
                                 f"the arguments before it, got {extent}")
            continue
        if v.outer_shape[at] == 1:
            v.outer_shape[at] = extent
        elif extent != 1 and extent != v.outer_shape[at]:
            raise ValueError(f"{_text(kernel.name)}: argument {_text(argument.name)}: axis {i} with "
                             f"extent {extent} does not broadcast with {v.outer_shape[at]}, the "
                             "extent in the arguments before it")
        at += 1
    return 0


cdef int _bind(ts_invocation *v, int k, cnp.ndarray array, int axis) except -1:
    """Fills operand k; the shape has been checked."""
    cdef const ts_argument *argument = &v.kernel.arguments[k]
    cdef ts_operand *operand = &v.operands[k]
    cdef int ndim = cnp.PyArray_NDIM(array), i
    cdef int core = _core_axis(v.kernel, k, ndim, axis) if v.kernel.has_axis else ndim - argument.core
    cdef int at = v.outer_count - (ndim - argument.core)
    cdef int64_t extent, stride
    operand.data = <char *> cnp.PyArray_DATA(array)
    operand.itemsize = cnp.PyArray_ITEMSIZE(array)
    operand.swap = 0
    if not cnp.PyArray_ISNOTSWAPPED(array):
        operand.swap = operand.itemsize // 2 if cnp.PyArray_ISCOMPLEX(array) else operand.itemsize
    operand.convert = operand.swap != 0 or not cnp.PyArray_ISALIGNED(array)
    for i in range(at):
        operand.outer[i] = 0
    for i in range(ndim):
        extent = cnp.PyArray_DIMS(array)[i]
        stride = cnp.PyArray_STRIDES(array)[i]
        if extent > 1 and stride % operand.itemsize != 0:
            operand.convert = True  # a field of a record: elements are not whole strides apart
        if core <= i < core + argument.core:
            operand.core[i - core] = stride
        else:
            operand.outer[at] = stride if extent != 1 else 0
            at += 1
    return 0


# ---- scalars ----

cdef int _set_scalars(ts_invocation *v, const ts_overload *overload, tuple parameters) except -1:
    cdef const ts_parameter *parameter
    cdef ts_dtype dtype
    cdef int i
    for i in range(v.kernel.parameters_count):
        parameter = &v.kernel.parameters[i]
        dtype = _dtype_of(parameter.type_variable, parameter.dtype, overload)
        given = parameters[i]
        try:
            if dtype >= TS_FLOAT16:
                v.scalars[i].f64 = given
            elif dtype == TS_BOOL:
                v.scalars[i].i64 = _truth(given)
            else:
                given = operator.index(given)
                _check_range(v.kernel, parameter, dtype, given)
                v.scalars[i].i64 = given
        except TypeError:
            raise TypeError(f"{_text(v.kernel.name)}: scalar {_text(parameter.name)} must convert to "
                            f"{_dtype(dtype)}, got {type(given).__name__}") from None
    return 0


cdef bint _truth(object given) except -1:
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError
    return True if given else False


cdef int _check_range(const ts_kernel *kernel, const ts_parameter *parameter, ts_dtype dtype,
                      object value) except -1:
    limits = np.iinfo(_dtype(dtype))
    if not limits.min <= value <= limits.max:
        raise OverflowError(f"{_text(kernel.name)}: scalar {_text(parameter.name)} must fit "
                            f"{_dtype(dtype)}, got {value}")
    return 0
