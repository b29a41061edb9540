/* The scalar forms of ts_simd.h: what one lane of the vector form gives, bit for bit. GPUs compute by
   them, too (TS_CUDA). */
#ifndef TS_SCALAR_H
#define TS_SCALAR_H

#include "ts_integers.h"

TS_FLOATS(TS_SCALAR_COMPARES)
#undef TS_SCALAR_COMPARES

#define TS_SCALAR_BITS(T, C, B, U, CU)                           \
    TS_INLINE CU ts_bits_##T##_s(C x) {                          \
        CU bits;                                                 \
        memcpy(&bits, &x, sizeof bits);                          \
        return bits;                                             \
    }                                                            \
    TS_INLINE C ts_from_bits_##T##_s(CU bits) {                  \
        C x;                                                     \
        memcpy(&x, &bits, sizeof x);                             \
        return x;                                                \
    }
TS_FLOATS(TS_SCALAR_BITS)
#undef TS_SCALAR_BITS

#define TS_SCALAR_FLOATS(T, C, B, U, CU)                    \
    TS_INLINE C ts_add_##T##_s(C a, C b) { return a + b; }  \
    TS_INLINE C ts_sub_##T##_s(C a, C b) { return a - b; }  \
    TS_INLINE C ts_mul_##T##_s(C a, C b) { return a * b; }  \
    TS_INLINE C ts_div_##T##_s(C a, C b) { return a / b; }  \
    TS_INLINE C ts_neg_##T##_s(C a) { return -a; }          \
    TS_INLINE bool ts_isnan_##T##_s(C a) { return a != a; } \
    TS_INLINE bool ts_isinf_##T##_s(C a) {                  \
        return a == (C)TS_INF_F64 || a == -(C)TS_INF_F64;   \
    }                                                       \
    TS_INLINE bool ts_isfinite_##T##_s(C a) {               \
        return a > -(C)TS_INF_F64 && a < (C)TS_INF_F64;     \
    }                                                       \
    TS_INLINE C ts_clamp_##T##_s(C v, C lo, C hi) {         \
        v = v < lo ? lo : v;                                \
        return v > hi ? hi : v;                             \
    }
TS_FLOATS(TS_SCALAR_FLOATS)
#undef TS_SCALAR_FLOATS

/* Where nothing traps, gcc takes a float that is cast to an integer and back for one that is rounded:
   of -0.5 it makes -0.0, but the integer is 0. So it must not see both casts. */
#if defined __GNUC__ && !defined __clang__ && !defined __CUDACC__
#define TS_OPAQUE_INTEGER(x) __asm__("" : "+r"(x))
#else
#define TS_OPAQUE_INTEGER(x) (void)0
#endif
#define TS_SCALAR_CASTS(T, C, B, U, CU)               \
    TS_INLINE C ts_convert_##T##_f32_s(float x) {     \
        C i = (C)x;                                   \
        TS_OPAQUE_INTEGER(i);                                   \
        return i;                                     \
    }                                                 \
    TS_INLINE C ts_convert_##T##_f64_s(double x) {    \
        C i = (C)x;                                   \
        TS_OPAQUE_INTEGER(i);                                   \
        return i;                                     \
    }
TS_INTEGERS(TS_SCALAR_CASTS)
#undef TS_SCALAR_CASTS
#undef TS_OPAQUE_INTEGER

#ifdef TS_CUDA /* where fma is one operation, and the C library's functions are the GPU's */
TS_INLINE float ts_abs_f32_s(float a) { return fabsf(a); }
TS_INLINE double ts_abs_f64_s(double a) { return fabs(a); }
TS_INLINE float ts_floor_f32_s(float a) { return floorf(a); }
TS_INLINE double ts_floor_f64_s(double a) { return floor(a); }
TS_INLINE float ts_ceil_f32_s(float a) { return ceilf(a); }
TS_INLINE double ts_ceil_f64_s(double a) { return ceil(a); }
TS_INLINE float ts_rint_f32_s(float a) { return rintf(a); }
TS_INLINE double ts_rint_f64_s(double a) { return rint(a); }
TS_INLINE float ts_fma_f32_s(float a, float b, float c) { return fmaf(a, b, c); }
TS_INLINE double ts_fma_f64_s(double a, double b, double c) { return fma(a, b, c); }
TS_INLINE float ts_sqrt_f32_s(float a) { return sqrtf(a); }
TS_INLINE double ts_sqrt_f64_s(double a) { return sqrt(a); }
TS_INLINE float ts_min_f32_s(float a, float b) { return a < b || a != a ? a : b; }
TS_INLINE float ts_max_f32_s(float a, float b) { return a > b || a != a ? a : b; }
TS_INLINE double ts_min_f64_s(double a, double b) { return a < b || a != a ? a : b; }
TS_INLINE double ts_max_f64_s(double a, double b) { return a > b || a != a ? a : b; }
#else
TS_INLINE float ts_abs_f32_s(float a) { return __builtin_fabsf(a); }
TS_INLINE double ts_abs_f64_s(double a) { return __builtin_fabs(a); }
TS_INLINE float ts_floor_f32_s(float a) { return __builtin_floorf(a); }
TS_INLINE double ts_floor_f64_s(double a) { return __builtin_floor(a); }
TS_INLINE float ts_ceil_f32_s(float a) { return __builtin_ceilf(a); }
TS_INLINE double ts_ceil_f64_s(double a) { return __builtin_ceil(a); }
TS_INLINE float ts_rint_f32_s(float a) { return __builtin_rintf(a); }
TS_INLINE double ts_rint_f64_s(double a) { return __builtin_rint(a); }

#if TS_HAS_FMA
/* GCC makes -fma(a, b, c) a single -(a*b) - c, which is +0 where the negative of a sum of 0 is -0. It does not
   look through an asm. */
#if defined __x86_64__
#define TS_OPAQUE(x) __asm__("" : "+x"(x))
#elif defined __aarch64__
#define TS_OPAQUE(x) __asm__("" : "+w"(x))
#else
#define TS_OPAQUE(x) ((void)0)
#endif
TS_INLINE float ts_fma_f32_s(float a, float b, float c)
{
    float sum = __builtin_fmaf(a, b, c);
    TS_OPAQUE(sum);
    return sum;
}
TS_INLINE double ts_fma_f64_s(double a, double b, double c)
{
    double sum = __builtin_fma(a, b, c);
    TS_OPAQUE(sum);
    return sum;
}
#else
TS_INLINE float ts_fma_f32_s(float a, float b, float c) { return a * b + c; }
TS_INLINE double ts_fma_f64_s(double a, double b, double c) { return a * b + c; }
#endif

/* Not the C library's sqrt, which may set errno and so is a call. Neon's own minimum orders -0
   before +0; the others give the second of two equal operands. */
#ifdef TS_NEON
TS_INLINE float ts_sqrt_f32_s(float a) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(a)), 0); }
TS_INLINE double ts_sqrt_f64_s(double a) { return vget_lane_f64(vsqrt_f64(vdup_n_f64(a)), 0); }
#define TS_NEON_MINMAX(T, C)                                             \
    TS_INLINE C ts_min_##T##_s(C a, C b) {                               \
        return vget_lane_##T(vmin_##T(vdup_n_##T(a), vdup_n_##T(b)), 0); \
    }                                                                    \
    TS_INLINE C ts_max_##T##_s(C a, C b) {                               \
        return vget_lane_##T(vmax_##T(vdup_n_##T(a), vdup_n_##T(b)), 0); \
    }
TS_NEON_MINMAX(f32, float)
TS_NEON_MINMAX(f64, double)
#undef TS_NEON_MINMAX
#else
TS_INLINE float ts_sqrt_f32_s(float a) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a))); }
TS_INLINE double ts_sqrt_f64_s(double a) {
    return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(a)));
}
#define TS_X86_MINMAX(T, C)                                                  \
    TS_INLINE C ts_min_##T##_s(C a, C b) { return a < b || a != a ? a : b; } \
    TS_INLINE C ts_max_##T##_s(C a, C b) { return a > b || a != a ? a : b; }
TS_X86_MINMAX(f32, float)
TS_X86_MINMAX(f64, double)
#undef TS_X86_MINMAX
#endif
#endif

/* ---------------------------------------------------------------- float16 and bfloat16 */

#if defined TS_V3 || defined TS_V4
TS_INLINE float ts_convert_f32_f16_s(uint16_t h) { return _cvtsh_ss(h); }
TS_INLINE uint16_t ts_convert_f16_f32_s(float x) {
    return (uint16_t)_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}
#elif defined TS_NEON
TS_INLINE float ts_convert_f32_f16_s(uint16_t h) {
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0);
}
TS_INLINE uint16_t ts_convert_f16_f32_s(float x) {
    return vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(x))), 0);
}
#else
/* NaNs become quiet, as by the instructions. Multiples of 2^-24 below 2^-14 are those of float16's
   least; adding 1/2 to a float below 2^-14 rounds it to one. */
TS_INLINE float ts_convert_f32_f16_s(uint16_t h) {
    uint32_t magnitude = h & 0x7FFFu, sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t bits = (magnitude << 13) + (112u << 23);
    if (magnitude < 0x400) bits = ts_bits_f32_s((float)(int32_t)magnitude * 0x1p-24f);
    if (magnitude >= 0x7C00) bits = 0x7F800000 | magnitude << 13;
    if (magnitude > 0x7C00) bits |= 0x400000;
    return ts_from_bits_f32_s(bits | sign);
}
TS_INLINE uint16_t ts_convert_f16_f32_s(float x) {
    uint32_t bits = ts_bits_f32_s(x), magnitude = bits & 0x7FFFFFFF;
    uint32_t half = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    if (magnitude < 0x38800000)
        half = ts_bits_f32_s(ts_from_bits_f32_s(magnitude) + 0.5f) - ts_bits_f32_s(0.5f);
    if (magnitude >= 0x477FF000) half = 0x7C00; /* 65520, which rounds to 2^16 */
    if (magnitude > 0x7F800000) half = 0x7E00 | (magnitude >> 13 & 0x3FF);
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}
#endif

TS_INLINE float ts_convert_f32_bf16_s(uint16_t h) { return ts_from_bits_f32_s((uint32_t)h << 16); }

TS_INLINE uint16_t ts_convert_bf16_f32_s(float x) {
    uint32_t bits = ts_bits_f32_s(x);
    bits = x != x ? bits | 0x400000 : bits + 0x7FFF + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

/* The float32 towards 0, with its last bit set where it is not x: rounding it once more is rounding x. */
TS_INLINE float ts_convert_odd_f64_s(double x) {
    float near = (float)x;
    uint32_t bits = ts_bits_f32_s(near);
    bits -= ts_abs_f64_s((double)near) > ts_abs_f64_s(x);
    bits |= (double)near != x;
    return ts_from_bits_f32_s(bits);
}
TS_INLINE uint16_t ts_convert_f16_f64_s(double x) {
    return ts_convert_f16_f32_s(ts_convert_odd_f64_s(x));
}
TS_INLINE uint16_t ts_convert_bf16_f64_s(double x) {
    return ts_convert_bf16_f32_s(ts_convert_odd_f64_s(x));
}

#endif
