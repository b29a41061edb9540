# Calls with CuPy's arrays: where the arguments are, what their memory is, and launches.
#
# Input: a call of which an argument is on a GPU. Output: its results, there, too. Invariant: nothing is
# copied to the processor's memory but 0-d arrays given as scalars; no error leaves a result half checked.
# All else is as for NumPy's arrays, by the same code.

cdef object _libcuda = None
cdef dict _modules = {}  # (kernel, level, device): cupy.cuda.function.Module
cdef dict _functions = {}  # (name, level, device): its function
cdef dict _capabilities = {}  # device: 90 for sm_90
cdef enum:  # CUDA's errors
    _OLD_DRIVER = 35
    _NO_DEVICE = 100

cdef object _data = None  # the folder of the package with machine code; False: there is none that fits


# ---- what is there for a device ----

cdef str _table_types(const ts_kernel *kernel, const ts_overload *overload):
    cdef list names = []
    for i in range(kernel.type_variables_count):
        dtype = _dtype(overload.types[i])
        names.append(_BFLOAT16 if dtype is None else dtype.name)
    return ", ".join(names)


cdef int _architecture(const ts_kernel *kernel, const ts_overload *overload, object device) except -1:
    """The level whose variants run on the device: the latest that is no later than it."""
    cdef int level, found = -1
    cdef list built = []
    if device not in _capabilities:
        _capabilities[device] = int(_cupy.cuda.Device(device).compute_capability)
    for level in range(TS_ARCHITECTURES, TS_LEVELS):
        if overload.variants[level] is not NULL:
            name = _text(ts_level_names[level])
            built.append(name)
            if int(name[3:]) <= _capabilities[device]:
                found = level
    if found >= 0:
        return found
    what = f"{_text(kernel.name)}: "
    if built:
        raise TypeError(f"{what}its CUDA code is for {built[0]} and later; GPU {device} is "
                        f"sm_{_capabilities[device]}")
    others = [_table_types(kernel, &kernel.overloads[i]) for i in range(kernel.overloads_count)
              if _has_cuda(&kernel.overloads[i])]
    if others:
        raise TypeError(f"{what}there is no CUDA code for {_table_types(kernel, overload)}, "
                        f"but for {'; '.join(others)}")
    raise TypeError(f"{what}there is no CUDA code; for the processor's, pass cupy.asnumpy(...)")


cdef bint _has_cuda(const ts_overload *overload) noexcept:
    cdef int level
    for level in range(TS_ARCHITECTURES, TS_LEVELS):
        if overload.variants[level] is not NULL:
            return True
    return False


cdef int _need_gpu() except -1:
    """Tells the runtime cuLaunchKernel and others of the libcuda that CuPy uses, once it has a GPU. Comes
    before anything else that asks CuPy for one."""
    global _libcuda
    if _libcuda is not None:
        return 0
    import ctypes

    try:
        library = ctypes.CDLL("libcuda.so.1")
        address = ctypes.cast(library.cuLaunchKernel, ctypes.c_void_p).value
        copy, wait, recorded = [
            ctypes.cast(getattr(library, name, None), ctypes.c_void_p).value or 0
            for name in ("cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuStreamIsCapturing")]
    except (OSError, AttributeError) as error:
        raise ImportError(f"{_PACKAGE}: calls on a GPU need NVIDIA's driver, and its library "
                          f"libcuda.so.1 cannot be loaded: {error}") from error
    try:
        _cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as error:
        raise RuntimeError(f"{_PACKAGE}: calls on a GPU need one that CuPy can use{_why_none(error)}: "
                           f"{error}") from error
    ts_use_libcuda(<void *> <uintptr_t> address, <void *> <uintptr_t> copy,
                   <void *> <uintptr_t> wait, <void *> <uintptr_t> recorded)
    _libcuda = library
    return 0


cdef str _why_none(object error):
    """What to do about the error by which CuPy says that there is no GPU."""
    runtime = _cupy.cuda.runtime
    status = getattr(error, "status", None)
    if status == _NO_DEVICE:
        return ", and there is none, or CUDA_VISIBLE_DEVICES hides it"
    driver, own = [f"{v // 1000}.{v % 1000 // 10}" for v in
                   (runtime.driverGetVersion(), runtime.runtimeGetVersion())]
    if status != _OLD_DRIVER or driver == "0.0":
        return ""
    return (f", and the driver is of CUDA {driver}, CuPy of {own}: install a newer driver, or "
            f"cupy-cuda{driver.partition('.')[0]}x in place of this CuPy")


cdef str _failure_name(int failure):
    import ctypes

    name = ctypes.c_char_p()
    try:
        if _libcuda.cuGetErrorName(failure, ctypes.byref(name)) == 0:
            return name.value.decode("ascii")
    except AttributeError:
        pass
    return f"error {failure}"


cdef object _loaded(str kernel, str level, object device, str function):
    """The function of the kernel's module: of machine code where it is there and the driver takes it,
    else of the source, compiled by NVRTC."""
    key = (kernel, level, device)
    if key in _modules:
        return _modules[key].get_function(function)
    folder, data = _own_folder().joinpath("cuda"), _data_folder()
    names = [f"{kernel}.{level}.{kind}" for kind in ("fatbin", "cu")]
    reasons = []
    for place, name in ((folder, names[0]), (data, names[0]), (folder, names[1])):
        file = place and place.joinpath(name)
        if not file or not file.is_file():
            continue
        try:
            module = _cupy.cuda.function.Module()
            if name is names[0]:
                module.load_file(os.fspath(file))
            else:
                module.load(_compiled(file, folder))
            found = module.get_function(function)
        except Exception as error:
            reasons.append(f"{name}: {type(error).__name__}: {error}")
            continue
        _modules[key] = module
        return found
    major = _cupy.cuda.runtime.runtimeGetVersion() // 1000
    advice = f"where NVRTC is missing, pip install 'cupy-cuda{major}x[ctk]' brings it"
    if reasons:
        raise RuntimeError(f"{kernel}: its code for {level} cannot be loaded; {advice}: "
                           + "; ".join(reasons))
    raise RuntimeError(f"{kernel}: the package {_PACKAGE} lacks its code for GPUs: there is neither "
                       f"{names[0]} nor {names[1]} in {folder}; install the package again")


cdef object _compiled(object file, object folder):
    """Machine code for the current device. Not by cupy.RawModule, which lets small float32 numbers be
    0 (-ftz=true)."""
    code, _ = _cupy.cuda.compiler.compile_using_nvrtc(
        file.read_text("utf-8"), _options(folder), None, file.name)
    return code


cdef object _own_folder():
    import importlib.resources

    return importlib.resources.files(__name__.rpartition(".")[0])


cdef object _data_folder():
    """The folder of the package that brings machine code for the sources installed here; False, after
    a warning where it is for others."""
    global _data
    import importlib.resources
    import json
    import warnings

    if _data is None:
        _data = False
        try:
            folder = importlib.resources.files(f"{_PACKAGE.replace('.', '_')}_cuda")
        except ModuleNotFoundError:
            return False
        there, here = [json.loads(f.joinpath("manifest.json").read_text("utf-8"))
                       for f in (folder, _own_folder())]
        if there["cuda_sources"] == here.get("cuda_sources"):
            _data = folder
        else:
            name = there["distribution"]
            warnings.warn(f"{_PACKAGE} {__version__}: the machine code in {name} {there['version']} is "
                          "for other sources, so that these are compiled by NVRTC; pip install "
                          f"'{name}=={__version__}' brings what fits", RuntimeWarning, stacklevel=1)
    return _data


cdef tuple _options(object folder):
    """Of NVRTC. The headers are together where the package is installed, but not where it is built."""
    places = [os.path.dirname(os.fspath(folder.joinpath(name))) for name in ("ts_cuda.h", "ts_math.h")]
    return ("--std=c++17", "--fmad=false", "--device-int128",
            *dict.fromkeys([f"-I{place}" for place in places]))


cdef dict _gpu_config():
    """show_config's rows: the architectures that there is code for, where its machine code is, CuPy's
    version, and the GPUs' architectures."""
    cdef int k, i, level
    cdef list built = []
    for level in range(TS_ARCHITECTURES, TS_LEVELS):
        for k in range(ts_kernels_count):
            for i in range(ts_kernels[k].overloads_count):
                name = _text(ts_level_names[level])
                if ts_kernels[k].overloads[i].variants[level] is not NULL and name not in built:
                    built.append(name)
    config = {"architectures_built": built}
    if not built:
        return config
    config["machine_code"] = "none: NVRTC compiles at the first call"
    for folder in (_data_folder(), _own_folder().joinpath("cuda")):
        if folder and folder.is_dir() and [f for f in folder.iterdir() if f.name.endswith(".fatbin")]:
            config["machine_code"] = str(folder)
    config["cupy"], config["gpus"] = "not installed", []
    try:
        _import_cupy("show_config")
        config["cupy"] = _cupy.__version__
        config["gpus"] = [f"sm_{_cupy.cuda.Device(number).compute_capability}"
                          for number in range(_cupy.cuda.runtime.getDeviceCount())]
    except Exception:  # there is no CuPy, no driver or no GPU
        pass
    return config


# ---- what the runtime calls, without the GIL ----

cdef void *_load(ts_gpu *gpu, const char *function) noexcept with gil:
    """The function's handle; NULL, and the error in the notes."""
    try:
        kernel, level = _text(gpu.kernel.name), _text(ts_level_names[<int> gpu.level])
        key = (_text(function), level, gpu.number)
        if key not in _functions:
            if _is_captured(<uintptr_t> gpu.stream):
                raise RuntimeError(f"{kernel}: its code is not loaded, and cannot be while a CUDA graph is "
                                   f"captured; call warmup({kernel}) before")
            _functions[key] = _loaded(kernel, level, gpu.number, key[0])
        return <void *> <uintptr_t> _functions[key].ptr
    except BaseException as error:
        (<list> gpu.notes).append(error)
        return NULL


cdef void _enter(ts_gpu *gpu) noexcept with gil:
    try:
        _cupy.cuda.runtime.setDevice(gpu.number)
    except BaseException as error:
        (<list> gpu.notes).append(error)


cdef void *_reserve(const ts_device *device, size_t size) noexcept with gil:
    """The caller's workspace, which is the first of the notes, or memory of CuPy's pool, the notes'
    until the call is over: in the order of the stream it is free after what the call launched."""
    cdef const ts_gpu *gpu = <const ts_gpu *> device
    cdef uintptr_t place
    notes = <list> gpu.notes
    try:
        if notes[0] is not None:
            place = notes[0].data.ptr
            unaligned = -place % _ALIGNMENT
            if notes[0].nbytes < size + unaligned:
                raise ValueError(f"{_text(gpu.kernel.name)}: workspace must have at least "
                                 f"{size + unaligned} bytes, got {notes[0].nbytes}")
            return <void *> (place + <uintptr_t> unaligned)
        if _is_captured(<uintptr_t> gpu.stream):
            raise _passing(gpu.kernel, f"its workspace of {size} bytes",
                           f"pass workspace=cupy.empty({size}, 'uint8')")
        memory = _cupy.cuda.alloc(size if size > 0 else 1)
        notes.append(memory)
        return <void *> <uintptr_t> memory.ptr
    except BaseException as error:
        notes.append(error)
        return NULL


# ---- arrays ----

cdef struct _extents:  # of an array, as Python's tuples have them
    int64_t shape[_MOST_AXES]
    int64_t strides[_MOST_AXES]


cdef int _give_gpu(ts_given *given, _extents *extents, object array) except -1:
    """The array as the engine has it; it and the extents must outlive the call."""
    cdef tuple shape = array.shape, strides = array.strides
    cdef int i, ndim = <int> len(shape)
    for i in range(ndim):
        extents.shape[i] = shape[i]
        extents.strides[i] = strides[i]
    given.array.data = <void *> <uintptr_t> array.data.ptr
    given.array.ndim = ndim
    given.array.shape = extents.shape
    given.array.strides = extents.strides
    given.swapped = False
    return 0


cdef int _give_on_gpu(const ts_kernel *kernel, ts_given *given, _extents *extents, object arrays,
                      bint outputs) except -1:
    cdef int k, taken = 0
    for k in range(kernel.arguments_count):
        if (kernel.arguments[k].intent == TS_OUT) == outputs:
            _give_gpu(&given[k], &extents[k], arrays[taken])
            taken += 1
    return 0


cdef const ts_overload *_exact_on_gpu(const ts_kernel *kernel, tuple given) except? NULL:
    """The overload for arrays that need no conversion; NULL for anything else."""
    cdef int numbers[TS_MAX_ARGUMENTS]
    cdef int i, k, taken = 0
    cdef const ts_argument *argument
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent != TS_OUT:
            if not isinstance(given[taken], _cupy_array):
                return NULL
            numbers[k] = (<cnp.dtype> given[taken].dtype).type_num
            taken += 1
    for i in range(kernel.overloads_count):
        for k in range(kernel.arguments_count):
            argument = &kernel.arguments[k]
            if argument.intent != TS_OUT and numbers[k] != _TYPE_NUMBERS[
                <int> ts_dtype_of(&kernel.overloads[i], argument.type_variable, argument.dtype)
            ]:
                break
        else:
            return &kernel.overloads[i]
    return NULL


cdef tuple _converted_on_gpu(const ts_kernel *kernel, tuple given, const ts_overload **overload):
    """As _converted; what is a number becomes an array by a launch, which copies nothing."""
    captured = _is_captured(_cupy.cuda.get_current_stream().ptr)
    cdef list arrays = []
    cdef int k, taken = 0
    converted = _converted(kernel, given, overload)
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent == TS_OUT:
            continue
        array = converted[taken]
        if captured and array is not given[taken]:
            raise _passing(kernel, f"argument {_text(kernel.arguments[k].name)} as {array.dtype}",
                           "pass a cupy.ndarray of that dtype")
        arrays.append(array if _is_on_gpu(array) else _cupy.full((), array[()], array.dtype))
        taken += 1
    return tuple(arrays)


cdef object _new_output_on_gpu(tuple inputs, tuple shape, object dtype):
    """As _new_output."""
    for array in inputs:
        if array.shape == shape:
            if array.flags.c_contiguous:
                break
            return _cupy.empty_like(array, dtype=dtype)
    return _cupy.empty(shape, dtype)


# ---- the call ----

cdef object _call_on_gpu(const ts_kernel *kernel, tuple given, tuple parameters, int axis, object out,
                         object num_threads, object workspace):
    """As _call, on CuPy's arrays."""
    if num_threads is not None:
        raise TypeError(f"{_text(kernel.name)}: num_threads is for the processor's threads, and the "
                        "arrays are on a GPU")
    _need_gpu()
    device = _one_device(given, out)
    if device is None:
        device = _common_device(kernel, given, out)
    parameters = tuple([_number(kernel, p) if _is_on_gpu(p) else p for p in parameters])
    if _cupy.cuda.runtime.getDevice() == device:
        return _call_on_device(kernel, given, parameters, axis, out, device, workspace)
    with _cupy.cuda.Device(device):
        return _call_on_device(kernel, given, parameters, axis, out, device, workspace)


cdef object _number(const ts_kernel *kernel, object array):
    """What a 0-d array holds, for a scalar."""
    if array.ndim != 0:
        return array
    if _is_captured(_cupy.cuda.get_current_stream().ptr):
        raise RuntimeError(f"{_text(kernel.name)}: a scalar on the GPU cannot be read while a CUDA graph is "
                           "captured; pass a number")
    return array.item()


cdef object _call_on_device(const ts_kernel *kernel, tuple given, tuple parameters, int axis, object out,
                            int device, object workspace):
    cdef ts_invocation v
    cdef ts_given arrays[TS_MAX_ARGUMENTS]
    cdef _extents extents[TS_MAX_ARGUMENTS]
    cdef ts_gpu gpu
    cdef tuple inputs = given
    v.kernel = kernel
    v.threads = 1
    cdef const ts_overload *overload = _exact_on_gpu(kernel, given)
    if overload is NULL:
        inputs = _converted_on_gpu(kernel, given, &overload)
    v.overload = overload
    gpu.level = <ts_level> _architecture(kernel, overload, device)
    v.variants = overload.variants[<int> gpu.level]
    if kernel.parameters_count:
        _set_scalars(&v, overload, parameters)
    _give_on_gpu(kernel, arrays, extents, inputs, False)
    _measure(&v, arrays, axis)
    cdef list outputs = _outputs(&v, overload, inputs, axis, out, True)
    cdef tuple apart = inputs
    cdef list used = outputs
    _give_on_gpu(kernel, arrays, extents, outputs, True)
    if out is not None or _has_inout(kernel):
        apart, used = _without_overlap(&v, arrays, inputs, outputs, axis, True)
    v.copied = apart is not inputs or used is not outputs
    if v.copied:
        _give_on_gpu(kernel, arrays, extents, apart, False)
        _give_on_gpu(kernel, arrays, extents, used, True)
    if _extents_suffice(&v, outputs):
        gpu.kernel = kernel
        gpu.number = device
        if workspace is not None:
            _check_workspace(&v, arrays, workspace, device)
        _launch(&v, arrays, apart, used, axis, &gpu, workspace)
    if used is not outputs:
        for result, temporary in zip(outputs, used):
            if result is not temporary:
                result[...] = temporary
    if len(outputs) == 1:
        return outputs[0]
    return tuple(outputs) if outputs else None


cdef int _launch(ts_invocation *v, const ts_given *arrays, tuple inputs, list outputs, int axis,
                 ts_gpu *gpu, object workspace) except -1:
    """Launches the kernel, with contiguous copies of arrays where no variant takes what they are."""
    cdef list notes = [workspace], written = []
    cdef ts_prepared prepared
    cdef int status
    gpu.notes = <void *> notes
    gpu.load = _load
    gpu.enter = _enter
    gpu.device.reserve = _reserve
    gpu.stream = <void *> <uintptr_t> _cupy.cuda.get_current_stream().ptr
    ts_prepare_gpu(gpu)
    with nogil:
        status = ts_launch_out(v, arrays, axis, gpu, &prepared)
    if status == TS_NEEDS_COPY:
        written = _copied(v.kernel, inputs, outputs, &prepared, notes)
        with nogil:
            status = ts_launch_copies(v, gpu, &prepared)
    if status != TS_OK:
        _refuse_launch(v.kernel, status, notes, gpu.failure)
    for array, copy in written:
        array[...] = copy
    return 0


cdef list _copied(const ts_kernel *kernel, tuple inputs, list outputs, ts_prepared *prepared,
                  list notes):
    """Makes the copies that a call needs, which the notes keep; returns the pairs of an array and its
    copy that is written."""
    cdef list written = []
    cdef int k, taken = 0, given = 0
    cdef ts_view *view
    captured = _is_captured(_cupy.cuda.get_current_stream().ptr)
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent == TS_OUT:
            array, given = outputs[given], given + 1
        else:
            array, taken = inputs[taken], taken + 1
        if not prepared.copies >> k & 1:
            continue
        if captured:
            raise _passing(kernel, f"a contiguous copy of argument {_text(kernel.arguments[k].name)}",
                           "pass cupy.ascontiguousarray(...) of it")
        view = &prepared.views[k]
        shape = _int_tuple(view.ndim, view.shape)
        whole = _cupy.ndarray(shape, array.dtype, array.data + <int64_t> (
            <uintptr_t> view.data - <uintptr_t> array.data.ptr), _int_tuple(view.ndim, view.strides))
        copy = _cupy.ndarray(shape, array.dtype, _cupy.cuda.alloc(view.bytes),
                             _int_tuple(view.ndim, view.dense))
        view.copy = <void *> <uintptr_t> copy.data.ptr
        if kernel.arguments[k].intent != TS_OUT:
            copy[...] = whole
            notes.append(copy)
        if kernel.arguments[k].intent != TS_IN:
            written.append((whole, copy))
    return written


cdef tuple _int_tuple(int count, const int64_t *numbers):
    cdef int i
    return tuple([numbers[i] for i in range(count)])


cdef int _refuse_launch(const ts_kernel *kernel, int status, list notes, int failure) except -1:
    errors = [note for note in notes if isinstance(note, BaseException)]
    if status == TS_NO_MEMORY and (not errors or isinstance(errors[0], MemoryError)):
        raise MemoryError(f"{_text(kernel.name)}: no memory for the kernel's workspace") from (
            errors[0] if errors else None)
    if errors:
        raise errors[0]
    if status == TS_WRONG_ARGUMENT:
        raise ValueError(_message())
    if failure:
        raise RuntimeError(f"{_text(kernel.name)}: the driver did not launch it: "
                           f"{_failure_name(failure)}")
    raise RuntimeError(f"{_text(kernel.name)}: no variant takes these strides on a GPU")
