# Calls that a CUDA graph captures: what has to be there before, and what must outlive the call.
#
# Invariant: a captured call takes no memory that its caller does not hold, since CuPy's pool may hand
# that on before the graph is replayed.

cdef enum:
    _ALIGNMENT = 256  # of workspace, in bytes


cdef bint _is_captured(uintptr_t stream) except -1:
    return True if _cupy.cuda.runtime.streamIsCapturing(stream) else False


cdef object _passing(const ts_kernel *kernel, str what, str advice):
    return RuntimeError(f"{_text(kernel.name)}: {what} would be in memory that CuPy may hand on before a "
                        f"captured graph is replayed; {advice}")


cdef int _check_workspace(const ts_invocation *v, const ts_given *arrays, object workspace,
                          int device) except -1:
    cdef str where = f"{_text(v.kernel.name)}: workspace"
    cdef ts_array memory
    cdef int64_t size, stride = 1
    cdef int k
    if not _is_on_gpu(workspace) or workspace.device.id != device:
        raise TypeError(f"{where} must be a cupy.ndarray on GPU {device}, got {_place(workspace)}")
    if not workspace.flags.c_contiguous:
        raise ValueError(f"{where} must be contiguous")
    size = workspace.nbytes
    memory = ts_array(<void *> <uintptr_t> workspace.data.ptr, 1, &size, &stride)
    for k in range(v.kernel.arguments_count):
        if ts_overlap(&memory, 1, &arrays[k].array, _itemsize(v, k)):
            raise ValueError(f"{where} overlaps {_text(v.kernel.arguments[k].name)}")
    return 0


def warmup(*functions, device=None):
    """Loads what functions of this package run on a GPU; all that have code for GPUs, if none is given.

    Calls load it otherwise when they are first made, which takes a while, and cannot where a CUDA graph
    is captured. device: a GPU's number, or CuPy's Device; by default the current one. Raises TypeError for what is
    no function of this package, or has no code for GPUs; ImportError without CuPy or NVIDIA's driver,
    RuntimeError without a GPU that CuPy can use.
    """
    _import_cupy("warmup")
    _need_gpu()
    kind = _cupy.cuda.Device
    with device if isinstance(device, kind) else kind(device):
        number = _cupy.cuda.runtime.getDevice()
        for k in _numbers_of(functions):
            _warm(&ts_kernels[<int> k], number)


cdef list _numbers_of(tuple functions):
    """Where in ts_kernels the functions are; those that have code for GPUs, without any."""
    cdef int k
    cdef dict numbers = {}
    cdef list found = []
    for k in range(ts_kernels_count):
        numbers[_text(ts_kernels[k].name)] = k
    if not functions:
        found = [k for k in range(ts_kernels_count) if _runs_on_gpus(&ts_kernels[<int> k])]
        if not found:
            raise TypeError(f"warmup: no function of {_PACKAGE} has CUDA code")
    for function in functions:
        name = getattr(function, "__name__", None)
        if name not in numbers or getattr(sys.modules[__name__], name) is not function:
            raise TypeError(f"warmup: {function!r} is no kernel's function of {_PACKAGE}")
        found.append(numbers[name])
    return found


cdef bint _runs_on_gpus(const ts_kernel *kernel) noexcept:
    cdef int i
    for i in range(kernel.overloads_count):
        if _has_cuda(&kernel.overloads[i]):
            return True
    return False


cdef int _warm(const ts_kernel *kernel, int device) except -1:
    cdef int i
    cdef str name = _text(kernel.name)
    cdef list levels = []
    for i in range(kernel.overloads_count):
        if _has_cuda(&kernel.overloads[i]):
            level = _text(ts_level_names[_architecture(kernel, &kernel.overloads[i], device)])
            if level not in levels:
                levels.append(level)
    if not levels:
        _architecture(kernel, &kernel.overloads[0], device)  # raises
    for level in levels:
        for function in _entry_points(name, level):
            if (function, level, device) not in _functions:
                found = _loaded(name, level, device, function)
                _cupy.cuda.driver.funcGetAttribute(0, found.ptr)  # of what is not loaded before it is used
                _functions[function, level, device] = found
    return 0


cdef list _entry_points(str kernel, str level):
    """The functions of a kernel's module, as its source names them."""
    import re

    folder, name = _own_folder().joinpath("cuda"), f"{kernel}.{level}.cu"
    file = folder.joinpath(name)
    if not file.is_file():
        raise RuntimeError(f"{kernel}: the package {_PACKAGE} lacks {name} in {folder}; install the package "
                           "again")
    return re.findall(r"__global__ void __launch_bounds__\(\d+\)\s+(\w+)\(", file.read_text("utf-8"))
