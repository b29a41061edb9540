# Arrays of other libraries on a GPU, as CuPy's, and results as theirs: PyTorch's and JAX's by DLPack,
# Numba's by __cuda_array_interface__.
#
# Input: a call's arguments, of one library. Output: what the call gives, in kind. Invariant: no element
# is copied; CuPy's stream and the library's wait for each other by events, which the processor does not.


cdef class _InKind:
    """A call's arrays as CuPy's, and the way back."""

    cdef object library, device, out, workspace
    cdef tuple inputs
    cdef list written  # (the library's array, CuPy's), of what the call writes
    cdef object stream  # that of a library without DLPack; None elsewhere

    cdef object returned(self, object results):
        """The results in the library's arrays, whose stream waits for what was launched."""
        for original, array in self.written:
            self.converted(array)
        if isinstance(results, tuple):
            return tuple([self.one(result) for result in results])
        return None if results is None else self.one(results)

    cdef object one(self, object result):
        for original, array in self.written:
            if result is array:
                return original
        return self.converted(result)

    cdef object converted(self, object array):
        if self.stream is not None:
            _wait(self.stream, _cupy.cuda.get_current_stream().ptr)
        if hasattr(self.library, "from_dlpack"):
            return self.library.from_dlpack(array)
        if hasattr(self.library, "as_cuda_array"):
            return self.library.as_cuda_array(array, sync=False)
        return array


cdef _InKind _in_kind(const ts_kernel *kernel, tuple given, object out, object workspace):
    """The arguments, of which one at least is another library's array on a GPU."""
    cdef int k, taken = 0, results = 0
    cdef tuple outs
    cdef _InKind kind = _InKind()
    cdef list inputs = [], writes = []
    cdef str name = _text(kernel.name)
    for array in given:
        if _is_foreign(array):
            _import_cupy(f"{name}: an argument is {_type_name(array)}, and a call on a GPU")
            kind.library = _library_of(array)
            kind.stream = None if hasattr(array, "__dlpack__") else 1
    _need_gpu()
    kind.device = _common_device(kernel, given, out)
    kind.written = []
    with _cupy.cuda.Device(kind.device):
        for k in range(kernel.arguments_count):
            if kernel.arguments[k].intent != TS_OUT:
                array, taken = given[taken], taken + 1
                inputs.append(_taken(kind, f"{name}: argument {_text(kernel.arguments[k].name)}", array,
                                     kernel.arguments[k].intent == TS_INOUT))
            elif out is not None:
                outs = _out_tuple(kernel, out)
                array, results = outs[results], results + 1
                writes.append(_taken(kind, _out_name(kernel, k), array, True))
        kind.workspace = _taken(kind, f"{name}: workspace", workspace, True)
    kind.inputs = tuple(inputs)
    kind.out = None if out is None else tuple(writes) if isinstance(out, tuple) else writes[0]
    return kind


cdef object _taken(_InKind kind, str where, object array, bint written):
    """The array as CuPy's; what is none stays as it is."""
    if not _is_foreign(array):
        return array
    if getattr(array, "requires_grad", False):
        raise TypeError(f"{where} requires gradients, which kernels do not pass on; pass .detach() of it")
    if written and getattr(kind.library, "__name__", "").partition(".")[0] == "jax":
        raise TypeError(f"{where} is {_type_name(array)}, and JAX's arrays are never changed; take the "
                        "result")
    if hasattr(array, "__dlpack__"):
        try:
            taken = _cupy.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise TypeError(f"{where} cannot be taken by DLPack: {error}") from error
    else:
        taken = _by_interface(kind, where, array, written)
    if written:
        kind.written.append((array, taken))
    return taken


cdef object _by_interface(_InKind kind, str where, object array, bint written):
    told = array.__cuda_array_interface__
    address, read_only = told["data"]
    dtype, shape, strides = np.dtype(told["typestr"]), told["shape"], told.get("strides")
    if told.get("mask") is not None:
        raise TypeError(f"{where} has a mask, which would be lost")
    if not dtype.isnative:
        raise TypeError(f"{where} has dtype {dtype}, in another order of bytes than a GPU's")
    if written and read_only:
        raise ValueError(f"{where} is read-only")
    kind.stream = told.get("stream") or 1
    _wait(_cupy.cuda.get_current_stream().ptr, kind.stream)
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    memory = _cupy.cuda.UnownedMemory(address, size, array, kind.device)
    return _cupy.ndarray(shape, dtype, _cupy.cuda.MemoryPointer(memory, 0), strides)


cdef int _wait(object waiting, object running) except -1:
    """Makes a stream wait for what another one has been given so far. 0 and 1 are the default stream."""
    if waiting == running or (waiting in (0, 1) and running in (0, 1)):
        return 0
    runtime = _cupy.cuda.runtime
    event = runtime.eventCreateWithFlags(runtime.eventDisableTiming)
    try:
        runtime.eventRecord(event, running)
        runtime.streamWaitEvent(waiting, event)
    finally:
        runtime.eventDestroy(event)
    return 0


cdef object _call_in_kind(const ts_kernel *kernel, tuple given, tuple parameters, int axis, object out,
                          object num_threads, object workspace):
    """As _call."""
    cdef _InKind kind = _in_kind(kernel, given, out, workspace)
    with _cupy.cuda.Device(kind.device):
        return kind.returned(_call_on_gpu(kernel, kind.inputs, parameters, axis, kind.out, num_threads,
                                          kind.workspace))


cdef object _reduce_in_kind(const ts_kernel *kernel, bint ordered, object x, tuple parameters,
                            object axis, object out, bint keepdims, object num_threads,
                            object workspace):
    """As _reduce."""
    cdef _InKind kind = _in_kind(kernel, (x,), out, workspace)
    with _cupy.cuda.Device(kind.device):
        return kind.returned(_reduce_axes(kernel, ordered, kind.inputs[0], parameters, axis, kind.out,
                                          keepdims, num_threads, kind.workspace))
