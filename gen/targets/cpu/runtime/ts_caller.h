/* What C code that calls kernels, and the extensions that have them, agree on.

   This text stands at the beginning of every package's own header. */
#ifndef TS_CALLER_1
#define TS_CALLER_1

#include <stdint.h>

/* An array in the caller's memory: element [i, j] is at (char *)data + i * strides[0] + j * strides[1].
   Kernels write to the arrays whose comment says `out` or `inout`, and only read the others. */
typedef struct ts_array {
    void *data;             /* aligned for the element type, in the machine's byte order */
    int ndim;               /* at most 64 */
    const int64_t *shape;   /* ndim extents, each at least 0 */
    const int64_t *strides; /* ndim strides in bytes, or NULL: contiguous, the last axis fastest */
} ts_array;

/* A complex number, laid out as C's and C++'s own. */
typedef struct ts_complex64 {
    float re, im;
} ts_complex64;

typedef struct ts_complex128 {
    double re, im;
} ts_complex128;

/* What a call returns. Nothing has been written unless it is TS_OK. */
enum {
    TS_OK = 0,
    TS_NO_MEMORY = 1,      /* there is none for the kernel's workspace */
    TS_WRONG_ARGUMENT = 2, /* an array, a size or a number of threads: the message tells which */
    TS_NO_KERNEL = 3       /* the header's import function has not been called, or the installed
                              package has no such kernel */
};

/* A kernel as a header knows it. */
typedef struct ts_function {
    const char *declaration; /* its name and the types of all arguments: what makes calls compatible */
    const void *kernel;      /* the package's, or NULL: it has none of that declaration */
} ts_function;

/* What a package's capsule `_C_API` points to. */
typedef struct ts_caller_api {
    int version; /* of this text: 1; members are only ever added */
    /* The package's kernel of a declaration, or NULL. */
    const void *(*find)(const char *declaration);
    /* Runs a kernel: `arrays` and `scalars` (addresses) in the order of the declaration. */
    int (*call)(const ts_function *function, const ts_array *const *arrays,
                const void *const *scalars, int num_threads);
    /* Why this thread's latest call returned what it did, unless that was TS_OK. */
    const char *(*message)(void);
} ts_caller_api;

#endif
