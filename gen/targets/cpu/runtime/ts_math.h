/* exp, expm1, sigmoid, log, log1p, pow, tanh, erf, sin, cos and rsqrt of f32 and f64: ts_exp_f32(v), and
   ts_exp_f32_s(x), which gives what one lane of the vector form gives, bit for bit. No branches, no
   tables, no calls, but where an angle of sin or cos is large.

   Special values are IEEE's: NaN gives NaN, infinities and zeros give what the limits are,
   subnormal numbers are neither taken nor given as 0, log of a negative number is NaN.
   docs/accuracy.md has the measured errors. Assumes round-to-nearest and -ffp-contract=off.

   The functions are written once a precision, in ts_math_f32.h and ts_math_f64.h, over the forms
   F(name) of the type V, whose bits are a U; those are included for vectors and for scalars. */
#ifndef TS_MATH_H
#define TS_MATH_H

#include "ts_math_coefficients.h"
#ifndef TS_CUDA /* a GPU has scalars alone, and includes what it has of angles */
#include "ts_math_turns.h"
#include "ts_simd.h"
#endif

#define K(c) F(set)(c)
/* Horner's rule: p starts as the coefficient on top and takes in the others, downwards. */
#define HORNER(c) p = F(fma)(p, x, K(c));

#ifndef TS_CUDA
#define F(name) ts_##name##_f32
#define V ts_f32
#define C float
#define ANY(m) ts_any_m32(m)
#define U ts_u32
#ifdef TS_V4
#define SCALE(p, k) _mm512_scalef_ps(p, k)
#endif
#include "ts_math_f32.h"
#undef F
#undef V
#undef C
#undef ANY
#undef U
#undef SCALE
#endif

#define F(name) ts_##name##_f32_s
#define V float
#define C float
#define ANY(m) (m)
#define U uint32_t
#include "ts_math_f32.h"
#undef F
#undef V
#undef C
#undef ANY
#undef U

#ifndef TS_CUDA
#define F(name) ts_##name##_f64
#define V ts_f64
#define C double
#define ANY(m) ts_any_m64(m)
#define U ts_u64
#ifdef TS_V4
#define SCALE(p, k) _mm512_scalef_pd(p, k)
#endif
#include "ts_math_f64.h"
#undef F
#undef V
#undef C
#undef ANY
#undef U
#undef SCALE
#endif

#define F(name) ts_##name##_f64_s
#define V double
#define C double
#define ANY(m) (m)
#define U uint64_t
#include "ts_math_f64.h"
#undef F
#undef V
#undef C
#undef ANY
#undef U

#undef K
#undef HORNER

/* Of float32, one precision up. */
TS_INLINE float ts_pow_f32_s(float x, float y) { return (float)ts_pow_near_f64_s(x, y); }
#ifndef TS_CUDA
TS_INLINE ts_f32 ts_pow_f32(ts_f32 x, ts_f32 y) {
    return ts_narrow_f32_f64(ts_pow_near_f64(ts_lo_f64_f32(x), ts_lo_f64_f32(y)),
                             ts_pow_near_f64(ts_hi_f64_f32(x), ts_hi_f64_f32(y)));
}
#endif

#if !TS_HAS_FMA
/* Without an exact product there is no correction of the quotient: one precision up instead. */
TS_INLINE float ts_rsqrt_f32_s(float x) { return (float)(1 / ts_sqrt_f64_s(x)); }
TS_INLINE ts_f32 ts_rsqrt_f32(ts_f32 x) {
    return ts_narrow_f32_f64(1 / ts_sqrt_f64(ts_lo_f64_f32(x)), 1 / ts_sqrt_f64(ts_hi_f64_f32(x)));
}
TS_INLINE double ts_rsqrt_f64_s(double x) { return 1 / ts_sqrt_f64_s(x); }
TS_INLINE ts_f64 ts_rsqrt_f64(ts_f64 x) { return 1 / ts_sqrt_f64(x); }
#endif

#endif
