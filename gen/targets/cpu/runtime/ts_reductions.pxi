# Reductions of one array: over one axis, several or all, with keepdims=.
#
# Input: what the caller gave. Output: what _call returns, for an array whose reduced axes are one.
# Several axes become one without a copy where the array's strides allow it, in the order of memory
# unless the kernel's result depends on where elements are; else NumPy copies the array.


cdef object _reduce(const ts_kernel *kernel, bint ordered, object x, tuple parameters, object axis,
                    object out, bint keepdims, object num_threads, object workspace):
    if not keepdims and type(axis) is int:
        return _call(kernel, (x,), parameters, axis, out, num_threads, workspace)
    if not keepdims and axis is None and isinstance(x, np.ndarray) and cnp.PyArray_NDIM(x) == 1:
        return _call(kernel, (x,), parameters, _LAST, out, num_threads, workspace)
    cdef object array = x
    if not cnp.PyArray_CheckExact(x):
        if _is_on_gpu(x):
            _need_gpu()
            with x.device:
                return _reduce_axes(kernel, ordered, x, parameters, axis, out, keepdims, num_threads,
                                    workspace)
        if _is_foreign(x):
            return _reduce_in_kind(kernel, ordered, x, parameters, axis, out, keepdims, num_threads,
                                   workspace)
        array = _as_array(kernel, &kernel.arguments[0], x)
    return _reduce_axes(kernel, ordered, array, parameters, axis, out, keepdims, num_threads, workspace)


cdef object _reduce_axes(const ts_kernel *kernel, bint ordered, object array, tuple parameters,
                         object axis, object out, bint keepdims, object num_threads, object workspace):
    """The reduction of NumPy's or CuPy's array, this one on the current device."""
    cdef int ndim = array.ndim
    cdef tuple axes = _reduced_axes(kernel, ordered, ndim, axis)
    cdef tuple kept = tuple([i for i in range(ndim) if i not in axes])
    cdef tuple shape = array.shape
    if len(axes) == 1:
        merged, number = array, axes[0]
    else:
        merged, number = _merged(kernel, array, axes, kept, ordered), -1
    if not keepdims:
        return _call(kernel, (merged,), parameters, number, out, num_threads, workspace)
    cdef tuple whole = tuple([1 if i in axes else shape[i] for i in range(ndim)])
    if out is None:
        results = _call(kernel, (merged,), parameters, number, None, num_threads,
                        workspace)
        if not isinstance(results, tuple):
            return _reshaped(results, whole)
        return tuple([_reshaped(result, whole) for result in results])
    given = out if isinstance(out, tuple) else (out,)
    _call(kernel, (merged,), parameters, number, tuple([
        None if o is None else _squeezed(kernel, o, axes, whole) for o in given]), num_threads, workspace)
    return out


cdef tuple _reduced_axes(const ts_kernel *kernel, bint ordered, int ndim, object axis):
    """The axes, from 0, in their order; all for None."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, tuple):
        if ordered:
            raise TypeError(f"{_text(kernel.name)}: axis must be an integer or None, got tuple: a position "
                            "along several axes is no single index")
        numbers = [_axis_number(kernel, a, "a tuple of integers") for a in axis]
    else:
        numbers = [_axis_number(kernel, axis, "an integer or None" if ordered else
                                "an integer, a tuple of integers or None")]
    found = []
    for number in numbers:
        if not -ndim <= number < ndim:
            raise AxisError(number, ndim, f"{_text(kernel.name)}: argument "
                                          f"{_text(kernel.arguments[0].name)}")
        number += ndim if number < 0 else 0
        if number in found:
            raise ValueError(f"{_text(kernel.name)}: axis {number} is given twice")
        found.append(number)
    return tuple(sorted(found))


cdef object _merged(const ts_kernel *kernel, object array, tuple axes, tuple kept, bint ordered):
    """The array with its reduced axes as one, the last."""
    cdef int64_t size = 1
    for i in axes:
        size *= array.shape[i]
    if not ordered:  # in the order of memory
        steps = [-step if step < 0 else step for step in array.strides]
        axes = tuple([i for _, i in sorted([(-steps[i], i) for i in axes])])
    merged = array.transpose(kept + axes).reshape([array.shape[i] for i in kept] + [size])
    if _is_on_gpu(array) and merged.data.ptr != array.data.ptr and _is_captured(
            _cupy.cuda.get_current_stream().ptr):
        raise _passing(kernel, f"a contiguous copy of argument {_text(kernel.arguments[0].name)}",
                       "pass cupy.ascontiguousarray(...) of it")
    return merged


cdef object _reshaped(object result, tuple shape):
    return (result if _is_on_gpu(result) else np.asarray(result)).reshape(shape)


cdef object _squeezed(const ts_kernel *kernel, object out, tuple axes, tuple whole):
    """The result array that the kernel sees: a view without the axes that keepdims keeps."""
    if not isinstance(out, np.ndarray) and not _is_on_gpu(out):
        raise TypeError(f"{_text(kernel.name)}: out must be an ndarray, got {type(out).__name__}")
    if out.shape != whole:
        raise ValueError(f"{_text(kernel.name)}: out must have shape {whole}, as keepdims keeps the "
                         f"axes, got {out.shape}")
    return out.squeeze(axes)
