/* ts_math.h at special values, exactly, and at samples, within `limit` units in the last place;
   vector and scalar forms alike. Prints a line a failure and exits 1 if there was one. */
#include "ts_math.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static int failures;

/* X(function, argument, result); tiny is the least subnormal number. */
#define CASES(X, max, tiny, log_tiny, log_max)                                               \
    X(exp, 0, 1) X(exp, -0.0, 1) X(exp, tiny, 1) X(exp, max, INFINITY) X(exp, -max, 0)       \
    X(exp, INFINITY, INFINITY) X(exp, -INFINITY, 0) X(exp, NAN, NAN)                         \
    X(log, 1, 0) X(log, tiny, log_tiny) X(log, 0, -INFINITY) X(log, -0.0, -INFINITY)         \
    X(log, -1, NAN) X(log, -tiny, NAN) X(log, -INFINITY, NAN) X(log, NAN, NAN)               \
    X(log, INFINITY, INFINITY)                                                               \
    X(tanh, 0, 0) X(tanh, -0.0, -0.0) X(tanh, tiny, tiny) X(tanh, -tiny, -tiny)              \
    X(tanh, 30, 1) X(tanh, -max, -1) X(tanh, INFINITY, 1) X(tanh, -INFINITY, -1)             \
    X(tanh, NAN, NAN)                                                                        \
    X(erf, 0, 0) X(erf, -0.0, -0.0) X(erf, tiny, tiny) X(erf, -tiny, -tiny) X(erf, 7, 1)     \
    X(erf, -max, -1) X(erf, INFINITY, 1) X(erf, -INFINITY, -1) X(erf, NAN, NAN)              \
    X(rsqrt, 4, 0.5) X(rsqrt, 0, INFINITY) X(rsqrt, -0.0, -INFINITY) X(rsqrt, INFINITY, 0)   \
    X(rsqrt, -1, NAN) X(rsqrt, -INFINITY, NAN) X(rsqrt, NAN, NAN)                            \
    X(expm1, 0, 0) X(expm1, -0.0, -0.0) X(expm1, tiny, tiny) X(expm1, -tiny, -tiny)          \
    X(expm1, -max, -1) X(expm1, -INFINITY, -1) X(expm1, max, INFINITY)                       \
    X(expm1, INFINITY, INFINITY) X(expm1, NAN, NAN)                                          \
    X(sigmoid, 0, 0.5) X(sigmoid, -0.0, 0.5) X(sigmoid, tiny, 0.5) X(sigmoid, max, 1)        \
    X(sigmoid, -max, 0) X(sigmoid, INFINITY, 1) X(sigmoid, -INFINITY, 0)                     \
    X(sigmoid, NAN, NAN)                                                                     \
    X(log1p, 0, 0) X(log1p, -0.0, -0.0) X(log1p, tiny, tiny) X(log1p, -tiny, -tiny)          \
    X(log1p, -1, -INFINITY) X(log1p, -1.5, NAN) X(log1p, -max, NAN) X(log1p, NAN, NAN)       \
    X(log1p, -INFINITY, NAN) X(log1p, INFINITY, INFINITY) X(log1p, max, log_max)             \
    X(sin, 0, 0) X(sin, -0.0, -0.0) X(sin, tiny, tiny) X(sin, -tiny, -tiny)                  \
    X(sin, INFINITY, NAN) X(sin, -INFINITY, NAN) X(sin, NAN, NAN)                            \
    X(cos, 0, 1) X(cos, -0.0, 1) X(cos, tiny, 1) X(cos, -tiny, 1)                            \
    X(cos, INFINITY, NAN) X(cos, -INFINITY, NAN) X(cos, NAN, NAN)

static void check(bool good, const char *function, const char *type, double x, double got) {
    if (!good && failures++ < 40) printf("%s_%s(%a) gave %a\n", function, type, x, got);
}

#define SAME(a, b) (((a) != (a) && (b) != (b)) || ((a) == (b) && !signbit(a) == !signbit(b)))
#define CASE_f32(name, x, y)                                                                     \
    {                                                                                            \
        float s = ts_##name##_f32_s((float)(x)), v = ts_##name##_f32(ts_set_f32((float)(x)))[1]; \
        check(SAME(s, (float)(y)) && SAME(v, (float)(y)), #name, "f32", x, (double)v);           \
    }
#define CASE_f64(name, x, y)                                                     \
    {                                                                            \
        double s = ts_##name##_f64_s(x), v = ts_##name##_f64(ts_set_f64(x))[1];  \
        check(SAME(s, (double)(y)) && SAME(v, (double)(y)), #name, "f64", x, v); \
    }

static double rsqrt(double x) { return 1 / sqrt(x); }
static double sigmoid(double x) { return (x < 0 ? exp(x) : 1) / (1 + exp(-fabs(x))); }

/* Error in float32's units; an infinite result counts as 2^128. */
static double ulps(float got, double exact) {
    double value = isinf(got) ? copysign(0x1p128, got) : (double)got;
    int exponent = fabs(exact) < FLT_MIN ? -126 : ilogb(exact);
    return fabs(value - exact) / ldexp(1, exponent - 23);
}

#define SAMPLE(name, limit)                                                          \
    for (uint64_t first = 0; first < 1ULL << 32; first += 50021 * TS_LANES_f32) {    \
        float in[TS_LANES_f32];                                                      \
        for (int l = 0; l < TS_LANES_f32; l++)                                       \
            in[l] = ts_from_bits_f32_s((uint32_t)(first + 50021 * (uint64_t)l));     \
        ts_f32 v = ts_##name##_f32(ts_load_f32(in));                                 \
        for (int l = 0; l < TS_LANES_f32; l++) {                                     \
            double exact = name((double)in[l]);                                      \
            float s = ts_##name##_f32_s(in[l]);                                      \
            bool near = !isfinite(exact) || fabs(exact) > 0x1.ffffffp127             \
                            ? SAME(v[l], (float)exact)                               \
                        : exact == 0 ? v[l] == 0                                     \
                                     : ulps(v[l], exact) <= limit;                   \
            check(SAME(s, v[l]) && near, #name, "f32", (double)in[l], (double)v[l]); \
        }                                                                            \
    }
/* Half the values between the exponents -40 and 10. The C library is within a unit itself. */
#define SAMPLE_f64(name, limit)                                                           \
    for (uint64_t i = 0; i < 40000; i += TS_LANES_f64) {                                  \
        double in[TS_LANES_f64];                                                          \
        for (uint64_t l = 0; l < TS_LANES_f64; l++)                                       \
            in[l] = ts_from_bits_f64_s(((i + l) & 1) << 63 |                              \
                                       (0x3D70000000000000u + (i + l) * 0x14F8B588E3Fu)); \
        ts_f64 v = ts_##name##_f64(ts_load_f64(in));                                      \
        for (int l = 0; l < TS_LANES_f64; l++) {                                          \
            double exact = name(in[l]), s = ts_##name##_f64_s(in[l]);                     \
            double unit = nextafter(fabs(exact), INFINITY) - fabs(exact);                 \
            bool near = SAME(v[l], exact) || fabs(v[l] - exact) <= (limit) * unit;          \
            check(SAME(s, v[l]) && near, #name, "f64", in[l], v[l]);                      \
        }                                                                                 \
    }

/* Angles near multiples of pi/2, of all sizes, where what is left of one is small, and the float64
   (J.-M. Muller, Elementary Functions, 2016, chapter 11) that is nearest to one of all. */
static void check_angle(double x) {
    float single = (float)x;
    double sines[] = {ts_sin_f64_s(x), ts_cos_f64_s(x)};
    long double exact[] = {sinl(x), cosl(x)};
    for (int i = 0; i < 2; i++) {
        double unit = ldexp(1, ilogbl(exact[i]) - 52);
        const char *name = i ? "cos" : "sin";
        check((double)fabsl(sines[i] - exact[i]) <= 2 * unit, name, "f64", x, sines[i]);
        ts_f64 v = ts_set_f64(x);
        v = i ? ts_cos_f64(v) : ts_sin_f64(v);
        check(SAME(v[1], sines[i]), name, "vector f64", x, v[1]);
    }
    if (isinf(single)) return;
    double sine = (double)ts_sin_f32_s(single), cosine = (double)ts_cos_f32_s(single);
    check(ulps((float)sine, sin((double)single)) <= 2, "sin", "f32", (double)single, sine);
    check(ulps((float)cosine, cos((double)single)) <= 2, "cos", "f32", (double)single, cosine);
}

static void check_angles(void) {
    for (int e = 0; e < 1022; e++) {
        for (int i = 0; i < 16; i++) {
            long double turns = floorl(ldexpl(1 + (long double)i / 16.1L, e));
            check_angle((double)(turns * 1.57079632679489661923132169163975144L));
        }
    }
    check_angle(0x1.6ac5b262ca1ffp+849);
    check_angle(-DBL_MAX);
}

/* One large angle does not change what its neighbours in the vector give. */
static void check_neighbours(void) {
    ts_f32 x = ts_iota_f32();
    x[TS_LANES_f32 - 1] = 0x1p100f;
    ts_f32 v = ts_sin_f32(x);
    for (int l = 0; l < TS_LANES_f32; l++)
        check(SAME(v[l], ts_sin_f32_s(x[l])), "sin", "f32 mixed", (double)x[l], (double)v[l]);
}

/* x^y for special values of both, as the C library has it, but for the last bits. */
static void check_powers(void) {
    const double values[] = {0,   -0.0, 1,    -1,       2,        -2,      0.5,        -0.5,
                             3,   -3,   2.5,  -2.5,     1e-310,   DBL_MAX, 0x1p-1074,  -0x1p-1074,
                             NAN, -7,   1e300, INFINITY, -INFINITY, 0x1p53, 0x1p53 + 2, 0x1p54};
    enum { COUNT = sizeof values / sizeof values[0] };
    for (int i = 0; i < COUNT * COUNT; i++) {
        double x = values[i / COUNT], y = values[i % COUNT];
        double exact = pow(x, y), got = ts_pow_f64_s(x, y);
        bool near = SAME(got, exact) || fabs(got - exact) <= 2 * DBL_EPSILON * fabs(exact);
        check(near && SAME(ts_pow_f64(ts_set_f64(x), ts_set_f64(y))[1], got), "pow", "f64", x, got);
        float a = (float)x, b = (float)y, single = ts_pow_f32_s(a, b);
        double wide = pow((double)a, (double)b);
        near = SAME(single, (float)wide) || ulps(single, wide) <= 1;
        check(near && SAME(ts_pow_f32(ts_set_f32(a), ts_set_f32(b))[1], single), "pow", "f32", x,
              (double)single);
    }
}

int main(void) {
    check_powers();
    CASES(CASE_f32, FLT_MAX, 0x1p-149, -0x1.9d1dap6, 0x1.62e43p6)
    CASES(CASE_f64, DBL_MAX, 0x1p-1074, -0x1.74385446d71c3p9, 0x1.62e42fefa39efp9)
    check(isfinite(ts_exp_f32_s(0x1.62e42ep6f)), "exp", "f32", 0x1.62e42ep6, INFINITY);
    check(isinf(ts_exp_f32_s(0x1.62e430p6f)), "exp", "f32", 0x1.62e430p6, 0);
    check(ts_exp_f32_s(-103.9f) == 0x1p-149f && ts_exp_f32_s(-104.1f) == 0, "exp", "f32", -104, 0);
    check(isfinite(ts_exp_f64_s(0x1.62e42fefa39efp9)), "exp", "f64", 0x1.62e42fefa39efp9, INFINITY);
    check(isinf(ts_exp_f64_s(0x1.62e42fefa39f0p9)), "exp", "f64", 0x1.62e42fefa39f0p9, 0);
    check(ts_exp_f64_s(-745.1) == 0x1p-1074 && ts_exp_f64_s(-745.2) == 0, "exp", "f64", -745, 0);
    SAMPLE(exp, 1) SAMPLE(log, 1) SAMPLE(tanh, 2) SAMPLE(erf, 2) SAMPLE(rsqrt, 1)
    SAMPLE(sigmoid, 2) SAMPLE(log1p, 2) SAMPLE(expm1, 2) SAMPLE(sin, 2) SAMPLE(cos, 2)
    SAMPLE_f64(exp, 2) SAMPLE_f64(log, 2) SAMPLE_f64(tanh, 3) SAMPLE_f64(erf, 3)
    SAMPLE_f64(rsqrt, 3) SAMPLE_f64(sigmoid, 4) SAMPLE_f64(log1p, 2) SAMPLE_f64(expm1, 3)
    SAMPLE_f64(sin, 3) SAMPLE_f64(cos, 3)
    check_angles();
    check_neighbours();
    printf("%s: %d failures\n", TS_LEVEL, failures);
    return failures != 0;
}
