/* Complex numbers, in the style of ts_simd.h. A vector holds as many as there are real lanes: the real
   parts in one native vector, the imaginary parts in another. In memory they are interleaved.

   T is c64 or c128, R the type of its parts, f32 or f64.

   types        ts_T {ts_R re, im}; ts_complex64, ts_complex128: a number in memory
   memory       load store load_first store_first load_mask store_mask, load_strided store_strided
                and their _first and _mask, as in ts_simd.h
   making       ts_set_T(x)  ts_complex_R(re, im)
   arithmetic   add sub mul div neg conj fma exp, as ts_add_T(a, b)
   parts        ts_real_T(v)  ts_imag_T(v)  ts_abs_T(v), of type ts_R
   compares     eq ne isnan isinf isfinite give a mask; ts_select_T(m, a, b)
   conversion   ts_lo_c128_c64(v)  ts_hi_c128_c64(v)  ts_narrow_c64_c128(lo, hi)
   lanes        ts_lane_T(v, i)  ts_shift_T(prev, cur, k)
   reductions   ts_reduce_add_T(v)  ts_reduce_mul_T(v), by the tree of ts_simd.h
   scans        ts_scan_add_T(v)  ts_scan_mul_T(v)  ts_last_T(v), as in ts_scan.h

   Scalar forms have the suffix _s and give what one lane gives, bit for bit: ts_complex_R_s, all under
   arithmetic, parts and compares; ts_convert_c64_c128_s(x) and ts_convert_c128_c64_s(x).

   A product is (ac - bd, ad + bc), each part of one rounded product and one fused multiply-add;
   ts_fma_T(a, b, c) is a*b + c by two fused multiply-adds a part (v2 rounds each of them twice). So
   products with infinities are NaN where those formulas are, as in NumPy, not as in C's Annex G. A
   quotient is Smith's (Algorithm 116, CACM 5(8), 1962): both are scaled by the larger part of the
   divisor, whose square would overflow or underflow; by zero it is each part over 0, as in NumPy.
   ts_abs scales by powers of two where squares would leave the range, and is infinite where a part is.
   exp is (exp(x) cos(y), exp(x) sin(y)), also where exp(x) alone overflows. */
#ifndef TS_COMPLEX_H
#define TS_COMPLEX_H

#include "ts_caller.h" /* ts_complex64, ts_complex128 */
#include "ts_math.h"
#include "ts_simd.h"

typedef struct ts_c64 {
    ts_f32 re, im;
} ts_c64;

typedef struct ts_c128 {
    ts_f64 re, im;
} ts_c128;

/* The forms are written once, in ts_complex_forms.h, over the forms F(name) of the type Z and R(name)
   of the type V of its parts, and masks M; and those of vectors alone in ts_complex_vector.h, over C,
   a part in memory, and S, a number in memory, as well. Numbers between SMALL and LARGE have squares
   that stay in the range, as have smaller ones times UP and larger ones over DOWN. GREATEST is exp(MOST).
   */

#define SMALL 0x1p-50f
#define LARGE 0x1p60f
#define UP 0x1p100f
#define DOWN 0x1p70f
#define MOST 88.0f
#define GREATEST 0x1.f1056ep126f

#define F(name) ts_##name##_c64
#define R(name) ts_##name##_f32
#define Z ts_c64
#define V ts_f32
#define M ts_m32
#define BOTH(a, b) ts_mand_m32(a, b)
#define EITHER(a, b) ts_mor_m32(a, b)
#include "ts_complex_forms.h"
#define C float
#define S ts_complex64
#define LANES TS_LANES_32
#include "ts_complex_vector.h"
#undef F
#undef R
#undef Z
#undef V
#undef M
#undef BOTH
#undef EITHER
#undef C
#undef S
#undef LANES

#define F(name) ts_##name##_c64_s
#define R(name) ts_##name##_f32_s
#define Z ts_complex64
#define V float
#define M bool
#define BOTH(a, b) ((a) && (b))
#define EITHER(a, b) ((a) || (b))
#include "ts_complex_forms.h"
#undef F
#undef R
#undef Z
#undef V
#undef M
#undef BOTH
#undef EITHER

#undef SMALL
#undef LARGE
#undef UP
#undef DOWN
#undef MOST
#undef GREATEST

#define SMALL 0x1p-450
#define LARGE 0x1p500
#define UP 0x1p600
#define DOWN 0x1p600
#define MOST 709.0
#define GREATEST 0x1.d422d2be5dc9bp1022

#define F(name) ts_##name##_c128
#define R(name) ts_##name##_f64
#define Z ts_c128
#define V ts_f64
#define M ts_m64
#define BOTH(a, b) ts_mand_m64(a, b)
#define EITHER(a, b) ts_mor_m64(a, b)
#include "ts_complex_forms.h"
#define C double
#define S ts_complex128
#define LANES TS_LANES_64
#include "ts_complex_vector.h"
#undef F
#undef R
#undef Z
#undef V
#undef M
#undef BOTH
#undef EITHER
#undef C
#undef S
#undef LANES

#define F(name) ts_##name##_c128_s
#define R(name) ts_##name##_f64_s
#define Z ts_complex128
#define V double
#define M bool
#define BOTH(a, b) ((a) && (b))
#define EITHER(a, b) ((a) || (b))
#include "ts_complex_forms.h"
#undef F
#undef R
#undef Z
#undef V
#undef M
#undef BOTH
#undef EITHER

#undef SMALL
#undef LARGE
#undef UP
#undef DOWN
#undef MOST
#undef GREATEST

/* ---------------------------------------------------------------- between the two */

TS_INLINE ts_complex64 ts_convert_c64_c128_s(ts_complex128 x) {
    return (ts_complex64){(float)x.re, (float)x.im};
}
TS_INLINE ts_complex128 ts_convert_c128_c64_s(ts_complex64 x) {
    return (ts_complex128){x.re, x.im};
}
TS_INLINE ts_c128 ts_lo_c128_c64(ts_c64 v) {
    return (ts_c128){ts_lo_f64_f32(v.re), ts_lo_f64_f32(v.im)};
}
TS_INLINE ts_c128 ts_hi_c128_c64(ts_c64 v) {
    return (ts_c128){ts_hi_f64_f32(v.re), ts_hi_f64_f32(v.im)};
}
TS_INLINE ts_c64 ts_narrow_c64_c128(ts_c128 lo, ts_c128 hi) {
    return (ts_c64){ts_narrow_f32_f64(lo.re, hi.re), ts_narrow_f32_f64(lo.im, hi.im)};
}

#endif
