# Where a call's arrays are, and whose: NumPy's, CuPy's, or another library's on a GPU.
#
# Input: a call's arguments. Output: the GPU, or an error that names two of them. Invariant: CuPy is
# imported where an argument of another library is on a GPU, or by warmup; never by importing the package.

from collections.abc import Sequence

from cpython.buffer cimport PyObject_CheckBuffer

cdef object _cupy = None        # once the process has imported it
cdef object _cupy_array = None  # its type of arrays

cdef tuple _CUDA = (2, 13)  # DLPack's numbers of devices: CUDA's, and its managed memory
cdef tuple _PROCESSOR = (1, 3, 11)  # and those of memory that is the processor's, pinned or not
cdef tuple _NUMBERS = (float, int, bool, complex, np.generic, str)
cdef tuple _NOT_FOREIGN = (np.ndarray, list, tuple, *_NUMBERS)

cdef enum:
    _ON_PROCESSOR = 0
    _OF_CUPY = 1
    _OF_ANOTHER_LIBRARY = 2


cdef bint _is_on_gpu(object given) except -1:
    """Whether it is CuPy's array."""
    global _cupy, _cupy_array
    if _cupy_array is None:
        module = sys.modules.get("cupy")
        if module is None:
            return False
        array = getattr(module, "ndarray", None)  # None while it is being imported
        if array is None:
            return False
        _cupy, _cupy_array = module, array
    return isinstance(given, _cupy_array)


cdef bint _is_foreign(object given) except -1:
    """Whether it is another library's array on a GPU."""
    return not isinstance(given, _NOT_FOREIGN) and not _is_on_gpu(given) and _is_cuda(_told_device(given))


cdef object _told_device(object given):
    """What another library's array says of where it is, the kind of the device and its number; None
    where it says nothing, the error where it cannot. The kind is DLPack's, or else a name."""
    try:
        if hasattr(given, "__dlpack_device__"):
            kind, number = given.__dlpack_device__()
            return kind, number
        if hasattr(given, "__cuda_array_interface__"):
            return _CUDA[0], None
        device = getattr(given, "device", None)  # TensorFlow's, which have neither
        return (device, None) if isinstance(device, str) and ":GPU:" in device else None
    except Exception as error:
        return error


cdef bint _is_cuda(object told) except -1:
    return isinstance(told, tuple) and told[0] in _CUDA


cdef int _refuse_devices(str where, object given, int depth=0) except -1:
    """Raises TypeError for what np.asarray would copy to the processor, or might; in lists, too."""
    if isinstance(given, _NUMBERS) or cnp.PyArray_Check(given):
        return 0
    if isinstance(given, Sequence) and not PyObject_CheckBuffer(given):
        for item in given if depth < _MOST_AXES else ():
            if type(item) is not float and type(item) is not int:
                _refuse_devices(where if depth else f"{where}: an element", item, depth + 1)
        return 0
    if _is_on_gpu(given) or _is_foreign(given):
        raise TypeError(f"{where} is {_place(given)}, and nothing is copied to the processor; make one "
                        "array of the elements where they are")
    told = _told_device(given)
    advice = "pass np.asarray(...) of it for the processor"
    if isinstance(told, Exception):
        raise TypeError(f"{where} is {_type_name(given)}, which is not on one device or cannot say on "
                        f"which ({type(told).__name__}: {told}); {advice}") from told
    if told is not None and told[0] not in _PROCESSOR:
        device = told[0] if isinstance(told[0], str) else f"a device of DLPack's kind {int(told[0])}"
        raise TypeError(f"{where} is {_type_name(given)} on {device}, where kernels cannot take it; {advice}")
    return 0


cdef int _whose(tuple given) except -1:
    """Whether arrays are on a GPU, and any of them another library's."""
    cdef int found = _ON_PROCESSOR
    for array in given:
        if cnp.PyArray_Check(array):
            continue
        if _is_on_gpu(array):
            found = found if found else _OF_CUPY
        elif _is_foreign(array):
            found = _OF_ANOTHER_LIBRARY
    return found


cdef int _import_cupy(str what) except -1:
    global _cupy, _cupy_array
    if _cupy_array is None:
        try:
            import cupy
        except ImportError as error:
            raise ImportError(f"{what} needs CuPy: pip install cupy-cuda13x, or cupy-cuda12x where the "
                              f"driver is of CUDA 12 ({error})") from None
        _cupy, _cupy_array = cupy, cupy.ndarray
    return 0


cdef object _gpu_of(object array):
    """The number of the GPU that an array is on; None for anything else."""
    if _is_on_gpu(array):
        return array.device.id
    if not _is_foreign(array):
        return None
    number = _told_device(array)[1]
    if number is not None or _cupy is None:  # which alone knows
        return number
    address = array.__cuda_array_interface__["data"][0]
    if address == 0:  # of no elements
        return _cupy.cuda.runtime.getDevice()
    return _cupy.cuda.runtime.pointerGetAttributes(address).device


cdef str _type_name(object array):
    return f"a {type(array).__module__}.{type(array).__name__}".replace("a builtins.", "a ")


cdef str _place(object array):
    gpu = _gpu_of(array)
    return _type_name(array) if gpu is None else f"{_type_name(array)} on GPU {gpu}"


cdef object _library_of(object array):
    """The module of functions for such arrays."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    for base in type(array).__mro__:
        root = base.__module__.partition(".")[0]
        for name, function in ((root, "from_dlpack"), (f"{root}.cuda", "as_cuda_array")):
            module = sys.modules.get(name)
            if hasattr(module, function):
                return module
    return type(array)


cdef object _one_device(tuple given, object out):
    """The device of CuPy's arrays that are all on one; None where there is more to look at."""
    device = None
    for array in given if out is None else (*given, out):
        if not _is_on_gpu(array):
            return None
        if device is None:
            device = array.device.id
        elif device != array.device.id:
            return None
    return device


cdef object _common_device(const ts_kernel *kernel, tuple given, object out):
    """The device of all arrays, which must be one library's, but for scalars and an out= of which
    _checked_out says more."""
    cdef list named = []
    cdef int k, taken = 0, results = 0
    cdef tuple outs = () if out is None else _out_tuple(kernel, out)
    for k in range(kernel.arguments_count):
        if kernel.arguments[k].intent != TS_OUT:
            array, taken = given[taken], taken + 1
            if not isinstance(array, (bool, int, float, complex, np.generic)):
                named.append((f"argument {_text(kernel.arguments[k].name)}", array, _gpu_of(array)))
        elif out is not None:
            array, results = outs[results], results + 1
            gpu = _gpu_of(array)
            if gpu is not None or isinstance(array, np.ndarray):
                named.append((f"out ({_text(kernel.arguments[k].name)})", array, gpu))
    first_name, first, device = [place for place in named if place[2] is not None][0]
    for name, array, gpu in named:
        here, there = (first_name, first), (name, array)
        what = "in one place"
        if gpu is None:
            here, there = there, here
        elif gpu == device:
            what = "of one library"
            if type(array) is type(first) or _library_of(array) is _library_of(first):
                continue
        raise TypeError(f"{_text(kernel.name)}: arrays must be {what}: {here[0]} is {_place(here[1])}, "
                        f"{there[0]} is {_place(there[1])}")
    return device
