/* The level x86-64-v3: 32-byte vectors, masks of full lanes. */
#ifndef TS_SIMD_V3_H
#define TS_SIMD_V3_H

#include "ts_simd_x86.h"

TS_INLINE ts_u8 ts_blend(ts_u8 m, ts_u8 a, ts_u8 b) {
    return (ts_u8)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)m);
}

TS_INLINE bool ts_any_byte(ts_u8 v) { return !_mm256_testz_si256((__m256i)v, (__m256i)v); }

TS_INLINE ts_u8 ts_down(ts_u8 v, int bytes) {
    __m256i x = (__m256i)v;
    switch (bytes) {
    case 16: return (ts_u8)_mm256_permute2x128_si256(x, x, 0x11);
    case 8: return (ts_u8)_mm256_bsrli_epi128(x, 8);
    case 4: return (ts_u8)_mm256_bsrli_epi128(x, 4);
    case 2: return (ts_u8)_mm256_bsrli_epi128(x, 2);
    default: return (ts_u8)_mm256_bsrli_epi128(x, 1);
    }
}

/* Within each half: `low` moved down n <= 16 bytes, `high` following. By a constant that is one
   instruction; else by two shuffles, for which an index with its top bit set gives 0. */
#define TS_ALIGNED(n)                                                                   \
    case n: return (ts_u8)_mm256_alignr_epi8((__m256i)middle, (__m256i)prev, n);        \
    case 16 + n: return (ts_u8)_mm256_alignr_epi8((__m256i)cur, (__m256i)middle, n);
TS_INLINE ts_u8 ts_shift_bytes(ts_u8 prev, ts_u8 cur, int64_t n) {
    ts_u8 middle = (ts_u8)_mm256_permute2x128_si256((__m256i)prev, (__m256i)cur, 0x21);
    if (__builtin_constant_p(n)) {
        switch (n) {
        TS_ALIGNED(0) TS_ALIGNED(4) TS_ALIGNED(8) TS_ALIGNED(12)
        default: break;
        }
    }
    ts_u8 low = n < 16 ? prev : middle, high = n < 16 ? middle : cur;
    ts_u8 index = (ts_iota_u8() & ts_set_u8(15)) + ts_set_u8((uint8_t)(n < 16 ? n : n - 16));
    return (ts_u8)_mm256_shuffle_epi8((__m256i)low, (__m256i)(index + ts_set_u8(0x70))) |
           (ts_u8)_mm256_shuffle_epi8((__m256i)high, (__m256i)(index - ts_set_u8(16)));
}
#undef TS_ALIGNED

#define TS_V3_POINTER_32 const int *
#define TS_V3_POINTER_64 const long long *
#define TS_V3_MEMORY(T, C, B)                                                                  \
    TS_INLINE ts_##T ts_load_mask_##T(const C *p, ts_m##B m) {                                 \
        return (ts_##T)_mm256_maskload_epi##B((TS_V3_POINTER_##B)(const void *)p, (__m256i)m); \
    }                                                                                          \
    TS_INLINE void ts_store_mask_##T(C *p, ts_##T v, ts_m##B m) {                              \
        _mm256_maskstore_epi##B((void *)p, (__m256i)m, (__m256i)v);                            \
    }                                                                                          \
    TS_INLINE ts_##T ts_load_first_##T(const C *p, int64_t k) {                                \
        return ts_load_mask_##T(p, ts_first_m##B(k));                                          \
    }                                                                                          \
    TS_INLINE void ts_store_first_##T(C *p, ts_##T v, int64_t k) {                             \
        ts_store_mask_##T(p, v, ts_first_m##B(k));                                             \
    }                                                                                          \
    TS_INLINE ts_##T ts_gather_mask_##T##_i##B(const C *p, ts_i##B index, ts_m##B m) {         \
        return (ts_##T)_mm256_mask_i##B##gather_epi##B(_mm256_setzero_si256(),                 \
                                                       (TS_V3_POINTER_##B)(const void *)p,     \
                                                       (__m256i)index, (__m256i)m, B / 8);     \
    }                                                                                          \
    TS_INLINE ts_##T ts_gather_##T##_i##B(const C *p, ts_i##B index) {                         \
        return ts_gather_mask_##T##_i##B(p, index, ~(ts_m##B){0});                             \
    }

#define TS_BALLOTS                                                                  \
    TS_INLINE uint64_t ts_ballot_m8(ts_m8 m) {                                      \
        return (uint32_t)_mm256_movemask_epi8((__m256i)m);                           \
    }                                                                               \
    TS_INLINE uint64_t ts_ballot_m32(ts_m32 m) {                                    \
        return (uint64_t)_mm256_movemask_ps((__m256)m);                              \
    }                                                                               \
    TS_INLINE uint64_t ts_ballot_m64(ts_m64 m) {                                    \
        return (uint64_t)_mm256_movemask_pd((__m256d)m);                             \
    }

#include "ts_simd_lanemask.h"

/* For two vectors of which every second lane is asked for: the mask of the first, or of the second. */
#define TS_SPREAD_32(i) ((i) % 2 ? TS_LANES_32 : (i) / 2)
#define TS_SPREAD_64(i) ((i) % 2 ? TS_LANES_64 : (i) / 2)
#define TS_SPREAD(B)                                                                                \
    TS_INLINE ts_m##B ts_spread_m##B(ts_m##B m, bool second) {                                      \
        const ts_m##B none = {0};                                                                   \
        return second ? __builtin_shufflevector(m, none, TS_SEQ(TS_LANES_##B, TS_SPREAD_##B, TS_LANES_##B)) \
                      : __builtin_shufflevector(m, none, TS_SEQ(TS_LANES_##B, TS_SPREAD_##B, 0));   \
    }
TS_SPREAD(32)
TS_SPREAD(64)
#undef TS_SPREAD

#define TS_FLOAT_MINMAX(T, S)                                           \
    TS_INLINE ts_##T ts_min_##T(ts_##T a, ts_##T b) {                   \
        return ts_select_##T(ts_eq_##T(a, a), _mm256_min_##S(a, b), a); \
    }                                                                   \
    TS_INLINE ts_##T ts_max_##T(ts_##T a, ts_##T b) {                   \
        return ts_select_##T(ts_eq_##T(a, a), _mm256_max_##S(a, b), a); \
    }
TS_FLOAT_MINMAX(f32, ps)
TS_FLOAT_MINMAX(f64, pd)
#undef TS_FLOAT_MINMAX

#endif
