/* The host sides of the stand-in kernels for GPUs, as generated ones are: they hand a call's arrays,
   strides, dims and scalars to one launch, whose device code is device.c. */
#include "ts_abi.h"

#define ADDRESS(value) (void *)(uintptr_t)&(value)
#define TABLE(kernel, types) const ts_variant ts_##kernel##_##types##_sm_90[]

/* A run of the kernel over its arrays, axes of arrays, dims (with named sizes) and scalars. */
#define RUN(kernel, types, arrays, axes, sizes, scalars_)                                          \
    static int kernel##_##types(const ts_call *call)                                               \
    {                                                                                              \
        void *parameters[arrays + axes + sizes + scalars_], **p = parameters;                      \
        for (int i = 0; i < arrays; i++)                                                           \
            *p++ = ADDRESS(call->data[i]);                                                         \
        for (int i = 0; i < axes; i++)                                                             \
            *p++ = ADDRESS(call->strides[i]);                                                      \
        for (int i = 0; i < sizes; i++)                                                            \
            *p++ = ADDRESS(call->dims[i]);                                                         \
        for (int i = 0; i < scalars_; i++)                                                         \
            *p++ = ADDRESS(call->scalars[i]);                                                      \
        const uint32_t grid[3] = {1, 1, 1}, block[3] = {32, 1, 1};                                 \
        return call->device->launch(call->device, "ts_" #kernel "_" #types "_launch0", grid, block, \
                                    parameters);                                                   \
    }

static bool not_5(const ts_call *call) { return call->dims[0] != 5; }
static bool always(const ts_call *call) { return call->threads > 0; }

#define KERNELS(T)                                                                                 \
    RUN(square, T, 2, 2, 1, 0)                                                                     \
    TABLE(square, T) = {{square_##T, 0, 0x3, "unit"}};                                             \
    RUN(softmax, T, 2, 4, 2, 0)                                                                    \
    TABLE(softmax, T) = {{softmax_##T, not_5, 0xa, "unit"}, {softmax_##T, 0, 0, "plain"}};         \
    RUN(total, T, 2, 3, 2, 0)                                                                      \
    TABLE(total, T) = {{total_##T, always, 0x2, "inner"},                                          \
                       {total_##T, always, 0x5, "outer"},                                          \
                       {total_##T, 0, 0, "plain"}};                                                \
    RUN(max, T, 2, 3, 2, 0)                                                                        \
    TABLE(max, T) = {{max_##T, 0, 0, "plain"}};                                                    \
    RUN(matmul, T, 3, 6, 3, 0)                                                                     \
    TABLE(matmul, T) = {{matmul_##T, always, 0x28, "unit"}, {matmul_##T, 0, 0, "strided"}};        \
    RUN(affine, T, 3, 6, 3, 0)                                                                     \
    TABLE(affine, T) = {{affine_##T, 0, 0x8, "unit"}};                                             \
    RUN(clamp, T, 2, 2, 1, 3)                                                                      \
    TABLE(clamp, T) = {{clamp_##T, 0, 0, "plain"}};                                                \
    RUN(parts, T, 3, 3, 1, 0)                                                                      \
    TABLE(parts, T) = {{parts_##T, 0, 0, "plain"}};                                                \
    RUN(add_into, T, 2, 4, 2, 0)                                                                   \
    TABLE(add_into, T) = {{add_into_##T, 0, 0xa, "unit"}};                                         \
    RUN(grey, T, 2, 3, 1, 0)                                                                       \
    TABLE(grey, T) = {{grey_##T, 0, 0, "plain"}};                                                  \
    RUN(windows, T, 2, 4, 4, 3)                                                                    \
    TABLE(windows, T) = {{windows_##T, 0, 0, "plain"}};

KERNELS(float32)
KERNELS(float64)

/* ---- scaled, of float32 alone ---- */

RUN(scaled, float32, 3, 3, 1, 0)
TABLE(scaled, float32) = {{scaled_float32, 0, 0, "plain"}};

/* ---- greedy: ()->(), by way of memory on the device, of which there is not enough for 3 elements ---- */

static int greedy_float64(const ts_call *call)
{
    char *memory = call->device->reserve(call->device, call->dims[0] < 3 ? 1000 : (size_t)1 << 60);
    if (!memory)
        return TS_NO_MEMORY;
    const int64_t one = 1;
    void *first[] = {ADDRESS(call->data[0]), &memory, ADDRESS(call->strides[0]), ADDRESS(one),
                     ADDRESS(call->dims[0])};
    void *second[] = {&memory, ADDRESS(call->data[1]), ADDRESS(one), ADDRESS(call->strides[1]),
                      ADDRESS(call->dims[0])};
    const uint32_t grid[3] = {1, 1, 1}, block[3] = {32, 1, 1};
    const int status =
        call->device->launch(call->device, "ts_greedy_float64_launch0", grid, block, first);
    return status != TS_OK ? status
                           : call->device->launch(call->device, "ts_greedy_float64_launch1", grid,
                                                  block, second);
}

TABLE(greedy, float64) = {{greedy_float64, 0, 0, "plain"}};

/* ---- turn, of complex64: more threads than a block has, which the driver refuses ---- */

static int turn_complex64_float32(const ts_call *call)
{
    const uint32_t grid[3] = {1, 1, 1}, block[3] = {2048, 1, 1};
    return call->device->launch(call->device, "ts_square_float32_launch0", grid, block, NULL);
}

TABLE(turn, complex64_float32) = {{turn_complex64_float32, 0, 0, "plain"}};
