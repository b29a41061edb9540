/* ts_math.h at special values, exactly, and at samples, within `limit` units in the last place;
   vector and scalar forms alike. Prints a line a failure and exits 1 if there was one. */
#include "ts_math.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static int failures;

/* X(function, argument, result); tiny is the least subnormal number. */
#define CASES(X, max, tiny, log_tiny)                                                        \
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
    X(rsqrt, -1, NAN) X(rsqrt, -INFINITY, NAN) X(rsqrt, NAN, NAN)

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

int main(void) {
    CASES(CASE_f32, FLT_MAX, 0x1p-149, -0x1.9d1dap6)
    CASES(CASE_f64, DBL_MAX, 0x1p-1074, -0x1.74385446d71c3p9)
    check(isfinite(ts_exp_f32_s(0x1.62e42ep6f)), "exp", "f32", 0x1.62e42ep6, INFINITY);
    check(isinf(ts_exp_f32_s(0x1.62e430p6f)), "exp", "f32", 0x1.62e430p6, 0);
    check(ts_exp_f32_s(-103.9f) == 0x1p-149f && ts_exp_f32_s(-104.1f) == 0, "exp", "f32", -104, 0);
    check(isfinite(ts_exp_f64_s(0x1.62e42fefa39efp9)), "exp", "f64", 0x1.62e42fefa39efp9, INFINITY);
    check(isinf(ts_exp_f64_s(0x1.62e42fefa39f0p9)), "exp", "f64", 0x1.62e42fefa39f0p9, 0);
    check(ts_exp_f64_s(-745.1) == 0x1p-1074 && ts_exp_f64_s(-745.2) == 0, "exp", "f64", -745, 0);
    SAMPLE(exp, 1) SAMPLE(log, 1) SAMPLE(tanh, 2) SAMPLE(erf, 2) SAMPLE(rsqrt, 1)
    SAMPLE_f64(exp, 2) SAMPLE_f64(log, 2) SAMPLE_f64(tanh, 3) SAMPLE_f64(erf, 3)
    SAMPLE_f64(rsqrt, 3)
    printf("%s: %d failures\n", TS_LEVEL, failures);
    return failures != 0;
}
