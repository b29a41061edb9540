/* Dot products of groups of narrow numbers, added to the lanes of a wider vector.

   A lane of 32 bits holds 4 numbers of 8 bits or 2 of 16, a group. T, S: u8 i8 bf16 (as ts_u16).

   ts_dot_u8_i8(c, a, b)  ts_dot_i8_i8(c, a, b)   each lane of c and the products of its groups;
                                                  exact, modulo 2^32, the same on every level
   ts_dot_bf16(c, a, b)                           in float32: c, then the second product, then the
                                                  first, each by ts_fma_f32
   ts_group4_u8(p, stride)  ts_group4_i8  ts_group2_u16   the group whose numbers are `stride` apart
                                                  in every lane; one load where that is a constant 1

   Forms that end in a feature are for functions compiled with it, `TS_WITH("avx512vnni")`, which
   only run where `ts_cpu_has_avx512vnni()`. Those of avx512vnni give the same bits. That of
   avx512bf16 rounds as ts_dot_bf16 does, but takes numbers below 2^-126 for 0, in a, b and c, in the
   result, and in what comes between. */
#ifndef TS_DOT_H
#define TS_DOT_H

#include "ts_simd.h"

#define TS_WITH(feature) __attribute__((target(feature)))

#define TS_GROUP(n, T, C)                                                    \
    TS_INLINE ts_##T ts_group##n##_##T(const C *p, int64_t stride) {         \
        C group[n];                                                          \
        int32_t bits;                                                        \
        if (stride == 1)                                                     \
            memcpy(group, p, sizeof group);                                  \
        else                                                                 \
            for (int k = 0; k < n; k++)                                      \
                group[k] = p[k * stride];                                    \
        memcpy(&bits, group, sizeof bits);                                   \
        return (ts_##T)ts_set_i32(bits);                                     \
    }
TS_GROUP(4, u8, uint8_t)
TS_GROUP(4, i8, int8_t)
TS_GROUP(2, u16, uint16_t)
#undef TS_GROUP

/* The products of two neighbours, added: exact, but for four factors of -2^15. */
TS_INLINE ts_i32 ts_pairs_i16(ts_i16 a, ts_i16 b) {
#ifdef TS_NEON
    int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)a), vget_low_s16((int16x8_t)b));
    return (ts_i32)vpaddq_s32(low, vmull_high_s16((int16x8_t)a, (int16x8_t)b));
#else
    return (ts_i32)TS_MM(madd_epi16)((ts_int)a, (ts_int)b);
#endif
}

/* Every other byte of a vector as 16 bits. */
TS_INLINE ts_i16 ts_even_u8(ts_u8 v) { return (ts_i16)((ts_u16)v & 0xFF); }
TS_INLINE ts_i16 ts_odd_u8(ts_u8 v) { return (ts_i16)((ts_u16)v >> 8); }
TS_INLINE ts_i16 ts_even_i8(ts_i8 v) { return (ts_i16)((ts_u16)v << 8) >> 8; }
TS_INLINE ts_i16 ts_odd_i8(ts_i8 v) { return (ts_i16)v >> 8; }

#define TS_DOT(T, S)                                                              \
    TS_INLINE ts_i32 ts_dot_##T##_##S(ts_i32 c, ts_##T a, ts_##S b) {             \
        ts_i32 even = ts_pairs_i16(ts_even_##T(a), ts_even_##S(b));               \
        ts_i32 odd = ts_pairs_i16(ts_odd_##T(a), ts_odd_##S(b));                  \
        return ts_add_i32(c, ts_add_i32(even, odd));                              \
    }
TS_DOT(u8, i8)
TS_DOT(i8, i8)
#undef TS_DOT

TS_INLINE ts_f32 ts_odd_bf16(ts_u16 v) { return (ts_f32)((ts_u32)v & 0xFFFF0000); }
TS_INLINE ts_f32 ts_even_bf16(ts_u16 v) { return (ts_f32)((ts_u32)v << 16); }
TS_INLINE ts_f32 ts_dot_bf16(ts_f32 c, ts_u16 a, ts_u16 b) {
    c = ts_fma_f32(ts_odd_bf16(a), ts_odd_bf16(b), c);
    return ts_fma_f32(ts_even_bf16(a), ts_even_bf16(b), c);
}

#ifdef TS_V4
TS_WITH("avx512vnni")
TS_INLINE ts_i32 ts_dot_u8_i8_avx512vnni(ts_i32 c, ts_u8 a, ts_i8 b) {
    return (ts_i32)_mm512_dpbusd_epi32((__m512i)c, (__m512i)a, (__m512i)b);
}

/* The instruction wants its first factors unsigned: 128 more, and what that adds taken off again. */
TS_WITH("avx512vnni")
TS_INLINE ts_i32 ts_dot_i8_i8_avx512vnni(ts_i32 c, ts_i8 a, ts_i8 b) {
    ts_u8 offset = ts_set_u8(128);
    ts_i32 added = ts_dot_u8_i8_avx512vnni(ts_set_i32(0), offset, b);
    return ts_sub_i32(ts_dot_u8_i8_avx512vnni(c, (ts_u8)a ^ offset, b), added);
}

TS_WITH("avx512bf16")
TS_INLINE ts_f32 ts_dot_bf16_avx512bf16(ts_f32 c, ts_u16 a, ts_u16 b) {
    return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
}
#endif

#endif
