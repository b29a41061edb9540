# Inputs: arrays from what the caller gave, their dtypes, extents and strides; scalars; axis=.

import operator
import sys
from numpy.exceptions import AxisError

cdef object _LAST = -1
cdef object _FAR = 2**30  # no array has such an axis, and a C int holds it
cdef tuple _WEAK = (bool, int, float, complex)  # Python scalars: NEP 50 gives them no dtype

cdef int *_TYPE_NUMBERS = [
    cnp.NPY_BOOL, cnp.NPY_INT8, cnp.NPY_INT16, cnp.NPY_INT32, cnp.NPY_INT64, cnp.NPY_UINT8,
    cnp.NPY_UINT16, cnp.NPY_UINT32, cnp.NPY_UINT64, cnp.NPY_FLOAT16, -1, cnp.NPY_FLOAT32,
    cnp.NPY_FLOAT64, cnp.NPY_COMPLEX64, cnp.NPY_COMPLEX128,
]


cdef inline str _text(const char *name):
    return name.decode("ascii")


# NumPy has no bfloat16; ml_dtypes adds it, under a number that is known once there is an array of it.
cdef str _BFLOAT16 = "bfloat16"


cdef int _learn_bfloat16(object dtype) except -1:
    if _TYPE_NUMBERS[<int> TS_BFLOAT16] < 0 and dtype.name == _BFLOAT16:
        _TYPE_NUMBERS[<int> TS_BFLOAT16] = dtype.num
    return 0


cdef int _number_of(ts_dtype dtype) except -1:
    """NumPy's number of the dtype."""
    if _TYPE_NUMBERS[<int> dtype] < 0:
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError("bfloat16 needs the package ml_dtypes") from None
        _learn_bfloat16(np.dtype(ml_dtypes.bfloat16))
    return _TYPE_NUMBERS[<int> dtype]


cdef object _dtype(ts_dtype dtype):
    """None for bfloat16 as long as there has been no array of it."""
    if _TYPE_NUMBERS[<int> dtype] < 0:
        return None
    return np.dtype(cnp.PyArray_DescrFromType(_TYPE_NUMBERS[<int> dtype]))


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
                <int> ts_dtype_of(&kernel.overloads[i], argument.type_variable, argument.dtype)
            ]:
                break
            taken += 1
        else:
            return &kernel.overloads[i]
    return NULL


cdef object _as_array(const ts_kernel *kernel, const ts_argument *argument, object given):
    """What np.asarray gives, unless that would pass over what the object itself says of NumPy; what is on
    a GPU stays there."""
    if not cnp.PyArray_Check(given) and _is_on_gpu(given):
        return given
    cdef str where = f"{_text(kernel.name)}: argument {_text(argument.name)}"
    if argument.intent == TS_INOUT and not isinstance(given, np.ndarray):
        raise TypeError(f"{where} is changed in place and must be an ndarray, "
                        f"got {type(given).__name__}")
    _refuse_own_rules(where, given)
    _refuse_devices(where, given)
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:  # a ragged list, say
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            f"{where}: {error}") from error
    if array.dtype.kind == "O":
        raise TypeError(f"{where} {_why_object(given)}")
    return array


cdef int _refuse_own_rules(str where, object given) except -1:
    """Raises TypeError where the values alone are not what the object stands for."""
    masked = sys.modules.get("numpy.ma")  # not imported: nobody can have made one
    if masked is not None and isinstance(given, masked.MaskedArray):
        raise TypeError(f"{where} is a masked array, whose mask would be lost; "
                        "pass its .data or .filled(...)")
    rules = getattr(type(given), "__array_ufunc__", None)
    if rules is None and hasattr(type(given), "__array_ufunc__"):
        raise TypeError(f"{where}: {type(given).__name__} does not take part in NumPy's functions "
                        "(__array_ufunc__ is None)")
    if isinstance(given, np.ndarray) and rules is not np.ndarray.__array_ufunc__:
        raise TypeError(f"{where}: {type(given).__name__} has rules of its own for NumPy's functions "
                        "(__array_ufunc__), which would be passed over; pass np.asarray(...) of it")
    return 0


cdef str _why_object(object given):
    """What to do about an argument of which NumPy makes an array of objects."""
    if given is None:
        return "is None, not an array"
    if not isinstance(given, np.ndarray) and hasattr(given, "__dlpack__"):
        return f"is a {type(given).__name__}; pass np.from_dlpack(...) of it"
    return "has dtype object; convert it first, for example by np.asarray(..., dtype=np.float64)"


cdef tuple _converted(const ts_kernel *kernel, tuple given, const ts_overload **overload):
    """The inputs as arrays of the dtypes of an overload, by NumPy's rules for ufuncs."""
    cdef int k, i, taken = 0
    cdef list arguments = []  # (number, what was given, array)
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent != TS_OUT:
            array = _as_array(kernel, &kernel.arguments[k], given[taken])
            _learn_bfloat16(array.dtype)
            arguments.append((k, given[taken], array))
            taken += 1
    cdef list types = [
        _variable_dtype(kernel, i, arguments) for i in range(kernel.type_variables_count)
    ]
    cdef list strong = [None] * kernel.type_variables_count
    for number, original, array in arguments:
        i = kernel.arguments[<int> number].type_variable
        if i >= 0 and type(original) not in _WEAK:
            strong[i] = types[i]
    overload[0] = _overload(kernel, types, False)
    if overload[0] is NULL:  # a type that follows another is not the one that was given
        overload[0] = _overload(kernel, strong, False)
    if overload[0] is NULL:
        overload[0] = _overload(kernel, strong, True)
    if overload[0] is NULL:
        raise TypeError(f"{_text(kernel.name)}: no overload for dtypes {_names(types)}")
    return tuple([_cast(kernel, overload[0], k, original, array)
                  for k, original, array in arguments])


cdef const ts_overload *_overload(const ts_kernel *kernel, list types, bint wider):
    """The first overload of the types, where None is any; `wider`: to which they can be cast."""
    cdef int i, k
    for i in range(kernel.overloads_count):
        for k in range(kernel.type_variables_count):
            type_ = _dtype(kernel.overloads[i].types[k])
            if types[k] is not None and (type_ is None or not (
                np.can_cast(types[k], type_, "safe") if wider else types[k] == type_
            )):
                break
        else:
            return &kernel.overloads[i]
    return NULL


cdef object _variable_dtype(const ts_kernel *kernel, int variable, list arguments):
    """What the type variable stands for, given the arguments that have its type; None: of results
    alone, whose type follows from the others."""
    cdef list choices = [], operands = []
    cdef int i, k
    for i in range(kernel.overloads_count):
        choice = _dtype(kernel.overloads[i].types[variable])
        if choice is not None and choice not in choices:
            choices.append(choice)
    for number, original, array in arguments:
        k = number
        if kernel.arguments[k].type_variable != variable:
            continue
        if not _supported(_native(array.dtype), choices):
            raise _unsupported(kernel, k, array.dtype, _type_names(kernel, variable))
        operands.append(original if type(original) in _WEAK else array.dtype)
    if not operands:
        return None
    common = _common(kernel, operands)
    for choice in choices:
        if choice == common:
            return choice
    for choice in choices:
        if np.can_cast(common, choice, "safe"):
            return choice
    for number, original, array in arguments:
        k = number
        if kernel.arguments[k].type_variable == variable:
            raise _unsupported(kernel, k, common, _type_names(kernel, variable))


cdef object _common(const ts_kernel *kernel, list operands):
    """The dtype of them all. Python's real numbers are weak beside bfloat16, too, as NumPy has it for
    its own dtypes."""
    names = [operand.name for operand in operands if type(operand) not in _WEAK]
    if _BFLOAT16 in names:
        operands = [o for o in operands if type(o) not in _WEAK or isinstance(o, complex)]
    try:
        return np.result_type(*operands)
    except TypeError:
        raise TypeError(f"{_text(kernel.name)}: arrays of {', '.join(names)} have no common dtype") from None


cdef bint _supported(object dtype, list choices) except -1:
    """Whether an array of the dtype may be given for a type variable: one of its choices holds it, so
    float16 runs as float32 where there is no float16. Integers are looked at together with the other
    arguments."""
    if dtype.kind in "biu":
        return True
    for choice in choices:
        if np.can_cast(dtype, choice, "safe"):
            return True
    return False


cdef object _native(object dtype):
    """The dtype in the machine's order of bytes, of which NumPy's newer kinds, such as StringDType,
    have none."""
    try:
        return dtype.newbyteorder("=")
    except TypeError:
        return dtype


cdef str _names(list dtypes):
    return ", ".join([dtype.name for dtype in dtypes if dtype is not None])


cdef str _type_names(const ts_kernel *kernel, int variable):
    """What the type variable may stand for; bfloat16, too, where NumPy does not know it yet."""
    cdef list names = []
    cdef int i
    for i in range(kernel.overloads_count):
        dtype = _dtype(kernel.overloads[i].types[variable])
        name = _BFLOAT16 if dtype is None else dtype.name
        if name not in names:
            names.append(name)
    return ", ".join(names)


cdef object _unsupported(const ts_kernel *kernel, int k, object dtype, str supported):
    return TypeError(f"{_text(kernel.name)}: argument {_text(kernel.arguments[k].name)} has dtype "
                     f"{dtype}; supported: {supported}")


cdef object _cast(const ts_kernel *kernel, const ts_overload *overload, int k, object original,
                  object array):
    cdef const ts_argument *argument = &kernel.arguments[k]
    _number_of(ts_dtype_of(overload, argument.type_variable, argument.dtype))
    dtype = _dtype(ts_dtype_of(overload, argument.type_variable, argument.dtype))
    if _native(array.dtype) == dtype:
        return array
    if argument.intent == TS_INOUT:
        raise _unsupported(kernel, k, array.dtype, dtype.name)
    weak = type(original) in _WEAK
    if argument.type_variable < 0 and not (
        np.result_type(original, dtype) == dtype if weak else np.can_cast(array.dtype, dtype, "safe")
    ):
        raise _unsupported(kernel, k, array.dtype, dtype.name)
    if not weak:
        return array.astype(dtype, order="K")
    try:
        return np.asarray(original, dtype=dtype)
    except OverflowError as error:
        raise OverflowError(f"{_text(kernel.name)}: argument {_text(argument.name)}: {error}") from None


# ---- extents and strides ----

cdef int _axis_number(const ts_kernel *kernel, object axis, str expected) except? -1:
    try:
        if isinstance(axis, bool):
            raise TypeError
        number = operator.index(axis)
    except TypeError:
        raise TypeError(f"{_text(kernel.name)}: axis must be {expected}, "
                        f"got {type(axis).__name__}") from None
    if not -_FAR <= number <= _FAR:
        raise AxisError(f"{_text(kernel.name)}: axis {number} is out of bounds")
    return number


cdef inline void _give(ts_given *given, cnp.ndarray array) noexcept:
    """The array as the engine has it; it must outlive the call."""
    given.array.data = cnp.PyArray_DATA(array)
    given.array.ndim = cnp.PyArray_NDIM(array)
    given.array.shape = <const int64_t *> cnp.PyArray_DIMS(array)
    given.array.strides = <const int64_t *> cnp.PyArray_STRIDES(array)
    given.swapped = not cnp.PyArray_ISNOTSWAPPED(array)


cdef inline void _give_inputs(const ts_kernel *kernel, ts_given *given, tuple inputs) noexcept:
    cdef int k, taken = 0
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent != TS_OUT:
            _give(&given[k], <cnp.ndarray> inputs[taken])
            taken += 1


cdef inline void _give_outputs(const ts_kernel *kernel, ts_given *given, list outputs) noexcept:
    cdef int k, taken = 0
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent == TS_OUT:
            _give(&given[k], <cnp.ndarray> outputs[taken])
            taken += 1


cdef int _measure(ts_invocation *v, const ts_given *given, int axis) except -1:
    """Finds the extents of the call from the inputs' shapes."""
    cdef int status = ts_measure(v, given, axis)
    if status == TS_WRONG_AXIS:
        raise AxisError(axis, v.axis_ndim, _message())
    if status != TS_OK:
        raise ValueError(_message())
    return 0


cdef str _message():
    return ts_message().decode("utf-8")


# ---- scalars ----

cdef inline int _member(str kernel, str scalar, tuple members, given) except -1:
    """The number of the word that a caller gave. Raises TypeError and ValueError."""
    if isinstance(given, str) and given in members:
        return members.index(given)
    known = " or ".join([f"'{member}'" for member in members])
    if not isinstance(given, str):
        raise TypeError(f"{kernel}: {scalar} must be {known}, got {type(given).__name__}")
    raise ValueError(f"{kernel}: {scalar} must be {known}, got {given!r}")


cdef int _set_scalars(ts_invocation *v, const ts_overload *overload, tuple parameters) except -1:
    cdef const ts_parameter *parameter
    cdef ts_dtype dtype
    cdef int i
    for i in range(v.kernel.parameters_count):
        parameter = &v.kernel.parameters[i]
        dtype = ts_dtype_of(overload, parameter.type_variable, parameter.dtype)
        given = parameters[i]
        try:
            if dtype >= TS_COMPLEX64:
                if isinstance(given, str):  # which complex() would read
                    raise TypeError
                given_complex = complex(given)
                v.scalars[i].parts[0] = given_complex.real
                v.scalars[i].parts[1] = given_complex.imag
            elif dtype >= TS_FLOAT16:
                v.scalars[i].f64 = given
            elif dtype == TS_BOOL:
                v.scalars[i].i64 = _truth(given)
            else:
                given = operator.index(given)
                _check_range(dtype, given)
                v.scalars[i].i64 = given if given < 2**63 else given - 2**64
        except OverflowError as error:
            raise OverflowError(f"{_text(v.kernel.name)}: scalar {_text(parameter.name)}: "
                                f"{error}") from None
        except TypeError:
            raise TypeError(f"{_text(v.kernel.name)}: scalar {_text(parameter.name)} must convert to "
                            f"{_dtype(dtype)}, got {type(given).__name__}") from None
    return 0


cdef bint _truth(object given) except -1:
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError
    return True if given else False


cdef int _check_range(ts_dtype dtype, object value) except -1:
    limits = np.iinfo(_dtype(dtype))
    if not limits.min <= value <= limits.max:
        raise OverflowError(f"must fit {_dtype(dtype)}, got {value}")
    return 0
