/* Angles less the nearest multiple of pi/2, where arithmetic in the angle's own type would not do:
   large ones, and on levels without fma those of float32. */
#ifndef TS_MATH_TURNS_H
#define TS_MATH_TURNS_H

#include "ts_math_coefficients.h"
#ifndef TS_CUDA
#include "ts_simd.h"
#endif

#ifndef TS_CUDA
__extension__
#endif
typedef unsigned __int128 ts_u128;

/* x - k pi/2, rounded once, and k modulo 4, for x of at least 2^10; of infinity NaN.
   Of the product of x's integer m 2^e with 2/pi only what is below 4 matters, so 192 bits of 2/pi
   suffice, from the one of weight 2^(1-e) on: M. Payne and R. Hanek, "Radian reduction for
   trigonometric functions", SIGNUM Newsletter 18, 1983. No float64 is nearer to a multiple of pi/2
   than 2^-61 (J.-M. Muller, Elementary Functions, 2016, chapter 11), which leaves 64 of the
   product's 126 bits after the point. */
TS_COLD double ts_less_quarters(double x, uint64_t *k) {
    static const uint64_t inverse[] = {TS_INVERSE_QUARTER};
    uint64_t bits = ts_bits_f64_s(x), m = (bits & 0xFFFFFFFFFFFFFu) | 0x10000000000000u, word[3];
    int e = (int)(bits >> 52) - 1075, first = e + 62;
    *k = 0;
    if (x > 0x1.fffffffffffffp1023) return x - x;
    for (int i = 0; i < 3; i++) {
        const uint64_t *at = inverse + first / 64 + i;
        word[i] = (uint64_t)(((ts_u128)at[0] << 64 | at[1]) >> (64 - first % 64));
    }
    ts_u128 quarters = ((ts_u128)(m * word[0]) << 64) + (ts_u128)m * word[1] +
                       (uint64_t)((ts_u128)m * word[2] >> 64); /* modulo 4, times 2^126 */
    *k = (uint64_t)((quarters + ((ts_u128)1 << 125)) >> 126);
    ts_u128 rest = quarters - ((ts_u128)*k << 126);
    bool negative = rest >> 127 != 0;
    if (negative) rest = 0 - rest;
    uint64_t high = (uint64_t)(rest >> 64);
    int shift = high ? TS_LEADING_ZEROS(high) : 64 + TS_LEADING_ZEROS((uint64_t)rest | 1);
    high = (uint64_t)(rest << shift >> 64);
    high = (uint64_t)((ts_u128)high * 0xC90FDAA22168C235u >> 64); /* pi/2 is that by 2^-63 */
    double r = (double)high * ts_from_bits_f64_s((uint64_t)(1023 - 61 - shift) << 52);
    return negative ? -r : r;
}

#if !TS_HAS_FMA
/* The same for x of float32 up to 2^18, by way of float64; k itself. */
TS_INLINE float ts_less_quarters_f32_s(float x, float *k) {
    double wide = x, n = ts_rint_f64_s(wide * TS_TWO_OVER_PI);
    *k = (float)n;
    return (float)(wide - n * TS_QUARTER_F32_V2_1 - n * TS_QUARTER_F32_V2_2);
}
TS_INLINE ts_f64 ts_less_quarters_f32_half(ts_f64 x, ts_f64 *k) {
    *k = ts_rint_f64(x * ts_set_f64(TS_TWO_OVER_PI));
    return x - *k * ts_set_f64(TS_QUARTER_F32_V2_1) - *k * ts_set_f64(TS_QUARTER_F32_V2_2);
}
TS_INLINE ts_f32 ts_less_quarters_f32(ts_f32 x, ts_f32 *k) {
    ts_f64 low, high, r = ts_less_quarters_f32_half(ts_lo_f64_f32(x), &low),
                      s = ts_less_quarters_f32_half(ts_hi_f64_f32(x), &high);
    *k = ts_narrow_f32_f64(low, high);
    return ts_narrow_f32_f64(r, s);
}
#endif

#endif
