/* The level x86-64-v2: 16-byte vectors, masks of full lanes, no fma and no float16 instructions. */
#ifndef TS_SIMD_V2_H
#define TS_SIMD_V2_H

#include "ts_simd_x86.h"

TS_INLINE ts_u8 ts_blend(ts_u8 m, ts_u8 a, ts_u8 b) {
    return (ts_u8)_mm_blendv_epi8((__m128i)b, (__m128i)a, (__m128i)m);
}

TS_INLINE bool ts_any_byte(ts_u8 v) { return !_mm_testz_si128((__m128i)v, (__m128i)v); }

TS_INLINE ts_u8 ts_down(ts_u8 v, int bytes) {
    __m128i x = (__m128i)v;
    switch (bytes) {
    case 8: return (ts_u8)_mm_bsrli_si128(x, 8);
    case 4: return (ts_u8)_mm_bsrli_si128(x, 4);
    case 2: return (ts_u8)_mm_bsrli_si128(x, 2);
    default: return (ts_u8)_mm_bsrli_si128(x, 1);
    }
}

/* By a constant one instruction; else two shuffles, for which an index with its top bit set gives 0.
 */
TS_INLINE ts_u8 ts_shift_bytes(ts_u8 prev, ts_u8 cur, int64_t n) {
    if (__builtin_constant_p(n)) {
        switch (n) {
        case 4: return (ts_u8)_mm_alignr_epi8((__m128i)cur, (__m128i)prev, 4);
        case 8: return (ts_u8)_mm_alignr_epi8((__m128i)cur, (__m128i)prev, 8);
        case 12: return (ts_u8)_mm_alignr_epi8((__m128i)cur, (__m128i)prev, 12);
        default: break;
        }
    }
    ts_u8 index = ts_iota_u8() + ts_set_u8((uint8_t)n);
    return (ts_u8)_mm_shuffle_epi8((__m128i)prev, (__m128i)(index + ts_set_u8(0x70))) |
           (ts_u8)_mm_shuffle_epi8((__m128i)cur, (__m128i)(index - ts_set_u8(16)));
}

#define TS_BALLOTS                                                                  \
    TS_INLINE uint64_t ts_ballot_m8(ts_m8 m) {                                      \
        return (uint32_t)_mm_movemask_epi8((__m128i)m);                           \
    }                                                                               \
    TS_INLINE uint64_t ts_ballot_m32(ts_m32 m) {                                    \
        return (uint64_t)_mm_movemask_ps((__m128)m);                              \
    }                                                                               \
    TS_INLINE uint64_t ts_ballot_m64(ts_m64 m) {                                    \
        return (uint64_t)_mm_movemask_pd((__m128d)m);                             \
    }

#include "ts_simd_lanemask.h"

#define TS_FLOAT_MINMAX(T, S)                                        \
    TS_INLINE ts_##T ts_min_##T(ts_##T a, ts_##T b) {                \
        return ts_select_##T(ts_eq_##T(a, a), _mm_min_##S(a, b), a); \
    }                                                                \
    TS_INLINE ts_##T ts_max_##T(ts_##T a, ts_##T b) {                \
        return ts_select_##T(ts_eq_##T(a, a), _mm_max_##S(a, b), a); \
    }
TS_FLOAT_MINMAX(f32, ps)
TS_FLOAT_MINMAX(f64, pd)
#undef TS_FLOAT_MINMAX

#endif
