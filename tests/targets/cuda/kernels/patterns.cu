#include "ts_emulator.h"

/* Instructions whose counts are computed by hand in test_emulator_counts.py: 40 threads, two warps. */
extern "C" __global__ void __launch_bounds__(64)
    patterns(const float *x, const double *d, const int8_t *b, float *y)
{
    ts_global<const float> xs = x;
    ts_global<const double> ds = d;
    ts_global<const int8_t> bs = b;
    ts_global<float> ys = y;
    const int32_t t = (int32_t)threadIdx.x;
    float sum = xs[0];        /* the same for all */
    sum += xs[t];             /* side by side */
    sum += xs[t + 1];         /* shifted by an element */
    sum += xs[2 * t];         /* every other one */
    sum += xs[t / 2];         /* each for two lanes */
    sum += xs[64 - t];        /* backwards */
    sum += (float)ds[t];      /* 8 bytes */
    sum += (float)bs[t];      /* 1 byte */
    for (int32_t k = 0; k < t % 3; k++)
        sum += xs[t + 8 * k]; /* twice, for fewer and fewer lanes */
    ys[t] = sum;
}

/* Of shared memory: 32 threads. */
extern "C" __global__ void __launch_bounds__(32) banks(float *y)
{
    TS_SHARED(float, f, 1024);
    TS_SHARED(double, d, 1024);
    TS_SHARED(int8_t, b, 1024);
    ts_global<float> ys = y;
    const int32_t t = (int32_t)threadIdx.x;
    for (int32_t k = 0; k < 32; k++) {
        f[t + 32 * k] = 0.0f;
        d[t + 32 * k] = 0.0;
        b[t + 32 * k] = 0;
    }
    ts_barrier(0);
    float sum = f[0];     /* one word for all */
    sum += f[t];          /* a bank each */
    sum += f[2 * t];      /* two words a bank */
    sum += f[32 * t];     /* all of one bank */
    sum += f[t % 4 * 33]; /* four words, of four banks */
    sum += (float)d[t];
    sum += (float)d[2 * t];
    sum += (float)d[32 * t];
    sum += (float)b[t];   /* four lanes a word */
    sum += (float)b[32 * t];
    ys[t] = sum;
}

/* Half of a warp before a barrier, the other half after it: 32 threads. */
extern "C" __global__ void __launch_bounds__(32) halves(const float *x, float *y)
{
    ts_global<const float> xs = x;
    ts_global<float> ys = y;
    const int32_t t = (int32_t)threadIdx.x;
    for (int32_t k = 0; k < 2; k++) {
        if (t / 16 == k)
            ys[t] = xs[t];
        ts_barrier(1);
    }
}
