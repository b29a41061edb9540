/* Conversions on the way to and from memory: ts_load_S_as_T, ts_store_T_as_S and their like.

   A *part* is as many elements of the narrower type S as a vector of T has lanes, in the lowest bytes
   of a ts_part. By name where gcc 12 would convert lane by lane. */
#ifndef TS_CONVERT_H
#define TS_CONVERT_H

/* X(S, C type, T, C type, lanes of T) */
#define TS_LOADS_OF(X, S, CS, B)                      \
    X(S, CS, i##B, int##B##_t, TS_LANES_##B)          \
    X(S, CS, u##B, uint##B##_t, TS_LANES_##B)
#define TS_LOADS_OF_BYTES(X, S, CS) TS_LOADS_OF(X, S, CS, 16) TS_LOADS_OF_WORDS(X, S, CS)
#define TS_LOADS_OF_WORDS(X, S, CS)                                                          \
    TS_LOADS_OF(X, S, CS, 32) TS_LOADS_OF(X, S, CS, 64) X(S, CS, f32, float, TS_LANES_32)    \
    X(S, CS, f64, double, TS_LANES_64)
#define TS_LOADS_OF_DWORDS(X, S, CS) TS_LOADS_OF(X, S, CS, 64) X(S, CS, f64, double, TS_LANES_64)
#define TS_LOADS(X)                                                               \
    TS_LOADS_OF_BYTES(X, i8, int8_t) TS_LOADS_OF_BYTES(X, u8, uint8_t)            \
    TS_LOADS_OF_WORDS(X, i16, int16_t) TS_LOADS_OF_WORDS(X, u16, uint16_t)        \
    TS_LOADS_OF_DWORDS(X, i32, int32_t) TS_LOADS_OF_DWORDS(X, u32, uint32_t)      \
    TS_LOADS_OF_DWORDS(X, f32, float)

/* ---------------------------------------------------------------- parts in memory */

/* TS_WHOLE(part): as the lowest bytes of a vector; TS_LOWEST(v): their inverse. */
#if defined TS_V4
typedef __m256i ts_part;
#define TS_WHOLE(part) _mm512_castsi256_si512(part)
#define TS_LOWEST(v) _mm512_castsi512_si256((__m512i)(v))
TS_INLINE ts_part ts_part_load_first(const void *p, int64_t k, int64_t bytes) {
    if (bytes == 32) return _mm256_maskz_loadu_epi8((__mmask32)_bzhi_u64(~0ULL, (unsigned)k), p);
    __m128i low = _mm_maskz_loadu_epi8((__mmask16)_bzhi_u64(~0ULL, (unsigned)k), p);
    return _mm256_castsi128_si256(low);
}
TS_INLINE void ts_part_store_first(void *p, ts_part v, int64_t k, int64_t bytes) {
    if (bytes == 32) {
        _mm256_mask_storeu_epi8(p, (__mmask32)_bzhi_u64(~0ULL, (unsigned)k), v);
        return;
    }
    __mmask16 m = (__mmask16)_bzhi_u64(~0ULL, (unsigned)k);
    _mm_mask_storeu_epi8(p, m, _mm256_castsi256_si128(v));
}
#else
#if defined TS_V3
typedef __m128i ts_part;
#define TS_WHOLE(part) _mm256_castsi128_si256(part)
#define TS_LOWEST(v) _mm256_castsi256_si128((__m256i)(v))
#elif defined TS_V2
typedef __m128i ts_part;
#define TS_WHOLE(part) (part)
#define TS_LOWEST(v) ((__m128i)(v))
#else
typedef ts_u8 ts_part;
#define TS_WHOLE(part) (part)
#define TS_LOWEST(v) ((ts_u8)(v))
#endif
TS_INLINE ts_part ts_part_load_first(const void *p, int64_t k, int64_t bytes) {
    (void)bytes;
    return (ts_part)ts_load_words(p, k);
}
TS_INLINE void ts_part_store_first(void *p, ts_part v, int64_t k, int64_t bytes) {
    (void)bytes;
    ts_store_words(p, (ts_words)v, k);
}
#endif

#ifdef TS_NEON
TS_INLINE ts_part ts_part_load(const void *p, int64_t bytes) {
    uint64_t low = 0;
    memcpy(&low, p, (size_t)bytes);
    return (ts_part)vcombine_u64(vcreate_u64(low), vcreate_u64(0));
}
TS_INLINE void ts_part_store(void *p, ts_part v, int64_t bytes) {
    uint64_t low = vgetq_lane_u64((uint64x2_t)v, 0);
    memcpy(p, &low, (size_t)bytes);
}
#else
#ifdef TS_V4
#define TS_XMM(part) _mm256_castsi256_si128(part)
#define TS_AS_PART(x) _mm256_castsi128_si256(x)
#define TS_HALF_MM(name) _mm256_##name
#else
#define TS_XMM(part) (part)
#define TS_AS_PART(x) (x)
#define TS_HALF_MM(name) _mm_##name
#endif
TS_INLINE ts_part ts_part_load(const void *p, int64_t bytes) {
    uint16_t two;
    int32_t four;
    switch (bytes) {
#ifdef TS_V4
    case 32: return _mm256_loadu_si256((const __m256i *)p);
#endif
    case 16: return TS_AS_PART(_mm_loadu_si128((const __m128i *)p));
    case 8: return TS_AS_PART(_mm_loadl_epi64((const __m128i *)p));
    case 4: memcpy(&four, p, 4); return TS_AS_PART(_mm_cvtsi32_si128(four));
    default: memcpy(&two, p, 2); return TS_AS_PART(_mm_cvtsi32_si128(two));
    }
}
TS_INLINE void ts_part_store(void *p, ts_part v, int64_t bytes) {
    const int32_t low = _mm_cvtsi128_si32(TS_XMM(v));
    switch (bytes) {
#ifdef TS_V4
    case 32: _mm256_storeu_si256((__m256i *)p, v); break;
#endif
    case 16: _mm_storeu_si128((__m128i *)p, TS_XMM(v)); break;
    case 8: _mm_storel_epi64((__m128i *)p, TS_XMM(v)); break;
    default: memcpy(p, &low, (size_t)bytes); break;
    }
}
#endif

/* ---------------------------------------------------------------- wider */

/* X(S, T, by name: the instruction, and what it takes; by halves: the type in between) */
#define TS_EXTENSIONS(X)                                                                        \
    X(i8, i16, epi8_epi16, , i8) X(i8, u16, epi8_epi16, , i8)                                   \
    X(u8, i16, epu8_epi16, , u8) X(u8, u16, epu8_epi16, , u8)                                   \
    X(i16, i32, epi16_epi32, , i16) X(i16, u32, epi16_epi32, , i16)                             \
    X(u16, i32, epu16_epi32, , u16) X(u16, u32, epu16_epi32, , u16)                             \
    X(i32, i64, epi32_epi64, , i32) X(i32, u64, epi32_epi64, , i32)                             \
    X(u32, i64, epu32_epi64, , u32) X(u32, u64, epu32_epi64, , u32)                             \
    X(i8, i32, epi8_epi32, TS_XMM, i16) X(i8, u32, epi8_epi32, TS_XMM, i16)                     \
    X(u8, i32, epu8_epi32, TS_XMM, i16) X(u8, u32, epu8_epi32, TS_XMM, i16)                     \
    X(i16, i64, epi16_epi64, TS_XMM, i32) X(i16, u64, epi16_epi64, TS_XMM, i32)                 \
    X(u16, i64, epu16_epi64, TS_XMM, i32) X(u16, u64, epu16_epi64, TS_XMM, i32)                 \
    X(i8, i64, epi8_epi64, TS_XMM, i32) X(i8, u64, epi8_epi64, TS_XMM, i32)                     \
    X(u8, i64, epu8_epi64, TS_XMM, i32) X(u8, u64, epu8_epi64, TS_XMM, i32)

#ifdef TS_NEON
TS_INLINE ts_i8 ts_part_i8_as_i8(ts_part part) { return (ts_i8)part; }
TS_INLINE ts_u8 ts_part_u8_as_u8(ts_part part) { return (ts_u8)part; }
TS_INLINE ts_i16 ts_part_i16_as_i16(ts_part part) { return (ts_i16)part; }
TS_INLINE ts_u16 ts_part_u16_as_u16(ts_part part) { return (ts_u16)part; }
TS_INLINE ts_i32 ts_part_i32_as_i32(ts_part part) { return (ts_i32)part; }
TS_INLINE ts_u32 ts_part_u32_as_u32(ts_part part) { return (ts_u32)part; }
#define TS_EXTEND(S, T, name, arg, M) \
    TS_INLINE ts_##T ts_part_##S##_as_##T(ts_part p) { return ts_lo_##T##_##M(ts_part_##S##_as_##M(p)); }
#else
#define TS_EXTEND(S, T, name, arg, M) \
    TS_INLINE ts_##T ts_part_##S##_as_##T(ts_part p) { return (ts_##T)TS_MM(cvt##name)(arg(p)); }
#endif
TS_EXTENSIONS(TS_EXTEND)
#undef TS_EXTEND

#ifdef TS_NEON
#define TS_AS_F64(S, name) \
    TS_INLINE ts_f64 ts_part_##S##_as_f64(ts_part p) { return ts_lo_f64_i32(ts_part_##S##_as_i32(p)); }
#else
#define TS_AS_F64(S, name)                                                \
    TS_INLINE ts_f64 ts_part_##S##_as_f64(ts_part p) {                    \
        return TS_MM(cvtepi32_pd)(TS_HALF_MM(cvt##name)(TS_XMM(p)));      \
    }
#endif
#define TS_AS_FLOATS(S, name)                                                       \
    TS_INLINE ts_f32 ts_part_##S##_as_f32(ts_part p) {                              \
        return ts_convert_f32_i32(ts_part_##S##_as_i32(p));                         \
    }                                                                               \
    TS_AS_F64(S, name)
TS_AS_FLOATS(i8, epi8_epi32)
TS_AS_FLOATS(u8, epu8_epi32)
TS_AS_FLOATS(i16, epi16_epi32)
TS_AS_FLOATS(u16, epu16_epi32)
#undef TS_AS_FLOATS
#undef TS_AS_F64

/* Halves of a vector, by what ts_simd.h has for the lower one. */
#define TS_AS_LOWER(S, T) \
    TS_INLINE ts_##T ts_part_##S##_as_##T(ts_part p) { return ts_lo_##T##_##S((ts_##S)TS_WHOLE(p)); }
TS_AS_LOWER(i32, f64)
TS_AS_LOWER(u32, f64)
TS_AS_LOWER(f32, f64)
TS_AS_LOWER(f32, i64)
TS_AS_LOWER(f32, u64)
#undef TS_AS_LOWER

/* ---------------------------------------------------------------- narrower */

/* X(T, S, instruction of v4, conversion to part, type in between): integers keep their lowest bits. */
#define TS_TRUNCATIONS(X)                                                                    \
    X(i16, i8, epi16_epi8, , i8) X(i32, i16, epi32_epi16, , i16) X(i64, i32, epi64_epi32, , i32) \
    X(i32, i8, epi32_epi8, TS_AS_PART, i16) X(i64, i16, epi64_epi16, TS_AS_PART, i32)        \
    X(i64, i8, epi64_epi8, TS_AS_PART, i32)

#ifdef TS_V4
#define TS_TRUNCATE(T, S, name, as_part, M) \
    TS_INLINE ts_part ts_##T##_as_part_##S(ts_##T v) { return as_part(_mm512_cvt##name((__m512i)v)); }
#else
TS_INLINE ts_part ts_i8_as_part_i8(ts_i8 v) { return TS_LOWEST(v); }
TS_INLINE ts_part ts_i16_as_part_i16(ts_i16 v) { return TS_LOWEST(v); }
TS_INLINE ts_part ts_i32_as_part_i32(ts_i32 v) { return TS_LOWEST(v); }
#define TS_TRUNCATE(T, S, name, as_part, M)                       \
    TS_INLINE ts_part ts_##T##_as_part_##S(ts_##T v) {            \
        return ts_##M##_as_part_##S(ts_narrow_##M##_##T(v, v));   \
    }
#endif
TS_TRUNCATIONS(TS_TRUNCATE)
#undef TS_TRUNCATE
#undef TS_TRUNCATIONS

/* Signed or not, the bits are the same. X(T, S) */
#define TS_SAME_BITS(T, S, t, s) \
    TS_INLINE ts_part ts_##T##_as_part_##S(ts_##T v) { return ts_##t##_as_part_##s((ts_##t)v); }
#define TS_OF_ANY_SIGN(B, b)                          \
    TS_SAME_BITS(u##B, i##b, i##B, i##b)              \
    TS_SAME_BITS(u##B, u##b, i##B, i##b) TS_SAME_BITS(i##B, u##b, i##B, i##b)
TS_OF_ANY_SIGN(16, 8)
TS_OF_ANY_SIGN(32, 8)
TS_OF_ANY_SIGN(32, 16)
TS_OF_ANY_SIGN(64, 8)
TS_OF_ANY_SIGN(64, 16)
TS_OF_ANY_SIGN(64, 32)
#undef TS_OF_ANY_SIGN
#undef TS_SAME_BITS

#define TS_BY_NARROW(T, S) \
    TS_INLINE ts_part ts_##T##_as_part_##S(ts_##T v) { return TS_LOWEST(ts_narrow_##S##_##T(v, v)); }
#ifdef TS_V4
TS_INLINE ts_part ts_f64_as_part_f32(ts_f64 v) { return _mm256_castps_si256(_mm512_cvtpd_ps(v)); }
TS_INLINE ts_part ts_f64_as_part_i32(ts_f64 v) { return _mm512_cvttpd_epi32(v); }
#else
TS_BY_NARROW(f64, f32)
TS_BY_NARROW(f64, i32)
#endif
TS_BY_NARROW(f64, u32)
TS_BY_NARROW(i64, f32)
TS_BY_NARROW(u64, f32)
#undef TS_BY_NARROW

/* Floats by way of int32, in which NaN and what is too large are its least number. */
#define TS_OF_FLOATS(S)                                                      \
    TS_INLINE ts_part ts_f32_as_part_##S(ts_f32 v) {                         \
        return ts_i32_as_part_##S(ts_convert_i32_f32(v));                    \
    }                                                                        \
    TS_INLINE ts_part ts_f64_as_part_##S(ts_f64 v) {                         \
        ts_i32 low = (ts_i32)TS_WHOLE(ts_f64_as_part_i32(v));                \
        return ts_i32_as_part_##S(low);                                      \
    }
TS_OF_FLOATS(i8)
TS_OF_FLOATS(u8)
TS_OF_FLOATS(i16)
TS_OF_FLOATS(u16)
#undef TS_OF_FLOATS

/* ---------------------------------------------------------------- memory */

/* Lanes `stride` elements apart. */
#define TS_STRIDED_AS(S, CS, T, n)                                          \
    TS_INLINE ts_##T ts_load_strided_first_##S##_as_##T(const CS *p, int64_t stride, int64_t k) {    \
        if (stride == 1) return ts_load_first_##S##_as_##T(p, k);                                    \
        CS lanes[n] = {0};                                                                           \
        for (int64_t i = 0; i < k; i++) lanes[i] = p[i * stride];                                    \
        return ts_load_##S##_as_##T(lanes);                                                          \
    }                                                                                                \
    TS_INLINE ts_##T ts_load_strided_##S##_as_##T(const CS *p, int64_t stride) {                     \
        if (stride == 1) return ts_load_##S##_as_##T(p);                                             \
        return ts_load_strided_first_##S##_as_##T(p, stride, n);                                     \
    }                                                                                                \
    TS_INLINE void ts_store_strided_first_##T##_as_##S(CS *p, int64_t stride, ts_##T v, int64_t k) { \
        if (stride == 1) {                                                                           \
            ts_store_first_##T##_as_##S(p, v, k);                                                    \
            return;                                                                                  \
        }                                                                                            \
        CS lanes[n];                                                                                 \
        ts_store_##T##_as_##S(lanes, v);                                                             \
        for (int64_t i = 0; i < k; i++) p[i * stride] = lanes[i];                                    \
    }                                                                                                \
    TS_INLINE void ts_store_strided_##T##_as_##S(CS *p, int64_t stride, ts_##T v) {                  \
        if (stride == 1)                                                                             \
            ts_store_##T##_as_##S(p, v);                                                             \
        else                                                                                         \
            ts_store_strided_first_##T##_as_##S(p, stride, v, n);                                    \
    }

#define TS_LOAD_AS(S, CS, T, CT, n)                                                              \
    TS_INLINE ts_##T ts_load_first_##S##_as_##T(const CS *p, int64_t k) {                        \
        return ts_part_##S##_as_##T(ts_part_load_first(p, k * (int64_t)sizeof(CS), n * sizeof(CS))); \
    }                                                                                            \
    TS_INLINE ts_##T ts_load_##S##_as_##T(const CS *p) {                                         \
        return ts_part_##S##_as_##T(ts_part_load(p, n * sizeof(CS)));                            \
    }                                                                                            \
    TS_INLINE void ts_store_##T##_as_##S(CS *p, ts_##T v) {                                      \
        ts_part_store(p, ts_##T##_as_part_##S(v), n * sizeof(CS));                               \
    }                                                                                            \
    TS_INLINE void ts_store_first_##T##_as_##S(CS *p, ts_##T v, int64_t k) {                     \
        ts_part part = ts_##T##_as_part_##S(v);                                                  \
        ts_part_store_first(p, part, k * (int64_t)sizeof(CS), n * sizeof(CS));                   \
    }                                                                                            \
    TS_STRIDED_AS(S, CS, T, n)
TS_LOADS(TS_LOAD_AS)

/* ---------------------------------------------------------------- float16 and bfloat16 */

#if defined TS_V3 || defined TS_V4
TS_INLINE ts_f32 ts_part_f16_as_f32(ts_part p) { return TS_MM(cvtph_ps)(p); }
TS_INLINE ts_part ts_f32_as_part_f16(ts_f32 v) {
    return TS_MM(cvtps_ph)(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif defined TS_NEON
TS_INLINE ts_f32 ts_part_f16_as_f32(ts_part p) {
    return (ts_f32)vcvt_f32_f16(vreinterpret_f16_u8(vget_low_u8((uint8x16_t)p)));
}
TS_INLINE ts_part ts_f32_as_part_f16(ts_f32 v) {
    const uint8x8_t low = vreinterpret_u8_f16(vcvt_f16_f32((float32x4_t)v));
    return (ts_part)vcombine_u8(low, low);
}
#else /* as ts_convert_f32_f16_s and ts_convert_f16_f32_s have it, all lanes at once */
TS_INLINE ts_f32 ts_part_f16_as_f32(ts_part p) {
    ts_u32 wide = ts_part_u16_as_u32(p), magnitude = wide & 0x7FFF;
    ts_i32 order = (ts_i32)magnitude;
    ts_u32 bits = (magnitude << 13) + (112u << 23);
    ts_u32 least = (ts_u32)(ts_convert_f32_i32(order) * 0x1p-24f);
    bits = ts_select_u32(order < 0x400, least, bits);
    bits |= (ts_u32)(order >= 0x7C00) & 0x7F800000;
    bits |= (ts_u32)(order > 0x7C00) & 0x400000;
    return (ts_f32)(bits | (wide & 0x8000) << 16);
}
TS_INLINE ts_part ts_f32_as_part_f16(ts_f32 v) {
    ts_u32 bits = (ts_u32)v, magnitude = bits & 0x7FFFFFFF;
    ts_i32 order = (ts_i32)magnitude;
    ts_u32 half = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    ts_u32 least = (ts_u32)((ts_f32)magnitude + 0.5f) - 0x3F000000;
    half = ts_select_u32(order < 0x38800000, least, half);
    half = ts_select_u32(order >= 0x477FF000, ts_set_u32(0x7C00), half);
    half = ts_select_u32(order > 0x7F800000, 0x7E00 | (magnitude >> 13 & 0x3FF), half);
    return ts_u32_as_part_u16(half | (bits >> 16 & 0x8000));
}
#endif

TS_INLINE ts_f32 ts_part_bf16_as_f32(ts_part p) { return (ts_f32)(ts_part_u16_as_u32(p) << 16); }
TS_INLINE ts_part ts_f32_as_part_bf16(ts_f32 v) {
    ts_u32 bits = (ts_u32)v;
    ts_u32 rounded = bits + 0x7FFF + (bits >> 16 & 1), quiet = bits | 0x400000;
    return ts_u32_as_part_u16(ts_select_u32(ts_isnan_f32(v), quiet, rounded) >> 16);
}

TS_LOAD_AS(f16, uint16_t, f32, float, TS_LANES_32)
TS_LOAD_AS(bf16, uint16_t, f32, float, TS_LANES_32)
#undef TS_LOAD_AS
#undef TS_STRIDED_AS

#define TS_HALF_PAIRS(S)                                                                       \
    TS_INLINE ts_f32 ts_lo_f32_##S(ts_u16 v) { return ts_part_##S##_as_f32(TS_LOWEST(v)); }    \
    TS_INLINE ts_f32 ts_hi_f32_##S(ts_u16 v) {                                                 \
        return ts_part_##S##_as_f32(TS_LOWEST(ts_down((ts_u8)v, TS_BYTES / 2)));               \
    }                                                                                          \
    TS_INLINE ts_u16 ts_narrow_##S##_f32(ts_f32 lo, ts_f32 hi) {                               \
        ts_u16 l = (ts_u16)TS_WHOLE(ts_f32_as_part_##S(lo));                                   \
        ts_u16 h = (ts_u16)TS_WHOLE(ts_f32_as_part_##S(hi));                                   \
        return __builtin_shufflevector(l, h, TS_SEQ(TS_LANES_32, TS_SELF, 0),                  \
                                       TS_SEQ(TS_LANES_32, TS_SELF, TS_LANES_16));             \
    }
TS_HALF_PAIRS(f16)
TS_HALF_PAIRS(bf16)
#undef TS_HALF_PAIRS
#undef TS_WHOLE
#undef TS_LOWEST

TS_INLINE ts_f32 ts_narrow_odd_f64(ts_f64 lo, ts_f64 hi) {
    ts_f32 near = ts_narrow_f32_f64(lo, hi);
    ts_f64 near_lo = ts_lo_f64_f32(near), near_hi = ts_hi_f64_f32(near);
    ts_m32 above = ts_narrow_m32_m64(ts_gt_f64(ts_abs_f64(near_lo), ts_abs_f64(lo)),
                                     ts_gt_f64(ts_abs_f64(near_hi), ts_abs_f64(hi)));
    ts_m32 inexact = ts_narrow_m32_m64(ts_ne_f64(near_lo, lo), ts_ne_f64(near_hi, hi));
    ts_u32 bits = (ts_u32)near;
    bits = ts_select_u32(above, bits - 1, bits);
    return (ts_f32)ts_select_u32(inexact, bits | 1, bits);
}


#endif
