# ts_engine.h, as the binding uses it.

cdef extern from "ts_abi.h" nogil:
    ctypedef union ts_scalar:
        double f64
        int64_t i64
        double parts[2]
    ctypedef struct ts_variant:
        const char *name
    ctypedef struct ts_device:
        void *(*reserve)(const ts_device *device, size_t bytes) noexcept

cdef extern from "ts_caller.h" nogil:
    enum: TS_OK
    enum: TS_NO_MEMORY
    enum: TS_WRONG_ARGUMENT
    ctypedef struct ts_array:
        void *data
        int ndim
        const int64_t *shape
        const int64_t *strides
    ctypedef struct ts_caller_api:
        pass

cdef extern from "ts_engine.h" nogil:
    enum: TS_MAX_ARGUMENTS
    enum: TS_MOST_THREADS
    enum: TS_WRONG_AXIS
    enum: TS_NEEDS_COPY
    enum: TS_ARCHITECTURES
    enum: TS_LEVELS
    ctypedef enum ts_dtype:
        TS_BOOL, TS_INT8, TS_INT16, TS_INT32, TS_INT64, TS_UINT8, TS_UINT16, TS_UINT32, TS_UINT64,
        TS_FLOAT16, TS_BFLOAT16, TS_FLOAT32, TS_FLOAT64, TS_COMPLEX64, TS_COMPLEX128, TS_DTYPES
    ctypedef enum ts_intent:
        TS_IN, TS_OUT, TS_INOUT
    ctypedef enum ts_level:
        TS_V2
    ctypedef struct ts_argument:
        const char *name
        ts_intent intent
        int type_variable
        ts_dtype dtype
        bint looped
        int core
        const int64_t *axes
        uint32_t in_place[2]
    ctypedef struct ts_parameter:
        const char *name
        int type_variable
        ts_dtype dtype
    ctypedef struct ts_overload:
        const ts_dtype *types
        const ts_variant **variants
    ctypedef struct ts_kernel:
        const char *name
        int arguments_count
        int parameters_count
        int dims_count
        int type_variables_count
        int overloads_count
        int inputs_count
        const ts_argument *arguments
        const ts_parameter *parameters
        const char **dims
        const char **type_variables
        const ts_overload *overloads
    ctypedef struct ts_given:
        ts_array array
        bint swapped
    ctypedef struct ts_invocation:
        const ts_kernel *kernel
        const ts_overload *overload
        const ts_variant *variants
        int threads
        int axis_ndim
        bint copied
        int outer_count
        int64_t *outer_shape
        int64_t *dims
        ts_scalar *scalars
    ctypedef struct ts_caches:
        int64_t second
        int64_t last
        int lasts
    ctypedef enum ts_streaming:
        TS_STREAM_BY_SIZE, TS_STREAM_ON, TS_STREAM_OFF
    ctypedef struct ts_record:
        const char *kernel
        const char *variant
        bint packed
        bint copied
        const char *architecture
    ctypedef struct ts_gpu:
        ts_device device
        const ts_kernel *kernel
        ts_level level
        int number
        void *stream
        int failure
        void *notes
        void *(*load)(ts_gpu *gpu, const char *function) noexcept
        void (*enter)(ts_gpu *gpu) noexcept
    ctypedef struct ts_view:
        int ndim
        int64_t *shape
        int64_t *strides
        int64_t *dense
        void *data
        int64_t bytes
        void *copy
    ctypedef struct ts_prepared:
        uint32_t copies
        ts_view *views

    const ts_kernel *ts_kernels
    const int ts_kernels_count
    const uint32_t ts_levels_built
    const char **ts_level_names
    const ts_caller_api ts_this_api
    int64_t ts_itemsize(ts_dtype dtype)
    ts_dtype ts_dtype_of(const ts_overload *overload, int type_variable, ts_dtype fixed)
    int ts_measure(ts_invocation *v, const ts_given *given, int axis)
    int ts_shape_of(const ts_invocation *v, int k, int axis, int64_t *shape)
    int ts_too_small(const ts_invocation *v)
    int ts_refuse_too_small(const ts_invocation *v, int d)
    const char *ts_message()
    bint ts_overlap(const ts_array *a, int64_t a_itemsize, const ts_array *b, int64_t b_itemsize)
    bint ts_overlaps_itself(const ts_array *array, int64_t itemsize)
    int ts_clash(const ts_invocation *v, const ts_given *given, int k, bint on_gpu)
    int ts_flat_output(const ts_kernel *kernel)
    int ts_run_flat(const ts_overload *overload, void *const *data, const ts_scalar *scalars,
                    int output, int64_t count, int threads)
    int ts_carry_out(ts_invocation *v, const ts_given *given, int axis)
    int ts_launch_out(ts_invocation *v, const ts_given *given, int axis, const ts_gpu *gpu,
                      ts_prepared *prepared)
    int ts_launch_copies(ts_invocation *v, const ts_gpu *gpu, const ts_prepared *prepared)
    void ts_prepare_gpu(ts_gpu *gpu)
    void ts_use_libcuda(void *launch, void *copy, void *wait, void *recorded)
    ts_record ts_last_run()
    bint ts_level_supported(ts_level level)
    void ts_use_level(ts_level level)
    ts_level ts_level_used()
    int ts_default_threads()
    void ts_set_default_threads(int threads)
    int ts_threads_here()
    void ts_set_threads_here(int threads)
    int ts_available_processors()
    void ts_install_fork_handlers()
    const char *ts_threads_by
    const char *ts_compiler()
    ts_caches ts_find_caches()
    void ts_set_streaming(ts_streaming how)
    void ts_free_workspace()
