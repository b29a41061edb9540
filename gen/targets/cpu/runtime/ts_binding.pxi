# The binding that every generated extension includes: from a call's Python arguments to ts_run.
#
# Input: a kernel's descriptor and the call's arguments. Output: the output arrays. Invariant: every
# check has passed before the kernel runs, and an error names kernel, argument, expected and got.
# Kernels may be named after builtins (max, sum, any): this code calls none of those.

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t, uint32_t, uintptr_t

import numpy as np
cimport numpy as cnp

cnp.import_array()

include "ts_declarations.pxi"
include "ts_package.pxi"
include "ts_arguments.pxi"
include "ts_outputs.pxi"
include "ts_reductions.pxi"
include "ts_places.pxi"
include "ts_gpu.pxi"
include "ts_foreign.pxi"
include "ts_graphs.pxi"

# Below this many points the call is shorter than releasing the GIL and taking it again.
cdef enum:
    _POINTS_WITH_GIL = 2048


cdef object _call(const ts_kernel *kernel, tuple given, tuple parameters, object axis, object out,
                  object num_threads, object workspace):
    """Runs the kernel; returns its output (of 0 dimensions: a scalar), a tuple of several, or None."""
    cdef ts_invocation v
    cdef tuple inputs = given
    cdef int axis_number = -1 if axis is _LAST else _axis_number(kernel, axis, "an integer")
    cdef ts_given arrays[TS_MAX_ARGUMENTS]
    v.kernel = kernel
    cdef const ts_overload *overload = _exact_overload(kernel, given)
    cdef int whose = _ON_PROCESSOR
    if overload is NULL:
        whose = _whose(given)
    if whose == _OF_CUPY:
        return _call_on_gpu(kernel, given, parameters, axis_number, out, num_threads, workspace)
    if whose == _OF_ANOTHER_LIBRARY:
        return _call_in_kind(kernel, given, parameters, axis_number, out, num_threads, workspace)
    if workspace is not None:
        raise TypeError(f"{_text(kernel.name)}: workspace is for calls on a GPU, and the arrays are on none")
    v.threads = _threads(kernel, num_threads)
    if overload is NULL:
        inputs = _converted(kernel, given, &overload)
    v.overload = overload
    v.variants = overload.variants[<int> ts_level_used()]
    if kernel.parameters_count:
        _set_scalars(&v, overload, parameters)
    if inputs is given:
        result = _flat(&v, given, out)
        if result is not None:
            return result
    _give_inputs(kernel, arrays, inputs)
    _measure(&v, arrays, axis_number)
    cdef list outputs = _outputs(&v, overload, inputs, axis_number, out, False)
    cdef tuple apart = inputs
    cdef list used = outputs
    _give_outputs(kernel, arrays, outputs)
    if out is not None or _has_inout(kernel):
        apart, used = _without_overlap(&v, arrays, inputs, outputs, axis_number, False)
    v.copied = apart is not inputs or used is not outputs
    if v.copied:
        _give_inputs(kernel, arrays, apart)
        _give_outputs(kernel, arrays, used)
    if _extents_suffice(&v, outputs):
        _run(&v, arrays, axis_number)
    if used is not outputs:
        for result, temporary in zip(outputs, used):
            result[...] = temporary
    return _result(outputs, out)


cdef object _flat(const ts_invocation *v, tuple inputs, object out):
    """The result of a call of an elementwise kernel on contiguous arrays of one shape; None: it is no
    such call, and nothing was run."""
    cdef const ts_kernel *kernel = v.kernel
    cdef void *data[TS_MAX_ARGUMENTS]
    cdef cnp.ndarray array, first
    cdef object result = out
    cdef int output = ts_flat_output(kernel), k, taken = 0, type_number, status
    cdef int64_t count
    if output < 0 or not inputs:
        return None
    first = <cnp.ndarray> inputs[0]
    count = cnp.PyArray_SIZE(first)
    if count == 0 or cnp.PyArray_NDIM(first) == 0:
        return None
    for item in inputs:
        array = <cnp.ndarray> item
        if not cnp.PyArray_ISCARRAY_RO(array) or not _has_shape(
                array, cnp.PyArray_NDIM(first), cnp.PyArray_DIMS(first)):
            return None
    type_number = _number_of(ts_dtype_of(
        v.overload, kernel.arguments[output].type_variable, kernel.arguments[output].dtype))
    if out is None:
        result = cnp.PyArray_EMPTY(
            cnp.PyArray_NDIM(first), cnp.PyArray_DIMS(first), type_number, 0)
    elif not (cnp.PyArray_CheckExact(out) and cnp.PyArray_TYPE(<cnp.ndarray> out) == type_number
              and cnp.PyArray_ISCARRAY(<cnp.ndarray> out)
              and _has_shape(<cnp.ndarray> out, cnp.PyArray_NDIM(first), cnp.PyArray_DIMS(first))):
        return None
    for k in range(kernel.arguments_count):
        if k == output:
            data[k] = cnp.PyArray_DATA(<cnp.ndarray> result)
        else:
            data[k] = cnp.PyArray_DATA(<cnp.ndarray> inputs[taken])
            taken += 1
    if count < _POINTS_WITH_GIL:
        status = ts_run_flat(v.overload, data, v.scalars, output, count, v.threads)
    else:
        with nogil:
            status = ts_run_flat(v.overload, data, v.scalars, output, count, v.threads)
    if status == TS_NEEDS_COPY:
        return None
    _check_memory(kernel, status)
    return result


cdef inline int _check_memory(const ts_kernel *kernel, int status) except -1:
    if status != TS_OK:
        raise MemoryError(f"{_text(kernel.name)}: no memory for the kernel's workspace")
    return 0


cdef int _run(ts_invocation *v, const ts_given *arrays, int axis) except -1:
    cdef int status
    if _points(v) < _POINTS_WITH_GIL:
        status = ts_carry_out(v, arrays, axis)
    else:
        with nogil:
            status = ts_carry_out(v, arrays, axis)
    return _check_memory(v.kernel, status)


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
