/* The level x86-64-v4: 64-byte vectors, masks of one bit a lane. */
#ifndef TS_SIMD_V4_H
#define TS_SIMD_V4_H

#include "ts_simd_x86.h"

typedef __mmask64 ts_m8;
typedef __mmask32 ts_m16;
typedef __mmask16 ts_m32;
typedef __mmask8 ts_m64;

#define TS_MASKS(B)                                                                               \
    TS_INLINE ts_m##B ts_first_m##B(int64_t k) { return (ts_m##B)_bzhi_u64(~0ULL, (unsigned)k); } \
    TS_INLINE ts_m##B ts_mand_m##B(ts_m##B a, ts_m##B b) { return (ts_m##B)(a & b); }             \
    TS_INLINE ts_m##B ts_mor_m##B(ts_m##B a, ts_m##B b) { return (ts_m##B)(a | b); }              \
    TS_INLINE ts_m##B ts_mxor_m##B(ts_m##B a, ts_m##B b) { return (ts_m##B)(a ^ b); }             \
    TS_INLINE ts_m##B ts_mnot_m##B(ts_m##B a) { return (ts_m##B) ~a; }                            \
    TS_INLINE bool ts_any_m##B(ts_m##B m) { return m != 0; }                                      \
    TS_INLINE bool ts_all_m##B(ts_m##B m) { return m == (ts_m##B) - 1; }                          \
    TS_INLINE uint64_t ts_ballot_m##B(ts_m##B m) { return m; }
TS_WIDTHS(TS_MASKS)
#undef TS_MASKS

/* For two vectors of which every second lane is asked for: the mask of the first, or of the second. */
#define TS_SPREAD(B)                                                                       \
    TS_INLINE ts_m##B ts_spread_m##B(ts_m##B m, bool second) {                             \
        return (ts_m##B)(_pdep_u32(m, 0x55555555) >> (second ? TS_LANES_##B : 0));         \
    }
TS_SPREAD(32)
TS_SPREAD(64)
#undef TS_SPREAD

#define TS_MASK_PAIR(U, T, n)                                                    \
    TS_INLINE ts_m##U ts_lo_m##U##_m##T(ts_m##T m) { return (ts_m##U)m; }        \
    TS_INLINE ts_m##U ts_hi_m##U##_m##T(ts_m##T m) { return (ts_m##U)(m >> n); } \
    TS_INLINE ts_m##T ts_narrow_m##T##_m##U(ts_m##U lo, ts_m##U hi) {            \
        return (ts_m##T)((ts_m##T)hi << n | lo);                                 \
    }
TS_MASK_PAIR(64, 32, 8)
TS_MASK_PAIR(32, 16, 16)
TS_MASK_PAIR(16, 8, 32)
#undef TS_MASK_PAIR

/* Of floats as floats: so compilers make one masked instruction of a sum and its selection. */
#define TS_SELECT(T, B, S, V)                                       \
    TS_INLINE ts_##T ts_select_##T(ts_m##B m, ts_##T a, ts_##T b) { \
        return (ts_##T)_mm512_mask_blend_##S(m, (V)b, (V)a);        \
    }
TS_SELECT(f32, 32, ps, __m512)
TS_SELECT(f64, 64, pd, __m512d)
#define TS_SELECT_INTEGER(T, C, B, U, CU) TS_SELECT(T, B, epi##B, __m512i)
TS_INTEGERS(TS_SELECT_INTEGER)
#undef TS_SELECT_INTEGER
#undef TS_SELECT

#define TS_MASKED(T, C, B, U, CU)                                           \
    TS_INLINE ts_##T ts_load_mask_##T(const C *p, ts_m##B m) {              \
        return (ts_##T)_mm512_maskz_loadu_epi##B(m, p);                     \
    }                                                                       \
    TS_INLINE void ts_store_mask_##T(C *p, ts_##T v, ts_m##B m) {           \
        _mm512_mask_storeu_epi##B(p, m, (__m512i)v);                        \
    }                                                                       \
    TS_INLINE ts_##T ts_load_first_##T(const C *p, int64_t k) {             \
        return ts_load_mask_##T(p, ts_first_m##B(k));                       \
    }                                                                       \
    TS_INLINE void ts_store_first_##T(C *p, ts_##T v, int64_t k) {          \
        ts_store_mask_##T(p, v, ts_first_m##B(k));                          \
    }
TS_ALL(TS_MASKED)
#undef TS_MASKED

#define TS_COMPARE(T, name, B, call) \
    TS_INLINE ts_m##B ts_##name##_##T(ts_##T a, ts_##T b) { return call; }
#define TS_FLOAT_COMPARES(T, B, S)                                \
    TS_COMPARE(T, lt, B, _mm512_cmp_##S##_mask(a, b, _CMP_LT_OQ)) \
    TS_COMPARE(T, le, B, _mm512_cmp_##S##_mask(a, b, _CMP_LE_OQ)) \
    TS_COMPARE(T, gt, B, _mm512_cmp_##S##_mask(a, b, _CMP_GT_OQ)) \
    TS_COMPARE(T, ge, B, _mm512_cmp_##S##_mask(a, b, _CMP_GE_OQ)) \
    TS_COMPARE(T, eq, B, _mm512_cmp_##S##_mask(a, b, _CMP_EQ_OQ)) \
    TS_COMPARE(T, ne, B, _mm512_cmp_##S##_mask(a, b, _CMP_NEQ_UQ))
TS_FLOAT_COMPARES(f32, 32, ps)
TS_FLOAT_COMPARES(f64, 64, pd)
#undef TS_FLOAT_COMPARES
#define TS_INTEGER_COMPARES(T, B, S)                                      \
    TS_COMPARE(T, lt, B, _mm512_cmplt_##S##_mask((__m512i)a, (__m512i)b)) \
    TS_COMPARE(T, le, B, _mm512_cmple_##S##_mask((__m512i)a, (__m512i)b)) \
    TS_COMPARE(T, gt, B, _mm512_cmpgt_##S##_mask((__m512i)a, (__m512i)b)) \
    TS_COMPARE(T, ge, B, _mm512_cmpge_##S##_mask((__m512i)a, (__m512i)b)) \
    TS_COMPARE(T, eq, B, _mm512_cmpeq_##S##_mask((__m512i)a, (__m512i)b)) \
    TS_COMPARE(T, ne, B, _mm512_cmpneq_##S##_mask((__m512i)a, (__m512i)b))
TS_INTEGER_COMPARES(i8, 8, epi8)
TS_INTEGER_COMPARES(i16, 16, epi16)
TS_INTEGER_COMPARES(i32, 32, epi32)
TS_INTEGER_COMPARES(i64, 64, epi64)
TS_INTEGER_COMPARES(u8, 8, epu8)
TS_INTEGER_COMPARES(u16, 16, epu16)
TS_INTEGER_COMPARES(u32, 32, epu32)
TS_INTEGER_COMPARES(u64, 64, epu64)
#undef TS_INTEGER_COMPARES
#undef TS_COMPARE

/* Where a is NaN, a itself; else the instruction, which gives b where b is. */
#define TS_FLOAT_MINMAX(T, S)                                 \
    TS_INLINE ts_##T ts_min_##T(ts_##T a, ts_##T b) {         \
        return _mm512_mask_min_##S(a, ts_eq_##T(a, a), a, b); \
    }                                                         \
    TS_INLINE ts_##T ts_max_##T(ts_##T a, ts_##T b) {         \
        return _mm512_mask_max_##S(a, ts_eq_##T(a, a), a, b); \
    }
TS_FLOAT_MINMAX(f32, ps)
TS_FLOAT_MINMAX(f64, pd)
#undef TS_FLOAT_MINMAX

#define TS_GATHERS(T, C, B, U, CU) TS_GATHERS_##B(T, C)
#define TS_GATHERS_32(T, C)                                                                   \
    TS_INLINE ts_##T ts_gather_mask_##T##_i32(const C *p, ts_i32 i, ts_m32 m) {               \
        __m512i zero = _mm512_setzero_si512();                                                \
        return (ts_##T)_mm512_mask_i32gather_epi32(zero, m, (__m512i)i, p, 4);                \
    }                                                                                         \
    TS_INLINE ts_##T ts_gather_mask_##T##_i64(const C *p, ts_i64 lo, ts_i64 hi, ts_m32 m) {   \
        __m256i zero = _mm256_setzero_si256();                                                \
        __m256i l = _mm512_mask_i64gather_epi32(zero, (__mmask8)m, (__m512i)lo, p, 4);        \
        __m256i h = _mm512_mask_i64gather_epi32(zero, (__mmask8)(m >> 8), (__m512i)hi, p, 4); \
        return (ts_##T)_mm512_inserti64x4(_mm512_castsi256_si512(l), h, 1);                   \
    }                                                                                         \
    TS_INLINE ts_##T ts_gather_##T##_i32(const C *p, ts_i32 i) {                              \
        return ts_gather_mask_##T##_i32(p, i, 0xFFFF);                                        \
    }                                                                                         \
    TS_INLINE ts_##T ts_gather_##T##_i64(const C *p, ts_i64 lo, ts_i64 hi) {                  \
        return ts_gather_mask_##T##_i64(p, lo, hi, 0xFFFF);                                   \
    }
#define TS_GATHERS_64(T, C)                                                     \
    TS_INLINE ts_##T ts_gather_mask_##T##_i64(const C *p, ts_i64 i, ts_m64 m) { \
        __m512i zero = _mm512_setzero_si512();                                  \
        return (ts_##T)_mm512_mask_i64gather_epi64(zero, m, (__m512i)i, p, 8);  \
    }                                                                           \
    TS_INLINE ts_##T ts_gather_##T##_i64(const C *p, ts_i64 i) {                \
        return ts_gather_mask_##T##_i64(p, i, 0xFF);                            \
    }
#define TS_GATHERS_8(T, C)
#define TS_GATHERS_16(T, C)
TS_ALL(TS_GATHERS)
#undef TS_GATHERS
#undef TS_GATHERS_8
#undef TS_GATHERS_16
#undef TS_GATHERS_32
#undef TS_GATHERS_64

/* Bytes have no two-source permutation at this level: through memory. */
#define TS_SHIFT_8(T, C)                                                \
    TS_INLINE ts_##T ts_shift_##T(ts_##T prev, ts_##T cur, int64_t k) { \
        C both[2 * TS_LANES_8];                                         \
        ts_store_##T(both, prev);                                       \
        ts_store_##T(both + TS_LANES_8, cur);                           \
        return ts_load_##T(both + k);                                   \
    }
#define TS_SHIFT_(T, B)                                                                         \
    TS_INLINE ts_##T ts_shift_##T(ts_##T prev, ts_##T cur, int64_t k) {                         \
        ts_i##B index = ts_iota_i##B() + ts_set_i##B((int##B##_t)k);                            \
        return (ts_##T)_mm512_permutex2var_epi##B((__m512i)prev, (__m512i)index, (__m512i)cur); \
    }
#define TS_SHIFT_16(T, C) TS_SHIFT_(T, 16)
#define TS_SHIFT_32(T, C) TS_SHIFT_(T, 32)
#define TS_SHIFT_64(T, C) TS_SHIFT_(T, 64)
#define TS_SHIFT(T, C, B, U, CU) TS_SHIFT_##B(T, C)
TS_ALL(TS_SHIFT)
#undef TS_SHIFT
#undef TS_SHIFT_
#undef TS_SHIFT_8
#undef TS_SHIFT_16
#undef TS_SHIFT_32
#undef TS_SHIFT_64

TS_INLINE ts_u8 ts_down(ts_u8 v, int bytes) {
    __m512i x = (__m512i)v;
    switch (bytes) {
    case 32: return (ts_u8)_mm512_shuffle_i64x2(x, x, 0xEE);
    case 16: return (ts_u8)_mm512_shuffle_i64x2(x, x, 0x01);
    case 8: return (ts_u8)_mm512_bsrli_epi128(x, 8);
    case 4: return (ts_u8)_mm512_bsrli_epi128(x, 4);
    case 2: return (ts_u8)_mm512_bsrli_epi128(x, 2);
    default: return (ts_u8)_mm512_bsrli_epi128(x, 1);
    }
}

#endif
