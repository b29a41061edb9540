/* sqrt and log of complex numbers, which few kernels have: ts_sqrt_c64(v), and ts_sqrt_c64_s(x), which gives
   what one lane of the vector form gives, bit for bit. Branch cuts and special values are those of C's
   Annex G and of NumPy. See ts_complex.h. */
#ifndef TS_COMPLEX_MORE_H
#define TS_COMPLEX_MORE_H

#include "ts_complex.h"
#include "ts_math_more.h"

/* Sums of numbers between LARGE and its inverse stay in the range; smaller ones have all of their bits
   times UP^2. */
#define LARGE 0x1p100f
#define UP 0x1p30f

#define F(name) ts_##name##_c64
#define R(name) ts_##name##_f32
#define Z ts_c64
#define V ts_f32
#define M ts_m32
#include "ts_complex_more_forms.h"
#undef F
#undef R
#undef Z
#undef V
#undef M

#define F(name) ts_##name##_c64_s
#define R(name) ts_##name##_f32_s
#define Z ts_complex64
#define V float
#define M bool
#include "ts_complex_more_forms.h"
#undef F
#undef R
#undef Z
#undef V
#undef M

#undef LARGE
#undef UP
#define LARGE 0x1p960
#define UP 0x1p100

#define F(name) ts_##name##_c128
#define R(name) ts_##name##_f64
#define Z ts_c128
#define V ts_f64
#define M ts_m64
#include "ts_complex_more_forms.h"
#undef F
#undef R
#undef Z
#undef V
#undef M

#define F(name) ts_##name##_c128_s
#define R(name) ts_##name##_f64_s
#define Z ts_complex128
#define V double
#define M bool
#include "ts_complex_more_forms.h"
#undef F
#undef R
#undef Z
#undef V
#undef M

#undef LARGE
#undef UP

#endif
