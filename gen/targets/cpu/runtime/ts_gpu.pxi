# Calls with CuPy's arrays: where the arguments are, what their memory is, and launches.
#
# Input: a call of which an argument is on a GPU. Output: its results, there, too. Invariant: nothing is
# copied to the processor's memory but 0-d arrays given as scalars; CuPy is never imported here; no
# error leaves a result half checked. All else is as for NumPy's arrays, by the same code.

cdef object _cupy = None        # once the process has imported it
cdef object _cupy_array = None  # its type of arrays
cdef object _libcuda = None
cdef dict _modules = {}  # (kernel, level, device): cupy.RawModule, loaded
cdef dict _capabilities = {}  # device: 90 for sm_90
cdef list _functions = []  # RawKernels, kept for their handles
cdef object _data = None  # the folder of the package with machine code; False: there is none that fits


cdef bint _is_on_gpu(object given) except -1:
    global _cupy, _cupy_array
    if _cupy_array is None:
        module = sys.modules.get("cupy")
        array = getattr(module, "ndarray", None)  # None while it is being imported
        if array is None:
            return False
        _cupy, _cupy_array = module, array
    return isinstance(given, _cupy_array)


cdef bint _any_on_gpu(tuple given) except -1:
    for array in given:
        if _is_on_gpu(array):
            return True
    return False


# ---- where the arguments are ----

cdef str _place(object array):
    if _is_on_gpu(array):
        return f"a cupy.ndarray on GPU {array.device.id}"
    return f"a {type(array).__module__}.{type(array).__name__}".replace("a builtins.", "a ")


cdef object _apart(const ts_kernel *kernel, str name, object array, str other, object another):
    return TypeError(f"{_text(kernel.name)}: arrays must be in one place: {name} is {_place(array)}, "
                     f"{other} is {_place(another)}")


cdef object _common_device(const ts_kernel *kernel, tuple given, object out):
    """The device of all arrays, which must be CuPy's, but for scalars and an out= of which _checked_out
    says more."""
    cdef list named = []
    cdef int k, taken = 0, results = 0
    cdef tuple outs = () if out is None else _out_tuple(kernel, out)
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent != TS_OUT:
            array, taken = given[taken], taken + 1
            if not isinstance(array, (bool, int, float, complex, np.generic)):
                named.append((f"argument {_text(kernel.arguments[k].name)}", array))
        elif out is not None:
            array, results = outs[results], results + 1
            if isinstance(array, np.ndarray) or _is_on_gpu(array):
                named.append((f"out ({_text(kernel.arguments[k].name)})", array))
    first_name, first = [(name, array) for name, array in named if _is_on_gpu(array)][0]
    for name, array in named:
        if not _is_on_gpu(array):
            raise _apart(kernel, name, array, first_name, first)
        if array.device.id != first.device.id:
            raise _apart(kernel, first_name, first, name, array)
    return first.device.id


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


cdef object _find_libcuda():
    """The libcuda that CuPy uses, with cuLaunchKernel told to the runtime."""
    global _libcuda
    if _libcuda is None:
        import ctypes

        try:
            library = ctypes.CDLL("libcuda.so.1")
            address = ctypes.cast(library.cuLaunchKernel, ctypes.c_void_p).value
        except (OSError, AttributeError) as error:
            raise ImportError(f"{_PACKAGE}: calls on a GPU need NVIDIA's driver, and its library "
                              f"libcuda.so.1 cannot be loaded: {error}") from None
        ts_use_libcuda(<void *> <uintptr_t> address)
        _libcuda = library
    return _libcuda


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
    """The function as a RawKernel whose module is loaded: machine code where it is there and the
    driver takes it, else the source, compiled by NVRTC."""
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
            if name is names[0]:
                module = _cupy.RawModule(path=os.fspath(file))
            else:
                module = _cupy.RawModule(
                    code=file.read_text("utf-8"), options=_options(folder))
            found = module.get_function(function)
            found.kernel  # loads the module
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


# ---- what the runtime calls, without the GIL ----

cdef void *_load(ts_gpu *gpu, const char *function) noexcept with gil:
    """The function's handle; NULL, and the error in the notes."""
    try:
        found = _loaded(_text(gpu.kernel.name), _text(ts_level_names[<int> gpu.level]), gpu.number,
                        _text(function))
        _functions.append(found)
        return <void *> <uintptr_t> found.kernel.ptr
    except BaseException as error:
        (<list> gpu.notes).append(error)
        return NULL


cdef void _enter(ts_gpu *gpu) noexcept with gil:
    try:
        _cupy.cuda.runtime.setDevice(gpu.number)
    except BaseException as error:
        (<list> gpu.notes).append(error)


cdef void *_reserve(const ts_device *device, size_t size) noexcept with gil:
    """Memory of CuPy's pool, the notes' until the call is over: in the order of the stream it is free
    after what the call launched."""
    try:
        memory = _cupy.cuda.alloc(size if size > 0 else 1)
        (<list> (<ts_gpu *> device).notes).append(memory)
        return <void *> <uintptr_t> memory.ptr
    except BaseException as error:
        (<list> (<ts_gpu *> device).notes).append(error)
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
    return tuple([
        array if _is_on_gpu(array) else _cupy.full((), array[()], array.dtype)
        for array in _converted(kernel, given, overload)
    ])


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
                         object num_threads):
    """As _call."""
    if num_threads is not None:
        raise TypeError(f"{_text(kernel.name)}: num_threads is for the processor's threads, and the "
                        "arrays are on a GPU")
    device = _common_device(kernel, given, out)
    parameters = tuple([p.item() if _is_on_gpu(p) and p.ndim == 0 else p for p in parameters])
    _find_libcuda()
    if _cupy.cuda.runtime.getDevice() == device:
        return _call_on_device(kernel, given, parameters, axis, out, device)
    with _cupy.cuda.Device(device):
        return _call_on_device(kernel, given, parameters, axis, out, device)


cdef object _call_on_device(const ts_kernel *kernel, tuple given, tuple parameters, int axis, object out,
                            int device):
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
        _launch(&v, arrays, apart, used, axis, &gpu)
    if used is not outputs:
        for result, temporary in zip(outputs, used):
            if result is not temporary:
                result[...] = temporary
    if len(outputs) == 1:
        return outputs[0]
    return tuple(outputs) if outputs else None


cdef int _launch(ts_invocation *v, const ts_given *arrays, tuple inputs, list outputs, int axis,
                 ts_gpu *gpu) except -1:
    """Launches the kernel, with contiguous copies of arrays where no variant takes what they are."""
    cdef list notes = [], written = []
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
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent == TS_OUT:
            array, given = outputs[given], given + 1
        else:
            array, taken = inputs[taken], taken + 1
        if not prepared.copies >> k & 1:
            continue
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
    if status == TS_NO_MEMORY:
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
