/* Scalar functions of integers, which host sides of GPUs' kernels call, too. TS_INLINE is defined. */
#ifndef TS_INTEGERS_H
#define TS_INTEGERS_H

#include "ts_types.h"

#define TS_SCALAR_COMPARES(T, C, B, U, CU)                                \
    TS_INLINE bool ts_lt_##T##_s(C a, C b) { return a < b; }              \
    TS_INLINE bool ts_le_##T##_s(C a, C b) { return a <= b; }             \
    TS_INLINE bool ts_gt_##T##_s(C a, C b) { return a > b; }              \
    TS_INLINE bool ts_ge_##T##_s(C a, C b) { return a >= b; }             \
    TS_INLINE bool ts_eq_##T##_s(C a, C b) { return a == b; }             \
    TS_INLINE bool ts_ne_##T##_s(C a, C b) { return a != b; }             \
    TS_INLINE C ts_select_##T##_s(bool m, C a, C b) { return m ? a : b; } \
    TS_INLINE C ts_set_##T##_s(C x) { return x; }
TS_INTEGERS(TS_SCALAR_COMPARES)

#define TS_SCALAR_INTEGERS(T, C, B, U, CU)                                          \
    TS_INLINE C ts_add_##T##_s(C a, C b) { return (C)((CU)a + (CU)b); }             \
    TS_INLINE C ts_sub_##T##_s(C a, C b) { return (C)((CU)a - (CU)b); }             \
    TS_INLINE C ts_mul_##T##_s(C a, C b) { return (C)((uint64_t)a * (uint64_t)b); } \
    TS_INLINE C ts_neg_##T##_s(C a) { return (C)(0 - (CU)a); }                      \
    TS_INLINE C ts_and_##T##_s(C a, C b) { return (C)(a & b); }                     \
    TS_INLINE C ts_or_##T##_s(C a, C b) { return (C)(a | b); }                      \
    TS_INLINE C ts_xor_##T##_s(C a, C b) { return (C)(a ^ b); }                     \
    TS_INLINE C ts_not_##T##_s(C a) { return (C)~a; }                               \
    TS_INLINE C ts_min_##T##_s(C a, C b) { return a < b ? a : b; }                  \
    TS_INLINE C ts_max_##T##_s(C a, C b) { return a > b ? a : b; }                  \
    TS_INLINE C ts_shl_##T##_s(C a, C b) {                                          \
        return (C)((CU)b < B ? (CU)((uint64_t)(CU)a << (CU)b) : (CU)0);             \
    }
TS_INTEGERS(TS_SCALAR_INTEGERS)
#undef TS_SCALAR_INTEGERS

#define TS_SCALAR_SIGNED(T, C, B, U, CU)                                                      \
    TS_INLINE C ts_abs_##T##_s(C a) { return a < 0 ? (C)(0 - (CU)a) : a; }                    \
    TS_INLINE C ts_shr_##T##_s(C a, C b) { return (C)(a >> ((CU)b < B ? b : B - 1)); }        \
    TS_INLINE C ts_floordiv_##T##_s(C a, C b) {                                               \
        if (b == 0) return 0;                                                                 \
        if (b == -1) return (C)(0 - (CU)a); /* the quotient of the least integer overflows */ \
        C quotient = (C)(a / b);                                                              \
        return (C)(quotient - (a % b != 0 && (a < 0) != (b < 0)));                            \
    }                                                                                         \
    TS_INLINE C ts_mod_##T##_s(C a, C b) {                                                    \
        if (b == 0 || b == -1) return 0;                                                      \
        C rest = (C)(a % b);                                                                  \
        return (C)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);                     \
    }
TS_SIGNED(TS_SCALAR_SIGNED)
#undef TS_SCALAR_SIGNED

#define TS_SCALAR_UNSIGNED(T, C, B, U, CU)                                   \
    TS_INLINE C ts_abs_##T##_s(C a) { return a; }                            \
    TS_INLINE C ts_shr_##T##_s(C a, C b) { return (C)(b < B ? a >> b : 0); } \
    TS_INLINE C ts_floordiv_##T##_s(C a, C b) { return (C)(b ? a / b : 0); } \
    TS_INLINE C ts_mod_##T##_s(C a, C b) { return (C)(b ? a % b : 0); }
TS_UNSIGNED(TS_SCALAR_UNSIGNED)
#undef TS_SCALAR_UNSIGNED

#endif
