/* The functions that few kernels have, as those of ts_math.h are: of numbers as whole ones, powers and
   logarithms of 2 and 10, roots, hyperbolic functions and those of angles, and their inverses; erfc, erfinv, lgamma.

   ts_round_f32(v), and ts_round_f32_s(x), which gives what one lane of the vector form gives, bit for
   bit. No tables, no calls, and no branches but where an angle of tan or a quotient of fmod is large, or
   an argument of lgamma below -3/4.
   Special values are those of C's Annex F and of NumPy; docs/accuracy.md has the measured errors.

   The functions are written once, in ts_math_rounding.h and the four beside it, over the forms F(name)
   of the type V, of elements C, whose bits are a U, of elements CU. A number has an exponent plus BIAS and
   FRACTION bits after the first, and LEAST is the least that has all of them; UPPER are the bits of its
   sign, its exponent and its first half. TOP and REST have a polynomial's coefficients, PART1 and PART2 a constant in
   two parts. */
#ifndef TS_MATH_MORE_H
#define TS_MATH_MORE_H

#include "ts_math.h"
#include "ts_math_more_coefficients.h"

#define K(c) F(set)((C)(c))
#define HORNER(c) p = F(fma)(p, x, K(c));

#define BITS (FRACTION == 23 ? 32 : 64)
#define SIGN ((CU)1 << (BITS - 1))
#define ONE ((CU)BIAS << FRACTION)
#define MANTISSA (((CU)1 << FRACTION) - 1)
#define WHOLE ((C)((CU)1 << FRACTION)) /* to this an integer adds its own bits */
#define WHOLE_BITS ((CU)(BIAS + FRACTION) << FRACTION)

#define C float
#define CU uint32_t
#define FRACTION 23
#define BIAS 127
#define LEAST 0x1p-126f
#define UPPER 0xFFFFF000u
#define ROOT 0x3F3504F3u /* the bits of sqrt(1/2) */
#define INFINITE TS_INF_F32
#define NOT_A_NUMBER TS_NAN_F32
#define TOP(name) TS_##name##_F32_TOP
#define REST(name) TS_##name##_F32
#define PART1(name) TS_##name##_F32_1
#define PART2(name) TS_##name##_F32_2
#define SINGLE 1

#ifndef TS_CUDA
#define F(name) ts_##name##_f32
#define V ts_f32
#define U ts_u32
#define ANY(m) ts_any_m32(m)
#ifdef TS_V4
#define SCALE(p, k) _mm512_scalef_ps(p, k)
#endif
#include "ts_math_rounding.h"
#include "ts_math_exponents.h"
#include "ts_math_hyperbolic.h"
#include "ts_math_angles.h"
#include "ts_math_gamma.h"
#undef F
#undef V
#undef U
#undef ANY
#undef SCALE
#endif

#define F(name) ts_##name##_f32_s
#define V float
#define U uint32_t
#define ANY(m) (m)
#include "ts_math_rounding.h"
#include "ts_math_exponents.h"
#include "ts_math_hyperbolic.h"
#include "ts_math_angles.h"
#include "ts_math_gamma.h"
#undef F
#undef V
#undef U
#undef ANY

#undef C
#undef CU
#undef FRACTION
#undef BIAS
#undef LEAST
#undef UPPER
#undef ROOT
#undef INFINITE
#undef NOT_A_NUMBER
#undef TOP
#undef REST
#undef PART1
#undef PART2
#undef SINGLE

#define C double
#define CU uint64_t
#define FRACTION 52
#define BIAS 1023
#define LEAST 0x1p-1022
#define UPPER 0xFFFFFFFFF8000000u
#define ROOT 0x3FE6A09E667F3BCDu
#define INFINITE TS_INF_F64
#define NOT_A_NUMBER TS_NAN_F64
#define TOP(name) TS_##name##_F64_TOP
#define REST(name) TS_##name##_F64
#define PART1(name) TS_##name##_F64_1
#define PART2(name) TS_##name##_F64_2
#define SINGLE 0

#ifndef TS_CUDA
#define F(name) ts_##name##_f64
#define V ts_f64
#define U ts_u64
#define ANY(m) ts_any_m64(m)
#ifdef TS_V4
#define SCALE(p, k) _mm512_scalef_pd(p, k)
#endif
#include "ts_math_rounding.h"
#include "ts_math_exponents.h"
#include "ts_math_hyperbolic.h"
#include "ts_math_angles.h"
#include "ts_math_gamma.h"
#undef F
#undef V
#undef U
#undef ANY
#undef SCALE
#endif

#define F(name) ts_##name##_f64_s
#define V double
#define U uint64_t
#define ANY(m) (m)
#include "ts_math_rounding.h"
#include "ts_math_exponents.h"
#include "ts_math_hyperbolic.h"
#include "ts_math_angles.h"
#include "ts_math_gamma.h"
#undef F
#undef V
#undef U
#undef ANY

#undef C
#undef CU
#undef FRACTION
#undef BIAS
#undef LEAST
#undef UPPER
#undef ROOT
#undef INFINITE
#undef NOT_A_NUMBER
#undef TOP
#undef REST
#undef PART1
#undef PART2
#undef SINGLE

#undef K
#undef HORNER
#undef BITS
#undef SIGN
#undef ONE
#undef MANTISSA
#undef WHOLE
#undef WHOLE_BITS

#endif
