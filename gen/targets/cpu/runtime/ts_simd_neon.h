/* The level aarch64 neon: 16-byte vectors, masks of full lanes. */
#ifndef TS_SIMD_NEON_H
#define TS_SIMD_NEON_H

TS_INLINE ts_u8 ts_blend(ts_u8 m, ts_u8 a, ts_u8 b) {
    return (ts_u8)vbslq_u8((uint8x16_t)m, (uint8x16_t)a, (uint8x16_t)b);
}

TS_INLINE bool ts_any_byte(ts_u8 v) { return vmaxvq_u8((uint8x16_t)v) != 0; }

TS_INLINE ts_u8 ts_down(ts_u8 v, int bytes) {
    uint8x16_t x = (uint8x16_t)v;
    switch (bytes) {
    case 8: return (ts_u8)vextq_u8(x, x, 8);
    case 4: return (ts_u8)vextq_u8(x, x, 4);
    case 2: return (ts_u8)vextq_u8(x, x, 2);
    default: return (ts_u8)vextq_u8(x, x, 1);
    }
}

/* By a constant one instruction, else a look-up. */
TS_INLINE ts_u8 ts_shift_bytes(ts_u8 prev, ts_u8 cur, int64_t n) {
    if (__builtin_constant_p(n)) {
        switch (n) {
        case 4: return (ts_u8)vextq_u8((uint8x16_t)prev, (uint8x16_t)cur, 4);
        case 8: return (ts_u8)vextq_u8((uint8x16_t)prev, (uint8x16_t)cur, 8);
        case 12: return (ts_u8)vextq_u8((uint8x16_t)prev, (uint8x16_t)cur, 12);
        default: break;
        }
    }
    uint8x16x2_t both = {{(uint8x16_t)prev, (uint8x16_t)cur}};
    return (ts_u8)vqtbl2q_u8(both, (uint8x16_t)(ts_iota_u8() + ts_set_u8((uint8_t)n)));
}

#include "ts_simd_lanemask.h"

#define TS_NEON_FLOATS(T, V)                                                                  \
    TS_INLINE ts_##T ts_fma_##T(ts_##T a, ts_##T b, ts_##T c) {                               \
        return (ts_##T)vfmaq_##T((V)c, (V)a, (V)b);                                           \
    }                                                                                         \
    TS_INLINE ts_##T ts_sqrt_##T(ts_##T v) { return (ts_##T)vsqrtq_##T((V)v); }               \
    TS_INLINE ts_##T ts_floor_##T(ts_##T v) { return (ts_##T)vrndmq_##T((V)v); }              \
    TS_INLINE ts_##T ts_ceil_##T(ts_##T v) { return (ts_##T)vrndpq_##T((V)v); }               \
    TS_INLINE ts_##T ts_rint_##T(ts_##T v) { return (ts_##T)vrndnq_##T((V)v); }               \
    TS_INLINE ts_##T ts_min_##T(ts_##T a, ts_##T b) { return (ts_##T)vminq_##T((V)a, (V)b); } \
    TS_INLINE ts_##T ts_max_##T(ts_##T a, ts_##T b) { return (ts_##T)vmaxq_##T((V)a, (V)b); } \
    TS_INLINE ts_##T ts_clamp_##T(ts_##T v, ts_##T lo, ts_##T hi) {                           \
        v = ts_select_##T(ts_lt_##T(v, lo), lo, v);                                           \
        return ts_select_##T(ts_gt_##T(v, hi), hi, v);                                        \
    }
TS_NEON_FLOATS(f32, float32x4_t)
TS_NEON_FLOATS(f64, float64x2_t)
#undef TS_NEON_FLOATS

#define TS_NEON_MINMAX(T, S, V)                                                               \
    TS_INLINE ts_##T ts_min_##T(ts_##T a, ts_##T b) { return (ts_##T)vminq_##S((V)a, (V)b); } \
    TS_INLINE ts_##T ts_max_##T(ts_##T a, ts_##T b) { return (ts_##T)vmaxq_##S((V)a, (V)b); }
TS_NEON_MINMAX(i8, s8, int8x16_t)
TS_NEON_MINMAX(i16, s16, int16x8_t)
TS_NEON_MINMAX(i32, s32, int32x4_t)
TS_NEON_MINMAX(u8, u8, uint8x16_t)
TS_NEON_MINMAX(u16, u16, uint16x8_t)
TS_NEON_MINMAX(u32, u32, uint32x4_t)
#undef TS_NEON_MINMAX

/* No intrinsic of gcc 12 stores around the cache. */
TS_INLINE ts_i32 ts_mul_short_i32(ts_i32 a, ts_i32 b) { return a * b; }

#define TS_STREAM(T, C, B, U, CU) \
    TS_INLINE void ts_stream_##T(C *p, ts_##T v) { ts_store_##T(p, v); }
TS_ALL(TS_STREAM)
#undef TS_STREAM
TS_INLINE void ts_stream_fence(void) {}

#endif
