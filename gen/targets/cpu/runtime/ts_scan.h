/* Running reductions along the lanes of a vector, in log2(lanes) steps.

   T is f32 f64 i32 i64 u32 u64.
   ts_scan_add_T(v)  mul min max    lane i holds v[0] + ... + v[i], always by the same tree
   ts_last_T(v)                     the last lane in all lanes
   ts_scan_back_add_T(v)  ...       lane i holds v[i] + ... + v[lanes - 1], by the mirrored tree
   ts_start_T(v)                    the first lane in all lanes */
#ifndef TS_SCAN_H
#define TS_SCAN_H

#include "ts_simd.h"

/* Before step k, a power of two, each block of k lanes has its running reductions. After it, each
   of 2k lanes has: the upper half of a block takes on what the last lane of the lower half holds,
   and the lower half stays as it is. Steps from k = lanes on do nothing. */
#define TS_LAST_1(i) ((i) & ~1)
#define TS_LAST_2(i) (((i) & ~3) + 1)
#define TS_LAST_4(i) (((i) & ~7) + 3)
#define TS_LAST_8(i) (7 & (lanes - 1))
#define TS_END(i) (lanes - 1)
#define TS_SPREAD(n, v, which) __builtin_shufflevector(v, v, TS_SEQ(n, which, 0))

#define TS_UPPER_1(i) ((i) + ((i) & 1) * lanes)
#define TS_UPPER_2(i) ((i) + ((i) >> 1 & 1) * lanes)
#define TS_UPPER_4(i) ((i) + ((i) >> 2 & 1) * lanes)
#define TS_UPPER_8(i) ((i) + ((i) >> 3 & 1) * lanes)
#define TS_STEP(T, n, op, k)                                                       \
    v = __builtin_shufflevector(v, ts_##op##_##T(TS_SPREAD(n, v, TS_LAST_##k), v), \
                                TS_SEQ(n, TS_UPPER_##k, 0));

#define TS_SCAN(T, n, op, STEP)                                                 \
    TS_INLINE ts_##T ts_scan_##op##_##T(ts_##T v) {                             \
        enum { lanes = n };                                                     \
        STEP(T, n, op, 1) STEP(T, n, op, 2) STEP(T, n, op, 4) STEP(T, n, op, 8) \
        return v;                                                               \
    }
#define TS_SCANS(T, n) \
    TS_SCAN(T, n, mul, TS_STEP) TS_SCAN(T, n, min, TS_STEP) TS_SCAN(T, n, max, TS_STEP)
TS_SCANS(f32, TS_LANES_32)
TS_SCANS(f64, TS_LANES_64)
TS_SCANS(i32, TS_LANES_32)
TS_SCANS(i64, TS_LANES_64)
TS_SCANS(u32, TS_LANES_32)
TS_SCANS(u64, TS_LANES_64)
#undef TS_SCANS

TS_SCAN(i32, TS_LANES_32, add, TS_STEP)
TS_SCAN(i64, TS_LANES_64, add, TS_STEP)
TS_SCAN(u32, TS_LANES_32, add, TS_STEP)
TS_SCAN(u64, TS_LANES_64, add, TS_STEP)

#define TS_SPREAD_END(T, n)                  \
    TS_INLINE ts_##T ts_last_##T(ts_##T v) { \
        enum { lanes = n };                  \
        return TS_SPREAD(n, v, TS_END);      \
    }
TS_SPREAD_END(f64, TS_LANES_64)
TS_SPREAD_END(i32, TS_LANES_32)
TS_SPREAD_END(i64, TS_LANES_64)
TS_SPREAD_END(u32, TS_LANES_32)
TS_SPREAD_END(u64, TS_LANES_64)

/* Sums of floats on x86 by the instructions that GCC does not find: a masked addition, a blend by
   an immediate, and on v3 one shuffle across the halves in place of two. */
#if defined TS_V3
#define TS_ACROSS(v, i) (ts_f32) _mm256_permutevar8x32_ps(v, _mm256_set1_epi32(i))
#define TS_LOWER_F32(n, v, k) ((k) == 4 ? TS_ACROSS(v, 3) : (ts_f32)TS_SPREAD(n, v, TS_LAST_##k))
TS_INLINE ts_f32 ts_last_f32(ts_f32 v) { return TS_ACROSS(v, 7); }
#else
#define TS_LOWER_F32(n, v, k) TS_SPREAD(n, v, TS_LAST_##k)
TS_SPREAD_END(f32, TS_LANES_32)
#endif
#undef TS_SPREAD_END

#if defined TS_NEON
TS_SCAN(f32, TS_LANES_32, add, TS_STEP)
TS_SCAN(f64, TS_LANES_64, add, TS_STEP)
#else
#define TS_BITS_1 0xaaaa
#define TS_BITS_2 0xcccc
#define TS_BITS_4 0xf0f0
#define TS_BITS_8 0xff00
#define TS_BITS(k) (TS_BITS_##k & ((1 << lanes) - 1))
#if defined TS_V4
#define TS_ADD_UPPER(S, v, lower, upper) _mm512_mask_add_##S(v, upper, lower, v)
#else
#define TS_ADD_UPPER(S, v, lower, upper) TS_MM(blend_##S)(v, (lower) + v, upper)
#endif
#define TS_STEP_F32(T, n, op, k) \
    if (lanes > k) v = TS_ADD_UPPER(ps, v, TS_LOWER_F32(n, v, k), TS_BITS(k));
#define TS_STEP_F64(T, n, op, k) \
    if (lanes > k) v = TS_ADD_UPPER(pd, v, TS_SPREAD(n, v, TS_LAST_##k), TS_BITS(k));
TS_SCAN(f32, TS_LANES_32, add, TS_STEP_F32)
TS_SCAN(f64, TS_LANES_64, add, TS_STEP_F64)
#endif

#define TS_MIRROR(i) (lanes - 1 - (i))
#define TS_START(i) 0
#define TS_SCAN_BACK(T, n, op)                              \
    TS_INLINE ts_##T ts_scan_back_##op##_##T(ts_##T v) {    \
        enum { lanes = n };                                 \
        v = ts_scan_##op##_##T(TS_SPREAD(n, v, TS_MIRROR)); \
        return TS_SPREAD(n, v, TS_MIRROR);                  \
    }
#define TS_SCANS_BACK(T, n)                         \
    TS_SCAN_BACK(T, n, add) TS_SCAN_BACK(T, n, mul) \
    TS_SCAN_BACK(T, n, min) TS_SCAN_BACK(T, n, max) \
    TS_INLINE ts_##T ts_start_##T(ts_##T v) {       \
        enum { lanes = n };                         \
        return TS_SPREAD(n, v, TS_START);           \
    }
TS_SCANS_BACK(f32, TS_LANES_32)
TS_SCANS_BACK(f64, TS_LANES_64)
TS_SCANS_BACK(i32, TS_LANES_32)
TS_SCANS_BACK(i64, TS_LANES_64)
TS_SCANS_BACK(u32, TS_LANES_32)
TS_SCANS_BACK(u64, TS_LANES_64)
#undef TS_SCANS_BACK
#undef TS_SCAN_BACK

#undef TS_SCAN
#undef TS_STEP
#undef TS_SPREAD

#endif
