/* ts_math_more.h at special values and around them against the C library, one precision up; what is exact
   against it bit for bit; vector and scalar forms alike. Prints a line a failure and exits 1 if there was
   one. */
#include "ts_math_more.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static int failures;

static void check(bool good, const char *function, const char *type, double x, double y, double got) {
    if (!good && failures++ < 40) printf("%s_%s(%a, %a) gave %a\n", function, type, x, y, got);
}

#define SAME(a, b) (((a) != (a) && (b) != (b)) || ((a) == (b) && !signbit(a) == !signbit(b)))

/* Whether within `limit` units of a type with so many bits and this least normal number; the sign of 0, NaN
   and infinities as they are. */
static bool within(long double limit, long double got, long double exact, int digits, long double least,
                   long double most) {
    if (isnan(exact) || isinf(exact) || exact == 0) return SAME(got, exact);
    if (isinf(got)) return fabsl(exact) > most && signbit(got) == signbit(exact);
    long double size = fabsl(exact) < least ? least : fabsl(exact);
    return fabsl(got - exact) <= limit * ldexpl(1, ilogbl(size) - digits + 1) &&
           (got == 0 || signbit(got) == signbit(exact));
}
static bool near(long double got, long double exact, int digits, long double least, long double most) {
    return within(2.5L, got, exact, digits, least, most);
}

static const double values[] = {
    0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 0.25, -0.25, 0.75, -0.75, 1.5, -1.5, 2.5, -2.5, 3.5, 8, -27, 1000,
    1e-5, -1e-5, 1e-9, -1e-20, 1e-30, 10, -10, 20, -26, 26.5, 30, 88, -89, 89.4, 100, 127, 128, -126, -149,
    -150, 700, 709, 710.4, -710.47, 710.48, 1023.5, 1024, -1022, -1073, -1075, 1e5, -1e6, 8388607.5,
    4194304.5, 1e10, 4503599627370495.5, 4503599627370497.5, 9007199254740993.0, -1e18, 1e30, -1e38, 3e38,
    -3.4028234663852886e38, 1e100, 1e300, -1e308, DBL_MAX, -DBL_MAX, 1e-38, 1e-40, -1e-45, 1e-300, 1e-310,
    5e-324, -5e-324, FLT_MIN, DBL_MIN, INFINITY, -INFINITY, NAN, 0x1.fffffep-1, 0x1.000002p0,
    0x1.fffffffffffffp-1, 0x1.0000000000001p0, -0x1.fffffffffffffp-1, 0x1.921fb54442d18p0,
    0x1.921fb6p0, 0x1.921fb6p1, 0x1.6ac5b262ca1ffp+849, 0x1p18, 0x1p31,
};
enum { COUNT = sizeof values / sizeof values[0] };

#define CHECK_F32(name, x, y, exact, ...)                                                         \
    {                                                                                             \
        float s = ts_##name##_f32_s(__VA_ARGS__);                                                 \
        check(near((long double)s, exact, 24, FLT_MIN, FLT_MAX), #name, "f32", (double)(x),       \
              (double)(y), (double)s);                                                            \
    }
#define CHECK_F64(name, x, y, exact, ...)                                                         \
    {                                                                                             \
        double s = ts_##name##_f64_s(__VA_ARGS__);                                                \
        check(near((long double)s, exact, 53, DBL_MIN, DBL_MAX), #name, "f64", x, y, s);          \
    }

/* A vector of different values gives what each by itself does. */
#define ALIKE(name, T, C)                                                                         \
    for (int i = 0; i < COUNT; i++) {                                                             \
        C in[TS_LANES_##T];                                                                       \
        for (int l = 0; l < TS_LANES_##T; l++) in[l] = (C)values[(i + l * 7) % COUNT];            \
        ts_##T v = ts_##name##_##T(ts_load_##T(in));                                              \
        for (int l = 0; l < TS_LANES_##T; l++) {                                                  \
            C s = ts_##name##_##T##_s(in[l]);                                                     \
            check(SAME(s, v[l]), #name, "vector " #T, (double)in[l], 0, (double)v[l]);            \
        }                                                                                         \
    }
#define ALIKE_OF_TWO(name, T, C)                                                                  \
    for (int i = 0; i < COUNT * COUNT; i++) {                                                     \
        C in[TS_LANES_##T], other[TS_LANES_##T];                                                  \
        for (int l = 0; l < TS_LANES_##T; l++) {                                                  \
            in[l] = (C)values[(i / COUNT + l) % COUNT];                                           \
            other[l] = (C)values[(i + l * 7) % COUNT];                                            \
        }                                                                                         \
        ts_##T v = ts_##name##_##T(ts_load_##T(in), ts_load_##T(other));                          \
        for (int l = 0; l < TS_LANES_##T; l++) {                                                  \
            C s = ts_##name##_##T##_s(in[l], other[l]);                                           \
            check(SAME(s, v[l]), #name, "vector " #T, (double)in[l], (double)other[l],            \
                  (double)v[l]);                                                                  \
        }                                                                                         \
    }

static long double signl(long double x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }

#define OF_ONE(name, exact)                                                                       \
    for (int i = 0; i < COUNT; i++) {                                                             \
        float x = (float)values[i];                                                               \
        CHECK_F32(name, x, 0, exact((long double)x), x)                                           \
        CHECK_F64(name, values[i], 0, exact((long double)values[i]), values[i])                   \
    }                                                                                             \
    ALIKE(name, f32, float) ALIKE(name, f64, double)
#define OF_TWO(name, exact)                                                                       \
    for (int i = 0; i < COUNT * COUNT; i++) {                                                     \
        double p = values[i / COUNT], q = values[i % COUNT];                                      \
        float x = (float)p, y = (float)q;                                                         \
        CHECK_F32(name, x, y, exact((long double)x, (long double)y), x, y)                        \
        CHECK_F64(name, p, q, exact((long double)p, (long double)q), p, q)                        \
    }                                                                                             \
    ALIKE_OF_TWO(name, f32, float) ALIKE_OF_TWO(name, f64, double)

/* There is no erfinv in the C library, but its inverse; above 1/2 where that is as steep. */
#define ERFINV(T, C, digits, least, most)                                                         \
    for (int i = 0; i <= 4000; i++) {                                                             \
        C x = (C)(i < 2000 ? i / 4000.0 : 1 - exp2(-1 - (digits - 1) * (i - 2000) / 2000.0));     \
        long double y = (long double)ts_erfinv_##T##_s(x), left = 1 - (long double)x;             \
        long double slope = expl(-y * y) * 1.128379167095512573896158903121545172L;               \
        long double off = i < 2000 ? erfl(y) - (long double)x : left - erfcl(y);                  \
        check(near(y, y - off / slope, digits, least, most), "erfinv", #T, (double)x, 0,          \
              (double)y);                                                                         \
        check(ts_erfinv_##T##_s(-x) == -(C)y, "erfinv", #T, (double)-x, 0, (double)y);            \
    }                                                                                             \
    ALIKE(erfinv, T, C)

static void check_erfinv(void) {
    ERFINV(f32, float, 24, FLT_MIN, FLT_MAX)
    ERFINV(f64, double, 53, DBL_MIN, DBL_MAX)
    const double x[] = {0, -0.0, 1, -1, 1.5, -2, INFINITY, -INFINITY, NAN, 0.5, 0x1p-1074};
    const double y[] = {0, -0.0, INFINITY, -INFINITY, NAN, NAN, NAN, NAN, NAN, 0.476936276204469873, 0x1p-1074};
    for (int i = 0; i < 11; i++) {
        double got = ts_erfinv_f64_s(x[i]);
        float single = ts_erfinv_f32_s((float)x[i]);
        check(near((long double)got, (long double)y[i], 53, DBL_MIN, DBL_MAX), "erfinv", "f64", x[i], 0, got);
        check(near((long double)single, (long double)(float)y[i], 24, FLT_MIN, FLT_MAX), "erfinv", "f32", x[i], 0,
              (double)single);
    }
}

/* Left of -2 in units of 1 or more: its zeros there are near -n - 1 / n! and -n + 1 / n!. */
#define LGAMMA_AT(T, value, digits, least, most)                                                  \
    {                                                                                             \
        long double x = (long double)(value), exact = lgammal(x);                                 \
        long double side = x < -2 && fabsl(exact) < 1 ? copysignl(1, exact) : 0;                  \
        long double got = (long double)ts_lgamma_##T##_s(value);                                  \
        check(within(3, got + side, exact + side, digits, least, most), "lgamma", #T,          \
              (double)x, 0, (double)got);                                                         \
    }
#define LGAMMA(T, C, digits, least, most)                                                         \
    for (int i = 0; i < COUNT; i++) LGAMMA_AT(T, (C)values[i], digits, least, most)               \
    for (int i = -4096; i <= 4096; i++) {                                                         \
        LGAMMA_AT(T, (C)(i / 128.0), digits, least, most)                                         \
        LGAMMA_AT(T, (C)(i / 128.0 * (1 - 1e-5)), digits, least, most)                            \
        C beside = (C)exp2(-digits * (i + 4096) / 8192.0);                                        \
        LGAMMA_AT(T, 1 + beside, digits, least, most)                                             \
        LGAMMA_AT(T, 1 - beside, digits, least, most)                                             \
        LGAMMA_AT(T, 2 + beside, digits, least, most)                                             \
        LGAMMA_AT(T, 2 - beside, digits, least, most)                                             \
    }                                                                                             \
    for (int n = 2; n < 20; n++) {                                                                \
        LGAMMA_AT(T, (C)(-n + 1 / tgamma(n + 1)), digits, least, most)                            \
        LGAMMA_AT(T, (C)(-n - 1 / tgamma(n + 1)), digits, least, most)                            \
    }                                                                                             \
    ALIKE(lgamma, T, C)

static void check_lgamma(void) {
    const double most[] = {4.084999e36, 4.08501e36, 2.55634816387e305, 2.55634816388e305}; /* around where it overflows */
    LGAMMA(f32, float, 24, FLT_MIN, FLT_MAX)
    LGAMMA(f64, double, 53, DBL_MIN, DBL_MAX)
    for (int i = 0; i < 4; i++) {
        LGAMMA_AT(f32, (float)most[i], 24, FLT_MIN, FLT_MAX)
        LGAMMA_AT(f64, most[i], 53, DBL_MIN, DBL_MAX)
    }
}

/* ------------------------------------------------------------ exact values */

#define EXACT(name, T, x, y) \
    check(SAME(ts_##name##_##T##_s(x), y), #name, #T, (double)(x), 0, (double)ts_##name##_##T##_s(x));

static void check_exact(void) {
    for (int k = -149; k < 128; k++) {
        EXACT(exp2, f32, (float)k, (float)ldexp(1, k))
        EXACT(log2, f32, (float)ldexp(1, k), (float)k)
    }
    for (int k = -1074; k < 1024; k++) {
        EXACT(exp2, f64, (double)k, ldexp(1, k))
        EXACT(log2, f64, ldexp(1, k), (double)k)
    }
    double power = 1;
    for (int k = 0; k < 23; k++, power *= 10) {
        EXACT(log10, f64, power, (double)k)
        if (k <= 10) EXACT(log10, f32, (float)power, (float)k)
    }
    for (int n = -2000; n <= 2000; n++) {
        EXACT(cbrt, f64, (double)n * n * n, (double)n)
        if (n >= -256 && n <= 256) EXACT(cbrt, f32, (float)(n * n * n), (float)n)
    }
    check(ts_hypot_f32_s(3, 4) == 5 && ts_hypot_f64_s(-5, 12) == 13, "hypot", "exact", 3, 4, 0);
    check(ts_hypot_f64_s(0x3p600, 0x4p600) == 0x5p600, "hypot", "large", 3, 4, 0);
    check(ts_hypot_f64_s(0x3p-1074, 0x4p-1074) == 0x5p-1074, "hypot", "small", 3, 4, 0);
}

/* ------------------------------------------------------------ fmod */

static uint64_t next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

/* Any bits, and numbers as large as each other or up to 2^90 larger, and multiples. */
#define REMAINDERS(T, C, CU, exact)                                                               \
    for (int i = 0; i < 60000; i++) {                                                             \
        C x[TS_LANES_##T], y[TS_LANES_##T];                                                       \
        for (int l = 0; l < TS_LANES_##T; l++) {                                                  \
            x[l] = ts_from_bits_##T##_s((CU)(next_random() >> (64 - 8 * sizeof(C))));             \
            y[l] = ts_from_bits_##T##_s((CU)(next_random() >> (64 - 8 * sizeof(C))));             \
            if (i % 4 == 1) y[l] = x[l] * (C)ldexp(0.7, -(int)(next_random() >> 32) % 24);        \
            if (i % 4 == 2) y[l] = x[l] * (C)ldexp(0.6, -(int)((next_random() >> 32) % 90));      \
            if (i % 4 == 3) y[l] = x[l] / (C)(1 + (next_random() >> 40) % 100);                   \
        }                                                                                         \
        ts_##T v = ts_fmod_##T(ts_load_##T(x), ts_load_##T(y));                                   \
        for (int l = 0; l < TS_LANES_##T; l++) {                                                  \
            C s = ts_fmod_##T##_s(x[l], y[l]);                                                    \
            check(SAME(v[l], exact(x[l], y[l])) && SAME(s, v[l]), "fmod", #T, (double)x[l],       \
                  (double)y[l], (double)v[l]);                                                    \
        }                                                                                         \
    }

int main(void) {
    OF_ONE(round, rintl) OF_ONE(trunc, truncl) OF_ONE(sign, signl) OF_TWO(copysign, copysignl)
    OF_ONE(exp2, exp2l) OF_ONE(log2, log2l) OF_ONE(log10, log10l) OF_ONE(cbrt, cbrtl)
    OF_ONE(erfc, erfcl) OF_TWO(hypot, hypotl) OF_TWO(fmod, fmodl)
    OF_ONE(sinh, sinhl) OF_ONE(cosh, coshl) OF_ONE(asinh, asinhl) OF_ONE(acosh, acoshl)
    OF_ONE(atanh, atanhl)
    OF_ONE(tan, tanl) OF_ONE(atan, atanl) OF_ONE(asin, asinl) OF_ONE(acos, acosl)
    OF_TWO(atan2, atan2l)
    check_exact();
    check_erfinv();
    check_lgamma();
    REMAINDERS(f32, float, uint32_t, fmodf)
    REMAINDERS(f64, double, uint64_t, fmod)
    printf("%s: %d failures\n", TS_LEVEL, failures);
    return failures != 0;
}
