/* What stands for a GPU's driver and for the stand-in kernels' device code: a library libcuda.so.1
   whose functions run on this processor. Memory "of the device" is the host's, at an address that is
   `FAR` too high, so that whoever follows it without having been launched is stopped.

   A function's handle is the address of its code here, which takes what cuLaunchKernel got. */
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "ts_abi.h"

#define LEVEL device
#include "kernels.c"

enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, TIMEOUT = 909 };
#define FAR (UINT64_C(1) << 60)
#define EXPORTED __attribute__((visibility("default")))

typedef void code(void **parameters);

static _Thread_local int current = -1; /* the device that is this thread's */
EXPORTED int64_t stub_launches, stub_contexts;
EXPORTED void *stub_stream;

/* Where a handle is no address, but a number of the hook's. */
enum { MOST_HANDLES = 4096 };
EXPORTED int (*stub_hook)(uintptr_t handle, const unsigned *grid, const unsigned *block, void **parameters);

/* Where it is closed, a launch waits for another thread to open it, and is none after some seconds. */
enum { OPEN, CLOSED, WAITED_FOR, MOST_WAITS = 10000 };
EXPORTED _Atomic int stub_gate;

static int pass(void)
{
    int closed = CLOSED;
    if (!atomic_compare_exchange_strong(&stub_gate, &closed, WAITED_FOR))
        return 0;
    for (int i = 0; i < MOST_WAITS; i++) {
        if (atomic_load(&stub_gate) == OPEN)
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return TIMEOUT;
}

EXPORTED void stub_enter(int device)
{
    stub_contexts += current != device;
    current = device;
}

EXPORTED int cuLaunchKernel(code *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            void *stream, void **parameters, void **extra)
{
    if (current < 0)
        return INVALID_CONTEXT;
    if (!grid_x || !grid_y || !grid_z || block_x * block_y * block_z > 1024 || shared || extra)
        return INVALID_VALUE;
    if (pass())
        return TIMEOUT;
    stub_launches++;
    stub_stream = stream;
    if ((uintptr_t)function < MOST_HANDLES)
        return stub_hook((uintptr_t)function, (unsigned[]){grid_x, grid_y, grid_z},
                         (unsigned[]){block_x, block_y, block_z}, parameters);
    function(parameters);
    return 0;
}

EXPORTED int cuGetErrorName(int error, const char **name)
{
    *name = error == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "another error";
    return 0;
}

/* ---- what the kernels call on a processor ---- */

int ts_parallel(ts_body body, const void *env, int64_t lower, int64_t upper, int64_t grain, int threads)
{
    (void)grain, (void)threads;
    return body(env, lower, upper);
}

void *ts_workspace_acquire(size_t bytes) { return (void)bytes, NULL; }
void ts_workspace_release(void *memory) { (void)memory; }

/* ---- device code ---- */

static void run(int (*kernel)(const ts_call *), void **parameters, int arrays, int axes, int sizes,
                int scalars)
{
    void *data[8];
    int64_t strides[16], dims[8];
    ts_scalar values[8];
    for (int i = 0; i < arrays; i++)
        data[i] = (void *)(uintptr_t)(*(uint64_t *)*parameters++ - FAR);
    for (int i = 0; i < axes; i++)
        strides[i] = *(int64_t *)*parameters++;
    for (int i = 0; i < sizes; i++)
        dims[i] = *(int64_t *)*parameters++;
    for (int i = 0; i < scalars; i++)
        values[i] = *(ts_scalar *)*parameters++;
    kernel(&(ts_call){data, strides, dims, values, 1, TS_NEVER, TS_NEVER, NULL});
}

#define ENTRY(kernel, types, function, arrays, axes, sizes, scalars, launch)                       \
    EXPORTED void ts_##kernel##_##types##_##launch(void **parameters)                              \
    {                                                                                              \
        run(function, parameters, arrays, axes, sizes, scalars);                                   \
    }
#define DEVICES(T)                                                                                 \
    ENTRY(square, T, square_run_##T, 2, 2, 1, 0, launch0)                                          \
    ENTRY(softmax, T, softmax_run_##T, 2, 4, 2, 0, launch0)                                        \
    ENTRY(total, T, total_run_##T, 2, 3, 2, 0, launch0)                                            \
    ENTRY(max, T, max_run_##T, 2, 3, 2, 0, launch0)                                                \
    ENTRY(matmul, T, matmul_run_##T, 3, 6, 3, 0, launch0)                                          \
    ENTRY(affine, T, affine_run_##T, 3, 6, 3, 0, launch0)                                          \
    ENTRY(clamp, T, clamp_run_##T, 2, 2, 1, 3, launch0)                                            \
    ENTRY(parts, T, parts_run_##T, 3, 3, 1, 0, launch0)                                            \
    ENTRY(add_into, T, add_into_run_##T, 2, 4, 2, 0, launch0)                                      \
    ENTRY(grey, T, grey_run_##T, 2, 3, 1, 0, launch0)                                              \
    ENTRY(windows, T, windows_run_##T, 2, 4, 4, 3, launch0)
DEVICES(float32)
DEVICES(float64)
ENTRY(scaled, float32, scaled_run_float32, 3, 3, 1, 0, launch0)

static int copy(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++)
        ((double *)call->data[1])[i * call->strides[1]] =
            ((const double *)call->data[0])[i * call->strides[0]];
    return TS_OK;
}
ENTRY(greedy, float64, copy, 2, 2, 1, 0, launch0)
ENTRY(greedy, float64, copy, 2, 2, 1, 0, launch1)
