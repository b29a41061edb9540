# The binding that every generated extension includes: from a call's Python arguments to ts_run.
#
# Input: a kernel's descriptor and the call's arguments. Output: the output arrays. Invariant: every
# check has passed before the kernel runs, and an error names kernel, argument, expected and got.
# Kernels may be named after builtins (max, sum, any): this code calls none of those.

from libc.stdint cimport int64_t, uint32_t

import numpy as np
cimport numpy as cnp

cnp.import_array()

include "ts_declarations.pxi"
include "ts_package.pxi"
include "ts_arguments.pxi"
include "ts_outputs.pxi"

# Below this many points the call is shorter than releasing the GIL and taking it again.
cdef enum:
    _POINTS_WITH_GIL = 2048


cdef object _call(const ts_kernel *kernel, tuple given, tuple parameters, object axis, object out,
                  object num_threads):
    """Runs the kernel; returns its output (of 0 dimensions: a scalar), a tuple of several, or None."""
    cdef ts_invocation v
    cdef tuple inputs = given
    cdef int axis_number = -1 if axis is _LAST else _axis_number(kernel, axis)
    v.kernel = kernel
    v.threads = _threads(kernel, num_threads)
    cdef const ts_overload *overload = _exact_overload(kernel, given)
    if overload is NULL:
        inputs = _converted(kernel, given, &overload)
    v.variants = overload.variants[_level]
    if kernel.parameters_count:
        _set_scalars(&v, overload, parameters)
    _measure(&v, inputs, axis_number)
    cdef list outputs = _outputs(&v, overload, inputs, axis_number, out)
    cdef tuple apart = inputs
    cdef list used = outputs
    if out is not None or _has_inout(kernel):
        apart, used = _without_overlap(&v, inputs, outputs, axis_number)
    v.copied = apart is not inputs or used is not outputs
    if _extents_suffice(&v, outputs):
        _run(&v, apart, used, axis_number)
    if used is not outputs:
        for result, temporary in zip(outputs, used):
            result[...] = temporary
    return _result(outputs, out)


cdef int _run(ts_invocation *v, tuple inputs, list outputs, int axis) except -1:
    if _attempt(v, inputs, outputs, axis, False) == TS_NEEDS_COPY:
        _measure(v, inputs, axis)  # ts_run has changed the axes
        if _attempt(v, inputs, outputs, axis, True) == TS_NEEDS_COPY:
            raise SystemError(f"{_text(v.kernel.name)}: no variant takes contiguous arrays")
    return 0


cdef int _attempt(ts_invocation *v, tuple inputs, list outputs, int axis, bint dense) except -1:
    """Binds the arrays and runs. `dense`: arrays that are not looped are made contiguous first."""
    cdef const ts_kernel *kernel = v.kernel
    cdef const ts_argument *argument
    cdef cnp.ndarray array
    cdef list moved = None
    cdef int k, taken = 0, given = 0, status
    for k in range(kernel.arguments_count):
        argument = &kernel.arguments[k]
        if argument.intent == TS_OUT:
            array = <cnp.ndarray> outputs[given]
            given += 1
        else:
            array = <cnp.ndarray> inputs[taken]
            taken += 1
        _bind(v, k, array, axis)
        if not argument.looped and (
            v.operands[k].convert or dense and not cnp.PyArray_IS_C_CONTIGUOUS(array)
        ):
            moved = [] if moved is None else moved
            copy = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", subok=False)
            moved.append((argument.intent != TS_IN, array, copy))
            _bind(v, k, copy, axis)
            v.copied = True
    if _points(v) < _POINTS_WITH_GIL:
        status = ts_run(v)
    else:
        with nogil:
            status = ts_run(v)
    if status == TS_NO_MEMORY:
        raise MemoryError(f"{_text(kernel.name)}: no memory for the kernel's workspace")
    if moved is not None and status == TS_OK:
        for written, original, copy in moved:
            if written:
                original[...] = copy
    return status


cdef int64_t _points(const ts_invocation *v) noexcept:
    """Points of the call's loops, as far as they decide whether the GIL is released."""
    cdef int64_t points = 1
    cdef int i
    for i in range(v.outer_count):
        if points < _POINTS_WITH_GIL:
            points *= v.outer_shape[i]
    for i in range(v.kernel.dims_count):
        if points < _POINTS_WITH_GIL:
            points *= v.dims[i]
    return points


cdef object _result(list outputs, object out):
    if len(outputs) == 1:
        return outputs[0] if out is not None else _scalar_if_0d(outputs[0])
    if not outputs:
        return None
    if out is not None:
        return tuple(outputs)
    return tuple([_scalar_if_0d(output) for output in outputs])


cdef inline object _scalar_if_0d(object array):
    return array[()] if cnp.PyArray_NDIM(<cnp.ndarray> array) == 0 else array
