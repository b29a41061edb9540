/* What a generated extension knows of its kernels, and how a call of one is carried out.

   The binding (ts_binding.pxi) turns Python arguments into a ts_invocation; ts_run, which knows
   nothing of Python, orders and collapses the axes, chooses the variant, packs what must be packed
   and runs the kernel. Beside it: ISA levels, threads and workspace, as far as bindings see them. */
#ifndef TS_ENGINE_H
#define TS_ENGINE_H

#include "ts_abi.h"

enum { TS_MAX_ARGUMENTS = 12, TS_MAX_CORE = 8, TS_MAX_DIMS = 16, TS_MAX_SCALARS = 16 };
enum { TS_LIMITS = 2 }; /* those of a scalar */
#define TS_REACH (INT64_C(1) << 59)
enum { TS_MAX_SIZES = 16, TS_MAX_TERMS = 64 }; /* expressions a kernel, and parts of one */
enum { TS_MAX_OUTER = 64, TS_MAX_AXES = 64 }; /* NumPy's limit; the bits of ts_variant.unit */

typedef enum ts_dtype { /* as in gen/ir/types.py */
    TS_BOOL, TS_INT8, TS_INT16, TS_INT32, TS_INT64, TS_UINT8, TS_UINT16, TS_UINT32, TS_UINT64,
    TS_FLOAT16, TS_BFLOAT16, TS_FLOAT32, TS_FLOAT64, TS_COMPLEX64, TS_COMPLEX128, TS_DTYPES
} ts_dtype;

typedef enum ts_intent { TS_IN, TS_OUT, TS_INOUT } ts_intent;

typedef enum ts_level { /* of processors, then architectures of GPUs, the least first */
    TS_V2, TS_V3, TS_V4, TS_NEON, TS_ARCHITECTURES,
    TS_SM_75 = TS_ARCHITECTURES, TS_SM_80, TS_SM_86, TS_SM_89, TS_SM_90, TS_SM_100, TS_SM_120, TS_LEVELS
} ts_level;

typedef struct ts_argument {
    const char *name;
    ts_intent intent;
    int type_variable;      /* its number, or -1: `dtype` is fixed */
    ts_dtype dtype;
    bool looped;            /* its first axis is the kernel's loop dim */
    int core;               /* number of core axes */
    const int64_t *axes;    /* each core axis: a dim's number, the number of dims plus that of a
                               size, or -1 - c for the constant extent c */
    uint32_t in_place[2];   /* of an output: bit k, it may be the very array that argument k is, on
                               a processor; on a GPU */
} ts_argument;

typedef struct ts_parameter { /* a scalar */
    const char *name;
    int type_variable;
    ts_dtype dtype;
    int64_t limits[TS_LIMITS]; /* of one that indexes: its largest magnitude, by the call's sizes, see
                                  ts_measure.c; -1: any */
} ts_parameter;

/* An expression over dims and scalars, in postfix order. */
typedef enum ts_operation {
    TS_END, TS_NUMBER, TS_DIM, TS_SCALAR, TS_ADD, TS_SUB, TS_MUL, TS_FLOORDIV, TS_MOD, TS_MIN, TS_MAX,
    TS_EQ, TS_NE, TS_LT, TS_LE, TS_GT, TS_GE,
    TS_REAL_NUMBER, TS_REAL_SCALAR, TS_REAL_ADD, TS_REAL_SUB, TS_REAL_MUL,
    TS_WHOLE                /* a real one without its fraction */
} ts_operation;

typedef struct ts_term {
    ts_operation operation;
    int64_t value;          /* the number (of a real one, the bits), or the dim's or scalar's; dims
                               beyond the kernel's are sizes */
} ts_term;

typedef struct ts_size { /* a size that follows from others; or a constraint: not 0 */
    const char *text;       /* its name, or as the spec writes it */
    const ts_term *terms;   /* to TS_END */
    int told;               /* the dim that this tells, or -1: it is ... */
    int64_t times, more;    /* ... times this, 1 or more, and this, which may be negative */
} ts_size;

typedef struct ts_overload { /* one choice of dtypes */
    const char *declaration;               /* as in ts_caller.h */
    int kernel;                            /* its number in ts_kernels */
    const ts_dtype *types;                 /* the type variables' values */
    const ts_variant *variants[TS_LEVELS]; /* NULL on the levels that it was not built for */
} ts_overload;

typedef struct ts_kernel {
    const char *name;
    int arguments_count, parameters_count, dims_count, type_variables_count, overloads_count;
    int inputs_count;       /* arguments that the caller must give: in and inout, in order */
    int sizes_count, constraints_count, products_count;
    int named_count;        /* of the sizes, which are first: those that the kernel sees as dims */
    const ts_argument *arguments;
    const ts_parameter *parameters;
    const char *const *dims;
    const int64_t *least;   /* the least extent of each dim */
    const ts_size *sizes, *constraints;
    const ts_size *products; /* of sizes, which indices need to be at most TS_REACH */
    const char *const *type_variables;
    const ts_overload *overloads;
    int loop_dim;           /* its number, or -1 */
    bool has_axis;          /* one core dim, at most one core axis an array: takes axis= */
    int64_t largest;        /* size that its indices allow */
} ts_kernel;

typedef struct ts_operand {
    char *data;
    int64_t outer[TS_MAX_OUTER]; /* byte strides over the call's leading axes; 0 where broadcast */
    int64_t core[TS_MAX_CORE];   /* byte strides of its core axes */
    int64_t itemsize;
    int64_t swap;                /* bytes in each unit to be reversed: 0 for native order */
    bool convert;                /* not native, or not aligned: kernels must not see it */
} ts_operand;

/* An argument's array as the caller has it: shape and strides are there, also where ndim is 0. */
typedef struct ts_given {
    ts_array array;
    bool swapped; /* not in the machine's byte order */
} ts_given;

typedef struct ts_invocation {
    const ts_kernel *kernel;
    const ts_overload *overload;
    const ts_variant *variants;
    int threads;
    int axis_ndim;               /* where axis= is wrong: the number of axes of the array it is wrong for */
    bool copied;                 /* arrays that are not looped are copies, made for their strides */
    int outer_count;             /* leading axes after broadcasting */
    int64_t outer_shape[TS_MAX_OUTER];
    int64_t dims[TS_MAX_DIMS + TS_MAX_SIZES]; /* extents, then those of sizes; that of the loop dim
                                                 is ts_run's to fill in */
    ts_scalar scalars[TS_MAX_SCALARS];
    ts_operand operands[TS_MAX_ARGUMENTS];
} ts_invocation;

typedef struct ts_record { /* what ran; kernel is NULL if nothing did */
    const char *kernel, *variant;
    bool packed, copied;
    const char *architecture; /* of the GPU that it ran on, or NULL */
} ts_record;

/* Generated, in ts_kernels.c: this extension's kernels, and its levels of processors as bits. */
extern const ts_kernel ts_kernels[];
extern const int ts_kernels_count;
extern const uint32_t ts_levels_built;

enum {                  /* beside the statuses of ts_caller.h */
    TS_WRONG_AXIS = 16, /* the message is the argument alone: see ts_invocation.axis_ndim */
    TS_NEEDS_COPY       /* nothing was run: no variant takes the arrays that are not looped */
};

static inline ts_dtype ts_dtype_of(const ts_overload *overload, int type_variable, ts_dtype fixed)
{
    return type_variable < 0 ? fixed : overload->types[type_variable];
}

/* Bytes of an element, and of the number or, where it is complex, of each of its two. */
static inline int64_t ts_itemsize(ts_dtype dtype)
{
    switch (dtype) {
    case TS_BOOL: case TS_INT8: case TS_UINT8: return 1;
    case TS_INT16: case TS_UINT16: case TS_FLOAT16: case TS_BFLOAT16: return 2;
    case TS_INT32: case TS_UINT32: case TS_FLOAT32: return 4;
    case TS_INT64: case TS_UINT64: case TS_FLOAT64: case TS_COMPLEX64: return 8;
    case TS_COMPLEX128: return 16;
    case TS_DTYPES: break;
    }
    return 0;
}

static inline int64_t ts_alignment(ts_dtype dtype)
{
    return ts_itemsize(dtype) / (dtype == TS_COMPLEX64 || dtype == TS_COMPLEX128 ? 2 : 1);
}

typedef enum ts_evaluated { TS_EXACT, TS_TOO_LARGE, TS_BAD_DIVISOR } ts_evaluated;

/* What the expression comes to, if it is no larger than an int64 and all divisors are positive. */
ts_evaluated ts_evaluate(const ts_term *terms, const int64_t *dims, const ts_scalar *scalars,
                         int64_t *result);

/* Finds the broadcast extents of the leading axes, the dims and the sizes from the arrays that the
   caller gives, one for each argument that is no output; checks them, and the constraints. kernel,
   overload and scalars are set. axis: that of axis=, or -1. TS_OK, TS_WRONG_ARGUMENT, TS_WRONG_AXIS. */
int ts_measure(ts_invocation *invocation, const ts_given *given, int axis);

/* The shape that argument k has where it is written, and its number of axes. */
int ts_shape_of(const ts_invocation *invocation, int k, int axis, int64_t *shape);

/* The first dim that is smaller than the kernel is defined for, or -1. */
int ts_too_small(const ts_invocation *invocation);

/* Fills operand k; its shape has been checked. */
void ts_bind(ts_invocation *invocation, int k, const ts_given *given, int axis);

/* TS_WRONG_ARGUMENT, and the message: the kernel's name, then what the format says. */
int ts_refuse(const ts_kernel *kernel, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ts_refuse_unknown(const char *declaration); /* TS_NO_KERNEL */
int ts_refuse_too_small(const ts_invocation *invocation, int d);
int ts_refuse_shape(const ts_invocation *invocation, const char *what, int ndim, const int64_t *shape,
                    const ts_array *got);
const char *ts_message(void); /* this thread's latest */

/* Whether two arrays share memory, and whether two elements of one array do. Exact, but true where
   finding out would take long: of a dozen axes and more, none of which contains another. */
bool ts_overlap(const ts_array *a, int64_t a_itemsize, const ts_array *b, int64_t b_itemsize);
bool ts_overlaps_itself(const ts_array *array, int64_t itemsize);

/* The argument with which argument k, which is written, may not share the memory that it shares: k for
   its own elements, then the other written ones, then those that are read, but for the very array
   that the kernel is proved to run in place on. -1: there is none. */
int ts_clash(const ts_invocation *invocation, const ts_given *given, int k, bool on_gpu);

/* Carries a call out, all checks passed: `given` has an array for each argument. Arrays that are not
   looped are copied where no variant takes their strides, byte order or alignment. TS_OK or TS_NO_MEMORY. */
int ts_carry_out(ts_invocation *invocation, const ts_given *given, int axis);

/* Runs the kernel over all outer iterations; changes the invocation's axes on the way. An operand
   with `convert` set must be looped. TS_OK, TS_NO_MEMORY or TS_NEEDS_COPY. */
int ts_run(ts_invocation *invocation);

/* The argument that an elementwise kernel writes, if it writes one alone; or -1. */
int ts_flat_output(const ts_kernel *kernel);

/* Runs such a kernel over `count` elements, 1 or more, that lie side by side in each argument, aligned
   and in native order. output: ts_flat_output's. TS_OK, TS_NO_MEMORY, or TS_NEEDS_COPY: nothing was
   run, since the output shares memory with another argument. */
int ts_run_flat(const ts_overload *overload, void *const *data, const ts_scalar *scalars, int output,
                int64_t count, int threads);

/* A call's GPU, as the runtime has it. */
typedef struct ts_gpu {
    ts_device device; /* the first member: kernels are given its address */
    const ts_kernel *kernel;
    ts_level level;
    int number;       /* of the device */
    void *stream;
    int failure;      /* what libcuda returned, where a launch failed */
    void *notes;      /* the binding's own */
    /* The binding's. load: the address of a function of the kernel's module, or NULL. enter: makes the
       device this thread's. */
    void *(*load)(struct ts_gpu *gpu, const char *function);
    void (*enter)(struct ts_gpu *gpu);
} ts_gpu;

/* Fills in what the runtime does itself. Addresses in libcuda have been given to ts_use_libcuda:
   cuLaunchKernel; and, or NULL, cuMemcpyDtoHAsync_v2, cuStreamSynchronize and cuStreamIsCapturing. */
void ts_prepare_gpu(ts_gpu *gpu);
void ts_use_libcuda(void *launch, void *copy, void *wait, void *recorded);

/* An argument's array with its axes in the order of the call, and what its copy is to be. */
typedef struct ts_view {
    int ndim;
    int64_t shape[TS_MAX_OUTER + 1 + TS_MAX_CORE]; /* leading axes, the loop dim, core axes */
    int64_t strides[TS_MAX_OUTER + 1 + TS_MAX_CORE], dense[TS_MAX_OUTER + 1 + TS_MAX_CORE]; /* bytes */
    void *data;    /* its element 0 */
    int64_t bytes; /* of the copy */
    void *copy;    /* the caller's: its element 0 */
} ts_view;

typedef struct ts_prepared { /* a call on a GPU that needs copies: bit k, argument k */
    uint32_t copies;
    ts_view views[TS_MAX_ARGUMENTS];
    int64_t loop_extent, loop_strides[TS_MAX_ARGUMENTS];
} ts_prepared;

/* Launches a call on a GPU, all checks passed: `given` has an array for each argument. TS_OK,
   TS_NO_MEMORY, TS_NOT_LAUNCHED; TS_WRONG_ARGUMENT, and a message: an array's elements are not aligned;
   TS_NEEDS_COPY: nothing was launched, since some arrays have strides that no variant takes, or would
   make it many launches. The caller copies those, then calls ts_launch_copies. */
int ts_launch_out(ts_invocation *invocation, const ts_given *given, int axis, const ts_gpu *gpu,
                  ts_prepared *prepared);

/* The same call, on the copies. TS_NEEDS_COPY: no variant takes those, either. */
int ts_launch_copies(ts_invocation *invocation, const ts_gpu *gpu, const ts_prepared *prepared);

/* The calling thread's latest ts_run or ts_launch_out: for benchmarks and tests. */
ts_record ts_last_run(void);
void ts_set_last_run(ts_record record);

/* Copies elements between two layouts of one shape; strides in bytes. `swap` as in ts_operand. */
void ts_move(char *to, const int64_t *to_strides, const char *from, const int64_t *from_strides,
             const int64_t *shape, int axes, int64_t itemsize, int64_t swap);

/* The best level that this machine runs, or -1 where it runs none. */
int ts_best_level(void);
bool ts_level_supported(ts_level level);
extern const char *const ts_level_names[TS_LEVELS];

/* The level that calls run at: set once, before the first call. */
void ts_use_level(ts_level level);
ts_level ts_level_used(void);

/* Caches as one processor sees them, in bytes, and how many of the last level this process has. */
typedef struct ts_caches {
    int64_t second, last;
    int lasts;
} ts_caches;

ts_caches ts_find_caches(void);

/* What ts_call says of them, for a call on so many threads. */
double ts_stream_above(int threads);
double ts_prefetch_above(void);

/* Whether kernels store past the caches: by default their arrays' sizes decide. */
typedef enum ts_streaming { TS_STREAM_BY_SIZE, TS_STREAM_ON, TS_STREAM_OFF } ts_streaming;
void ts_set_streaming(ts_streaming how);

/* What this extension's capsule points to. */
extern const ts_caller_api ts_this_api;

enum { TS_MOST_THREADS = 1024 };

/* The number of threads that a call without num_threads= uses: 1 in a forked child until it is set. */
int ts_default_threads(void);
void ts_set_default_threads(int threads);

/* What the calling thread uses instead; 0: the default. */
int ts_threads_here(void);
void ts_set_threads_here(int threads);
int ts_available_processors(void);
void ts_install_fork_handlers(void);
extern const char ts_threads_by[]; /* what runs parallel loops, as the build's option has it */
void ts_parallel_before_fork(void);
void ts_parallel_after_fork(bool child);
const char *ts_compiler(void); /* name and version of what the engine was compiled by */

/* Frees the workspace of every thread that is not in a kernel at this moment. */
void ts_free_workspace(void);
void ts_workspace_before_fork(void);
void ts_workspace_after_fork(bool child);

#endif
