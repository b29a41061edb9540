/* The contract between generated kernels and the runtime that calls them.

   A kernel exists once per choice of dtypes and ISA level, as a table of variants, tested in order:

       extern const ts_variant ts_<kernel>_<dtypes>_<level>[];    (the last has when == NULL)

   for example ts_softmax_float32_v4. A kernel reads and writes through `ts_call` alone; it keeps no
   state, allocates by ts_workspace_* and goes parallel by ts_parallel, both in the runtime. */
#ifndef TS_ABI_H
#define TS_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ts_caller.h"

typedef union ts_scalar {
    double f64; /* a float scalar parameter, whatever its precision */
    int64_t i64; /* an integer or bool one */
    double parts[2]; /* a complex one: its real and its imaginary part */
} ts_scalar;

/* The GPU that a call is for, as a kernel's host side sees it. */
typedef struct ts_device {
    /* Starts a function of the kernel's module: `function` is its name, a literal. `parameters` are
       the addresses of its arguments, as cuLaunchKernel has them. Does not wait for it. TS_OK, or
       TS_NOT_LAUNCHED, which the kernel returns. */
    int (*launch)(const struct ts_device *device, const char *function, const uint32_t grid[3],
                  const uint32_t block[3], void **parameters);
    /* Memory on the device until the call is over, 256-byte aligned: one piece, asked for once by each
       run of the kernel. bytes may be 0. NULL: there is none, for which the kernel returns TS_NO_MEMORY. */
    void *(*reserve)(const struct ts_device *device, size_t bytes);
    /* Whether an int32_t in memory that was reserved is 0, once all that was launched is done, for which
       this waits. False where nobody knows, as while launches are recorded for later. NULL: nobody
       ever does. */
    bool (*is_zero)(const struct ts_device *device, const void *element);
} ts_device;

enum { TS_NOT_LAUNCHED = 4 }; /* beside the statuses of ts_caller.h; the device knows why */

typedef struct ts_call {
    void *const *data;        /* arrays in the spec's order: each the address of its element 0 */
    const int64_t *strides;   /* in elements: the axes of the first array, then of the second, ... */
    const int64_t *dims;      /* the spec's dims, in its order */
    const ts_scalar *scalars; /* the spec's scalar parameters, in its order */
    int threads;              /* at least 1 */
    double stream_above;      /* kernels that move more bytes than this store past the caches, */
    double prefetch_above;    /* ... and than this, read ahead; TS_NEVER where none should */
    const ts_device *device;  /* whose memory `data` is; NULL: the processor's */
} ts_call;

#define TS_NEVER __builtin_inf()

typedef struct ts_variant {
    int (*run)(const ts_call *call);   /* TS_OK, TS_NO_MEMORY or TS_NOT_LAUNCHED */
    bool (*when)(const ts_call *call); /* whether the variant may be chosen; NULL: always */
    uint64_t unit;                     /* bit k: axis k (numbered as `strides`) must have stride 1
                                          or extent at most 1, or the array no elements */
    const char *name;                  /* for show_config and bench: "0", "1", ..., "plain" */
} ts_variant;

/* A part of a kernel: iterations [lower, upper) of a parallel loop. `env` holds the call and the
   values that the loop's surroundings computed. */
typedef int (*ts_body)(const void *env, int64_t lower, int64_t upper);

/* Runs `body` over [lower, upper) in contiguous chunks of at least `grain` iterations each, at most
   `threads` of them at once; calls it directly where there is one chunk alone, or where this is in a
   chunk of another loop. On fewer threads, where the system gives no more. Returns a status that is
   not TS_OK if there is one. */
int ts_parallel(ts_body body, const void *env, int64_t lower, int64_t upper, int64_t grain,
                int threads);

/* Whether this processor has instructions that not every one of its ISA level has: as a variant's
   `when` asks that is compiled with them. */
bool ts_cpu_has_avx512vnni(void);
bool ts_cpu_has_avx512bf16(void);

/* 64-byte aligned memory that the calling thread keeps between calls, as a stack: release in the
   reverse order of acquire. NULL if there is none. bytes may be 0. */
void *ts_workspace_acquire(size_t bytes);
void ts_workspace_release(void *memory);

/* The size of `count` things (none where it is negative) of `each` bytes; where that is too much for
   size_t, SIZE_MAX, which is more than there ever is. */
static inline size_t ts_bytes(int64_t count, size_t each)
{
    size_t bytes;
    return __builtin_mul_overflow(count > 0 ? count : 0, each, &bytes) ? SIZE_MAX : bytes;
}

#endif
