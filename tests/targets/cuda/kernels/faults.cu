#include "ts_emulator.h"

/* A kernel for each thing that no kernel may do. */
extern "C" __global__ void __launch_bounds__(64) unwritten(const int32_t n, float *y)
{
    ts_global<float> out = y;
    TS_SHARED(float, part, 64);
    if (threadIdx.x != 5)
        part[threadIdx.x] = 1.0f;
    ts_barrier(0);
    out[threadIdx.x] = part[n - 1 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) read_after_write(const int32_t n, float *y)
{
    ts_global<float> out = y;
    TS_SHARED(float, part, 64);
    part[threadIdx.x] = 1.0f;
    ts_barrier(0);
    part[threadIdx.x] = 2.0f;
    out[threadIdx.x] = part[(threadIdx.x + 1) % n];
}

extern "C" __global__ void __launch_bounds__(64) both_write(const int32_t n, float *y)
{
    ts_global<float> out = y;
    TS_SHARED(float, part, 64);
    part[threadIdx.x / 2] = 1.0f;
    ts_barrier(0);
    out[threadIdx.x] = part[threadIdx.x / 2];
}

extern "C" __global__ void __launch_bounds__(64) past_shared(const int32_t n, float *y)
{
    ts_global<float> out = y;
    TS_SHARED(float, part, 64);
    part[threadIdx.x + 1] = 1.0f;
    ts_barrier(0);
    out[threadIdx.x] = part[1];
}

extern "C" __global__ void __launch_bounds__(64) before_shared(const int32_t n, float *y)
{
    ts_global<float> out = y;
    TS_SHARED(float, part, 64);
    part[threadIdx.x] = 1.0f;
    out[threadIdx.x] = part[(int32_t)threadIdx.x - n];
}

extern "C" __global__ void __launch_bounds__(64) past_global(const int32_t n, float *y)
{
    ts_global<float> out = y;
    out[threadIdx.x * 2] = 1.0f;
}

extern "C" __global__ void __launch_bounds__(64) different_barriers(const int32_t n, float *y)
{
    if (threadIdx.x < 32)
        ts_barrier(0);
    else
        ts_barrier(1);
}

extern "C" __global__ void __launch_bounds__(64) one_is_gone(const int32_t n, float *y)
{
    if ((int32_t)threadIdx.x == n - 1)
        return;
    ts_barrier(7);
}

extern "C" __global__ void __launch_bounds__(64) blocks_write(const int32_t n, float *y)
{
    ts_global<float> out = y;
    out[threadIdx.x] = (float)blockIdx.x;
}

extern "C" __global__ void __launch_bounds__(64) blocks_read(const int32_t n, float *y)
{
    ts_global<float> out = y;
    if (blockIdx.x == 0)
        out[threadIdx.x] = 1.0f;
    else
        out[threadIdx.x + n] = out[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) blocks_read_first(const int32_t n, float *y)
{
    ts_global<float> out = y;
    if (blockIdx.x == 2)
        out[threadIdx.x] = 1.0f;
    else
        out[threadIdx.x + n * (blockIdx.x + 1)] = out[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) threads_of_a_block(const int32_t n, float *y)
{
    ts_global<float> out = y;
    out[threadIdx.x] = 1.0f;
    ts_barrier(0);
    out[threadIdx.x] = 1.0f + out[63 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) blocks_in_order(const int32_t n, float *y)
{
    ts_global<float> out = y;
    out[threadIdx.x + blockIdx.x * 64] += 1.0f;
    ts_barrier(0);
    out[63 - threadIdx.x + blockIdx.x * 64] += 1.0f;
}

extern "C" __global__ void __launch_bounds__(64) order_of_threads(const int32_t n, float *y)
{
    static uint32_t turn;
    ts_global<float> out = y;
    out[threadIdx.x] = (float)(turn++ % 64);
    ts_barrier(0);
    out[threadIdx.x + 64] = (float)(turn++ % 64);
}

extern "C" __global__ void __launch_bounds__(64) nowhere(const int32_t n, float *y)
{
    ts_global<const float> none = (const float *)(uintptr_t)4096;
    ts_global<float> out = y;
    out[threadIdx.x] = none[n];
}

extern "C" __global__ void __launch_bounds__(64) past_local(const int32_t n, float *y)
{
    ts_global<float> out = y;
    float own[4] = {0.0f, 1.0f, 2.0f, 3.0f};
    out[threadIdx.x] = own[threadIdx.x * (uint32_t)n / 1024];
}

extern "C" __global__ void __launch_bounds__(64) too_large(const int32_t n, float *y)
{
    ts_global<float> out = y;
    out[((int32_t)threadIdx.x << 22) * n / (1 << 28)] = 1.0f;
}

extern "C" __global__ void __launch_bounds__(64) by_nothing(const int32_t n, float *y)
{
    ts_global<float> out = y;
    out[((int32_t)threadIdx.x) % (n - 64)] = 1.0f;
}

extern "C" __global__ void __launch_bounds__(64) block_writes_what_others_read(const int32_t n, float *y)
{
    ts_global<float> out = y;
    const float first = out[threadIdx.x];
    if (blockIdx.x == 2)
        out[threadIdx.x] = first + (float)n;
}

extern "C" __global__ void __launch_bounds__(64) one_writes_what_others_read(const int32_t n, float *y)
{
    ts_global<float> out = y;
    TS_SHARED(float, part, 64);
    part[threadIdx.x] = 1.0f;
    ts_barrier(0);
    if (threadIdx.x == 0)
        part[n - 1] = 2.0f;
    else
        out[threadIdx.x] = part[threadIdx.x];
}
