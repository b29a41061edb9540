#include "ts_emulator.h"

/* A block a tile of 32 by 32, 8 steps of k at a time; 8 by 8 threads of 4 by 4 elements each. */
template <typename index_t>
TS_DEVICE void matmul(index_t m, index_t n, index_t k, ts_global<const float> a,
                      ts_global<const float> b, ts_global<float> c)
{
    const index_t i0 = (index_t)blockIdx.y * 32, j0 = (index_t)blockIdx.x * 32;
    const index_t tx = (index_t)threadIdx.x, ty = (index_t)threadIdx.y, t = ty * 8 + tx;
    TS_SHARED(float, as, 32 * 8);
    TS_SHARED(float, bs, 8 * 32);
    float sums[4][4] = {};
    for (index_t l0 = 0; l0 < k; l0 += 8) {
        for (index_t e = t; e < 256; e += 64) {
            const index_t i = i0 + e / 8, l = l0 + e % 8;
            as[e] = i < m && l < k ? a[i * k + l] : 0.0f;
        }
        for (index_t e = t; e < 256; e += 64) {
            const index_t l = l0 + e / 32, j = j0 + e % 32;
            bs[e] = l < k && j < n ? b[l * n + j] : 0.0f;
        }
        ts_barrier(0);
        for (index_t l = 0; l < 8; l++)
#pragma unroll
            for (index_t i = 0; i < 4; i++)
#pragma unroll
                for (index_t j = 0; j < 4; j++)
                    sums[i][j] += as[(ty + i * 8) * 8 + l] * bs[l * 32 + tx + j * 8];
        ts_barrier(1);
    }
    for (index_t i = 0; i < 4; i++)
        for (index_t j = 0; j < 4; j++)
            if (i0 + ty + i * 8 < m && j0 + tx + j * 8 < n)
                c[(i0 + ty + i * 8) * n + j0 + tx + j * 8] = sums[i][j];
}

extern "C" __global__ void __launch_bounds__(64)
    matmul_i32(const int32_t m, const int32_t n, const int32_t k, const float *a, const float *b,
               float *c)
{
    matmul<int32_t>(m, n, k, a, b, c);
}
