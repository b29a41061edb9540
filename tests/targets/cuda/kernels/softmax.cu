#include <math.h>

#include "ts_emulator.h"

/* A block a row: the largest element and the sum by shared memory. */
template <typename index_t>
TS_DEVICE void softmax(index_t n, ts_global<const float> x, index_t x_s0, ts_global<float> y)
{
    const index_t i = (index_t)blockIdx.x, t = (index_t)threadIdx.x;
    TS_SHARED(float, parts, 64);
    TS_SHARED(float, peak, 1);
    TS_SHARED(float, total, 1);
    float most = -INFINITY;
    for (index_t j = t; j < n; j += 64)
        most = fmaxf(most, x[i * x_s0 + j]);
    parts[t] = most;
    ts_barrier(0);
    if (t == 0) {
        float all = -INFINITY;
        for (index_t k = 0; k < 64; k++)
            all = fmaxf(all, parts[k]);
        peak[0] = all;
    }
    ts_barrier(1);
    float sum = 0.0f;
    for (index_t j = t; j < n; j += 64)
        sum += expf(x[i * x_s0 + j] - peak[0]);
    parts[t] = sum;
    ts_barrier(2);
    if (t == 0) {
        float all = 0.0f;
        for (index_t k = 0; k < 64; k++)
            all += parts[k];
        total[0] = all;
    }
    ts_barrier(3);
    for (index_t j = t; j < n; j += 64)
        y[i * n + j] = expf(x[i * x_s0 + j] - peak[0]) / total[0];
}

extern "C" __global__ void __launch_bounds__(64)
    softmax_i32(const int32_t n, const float *x, const int32_t x_s0, float *y)
{
    softmax<int32_t>(n, x, x_s0, y);
}

extern "C" __global__ void __launch_bounds__(64)
    softmax_i64(const int64_t n, const float *x, const int64_t x_s0, float *y)
{
    softmax<int64_t>(n, x, x_s0, y);
}
