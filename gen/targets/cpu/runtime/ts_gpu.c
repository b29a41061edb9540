/* Launches on GPUs: functions by device and name, started by the libcuda that the process has.

   Nothing of CUDA is needed to compile this. A function is looked up by the address of its name, which
   is a literal of a kernel's host side: entries are only ever added, under the GIL (by the binding's
   `load`), and found without it. */
#include <stdatomic.h>
#include <stdlib.h>

#include "ts_engine.h"

enum { BUCKETS = 256 };
enum { INVALID_CONTEXT = 201 }; /* CUDA_ERROR_INVALID_CONTEXT: this thread has not used the device yet */

typedef struct entry {
    const char *function;
    int device;
    void *handle;
    struct entry *next;
} entry;

static _Atomic(entry *) table[BUCKETS];

typedef int (*launcher)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        void *stream, void **parameters, void **extra);

static launcher cu_launch_kernel;

/* What reading an element takes; without all of these none is read. */
static int (*cu_copy)(void *to, uint64_t from, size_t bytes, void *stream);
static int (*cu_wait)(void *stream);
static int (*cu_recorded)(void *stream, int *recorded);

void ts_use_libcuda(void *launch, void *copy, void *wait, void *recorded)
{
    *(void **)&cu_launch_kernel = launch;
    *(void **)&cu_copy = copy;
    *(void **)&cu_wait = wait;
    *(void **)&cu_recorded = recorded;
}

static _Atomic(entry *) *bucket(const ts_gpu *gpu, const char *function)
{
    const uintptr_t mixed = ((uintptr_t)function + (uintptr_t)gpu->number) * UINT64_C(0x9e3779b97f4a7c15);
    return &table[mixed >> 56];
}

static void *find(const ts_gpu *gpu, const char *function)
{
    const entry *e = atomic_load_explicit(bucket(gpu, function), memory_order_acquire);
    while (e && (e->function != function || e->device != gpu->number))
        e = e->next;
    return e ? e->handle : NULL;
}

/* Where there is no memory for an entry, the next launch loads the function again. */
static void keep(const ts_gpu *gpu, const char *function, void *handle)
{
    _Atomic(entry *) *first = bucket(gpu, function);
    entry *e = malloc(sizeof *e);
    if (!e)
        return;
    *e = (entry){function, gpu->number, handle, atomic_load_explicit(first, memory_order_relaxed)};
    while (!atomic_compare_exchange_weak_explicit(first, &e->next, e, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

static int launch(const ts_device *device, const char *function, const uint32_t grid[3],
                  const uint32_t block[3], void **parameters)
{
    ts_gpu *gpu = (ts_gpu *)(uintptr_t)device;
    void *handle = find(gpu, function);
    if (!handle) {
        handle = gpu->load(gpu, function);
        if (!handle)
            return TS_NOT_LAUNCHED;
        keep(gpu, function, handle);
    }
    for (int attempt = 0; attempt < 2; attempt++) {
        gpu->failure = cu_launch_kernel(handle, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                        0, gpu->stream, parameters, NULL);
        if (gpu->failure != INVALID_CONTEXT)
            break;
        gpu->enter(gpu);
    }
    return gpu->failure ? TS_NOT_LAUNCHED : TS_OK;
}

static bool is_zero(const ts_device *device, const void *element)
{
    void *stream = ((const ts_gpu *)(const void *)device)->stream;
    int recorded = 1;
    int32_t value = 1;
    if (cu_recorded(stream, &recorded) || recorded)
        return false;
    const int failure = cu_copy(&value, (uintptr_t)element, sizeof value, stream);
    return !cu_wait(stream) && !failure && value == 0;
}

void ts_prepare_gpu(ts_gpu *gpu)
{
    gpu->device.launch = launch;
    gpu->device.is_zero = cu_copy && cu_wait && cu_recorded ? is_zero : NULL;
    gpu->failure = 0;
}
