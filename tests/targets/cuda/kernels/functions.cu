#include "ts_cuda.h"
#include "ts_math_more.h"

/* The rows of y are functions of x, and of x and z. OF_ONE, OF_TWO: X(name) of each. */
#define ROWS(X_ONE, X_TWO)                                                       \
    const int32_t i = (int32_t)blockIdx.x * 64 + (int32_t)threadIdx.x;           \
    int32_t row = 0;                                                             \
    if (i < n) {                                                                 \
        OF_ONE(X_ONE)                                                            \
        OF_TWO(X_TWO)                                                            \
    }
#define ONE_F32(name) y[row++ * n + i] = ts_##name##_f32_s(x[i]);
#define TWO_F32(name) y[row++ * n + i] = ts_##name##_f32_s(x[i], z[i]);
#define ONE_F64(name) y[row++ * n + i] = ts_##name##_f64_s(x[i]);
#define TWO_F64(name) y[row++ * n + i] = ts_##name##_f64_s(x[i], z[i]);

TS_DEVICE void of_f32(int32_t n, ts_global<const float> x, ts_global<const float> z, ts_global<float> y)
{
    ROWS(ONE_F32, TWO_F32)
}

TS_DEVICE void of_f64(int32_t n, ts_global<const double> x, ts_global<const double> z, ts_global<double> y)
{
    ROWS(ONE_F64, TWO_F64)
}

extern "C" __global__ void __launch_bounds__(64)
    functions_f32(const int32_t n, const float *x, const float *z, float *y)
{
    of_f32(n, x, z, y);
}

extern "C" __global__ void __launch_bounds__(64)
    functions_f64(const int32_t n, const double *x, const double *z, double *y)
{
    of_f64(n, x, z, y);
}
