# Outputs: new arrays, or the caller's out= checked; overlap of what is written with what is read.

cdef enum:
    _MOST_AXES = 64 + 8  # leading and core: ts_engine.h's limits


cdef inline bint _has_shape(cnp.ndarray array, int ndim, const cnp.npy_intp *shape) noexcept:
    return cnp.PyArray_NDIM(array) == ndim and cnp.PyArray_CompareLists(
        cnp.PyArray_DIMS(array), shape, ndim)


cdef tuple _shape_tuple(int ndim, const cnp.npy_intp *shape):
    cdef int i
    return tuple([shape[i] for i in range(ndim)])


cdef list _outputs(ts_invocation *v, const ts_overload *overload, tuple inputs, int axis, object out):
    """One array for each argument of intent out, in order."""
    cdef const ts_kernel *kernel = v.kernel
    cdef int count = kernel.arguments_count, k, given = 0
    cdef list outputs = []
    cdef cnp.npy_intp shape[_MOST_AXES]
    cdef int ndim, type_number
    cdef tuple outs = () if out is None else _out_tuple(kernel, out)
    for k in range(count):
        if kernel.arguments[k].intent != TS_OUT:
            continue
        ndim = ts_shape_of(v, k, axis, <int64_t *> shape)
        type_number = _number_of(ts_dtype_of(
            overload, kernel.arguments[k].type_variable, kernel.arguments[k].dtype))
        if out is not None and outs[given] is not None:
            outputs.append(_checked_out(kernel, k, outs[given], ndim, shape, type_number))
        else:
            outputs.append(_new_output(inputs, ndim, shape, type_number))
        given += 1
    return outputs


cdef object _new_output(tuple inputs, int ndim, cnp.npy_intp *shape, int type_number):
    """An array in the memory order of the first input of its shape, as NumPy's ufuncs give."""
    cdef cnp.ndarray array
    for item in inputs:
        array = <cnp.ndarray> item
        if _has_shape(array, ndim, shape):
            if cnp.PyArray_IS_C_CONTIGUOUS(array):
                break
            dtype = cnp.PyArray_DescrFromType(type_number)
            return np.empty_like(array, dtype=dtype, order="K", subok=False)
    return cnp.PyArray_EMPTY(ndim, shape, type_number, 0)


cdef tuple _out_tuple(const ts_kernel *kernel, object out):
    cdef int count = kernel.arguments_count, k, wanted = 0
    for k in range(count):
        wanted += kernel.arguments[k].intent == TS_OUT
    outs = out if isinstance(out, tuple) else (out,)
    if len(outs) != wanted:
        raise ValueError(f"{_text(kernel.name)}: out must be {_wanted(wanted)}, "
                         f"got a tuple of {len(outs)}")
    return outs


cdef str _wanted(int count):
    return "an array or a tuple of 1" if count == 1 else f"a tuple of {count}"


cdef str _out_name(const ts_kernel *kernel, int k):
    return f"{_text(kernel.name)}: out ({_text(kernel.arguments[k].name)})"


cdef object _checked_out(const ts_kernel *kernel, int k, object out, int ndim, cnp.npy_intp *shape,
                         int type_number):
    cdef cnp.ndarray array
    if not cnp.PyArray_Check(out):
        raise TypeError(
            f"{_out_name(kernel, k)} must be an ndarray, got {type(out).__name__}")
    if not cnp.PyArray_CheckExact(out):
        _refuse_own_rules(_out_name(kernel, k), out)
    array = <cnp.ndarray> out
    if not cnp.PyArray_EquivTypenums(cnp.PyArray_TYPE(array), type_number):
        expected = np.dtype(cnp.PyArray_DescrFromType(type_number))
        raise TypeError(
            f"{_out_name(kernel, k)} must have dtype {expected}, got {array.dtype}")
    if not _has_shape(array, ndim, shape):
        raise ValueError(f"{_out_name(kernel, k)} must have shape {_shape_tuple(ndim, shape)}, "
                         f"got {out.shape}")
    if not cnp.PyArray_ISWRITEABLE(array):
        raise ValueError(f"{_out_name(kernel, k)} is read-only")
    return array


cdef bint _extents_suffice(const ts_invocation *v, list outputs) except -1:
    """Whether to run: raises where a dim is smaller than the kernel is defined for, unless, as for
    NumPy's reductions, there is nothing to compute."""
    cdef int d = ts_too_small(v)
    if d < 0:
        return True
    for output in outputs:
        if output.size != 0:
            ts_refuse_too_small(v, d)
            raise ValueError(_message())
    return len(outputs) == 0


# ---- overlap ----

cdef bint _has_inout(const ts_kernel *kernel) noexcept:
    cdef int k
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent == TS_INOUT:
            return True
    return False


cdef bint _overlap(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Exact, but True where finding out would take long."""
    cdef ts_given x, y
    _give(&x, a)
    _give(&y, b)
    return ts_overlap(&x.array, cnp.PyArray_ITEMSIZE(a), &y.array, cnp.PyArray_ITEMSIZE(b))


cdef bint _overlaps_itself(cnp.ndarray array) noexcept:
    cdef ts_given x
    _give(&x, array)
    return not cnp.PyArray_IS_C_CONTIGUOUS(array) and ts_overlaps_itself(
        &x.array, cnp.PyArray_ITEMSIZE(array))


cdef tuple _without_overlap(const ts_invocation *v, const ts_given *arrays, tuple inputs,
                            list outputs, int axis):
    """(inputs, outputs) with copies of inputs and temporaries for outputs wherever writing one array
    would change another, but for the very array where the kernel is proved to run in place."""
    cdef const ts_kernel *kernel = v.kernel
    cdef int k, taken, given = 0, other
    cdef list reads = None, used = outputs
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent == TS_OUT:
            if _needs_temporary(v, k, arrays):
                used = list(used)
                used[given] = np.empty_like(outputs[given], subok=False,
                                            dtype=outputs[given].dtype.newbyteorder("="))
            given += 1
    taken = 0
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent == TS_OUT:
            continue
        if kernel.arguments[k].intent == TS_INOUT:
            _check_inout(v, k, inputs, taken, outputs, axis)
            for other in range(len(inputs)):
                if other != taken and _overlap(inputs[taken], inputs[other]):
                    reads = list(inputs) if reads is None else reads
                    reads[other] = inputs[other].copy()
        taken += 1
    return (inputs if reads is None else tuple(reads)), used


cdef bint _needs_temporary(const ts_invocation *v, int k, const ts_given *arrays) except -1:
    cdef const ts_kernel *kernel = v.kernel
    cdef int other = ts_clash(v, arrays, k)
    if other == k:
        raise ValueError(f"{_out_name(kernel, k)} has several elements in one place")
    if other >= 0 and kernel.arguments[other].intent == TS_OUT:
        raise ValueError(f"{_text(kernel.name)}: two arrays of out overlap")
    return other >= 0


cdef int _check_inout(const ts_invocation *v, int k, tuple inputs, int taken, list outputs,
                      int axis) except -1:
    cdef const ts_kernel *kernel = v.kernel
    cdef str where = f"{_text(kernel.name)}: argument {_text(kernel.arguments[k].name)}"
    cdef cnp.ndarray array = <cnp.ndarray> inputs[taken]
    cdef int number, other = 0, ndim
    cdef cnp.npy_intp shape[_MOST_AXES]
    ndim = ts_shape_of(v, k, axis, <int64_t *> shape)
    if not _has_shape(array, ndim, shape):
        raise ValueError(f"{where} is changed in place and must have shape "
                         f"{_shape_tuple(ndim, shape)}, got {(<object> array).shape}")
    if not cnp.PyArray_ISWRITEABLE(array):
        raise ValueError(f"{where} is changed in place and is read-only")
    if _overlaps_itself(array):
        raise ValueError(f"{where} is changed in place and has several elements in one place")
    for number in range(kernel.arguments_count):
        if kernel.arguments[number].intent == TS_OUT:
            continue
        if kernel.arguments[number].intent == TS_INOUT and number != k and _overlap(array, inputs[other]):
            raise ValueError(f"{where} and {_text(kernel.arguments[number].name)} are both changed in "
                             "place and overlap")
        other += 1
    for output in outputs:
        if _overlap(array, output):
            raise ValueError(f"{where} is changed in place and overlaps out")
    return 0
