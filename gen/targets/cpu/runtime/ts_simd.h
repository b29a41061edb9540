/* Vectors of the ISA level's native width, and their scalar counterparts.

   The level follows from the compiler's -march: x86-64-v2 (16 bytes), v3 (32), v4 (64), or aarch64
   (neon, 16). Compile with -ffp-contract=off. GCC 12 and clang 14 or later.

   Names. T is one of f32 f64 i8 i16 i32 i64 u8 u16 u32 u64; B its bits; M is m8 m16 m32 m64, the
   mask of lanes that are B bits wide. `p` points at elements and needs no alignment unless said.
   Integer arithmetic wraps. U, T of different widths: U is the wider one.

   types        ts_T, ts_mB; TS_LANES_T, TS_LANES_B lanes; TS_BYTES; TS_HAS_FMA; TS_LEVEL "v4"
   memory       ts_load_T(p)  ts_store_T(p, v)
                ts_load_first_T(p, k)  ts_store_first_T(p, v, k)    first k lanes, 0 <= k <= lanes:
                ts_load_mask_T(p, m)   ts_store_mask_T(p, v, m)     touch no byte of the others,
                                                                    which load as 0
                ts_load_strided_T(p, stride)  ts_store_strided_T(p, stride, v)      int64 elements
                ts_load_strided_first_T(p, stride, k)  ts_store_strided_first_T(p, stride, v, k)
                ts_load_strided_mask_T(p, stride, m)   ts_store_strided_mask_T(p, stride, v, m)
                    nothing but the plain form where `stride` is a constant 1; vectors that are
                    loaded and shuffled where it is 2, 3 or 4, on v4 up to 8
                ts_load_S_as_T(p)  ts_load_first_S_as_T(p, k)       S narrower than T, value kept;
                ts_store_T_as_S(p, v)  ts_store_first_T_as_S(p, v, k)   C casts, TS_LANES_T elements
                    also S = f16, bf16 with T = f32: uint16_t storage, round to nearest even;
                    ts_load_strided_S_as_T(p, stride) and so on
                ts_load_bool_M(p)  ts_load_first_bool_M(p, k)       bytes 0 and 1 to a mask
                ts_store_bool_M(p, m)  ts_store_first_bool_M(p, m, k)
                ts_stream_T(p, v)  ts_stream_fence()                p aligned to TS_BYTES; a fence
                                                                    after a thread's last store
                ts_gather_T_i32(p, i)  ts_gather_mask_T_i32(p, i, m)            T of 32 bits
                ts_gather_T_i64(p, lo, hi)  ts_gather_mask_T_i64(p, lo, hi, m)  T of 32 bits
                ts_gather_T_i64(p, i)  ts_gather_mask_T_i64(p, i, m)            T of 64 bits
   making       ts_set_T(x)  ts_iota_T() 0, 1, 2, ...  ts_first_M(k) the first k lanes
   arithmetic   add sub mul neg abs min max; floats: div fma sqrt floor ceil rint clamp; integers:
                and or xor not shl shr, as ts_add_T(a, b). min and max give NaN if either is, the
                first of two; fma(a, b, c) is a*b + c, rounded twice on v2; clamp(v, lo, hi) keeps
                NaN. Shifts by B or more, or negative, give 0, or the sign.
                ts_mul_short_i32(a, b) of values that int16 holds: quicker than mul on x86
   compares     lt le gt ge eq ne as ts_lt_T(a, b), isnan isinf isfinite: give a mask, NaN as in C
   masks        ts_mand_M(a, b)  ts_mor_M  ts_mxor_M  ts_mnot_M(a)  ts_any_M(m)  ts_all_M(m)
                ts_ballot_M(m): an uint64_t, bit i is lane i
                ts_select_T(m, a, b): a where m holds, else b
   conversion   ts_convert_U_T(v)              of equal width
                ts_lo_U_T(v)  ts_hi_U_T(v)     the lower and upper lanes, widened
                ts_narrow_T_U(lo, hi)          their inverse; ts_lo_m64_m32 and so on;
                    ts_lo_f32_f16(v), ts_narrow_bf16_f32(lo, hi) and so on: v is a ts_u16
                ts_narrow_odd_f64(lo, hi)      float32 that rounds once more as float64 would
                (ts_U)v                        reinterprets the bits
   lanes        ts_lane_T(v, i)
                ts_shift_T(prev, cur, k)       lanes k, k+1, ... of prev and then cur, k <= lanes
   reductions   ts_reduce_add_T(v) mul min max: always the same tree: lane i with lane i + lanes/2,
                then the lower half likewise, down to one

   Scalar forms have the suffix _s and give what one lane gives, bit for bit: every form under
   arithmetic and compares, ts_select_T_s(bool, a, b), ts_convert_f32_f16_s(h), and their like.
   Only scalar: ts_floordiv_T_s(a, b), ts_mod_T_s(a, b) of integers, as in Python, 0 where b is 0;
   ts_bits_f32_s(x) and ts_from_bits_f32_s(bits), likewise f64. */
#ifndef TS_SIMD_H
#define TS_SIMD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ts_types.h"

#if defined __AVX512F__ && defined __AVX512BW__ && defined __AVX512CD__ && defined __AVX512DQ__ && \
    defined __AVX512VL__
#define TS_LEVEL "v4"
#define TS_V4 1
#define TS_BYTES 64
#define TS_LANES_8 64
#define TS_LANES_16 32
#define TS_LANES_32 16
#define TS_LANES_64 8
#elif defined __AVX2__ && defined __FMA__ && defined __F16C__
#define TS_LEVEL "v3"
#define TS_V3 1
#define TS_BYTES 32
#define TS_LANES_8 32
#define TS_LANES_16 16
#define TS_LANES_32 8
#define TS_LANES_64 4
#elif defined __SSE4_2__ || (defined __aarch64__ && defined __ARM_NEON)
#ifdef __SSE4_2__
#define TS_LEVEL "v2"
#define TS_V2 1
#else
#define TS_LEVEL "neon"
#define TS_NEON 1
#endif
#define TS_BYTES 16
#define TS_LANES_8 16
#define TS_LANES_16 8
#define TS_LANES_32 4
#define TS_LANES_64 2
#else
#error "ts_simd.h: no ISA level: compile with -march=x86-64-v2, -v3 or -v4, or for aarch64"
#endif

#ifdef TS_V2
#define TS_HAS_FMA 0
#else
#define TS_HAS_FMA 1
#endif

#ifdef TS_NEON
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

/* TS_MM(name): the intrinsic of this width; ts_int, ts_half_int: vectors and halves for it. */
#if defined TS_V4
#define TS_MM(name) _mm512_##name
typedef __m512i ts_int;
typedef __m256i ts_half_int;
#elif defined TS_V3
#define TS_MM(name) _mm256_##name
typedef __m256i ts_int;
typedef __m128i ts_half_int;
#elif defined TS_V2
#define TS_MM(name) _mm_##name
typedef __m128i ts_int;
#endif

#define TS_INLINE static inline __attribute__((always_inline))
#define TS_COLD static __attribute__((noinline, cold, unused))
#define TS_LEADING_ZEROS(x) __builtin_clzll(x)
#define TS_INF_F32 __builtin_inff()
#define TS_INF_F64 __builtin_inf()
#define TS_NAN_F32 __builtin_nanf("")
#define TS_NAN_F64 __builtin_nan("")

#define TS_LANES_i8 TS_LANES_8
#define TS_LANES_u8 TS_LANES_8
#define TS_LANES_i16 TS_LANES_16
#define TS_LANES_u16 TS_LANES_16
#define TS_LANES_i32 TS_LANES_32
#define TS_LANES_u32 TS_LANES_32
#define TS_LANES_f32 TS_LANES_32
#define TS_LANES_i64 TS_LANES_64
#define TS_LANES_u64 TS_LANES_64
#define TS_LANES_f64 TS_LANES_64

#define TS_VECTOR(T, C, B, U, CU) typedef C ts_##T __attribute__((vector_size(TS_BYTES)));
TS_ALL(TS_VECTOR)

/* TS_SEQ(n, X, b): X(b), X(b + 1), ..., n of them. */
#define TS_SEQ_1(X, b) X(b)
#define TS_SEQ_2(X, b) TS_SEQ_1(X, b), TS_SEQ_1(X, (b) + 1)
#define TS_SEQ_4(X, b) TS_SEQ_2(X, b), TS_SEQ_2(X, (b) + 2)
#define TS_SEQ_8(X, b) TS_SEQ_4(X, b), TS_SEQ_4(X, (b) + 4)
#define TS_SEQ_16(X, b) TS_SEQ_8(X, b), TS_SEQ_8(X, (b) + 8)
#define TS_SEQ_32(X, b) TS_SEQ_16(X, b), TS_SEQ_16(X, (b) + 16)
#define TS_SEQ_64(X, b) TS_SEQ_32(X, b), TS_SEQ_32(X, (b) + 32)
#define TS_SEQ_(n, X, b) TS_SEQ_##n(X, b)
#define TS_SEQ(n, X, b) TS_SEQ_(n, X, b)
#define TS_SELF(i) i

/* ---------------------------------------------------------------- forms that every level shares */

#define TS_SHARED(T, C, B, U, CU)                                                             \
    TS_INLINE ts_##T ts_load_##T(const C *p) {                                                \
        ts_##T v;                                                                             \
        memcpy(&v, p, TS_BYTES);                                                              \
        return v;                                                                             \
    }                                                                                         \
    TS_INLINE void ts_store_##T(C *p, ts_##T v) { memcpy(p, &v, TS_BYTES); }                  \
    TS_INLINE ts_##T ts_set_##T(C x) { return (ts_##T){TS_SEQ(TS_LANES_##B, TS_SAME, 0)}; }   \
    TS_INLINE ts_##T ts_iota_##T(void) { return (ts_##T){TS_SEQ(TS_LANES_##B, TS_SELF, 0)}; } \
    TS_INLINE C ts_lane_##T(ts_##T v, int i) { return v[i]; }
#define TS_SAME(i) x
TS_ALL(TS_SHARED)
#undef TS_SAME
#undef TS_SHARED

#define TS_FLOAT_ARITHMETIC(T, C, B, U, CU)                           \
    TS_INLINE ts_##T ts_add_##T(ts_##T a, ts_##T b) { return a + b; } \
    TS_INLINE ts_##T ts_sub_##T(ts_##T a, ts_##T b) { return a - b; } \
    TS_INLINE ts_##T ts_mul_##T(ts_##T a, ts_##T b) { return a * b; } \
    TS_INLINE ts_##T ts_div_##T(ts_##T a, ts_##T b) { return a / b; } \
    TS_INLINE ts_##T ts_neg_##T(ts_##T a) { return -a; }              \
    TS_INLINE ts_##T ts_abs_##T(ts_##T a) {                           \
        return (ts_##T)((ts_##U)a & ((ts_##U){0} + ((CU)-1 >> 1)));   \
    }
TS_FLOATS(TS_FLOAT_ARITHMETIC)
#undef TS_FLOAT_ARITHMETIC

/* Through the unsigned type, in which C defines wrapping. */
#define TS_INTEGER_ARITHMETIC(T, C, B, U, CU)                                                   \
    TS_INLINE ts_##T ts_add_##T(ts_##T a, ts_##T b) { return (ts_##T)((ts_##U)a + (ts_##U)b); } \
    TS_INLINE ts_##T ts_sub_##T(ts_##T a, ts_##T b) { return (ts_##T)((ts_##U)a - (ts_##U)b); } \
    TS_INLINE ts_##T ts_mul_##T(ts_##T a, ts_##T b) { return (ts_##T)((ts_##U)a * (ts_##U)b); } \
    TS_INLINE ts_##T ts_neg_##T(ts_##T a) { return (ts_##T)((ts_##U){0} - (ts_##U)a); }         \
    TS_INLINE ts_##T ts_and_##T(ts_##T a, ts_##T b) { return a & b; }                           \
    TS_INLINE ts_##T ts_or_##T(ts_##T a, ts_##T b) { return a | b; }                            \
    TS_INLINE ts_##T ts_xor_##T(ts_##T a, ts_##T b) { return a ^ b; }                           \
    TS_INLINE ts_##T ts_not_##T(ts_##T a) { return ~a; }
TS_INTEGERS(TS_INTEGER_ARITHMETIC)
#undef TS_INTEGER_ARITHMETIC

#define TS_ABS(T, C, B, U, CU)              \
    TS_INLINE ts_##T ts_abs_##T(ts_##T a) { \
        ts_##T sign = a >> (B - 1);         \
        return ts_sub_##T(a ^ sign, sign);  \
    }
TS_SIGNED(TS_ABS)
#undef TS_ABS
#define TS_ABS(T, C, B, U, CU) \
    TS_INLINE ts_##T ts_abs_##T(ts_##T a) { return a; }
TS_UNSIGNED(TS_ABS)
#undef TS_ABS

/* ---------------------------------------------------------------- conversions */

/* As TS_OPAQUE_INTEGER in ts_scalar.h: gcc casts lane by lane where a level has no instruction for vectors. */
#if !defined __GNUC__ || defined __clang__
#define TS_OPAQUE_VECTOR(v) (void)0
#elif defined TS_NEON
#define TS_OPAQUE_VECTOR(v) __asm__("" : "+w"(v))
#else
#define TS_OPAQUE_VECTOR(v) __asm__("" : "+v"(v))
#endif

/* X(U, C type, T, C type) of equal width */
#define TS_EQUAL_FLOATS(X)                                  \
    X(f32, float, i32, int32_t) X(f32, float, u32, uint32_t) \
    X(f64, double, i64, int64_t) X(f64, double, u64, uint64_t)
#define TS_EQUAL_INTEGERS(X)                                                                 \
    X(i8, int8_t, u8, uint8_t) X(i16, int16_t, u16, uint16_t) X(i32, int32_t, u32, uint32_t) \
    X(i64, int64_t, u64, uint64_t)
#define TS_EQUAL(X) TS_EQUAL_FLOATS(X) TS_EQUAL_INTEGERS(X)
#define TS_CONVERT(U, T, opaque)                        \
    TS_INLINE ts_##U ts_convert_##U##_##T(ts_##T v) {   \
        ts_##U to = __builtin_convertvector(v, ts_##U); \
        opaque;                                         \
        return to;                                      \
    }
#define TS_CONVERT_BOTH(U, CU, T, CT) TS_CONVERT(U, T, (void)0) TS_CONVERT(T, U, (void)0)
TS_EQUAL_INTEGERS(TS_CONVERT_BOTH)
#undef TS_CONVERT_BOTH
#define TS_CONVERT_BOTH(U, CU, T, CT) TS_CONVERT(U, T, (void)0) TS_CONVERT(T, U, TS_OPAQUE_VECTOR(to))
TS_EQUAL_FLOATS(TS_CONVERT_BOTH)
#undef TS_CONVERT_BOTH
#undef TS_CONVERT

TS_INLINE ts_i64 ts_opaque_i64(ts_i64 v) {
    TS_OPAQUE_VECTOR(v);
    return v;
}
TS_INLINE ts_u64 ts_opaque_u64(ts_u64 v) {
    TS_OPAQUE_VECTOR(v);
    return v;
}

/* Widens h, half a vector: gcc 12 converts whole vectors in two halves, so by name where it can. */
#define TS_WIDEN(U) __builtin_convertvector(h, ts_##U)
#define TS_WIDEN_OPAQUE(U) ts_opaque_##U(TS_WIDEN(U))
#if defined TS_V3 || defined TS_V4
#define TS_WIDEN_BY(U, name) (ts_##U)TS_MM(cvt##name)((ts_half_int)h)
#define TS_WIDEN_FLOAT(U, name) TS_MM(cvt##name)(h)
#elif defined TS_V2
#define TS_WIDEN_BY(U, name) \
    (ts_##U)_mm_cvt##name(_mm_loadl_epi64((const __m128i *)(const void *)&h))
#define TS_WIDEN_FLOAT(U, name) \
    _mm_cvt##name((__m128)_mm_loadl_epi64((const __m128i *)(const void *)&h))
#else
#define TS_WIDEN_BY(U, name) TS_WIDEN(U)
#define TS_WIDEN_FLOAT(U, name) TS_WIDEN(U)
#endif

/* X(U, lanes of U, T, C type, h widened): U twice as wide as T */
#define TS_FLOAT_PAIRS(X)                                             \
    X(f64, TS_LANES_64, f32, float, TS_WIDEN_FLOAT(f64, ps_pd))       \
    X(f64, TS_LANES_64, i32, int32_t, TS_WIDEN_BY(f64, epi32_pd))     \
    X(f64, TS_LANES_64, u32, uint32_t, TS_WIDEN(f64))                 \
    X(i64, TS_LANES_64, f32, float, TS_WIDEN_OPAQUE(i64))             \
    X(u64, TS_LANES_64, f32, float, TS_WIDEN_OPAQUE(u64))             \
    X(f32, TS_LANES_32, i16, int16_t, TS_WIDEN(f32))                  \
    X(f32, TS_LANES_32, u16, uint16_t, TS_WIDEN(f32))
#define TS_INTEGER_PAIRS(X)                                           \
    X(i64, TS_LANES_64, i32, int32_t, TS_WIDEN_BY(i64, epi32_epi64))  \
    X(i64, TS_LANES_64, u32, uint32_t, TS_WIDEN_BY(i64, epu32_epi64)) \
    X(u64, TS_LANES_64, i32, int32_t, TS_WIDEN_BY(u64, epi32_epi64))  \
    X(u64, TS_LANES_64, u32, uint32_t, TS_WIDEN_BY(u64, epu32_epi64)) \
    X(i32, TS_LANES_32, i16, int16_t, TS_WIDEN_BY(i32, epi16_epi32))  \
    X(i32, TS_LANES_32, u16, uint16_t, TS_WIDEN_BY(i32, epu16_epi32)) \
    X(u32, TS_LANES_32, i16, int16_t, TS_WIDEN_BY(u32, epi16_epi32))  \
    X(u32, TS_LANES_32, u16, uint16_t, TS_WIDEN_BY(u32, epu16_epi32)) \
    X(i16, TS_LANES_16, i8, int8_t, TS_WIDEN_BY(i16, epi8_epi16))     \
    X(i16, TS_LANES_16, u8, uint8_t, TS_WIDEN_BY(i16, epu8_epi16))    \
    X(u16, TS_LANES_16, i8, int8_t, TS_WIDEN_BY(u16, epi8_epi16))     \
    X(u16, TS_LANES_16, u8, uint8_t, TS_WIDEN_BY(u16, epu8_epi16))
#define TS_PAIRS(X) TS_FLOAT_PAIRS(X) TS_INTEGER_PAIRS(X)

#define TS_PAIR(U, n, T, CT, widened)                                                       \
    typedef CT ts_half_##U##_##T __attribute__((vector_size(TS_BYTES / 2)));                \
    TS_INLINE ts_##U ts_lo_##U##_##T(ts_##T v) {                                            \
        ts_half_##U##_##T h = __builtin_shufflevector(v, v, TS_SEQ(n, TS_SELF, 0));         \
        return widened;                                                                     \
    }                                                                                       \
    TS_INLINE ts_##U ts_hi_##U##_##T(ts_##T v) {                                            \
        ts_half_##U##_##T h = __builtin_shufflevector(v, v, TS_SEQ(n, TS_SELF, n));         \
        return widened;                                                                     \
    }
TS_PAIRS(TS_PAIR)
#undef TS_PAIR

#define TS_NARROW(U, n, T, CT, widened)                                                     \
    TS_INLINE ts_##T ts_narrow_##T##_##U(ts_##U lo, ts_##U hi) {                            \
        ts_half_##U##_##T l = __builtin_convertvector(lo, ts_half_##U##_##T);               \
        ts_half_##U##_##T h = __builtin_convertvector(hi, ts_half_##U##_##T);               \
        ts_##T to =                                                                         \
            __builtin_shufflevector(l, h, TS_SEQ(n, TS_SELF, 0), TS_SEQ(n, TS_SELF, n));    \
        TS_OPAQUE_VECTOR(to);                                                                 \
        return to;                                                                          \
    }
TS_FLOAT_PAIRS(TS_NARROW)
#undef TS_NARROW
/* Integers keep their lowest bits: the even lanes of both. */
#define TS_EVEN(i) 2 * (i)
#define TS_NARROW(U, n, T, CT, widened)                                         \
    TS_INLINE ts_##T ts_narrow_##T##_##U(ts_##U lo, ts_##U hi) {                \
        return __builtin_shufflevector((ts_##T)lo, (ts_##T)hi,                  \
                                       TS_SEQ(n, TS_EVEN, 0), TS_SEQ(n, TS_EVEN, n)); \
    }
TS_INTEGER_PAIRS(TS_NARROW)
#undef TS_NARROW
#undef TS_EVEN

/* ---------------------------------------------------------------- what differs between levels

   Each level file defines, besides the forms of the contract that it names: ts_down(v, n), the
   bytes of a ts_u8 from byte n down, n a power of two below TS_BYTES. */

#include "ts_scalar.h"

#define TS_VECTOR_BITS(T, C, B, U, CU)                           \
    TS_INLINE ts_##U ts_bits_##T(ts_##T v) { return (ts_##U)v; } \
    TS_INLINE ts_##T ts_from_bits_##T(ts_##U v) { return (ts_##T)v; }
TS_FLOATS(TS_VECTOR_BITS)
#undef TS_VECTOR_BITS

#if defined TS_V4
#include "ts_simd_v4.h"
#elif defined TS_V3
#include "ts_simd_v3.h"
#elif defined TS_V2
#include "ts_simd_v2.h"
#else
#include "ts_simd_neon.h"
#endif

/* ---------------------------------------------------------------- forms on top of those */

#define TS_SHIFTS(T, C, B, U, CU, sign)                                        \
    TS_INLINE ts_##T ts_shl_##T(ts_##T a, ts_##T b) {                          \
        ts_##U count = (ts_##U)b & (ts_##U)ts_set_##T(B - 1);                  \
        ts_m##B fits = ts_eq_##U(count, (ts_##U)b);                            \
        return ts_select_##T(fits, (ts_##T)((ts_##U)a << count), (ts_##T){0}); \
    }                                                                          \
    TS_INLINE ts_##T ts_shr_##T(ts_##T a, ts_##T b) {                          \
        ts_##T count = b & ts_set_##T(B - 1);                                  \
        return ts_select_##T(ts_eq_##T(count, b), a >> count, sign);           \
    }
#define TS_SIGNED_SHIFTS(T, C, B, U, CU) TS_SHIFTS(T, C, B, U, CU, a >> (B - 1))
#define TS_UNSIGNED_SHIFTS(T, C, B, U, CU) TS_SHIFTS(T, C, B, U, CU, (ts_##T){0})
TS_SIGNED(TS_SIGNED_SHIFTS)
TS_UNSIGNED(TS_UNSIGNED_SHIFTS)
#undef TS_SIGNED_SHIFTS
#undef TS_UNSIGNED_SHIFTS
#undef TS_SHIFTS

#include "ts_every.h"

/* Lanes `stride` elements apart. */
#define TS_STRIDED(T, C, B, U, CU)                                                                \
    TS_INLINE ts_##T ts_load_strided_##T(const C *p, int64_t stride) {                            \
        if (stride == 1) return ts_load_##T(p);                                                   \
        if (__builtin_constant_p(stride) && 2 <= stride && stride <= 4)                           \
            return ts_every_##T(p, stride);                                                       \
        if (ts_is_every_by_pairs_##T(stride)) return ts_every_by_pairs_##T(p, stride);            \
        if (B >= 32 && TS_LANES_##B >= 8) { /* fewer are as fast one by one */                     \
            if (stride == 2) return ts_every_##T(p, 2);                                           \
            if (stride == 3) return ts_every_##T(p, 3);                                           \
            if (stride == 4) return ts_every_##T(p, 4);                                           \
        }                                                                                         \
        return (ts_##T){TS_SEQ(TS_LANES_##B, TS_STEP, 0)};                                        \
    }                                                                                             \
    TS_INLINE ts_##T ts_load_strided_first_##T(const C *p, int64_t stride, int64_t k) {           \
        if (stride == 1) return ts_load_first_##T(p, k);                                          \
        if (ts_is_every_mask_##T(stride)) return ts_every_mask_##T(p, ts_first_m##B(k));          \
        C lanes[TS_LANES_##B] = {0};                                                              \
        for (int64_t i = 0; i < k; i++) lanes[i] = p[i * stride];                                 \
        return ts_load_##T(lanes);                                                                \
    }                                                                                             \
    TS_INLINE ts_##T ts_load_strided_mask_##T(const C *p, int64_t stride, ts_m##B m) {            \
        if (stride == 1) return ts_load_mask_##T(p, m);                                           \
        if (ts_is_every_mask_##T(stride)) return ts_every_mask_##T(p, m);                         \
        C active[TS_LANES_##B], lanes[TS_LANES_##B];                                              \
        ts_store_##T(active, ts_select_##T(m, ts_set_##T(1), ts_set_##T(0)));                     \
        for (int64_t i = 0; i < TS_LANES_##B; i++) lanes[i] = active[i] != 0 ? p[i * stride] : 0; \
        return ts_load_##T(lanes);                                                                \
    }                                                                                             \
    TS_INLINE void ts_store_strided_first_##T(C *p, int64_t stride, ts_##T v, int64_t k) {        \
        if (stride == 1) {                                                                        \
            ts_store_first_##T(p, v, k);                                                          \
            return;                                                                               \
        }                                                                                         \
        C lanes[TS_LANES_##B];                                                                    \
        ts_store_##T(lanes, v);                                                                   \
        for (int64_t i = 0; i < k; i++) p[i * stride] = lanes[i];                                 \
    }                                                                                             \
    TS_INLINE void ts_store_strided_##T(C *p, int64_t stride, ts_##T v) {                         \
        if (stride == 1)                                                                          \
            ts_store_##T(p, v);                                                                   \
        else                                                                                      \
            ts_store_strided_first_##T(p, stride, v, TS_LANES_##B);                               \
    }                                                                                             \
    TS_INLINE void ts_store_strided_mask_##T(C *p, int64_t stride, ts_##T v, ts_m##B m) {         \
        if (stride == 1) {                                                                        \
            ts_store_mask_##T(p, v, m);                                                           \
            return;                                                                               \
        }                                                                                         \
        C active[TS_LANES_##B], lanes[TS_LANES_##B];                                              \
        ts_store_##T(active, ts_select_##T(m, ts_set_##T(1), ts_set_##T(0)));                     \
        ts_store_##T(lanes, v);                                                                   \
        for (int64_t i = 0; i < TS_LANES_##B; i++)                                                \
            if (active[i] != 0) p[i * stride] = lanes[i];                                         \
    }
#define TS_STEP(i) p[(i) * stride]
TS_ALL(TS_STRIDED)
#undef TS_STEP
#undef TS_STRIDED

#define TS_MORE_FLOATS(T, C, B, U, CU)                                       \
    TS_INLINE ts_m##B ts_isnan_##T(ts_##T v) { return ts_ne_##T(v, v); }     \
    TS_INLINE ts_m##B ts_isinf_##T(ts_##T v) {                               \
        return ts_eq_##T(ts_abs_##T(v), ts_set_##T((C)TS_INF_F64));          \
    }                                                                        \
    TS_INLINE ts_m##B ts_isfinite_##T(ts_##T v) {                            \
        return ts_lt_##T(ts_abs_##T(v), ts_set_##T((C)TS_INF_F64));          \
    }
TS_FLOATS(TS_MORE_FLOATS)
#undef TS_MORE_FLOATS

#define TS_REDUCE(T, C, op)                                                     \
    TS_INLINE C ts_reduce_##op##_##T(ts_##T v) {                                \
        if (TS_BYTES > 32) v = ts_##op##_##T(v, (ts_##T)ts_down((ts_u8)v, 32)); \
        if (TS_BYTES > 16) v = ts_##op##_##T(v, (ts_##T)ts_down((ts_u8)v, 16)); \
        v = ts_##op##_##T(v, (ts_##T)ts_down((ts_u8)v, 8));                     \
        if (sizeof(C) < 8) v = ts_##op##_##T(v, (ts_##T)ts_down((ts_u8)v, 4));  \
        if (sizeof(C) < 4) v = ts_##op##_##T(v, (ts_##T)ts_down((ts_u8)v, 2));  \
        if (sizeof(C) < 2) v = ts_##op##_##T(v, (ts_##T)ts_down((ts_u8)v, 1));  \
        return v[0];                                                            \
    }
#define TS_REDUCTIONS(T, C, B, U, CU) TS_REDUCE(T, C, min) TS_REDUCE(T, C, max)
TS_ALL(TS_REDUCTIONS)
#undef TS_REDUCTIONS
#define TS_REDUCTIONS(T, C, B, U, CU) TS_REDUCE(T, C, add) TS_REDUCE(T, C, mul)
TS_INTEGERS(TS_REDUCTIONS)
#if !(defined TS_V4 || defined TS_V3)
TS_FLOATS(TS_REDUCTIONS)
#else
/* Halves of halves, in instructions that are so narrow: they take half as long. */
#define TS_FOLD(op)                                                                      \
    TS_INLINE float ts_fold_##op##_f32(__m256 v) {                                       \
        __m128 q = _mm_##op##_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)); \
        q = _mm_##op##_ps(q, _mm_movehl_ps(q, q));                                       \
        return _mm_cvtss_f32(_mm_##op##_ss(q, _mm_movehdup_ps(q)));                      \
    }                                                                                    \
    TS_INLINE double ts_fold_##op##_f64(__m256d v) {                                     \
        __m128d q = _mm_##op##_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1)); \
        return _mm_cvtsd_f64(_mm_##op##_sd(q, _mm_unpackhi_pd(q, q)));                   \
    }
TS_FOLD(add)
TS_FOLD(mul)
#undef TS_FOLD
#ifdef TS_V4
#define TS_HALF(x, op, S, part) \
    _mm256_##op##_##S(_mm512_cast##S##512_##S##256(x), _mm512_extract##part##_##S(x, 1))
#define TS_REDUCE_FLOATS(op)                                            \
    TS_INLINE float ts_reduce_##op##_f32(ts_f32 v) {                    \
        return ts_fold_##op##_f32(TS_HALF((__m512)v, op, ps, f32x8));   \
    }                                                                   \
    TS_INLINE double ts_reduce_##op##_f64(ts_f64 v) {                   \
        return ts_fold_##op##_f64(TS_HALF((__m512d)v, op, pd, f64x4));  \
    }
#else
#define TS_REDUCE_FLOATS(op)                                                                 \
    TS_INLINE float ts_reduce_##op##_f32(ts_f32 v) { return ts_fold_##op##_f32((__m256)v); } \
    TS_INLINE double ts_reduce_##op##_f64(ts_f64 v) { return ts_fold_##op##_f64((__m256d)v); }
#endif
TS_REDUCE_FLOATS(add)
TS_REDUCE_FLOATS(mul)
#undef TS_HALF
#undef TS_REDUCE_FLOATS
#endif
#undef TS_REDUCTIONS
#undef TS_REDUCE

#include "ts_convert.h"

/* Bytes that are a mask. */
#define TS_BOOLS(B, load, load_first, store, store_first)                    \
    TS_INLINE ts_m##B ts_load_bool_m##B(const void *p) {                     \
        return ts_ne_u##B(load(p), (ts_u##B){0});                            \
    }                                                                        \
    TS_INLINE ts_m##B ts_load_first_bool_m##B(const void *p, int64_t k) {    \
        return ts_ne_u##B(load_first(p, k), (ts_u##B){0});                   \
    }                                                                        \
    TS_INLINE void ts_store_bool_m##B(void *p, ts_m##B m) {                  \
        store(p, ts_select_u##B(m, ts_set_u##B(1), (ts_u##B){0}));           \
    }                                                                        \
    TS_INLINE void ts_store_first_bool_m##B(void *p, ts_m##B m, int64_t k) { \
        store_first(p, ts_select_u##B(m, ts_set_u##B(1), (ts_u##B){0}), k);  \
    }
TS_BOOLS(8, ts_load_u8, ts_load_first_u8, ts_store_u8, ts_store_first_u8)
TS_BOOLS(16, ts_load_u8_as_u16, ts_load_first_u8_as_u16, ts_store_u16_as_u8,
         ts_store_first_u16_as_u8)
TS_BOOLS(32, ts_load_u8_as_u32, ts_load_first_u8_as_u32, ts_store_u32_as_u8,
         ts_store_first_u32_as_u8)
TS_BOOLS(64, ts_load_u8_as_u64, ts_load_first_u8_as_u64, ts_store_u64_as_u8,
         ts_store_first_u64_as_u8)
#undef TS_BOOLS

#endif
