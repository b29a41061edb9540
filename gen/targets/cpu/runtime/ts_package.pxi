# What the whole package has: its ISA level, threads, workspace and manifest.

import os


cdef list _built_levels():
    return [_text(ts_level_names[level]) for level in range(TS_LEVELS) if ts_levels_built >> level & 1]


cdef list _supported_levels():
    return [_text(ts_level_names[level]) for level in range(TS_LEVELS)
            if ts_levels_built >> level & 1 and ts_level_supported(<ts_level> level)]


cdef str _chosen_level(object wanted):
    built, supported = _built_levels(), _supported_levels()
    if wanted is None:
        if not supported:
            raise ImportError(f"{__name__}: this machine runs none of the ISA levels that were "
                              f"built: {', '.join(built)}")
        return supported.pop()  # the highest
    if wanted not in built:
        raise ImportError(f"{__name__}: TILESMITH_CPU_LEVEL={wanted!r} is not among the ISA levels "
                          f"that were built: {', '.join(built)}")
    if wanted not in supported:
        raise ImportError(f"{__name__}: TILESMITH_CPU_LEVEL={wanted!r} is not supported by this "
                          f"machine, which runs: {', '.join(supported)}")
    return wanted


cdef int _initial_threads(object wanted) except -1:
    if wanted is None:
        return ts_available_processors()
    if not (wanted.isascii() and wanted.isdigit() and len(wanted) <= 4
            and 1 <= int(wanted) <= TS_MOST_THREADS):
        raise ImportError(f"{__name__}: TILESMITH_NUM_THREADS must be an integer from 1 to "
                          f"{TS_MOST_THREADS}, got {wanted!r}")
    return int(wanted)


cdef int _set_streaming(object wanted) except -1:
    if wanted not in (None, "on", "off"):
        raise ImportError(f"{__name__}: TILESMITH_STREAM must be 'on' or 'off', got {wanted!r}")
    if wanted is not None:
        ts_set_streaming(TS_STREAM_ON if wanted == "on" else TS_STREAM_OFF)
    return 0


cdef int _checked_threads(str where, object num_threads) except -1:
    try:
        if isinstance(num_threads, bool):
            raise TypeError
        count = operator.index(num_threads)
    except TypeError:
        raise TypeError(f"{where}: num_threads must be an integer, "
                        f"got {type(num_threads).__name__}") from None
    if not 1 <= count <= TS_MOST_THREADS:
        raise ValueError(f"{where}: num_threads must be from 1 to {TS_MOST_THREADS}, got {count}")
    return count


cdef inline int _threads(const ts_kernel *kernel, object num_threads) except -1:
    return ts_default_threads() if num_threads is None else _checked_threads(
        _text(kernel.name), num_threads)


def get_num_threads():
    """The number of threads that calls without num_threads= use at most.

    At import: TILESMITH_NUM_THREADS, or the processors that the process may use. In a forked child:
    1, until set_num_threads.
    """
    return ts_default_threads()


def set_num_threads(num_threads):
    """Sets the number of threads that calls without num_threads= use at most.

    Raises ValueError unless it is from 1 to 1024, TypeError unless it is an integer.
    """
    ts_set_default_threads(_checked_threads("set_num_threads", num_threads))


class threads:
    """`with threads(n):` calls of this thread without num_threads= use at most n threads inside.

    Other Python threads go by set_num_threads. Raises ValueError unless n is from 1 to 1024, TypeError
    unless it is an integer.
    """

    __slots__ = ("_count", "_before")

    def __init__(self, num_threads):
        self._count = _checked_threads("threads", num_threads)
        self._before = []

    def __enter__(self):
        self._before.append(ts_threads_here())
        ts_set_threads_here(self._count)

    def __exit__(self, *_):
        ts_set_threads_here(self._before.pop())


def free_workspace():
    """Gives back the memory that threads keep between calls, at most 256 MiB each, but for threads
    now in a kernel.
    """
    ts_free_workspace()


def get_include():
    """The folder of the C header, and of the same declarations for Cython (`cython -I`).

    The header is named after the package, with _ for each dot of its name.
    """
    import importlib.resources

    header = importlib.resources.files(__name__.rpartition(".")[0]).joinpath(
        "include", f"{_PACKAGE.replace('.', '_')}.h")
    return os.path.dirname(os.fspath(header))


def kernels():
    """The manifest: a dict from each kernel's name to what is known of it."""
    import importlib.resources  # here: together 10 ms, which importing the package must not take
    import json

    package = __name__.rpartition(".")[0]
    text = importlib.resources.files(package).joinpath("manifest.json").read_text("utf-8")
    return json.loads(text)["kernels"]


def last_call():
    """What the calling thread's latest kernel call ran, or None.

    A dict: kernel, level (of a GPU its architecture), variant (its name), packed (whether slices were
    copied block by block for their strides or byte order), copied (whether whole arrays were).
    """
    record = ts_last_run()
    if record.kernel is NULL:
        return None
    level = ts_level_names[<int> ts_level_used()]
    if record.architecture is not NULL:
        level = record.architecture
    return {"kernel": _text(record.kernel), "level": _text(level),
            "variant": _text(record.variant), "packed": bool(record.packed),
            "copied": bool(record.copied)}


def show_config(mode="stdout"):
    """Prints the version, ISA levels, threads, caches (in bytes), what it was built by and runs with, and what it has for GPUs; with mode="dicts", returns them instead.

    Imports CuPy where it is installed and the package has code for GPUs. Raises ValueError for any other mode.
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: mode must be 'stdout' or 'dicts', got {mode!r}")
    caches = ts_find_caches()
    config = {
        "version": __version__,
        "level": _text(ts_level_names[<int> ts_level_used()]),
        "levels_built": _built_levels(),
        "levels_supported": _supported_levels(),
        "num_threads": ts_default_threads(),
        "threads_by": _text(ts_threads_by),
        "second_level_cache": caches.second,
        "last_level_cache": caches.last,
        "last_level_caches": caches.lasts,
        "compiler": _text(ts_compiler()).strip(),
        "numpy": np.__version__,
        **_gpu_config(),
    }
    if mode == "dicts":
        return config
    for key, value in config.items():
        print(f"{key}: {', '.join(value) if isinstance(value, list) else value}")


cdef bytes _capsule_name  # a capsule keeps no copy of it
_C_API = None  # what C code imports: see ts_caller.h and the package's header


cdef int _set_up() except -1:
    level = _chosen_level(os.environ.get("TILESMITH_CPU_LEVEL"))
    for number in range(TS_LEVELS):
        if _text(ts_level_names[number]) == level:
            ts_use_level(<ts_level> <int> number)
    ts_set_default_threads(_initial_threads(os.environ.get("TILESMITH_NUM_THREADS")))
    _set_streaming(os.environ.get("TILESMITH_STREAM"))
    ts_install_fork_handlers()
    global _capsule_name, _C_API
    _capsule_name = f"{_PACKAGE}._kernels._C_API".encode("ascii")
    _C_API = PyCapsule_New(<void *> &ts_this_api, _capsule_name, NULL)
    return 0
