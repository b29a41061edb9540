# Outputs: new arrays, or the caller's out= checked; overlap of what is written with what is read.

cdef enum:
    _MOST_AXES = 64 + 8  # leading and core: ts_engine.h's limits


cdef inline bint _has_shape(cnp.ndarray array, int ndim, const cnp.npy_intp *shape) noexcept:
    return cnp.PyArray_NDIM(array) == ndim and cnp.PyArray_CompareLists(
        cnp.PyArray_DIMS(array), shape, ndim)


cdef tuple _shape_tuple(int ndim, const cnp.npy_intp *shape):
    cdef int i
    return tuple([shape[i] for i in range(ndim)])


cdef list _outputs(ts_invocation *v, const ts_overload *overload, tuple inputs, int axis, object out,
                   bint on_gpu):
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
            outputs.append(_checked_out(kernel, k, outs[given], ndim, shape, type_number, on_gpu))
        elif on_gpu:
            outputs.append(_new_output_on_gpu(inputs, _shape_tuple(ndim, shape), np.dtype(
                cnp.PyArray_DescrFromType(type_number))))
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
                         int type_number, bint on_gpu):
    cdef cnp.ndarray array
    if on_gpu:
        return _checked_out_on_gpu(kernel, k, out, ndim, shape, type_number)
    if not cnp.PyArray_Check(out):
        what = type(out).__name__
        if _is_on_gpu(out) or _is_foreign(out):
            what = f"{_place(out)}; the arguments are not on a GPU"
        raise TypeError(f"{_out_name(kernel, k)} must be an ndarray, got {what}")
    if not cnp.PyArray_CheckExact(out):
        _refuse_own_rules(_out_name(kernel, k), out)
    array = <cnp.ndarray> out
    if not cnp.PyArray_EquivTypenums(cnp.PyArray_TYPE(array), type_number):
        raise _wrong_dtype(kernel, k, type_number, array.dtype)
    if not _has_shape(array, ndim, shape):
        raise _wrong_shape(kernel, k, _shape_tuple(ndim, shape), out.shape)
    if not cnp.PyArray_ISWRITEABLE(array):
        raise ValueError(f"{_out_name(kernel, k)} is read-only")
    return array


cdef object _checked_out_on_gpu(const ts_kernel *kernel, int k, object out, int ndim,
                                cnp.npy_intp *shape, int type_number):
    if not _is_on_gpu(out):
        raise TypeError(f"{_out_name(kernel, k)} must be an ndarray, got {type(out).__name__}")
    if (<cnp.dtype> out.dtype).type_num != type_number:
        raise _wrong_dtype(kernel, k, type_number, out.dtype)
    if out.shape != _shape_tuple(ndim, shape):
        raise _wrong_shape(kernel, k, _shape_tuple(ndim, shape), out.shape)
    return out


cdef object _wrong_dtype(const ts_kernel *kernel, int k, int type_number, object got):
    expected = np.dtype(cnp.PyArray_DescrFromType(type_number))
    return TypeError(f"{_out_name(kernel, k)} must have dtype {expected}, got {got}")


cdef object _wrong_shape(const ts_kernel *kernel, int k, tuple expected, tuple got):
    return ValueError(f"{_out_name(kernel, k)} must have shape {expected}, got {got}")


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


cdef inline int64_t _itemsize(const ts_invocation *v, int k) noexcept:
    cdef const ts_argument *argument = &v.kernel.arguments[k]
    return ts_itemsize(ts_dtype_of(v.overload, argument.type_variable, argument.dtype))


cdef bint _overlap(const ts_invocation *v, const ts_given *arrays, int k, int other) noexcept:
    """Exact, but True where finding out would take long."""
    return ts_overlap(&arrays[k].array, _itemsize(v, k), &arrays[other].array, _itemsize(v, other))


cdef tuple _without_overlap(const ts_invocation *v, const ts_given *arrays, tuple inputs,
                            list outputs, int axis, bint on_gpu):
    """(inputs, outputs) with copies of inputs and temporaries for outputs wherever writing one array
    would change another, but for the very array where the kernel is proved to run in place."""
    cdef const ts_kernel *kernel = v.kernel
    cdef int k, taken, given = 0, other
    cdef list reads = None, used = outputs
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent == TS_OUT:
            if _needs_temporary(v, k, arrays, on_gpu):
                used = list(used)
                used[given] = _temporary(kernel, outputs[given], on_gpu)
            given += 1
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent != TS_INOUT:
            continue
        _check_inout(v, k, arrays, inputs, axis, on_gpu)
        taken = 0
        for other in range(kernel.arguments_count):
            if kernel.arguments[other].intent == TS_OUT:
                continue
            if other != k and _overlap(v, arrays, k, other):
                reads = list(inputs) if reads is None else reads
                if on_gpu and _is_captured(_cupy.cuda.get_current_stream().ptr):
                    raise _passing(kernel, f"a copy of argument {_text(kernel.arguments[other].name)}",
                                   "pass arrays that do not overlap")
                reads[taken] = inputs[taken].copy()
            taken += 1
    return (inputs if reads is None else tuple(reads)), used


cdef object _temporary(const ts_kernel *kernel, object result, bint on_gpu):
    if on_gpu:
        if _is_captured(_cupy.cuda.get_current_stream().ptr):
            raise _passing(kernel, "what is written over an argument",
                           "pass an out= that overlaps no argument")
        return _cupy.empty_like(result)
    return np.empty_like(result, subok=False, dtype=result.dtype.newbyteorder("="))


cdef bint _needs_temporary(const ts_invocation *v, int k, const ts_given *arrays,
                           bint on_gpu) except -1:
    cdef const ts_kernel *kernel = v.kernel
    cdef int other = ts_clash(v, arrays, k, on_gpu)
    if other == k:
        raise ValueError(f"{_out_name(kernel, k)} has several elements in one place")
    if other >= 0 and kernel.arguments[other].intent == TS_OUT:
        raise ValueError(f"{_text(kernel.name)}: two arrays of out overlap")
    return other >= 0


cdef int _check_inout(const ts_invocation *v, int k, const ts_given *arrays, tuple inputs, int axis,
                      bint on_gpu) except -1:
    cdef const ts_kernel *kernel = v.kernel
    cdef str where = f"{_text(kernel.name)}: argument {_text(kernel.arguments[k].name)}"
    cdef const ts_array *array = &arrays[k].array
    cdef int other, number = 0, ndim
    cdef cnp.npy_intp shape[_MOST_AXES]
    for other in range(k):
        number += kernel.arguments[other].intent != TS_OUT
    ndim = ts_shape_of(v, k, axis, <int64_t *> shape)
    if array.ndim != ndim or not cnp.PyArray_CompareLists(
            <const cnp.npy_intp *> array.shape, shape, ndim):
        raise ValueError(f"{where} is changed in place and must have shape "
                         f"{_shape_tuple(ndim, shape)}, got {inputs[number].shape}")
    if not on_gpu and not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> inputs[number]):
        raise ValueError(f"{where} is changed in place and is read-only")
    if ts_overlaps_itself(array, _itemsize(v, k)):
        raise ValueError(f"{where} is changed in place and has several elements in one place")
    for other in range(kernel.arguments_count):
        if kernel.arguments[other].intent == TS_INOUT and other != k and _overlap(v, arrays, k, other):
            raise ValueError(f"{where} and {_text(kernel.arguments[other].name)} are both changed in "
                             "place and overlap")
    for other in range(kernel.arguments_count):
        if kernel.arguments[other].intent == TS_OUT and _overlap(v, arrays, k, other):
            raise ValueError(f"{where} is changed in place and overlaps out")
    return 0
