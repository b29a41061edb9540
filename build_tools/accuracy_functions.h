/* What accuracy.c measures: X(name, whether up to infinity in float64, what it is of a float32 in double
   precision, what it is of a float64 in long double precision), functions of x, and of x and y. */
#define UNARY(X)                                                                 \
    X(exp, false, exp(x), expl(x))                                               \
    X(log, false, log(x), logl(x))                                               \
    X(tanh, false, tanh(x), tanhl(x))                                            \
    X(erf, false, erf(x), erfl(x))                                               \
    X(rsqrt, false, 1 / sqrt(x), 1 / sqrtl(x))                                   \
    X(sigmoid, false, 1 / (1 + exp(-x)), 1 / (1 + expl(-x)))                     \
    X(log1p, false, log1p(x), log1pl(x))                                         \
    X(expm1, false, expm1(x), expm1l(x))                                         \
    X(sin, true, sin(x), sinl(x))                                                \
    X(cos, true, cos(x), cosl(x))                                                \
    X(exp2, false, exp2(x), exp2l(x))                                            \
    X(log2, true, log2(x), log2l(x))                                             \
    X(log10, true, log10(x), log10l(x))                                          \
    X(sinh, false, sinh(x), sinhl(x))                                            \
    X(cosh, false, cosh(x), coshl(x))                                            \
    X(tan, true, tan(x), tanl(x))                                                \
    X(atan, false, atan(x), atanl(x))                                            \
    X(asin, false, asin(x), asinl(x))                                            \
    X(acos, false, acos(x), acosl(x))                                            \
    X(asinh, true, asinh(x), asinhl(x))                                          \
    X(acosh, false, acosh(x), acoshl(x))                                         \
    X(atanh, false, atanh(x), atanhl(x))                                         \
    X(cbrt, true, cbrt(x), cbrtl(x))                                             \
    X(erfc, false, erfc(x), erfcl(x))                                            \
    X(erfinv, false, (double)inverse_erf(x), inverse_erf(x))                     \
    X(lgamma, false, lgamma(x), lgammal(x))
#define BINARY(X)                                                                \
    X(pow, false, pow(x, y), powl(x, y))                                         \
    X(atan2, true, atan2(x, y), atan2l(x, y))                                    \
    X(hypot, true, hypot(x, y), hypotl(x, y))

#define X(name, far, single, wide) name##_id,
enum { UNARY(X) BINARY(X) FUNCTIONS };
#undef X
