/* What a generated extension knows of its kernels, and how a call of one is carried out.

   The binding (ts_binding.pxi) turns Python arguments into a ts_invocation; ts_run, which knows
   nothing of Python, orders and collapses the axes, chooses the variant, packs what must be packed
   and runs the kernel. Beside it: ISA levels, threads and workspace, as far as bindings see them. */
#ifndef TS_ENGINE_H
#define TS_ENGINE_H

#include "ts_abi.h"

enum { TS_MAX_ARGUMENTS = 12, TS_MAX_CORE = 8, TS_MAX_DIMS = 16, TS_MAX_SCALARS = 16 };
enum { TS_MAX_OUTER = 64, TS_MAX_AXES = 64 }; /* NumPy's limit; the bits of ts_variant.unit */

typedef enum ts_dtype { /* as in gen/ir/types.py, but for bfloat16, which NumPy has not */
    TS_BOOL, TS_INT8, TS_INT16, TS_INT32, TS_INT64, TS_UINT8, TS_UINT16, TS_UINT32, TS_UINT64,
    TS_FLOAT16, TS_FLOAT32, TS_FLOAT64, TS_COMPLEX64, TS_COMPLEX128, TS_DTYPES
} ts_dtype;

typedef enum ts_intent { TS_IN, TS_OUT, TS_INOUT } ts_intent;

typedef enum ts_level { TS_V2, TS_V3, TS_V4, TS_NEON, TS_LEVELS } ts_level;

typedef struct ts_argument {
    const char *name;
    ts_intent intent;
    int type_variable;      /* its number, or -1: `dtype` is fixed */
    ts_dtype dtype;
    bool looped;            /* its first axis is the kernel's loop dim */
    int core;               /* number of core axes */
    const int64_t *axes;    /* each core axis: a dim's number, or -1 - c for the constant extent c */
    uint32_t in_place;      /* of an output: bit k, it may be the very array that argument k is */
} ts_argument;

typedef struct ts_parameter { /* a scalar */
    const char *name;
    int type_variable;
    ts_dtype dtype;
} ts_parameter;

typedef struct ts_overload { /* one choice of dtypes */
    const ts_dtype *types;                 /* the type variables' values */
    const ts_variant *variants[TS_LEVELS]; /* NULL on the levels that were not built */
} ts_overload;

typedef struct ts_kernel {
    const char *name;
    int arguments_count, parameters_count, dims_count, type_variables_count, overloads_count;
    int inputs_count;       /* arguments that the caller must give: in and inout, in order */
    const ts_argument *arguments;
    const ts_parameter *parameters;
    const char *const *dims;
    const int64_t *least;   /* the least extent of each dim */
    const char *const *type_variables;
    const ts_overload *overloads;
    int loop_dim;           /* its number, or -1 */
    bool has_axis;          /* one core dim, at most one core axis an array: takes axis= */
} ts_kernel;

typedef struct ts_operand {
    char *data;
    int64_t outer[TS_MAX_OUTER]; /* byte strides over the call's leading axes; 0 where broadcast */
    int64_t core[TS_MAX_CORE];   /* byte strides of its core axes */
    int64_t itemsize;
    int64_t swap;                /* bytes in each unit to be reversed: 0 for native order */
    bool convert;                /* not native, or not aligned: kernels must not see it */
} ts_operand;

typedef struct ts_invocation {
    const ts_kernel *kernel;
    const ts_variant *variants;
    int threads;
    bool copied;                 /* arrays that are not looped are copies, made for their strides */
    int outer_count;             /* leading axes after broadcasting */
    int64_t outer_shape[TS_MAX_OUTER];
    int64_t dims[TS_MAX_DIMS];   /* extents; that of the loop dim is ts_run's to fill in */
    ts_scalar scalars[TS_MAX_SCALARS];
    ts_operand operands[TS_MAX_ARGUMENTS];
} ts_invocation;

typedef struct ts_record { /* what ran; kernel is NULL if nothing did */
    const char *kernel, *variant;
    bool packed, copied;
} ts_record;

/* Generated, in ts_kernels.c: this extension's kernels, and its ISA levels as bits. */
extern const ts_kernel ts_kernels[];
extern const uint32_t ts_levels_built;

enum { TS_NEEDS_COPY = 2 }; /* nothing was run: no variant takes the arrays that are not looped */

/* Runs the kernel over all outer iterations; changes the invocation's axes on the way. An operand
   with `convert` set must be looped. TS_OK, TS_NO_MEMORY or TS_NEEDS_COPY. */
int ts_run(ts_invocation *invocation);

/* The calling thread's latest ts_run: for benchmarks and tests. */
ts_record ts_last_run(void);

/* Copies elements between two layouts of one shape; strides in bytes. `swap` as in ts_operand. */
void ts_move(char *to, const int64_t *to_strides, const char *from, const int64_t *from_strides,
             const int64_t *shape, int axes, int64_t itemsize, int64_t swap);

/* The best level that this machine runs, or -1 where it runs none. */
int ts_best_level(void);
bool ts_level_supported(ts_level level);
extern const char *const ts_level_names[TS_LEVELS];

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

/* The number of threads that a call without num_threads= uses: 1 in a forked child until it is set. */
int ts_default_threads(void);
void ts_set_default_threads(int threads);
int ts_available_processors(void);
void ts_install_fork_handlers(void);
bool ts_has_openmp(void);
const char *ts_compiler(void); /* name and version of what the engine was compiled by */

/* Frees the workspace of every thread that is not in a kernel at this moment. */
void ts_free_workspace(void);
void ts_workspace_before_fork(void);
void ts_workspace_after_fork(bool child);

#endif
