/* Forms whose instructions on v2, v3 and v4 have the same names but for their width. */
#ifndef TS_SIMD_X86_H
#define TS_SIMD_X86_H

#if defined TS_V4
#define TS_STREAM_INT _mm512_stream_si512
#elif defined TS_V3
#define TS_STREAM_INT _mm256_stream_si256
#else
#define TS_STREAM_INT _mm_stream_si128
#endif

#ifdef TS_V4
#define TS_ROUND(x, how, S) _mm512_roundscale_##S(x, how)
#else
#define TS_ROUND(x, how, S) TS_MM(round_##S)(x, how)
#endif
#if TS_HAS_FMA
#define TS_FMA(a, b, c, S) TS_MM(fmadd_##S)(a, b, c)
#else
#define TS_FMA(a, b, c, S) ((a) * (b) + (c))
#endif

/* The instructions min and max give their second operand where either is NaN. */
#define TS_X86_FLOATS(T, S)                                                                  \
    TS_INLINE ts_##T ts_fma_##T(ts_##T a, ts_##T b, ts_##T c) { return TS_FMA(a, b, c, S); } \
    TS_INLINE ts_##T ts_sqrt_##T(ts_##T v) { return TS_MM(sqrt_##S)(v); }                    \
    TS_INLINE ts_##T ts_floor_##T(ts_##T v) {                                                \
        return TS_ROUND(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC, S);                    \
    }                                                                                        \
    TS_INLINE ts_##T ts_ceil_##T(ts_##T v) {                                                 \
        return TS_ROUND(v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC, S);                    \
    }                                                                                        \
    TS_INLINE ts_##T ts_rint_##T(ts_##T v) {                                                 \
        return TS_ROUND(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC, S);                \
    }                                                                                        \
    TS_INLINE ts_##T ts_clamp_##T(ts_##T v, ts_##T lo, ts_##T hi) {                          \
        return TS_MM(min_##S)(hi, TS_MM(max_##S)(lo, v));                                    \
    }
TS_X86_FLOATS(f32, ps)
TS_X86_FLOATS(f64, pd)
#undef TS_X86_FLOATS
#undef TS_ROUND
#undef TS_FMA

#define TS_X86_MINMAX(T, S)                                  \
    TS_INLINE ts_##T ts_min_##T(ts_##T a, ts_##T b) {        \
        return (ts_##T)TS_MM(min_##S)((ts_int)a, (ts_int)b); \
    }                                                        \
    TS_INLINE ts_##T ts_max_##T(ts_##T a, ts_##T b) {        \
        return (ts_##T)TS_MM(max_##S)((ts_int)a, (ts_int)b); \
    }
TS_X86_MINMAX(i8, epi8)
TS_X86_MINMAX(i16, epi16)
TS_X86_MINMAX(i32, epi32)
TS_X86_MINMAX(u8, epu8)
TS_X86_MINMAX(u16, epu16)
TS_X86_MINMAX(u32, epu32)
#ifdef TS_V4
TS_X86_MINMAX(i64, epi64)
TS_X86_MINMAX(u64, epu64)
#endif
#undef TS_X86_MINMAX

/* Exact in 32 bits: of b the upper 16 bits, those of its sign, are left out of the sum of products. */
TS_INLINE ts_i32 ts_mul_short_i32(ts_i32 a, ts_i32 b) {
    return (ts_i32)TS_MM(madd_epi16)((ts_int)a, (ts_int)(b & 0xFFFF));
}

#define TS_STREAM(T, C, B, U, CU) \
    TS_INLINE void ts_stream_##T(C *p, ts_##T v) { TS_STREAM_INT((ts_int *)(void *)p, (ts_int)v); }
TS_ALL(TS_STREAM)
#undef TS_STREAM
TS_INLINE void ts_stream_fence(void) { _mm_sfence(); }

#endif
