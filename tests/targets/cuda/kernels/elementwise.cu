#include "ts_emulator.h"

/* y = 2 x + 1. GUARD: whether threads past the end do nothing. STEP, FIRST: which element of x is
   read. THREAD: which thread's element a thread takes. */
#ifndef GUARD
#define GUARD 1
#endif
#ifndef STEP
#define STEP 1
#endif
#ifndef FIRST
#define FIRST 0
#endif
#ifndef THREAD
#define THREAD threadIdx.x
#endif

template <typename T, typename index_t>
TS_DEVICE void elementwise(index_t n, ts_global<const T> x, ts_global<T> y)
{
    const index_t i = (index_t)blockIdx.x * 64 + (index_t)THREAD;
    if (!GUARD || i < n)
        y[i] = x[i * STEP + FIRST] * (T)2 + (T)1;
}

extern "C" __global__ void __launch_bounds__(64)
    elementwise_float32_i32(const int32_t n, const float *x, float *y)
{
    elementwise<float, int32_t>(n, x, y);
}

extern "C" __global__ void __launch_bounds__(64)
    elementwise_float64_i64(const int64_t n, const double *x, double *y)
{
    elementwise<double, int64_t>(n, x, y);
}
