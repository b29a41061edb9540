#include "ts_emulator.h"

/* Tiles of 32 by 32 elements through shared memory, in rows of PITCH; 32 by 8 threads. */
#ifndef PITCH
#define PITCH 33
#endif

template <typename T, typename index_t>
TS_DEVICE void transpose(index_t m, index_t n, ts_global<const T> x, ts_global<T> y)
{
    const index_t i0 = (index_t)blockIdx.y * 32, j0 = (index_t)blockIdx.x * 32;
    const index_t tx = (index_t)threadIdx.x, ty = (index_t)threadIdx.y;
    TS_SHARED(T, tile, 32 * PITCH);
#pragma unroll
    for (index_t k = 0; k < 32; k += 8)
        if (i0 + ty + k < m && j0 + tx < n)
            tile[(ty + k) * PITCH + tx] = x[(i0 + ty + k) * n + j0 + tx];
    ts_barrier(0);
#pragma unroll
    for (index_t k = 0; k < 32; k += 8)
        if (j0 + ty + k < n && i0 + tx < m)
            y[(j0 + ty + k) * m + i0 + tx] = tile[tx * PITCH + ty + k];
}

extern "C" __global__ void __launch_bounds__(256)
    transpose_float32_i32(const int32_t m, const int32_t n, const float *x, float *y)
{
    transpose<float, int32_t>(m, n, x, y);
}

extern "C" __global__ void __launch_bounds__(256)
    transpose_float64_i32(const int32_t m, const int32_t n, const double *x, double *y)
{
    transpose<double, int32_t>(m, n, x, y);
}
