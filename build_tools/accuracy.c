/* Measures ts_math.h and ts_math_more.h: prints `level dtype function ulp input differing` a line, where
   ulp is the largest error in units in the last place of the exact result, input where that is, and
   differing how often the scalar form gave other bits than the vector form, of every 16th batch of values.

   accuracy STEP BATCHES [NAME...]: every STEP-th float32 (1: all of them) against double libm, and
   BATCHES times 8,192 float64, spread over the bit patterns from 2^-55 to 2^11 and their negatives, or
   from 2^-55 to infinity, against long double libm: of all functions of accuracy_functions.h, or of those
   named. Functions of two numbers have a second for each value. LEVELS is a list of X(level), from the
   command line of the compiler. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy_functions.h"

#define DECLARE(level)                                                            \
    void vector_f32_##level(int, const float *, const float *, float *, long);    \
    void scalar_f32_##level(int, const float *, const float *, float *, long);    \
    void vector_f64_##level(int, const double *, const double *, double *, long); \
    void scalar_f64_##level(int, const double *, const double *, double *, long);
#define X(level) DECLARE(level)
LEVELS
#undef X

typedef struct {
    const char *name;
    void (*vector_f32)(int, const float *, const float *, float *, long);
    void (*scalar_f32)(int, const float *, const float *, float *, long);
    void (*vector_f64)(int, const double *, const double *, double *, long);
    void (*scalar_f64)(int, const double *, const double *, double *, long);
} level;
#define X(level) \
    {#level, vector_f32_##level, scalar_f32_##level, vector_f64_##level, scalar_f64_##level},
static const level levels[] = {LEVELS};
#undef X
enum { LEVEL_COUNT = sizeof levels / sizeof levels[0], BATCH = 4096 };

#define X(name, far, single, wide) {#name, far},
static const struct {
    const char *name;
    bool far;
} functions[FUNCTIONS] = {UNARY(X) BINARY(X)};
#undef X

/* An exponent for which x^y is anything from 0 to infinity; every fourth, and those of negative
   numbers, are integers. */
static double exponent(double x, double most) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits ^ bits >> 29) * 0x9E3779B97F4A7C15u;
    double size = fabs(x), part = (double)(bits >> 11) * 0x1p-53 - 0.5;
    double y = size > 0 && size != 1 && size < INFINITY ? part * most / log(size) : part;
    return x < 0 || bits % 4 == 0 ? rint(y) : y;
}

/* Anything from 2^-20 to 2^20 times x, of either sign. */
static double beside(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits ^ bits >> 29) * 0x9E3779B97F4A7C15u;
    double size = exp2(((double)(bits >> 11) * 0x1p-53 - 0.5) * 40);
    return bits & 1024 ? x * size : -x * size;
}

/* The y of erf(y) = x: S. Winitzki's formula (A handy approximation for the error function and its inverse,
   2008) is right to 2^-8, and four of Newton's steps double that, above 1/2 for the logarithms of erfc. */
static long double inverse_erf(long double x) {
    long double size = fabsl(x), left = 1 - size;
    if (!(size < 1) || size == 0) return size == 1 ? x * INFINITY : size == 0 ? x : NAN;
    long double log = logl(left * (1 + size)), part = 2 / (3.14159265358979323846L * 0.147L) + log / 2;
    long double y = size < 0.01L ? size * 0.886L : sqrtl(sqrtl(part * part - log / 0.147L) - part);
    for (int step = 0; step < 4; step++) {
        long double slope = 1.128379167095512573896158903121545172L * expl(-y * y);
        y -= size < 0.5L ? (erfl(y) - size) / slope : logl(left / erfcl(y)) * erfcl(y) / slope;
    }
    return copysignl(y, x);
}

static double reference_f32(int function, float value, float second) {
    double x = (double)value, y = (double)second;
    switch (function) {
#define X(name, far, single, wide) \
    case name##_id: return single;
        UNARY(X) BINARY(X)
#undef X
    default: return x + y;
    }
}

static long double reference_f64(int function, double value, double second) {
    long double x = value, y = second;
    switch (function) {
#define X(name, far, single, wide) \
    case name##_id: return wide;
        UNARY(X) BINARY(X)
#undef X
    default: return x + y;
    }
}

/* Where lgamma has zeros that no number is near enough to: its unit is that of 1 there, or more. */
static bool is_left_of_zeros(int function, double x) { return function == lgamma_id && x < -2; }

/* The error of `got` in units of the type with `digits` bits, least normal exponent `least` and
   range below 2^top. Infinity counts as 2^top, as the exact result does from there on. */
static double ulps(long double got, long double exact, int digits, int least, int top) {
    if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (exact == 0 || isinf(exact))
        return got == exact && signbit(got) == signbit(exact) ? 0 : INFINITY;
    long double end = ldexpl(1, top);
    if (fabsl(exact) > end) exact = copysignl(end, exact);
    if (isinf(got)) got = copysignl(end, got);
    int exponent = ilogbl(exact);
    if (exponent > top - 1) exponent = top - 1;
    if (exponent < least) exponent = least;
    return (double)(fabsl(got - exact) / ldexpl(1, exponent - digits + 1));
}

typedef struct {
    double ulp[LEVEL_COUNT], at[LEVEL_COUNT]; /* from 1/2 up */
    long differing[LEVEL_COUNT];
} worst;

static worst none(void) {
    worst w = {{0}, {0}, {0}};
    for (int l = 0; l < LEVEL_COUNT; l++) w.ulp[l] = 0.5;
    return w;
}

static void merge(worst *total, const worst *part) {
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (part->ulp[l] > total->ulp[l]) {
            total->ulp[l] = part->ulp[l];
            total->at[l] = part->at[l];
        }
        total->differing[l] += part->differing[l];
    }
}

#define MEASURE(T, C, bits_type, exact_type, digits, least, top, range)                            \
    static void fill_##T(int function, C *in, C *second, uint64_t first, uint64_t step) {          \
        for (int i = 0; i < BATCH; i++) {                                                          \
            bits_type bits = (bits_type)(first + (uint64_t)i * step);                              \
            memcpy(&in[i], &bits, sizeof bits);                                                    \
            double x = (double)in[i];                                                              \
            second[i] = (C)(function == pow_id  ? exponent(x, range)                               \
                            : function > pow_id ? beside(x)                                        \
                                                : 0);                                              \
        }                                                                                          \
    }                                                                                              \
    static void measure_##T(int function, uint64_t first, uint64_t step, worst *w) {               \
        static _Thread_local C in[BATCH], second[BATCH], vector[BATCH];                            \
        static _Thread_local exact_type exact[BATCH];                                              \
        fill_##T(function, in, second, first, step);                                               \
        for (int i = 0; i < BATCH; i++) exact[i] = reference_##T(function, in[i], second[i]);      \
        for (int l = 0; l < LEVEL_COUNT; l++) {                                                    \
            levels[l].vector_##T(function, in, second, vector, BATCH);                             \
            for (int i = 0; i < BATCH; i++) {                                                      \
                /* A unit is more than |exact| / 2^digits: only what may be worse is looked at. */ \
                exact_type off = vector[i] - exact[i];                                             \
                exact_type most = w->ulp[l] * ldexp(1, -digits) * exact[i];                        \
                if (exact[i] != 0 && off * off <= most * most) continue;                           \
                int lowest = is_left_of_zeros(function, (double)in[i]) ? 0 : least;                \
                double error = ulps(vector[i], exact[i], digits, lowest, top);                     \
                if (error > w->ulp[l]) {                                                           \
                    w->ulp[l] = error;                                                             \
                    w->at[l] = (double)in[i];                                                      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void compare_##T(int function, uint64_t first, uint64_t step, worst *w) {               \
        static _Thread_local C in[BATCH], second[BATCH], vector[BATCH], scalar[BATCH];             \
        fill_##T(function, in, second, first, step);                                               \
        for (int l = 0; l < LEVEL_COUNT; l++) {                                                    \
            levels[l].vector_##T(function, in, second, vector, BATCH);                             \
            levels[l].scalar_##T(function, in, second, scalar, BATCH);                             \
            for (int i = 0; i < BATCH; i++) {                                                      \
                bool same_nan = vector[i] != vector[i] && scalar[i] != scalar[i];                  \
                w->differing[l] += !same_nan && memcmp(&vector[i], &scalar[i], sizeof(C)) != 0;    \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Every step-th of the values from the one with bits `low`, and their negatives. */           \
    static void report_##T(int function, uint64_t low, uint64_t step, uint64_t batches) {          \
        worst total = none();                                                                      \
        _Pragma("omp parallel") {                                                                  \
            worst mine = none();                                                                   \
            _Pragma("omp for schedule(dynamic, 16)")                                               \
            for (uint64_t b = 0; b < 2 * batches; b++) {                                           \
                uint64_t sign = (uint64_t)(b >= batches) << (8 * sizeof(C) - 1);                   \
                uint64_t first = sign + low + b % batches * BATCH * step;                          \
                measure_##T(function, first, step, &mine);                                         \
                if (b % 16 == 0) compare_##T(function, first, step, &mine);                        \
            }                                                                                      \
            _Pragma("omp critical") merge(&total, &mine);                                          \
        }                                                                                          \
        for (int l = 0; l < LEVEL_COUNT; l++)                                                      \
            printf("%s %s %s %.3f %.9g %ld\n", levels[l].name, #T, functions[function].name,       \
                   total.ulp[l], total.at[l], total.differing[l]);                                 \
    }
MEASURE(f32, float, uint32_t, double, 24, -126, 128, 200)
MEASURE(f64, double, uint64_t, long double, 53, -1022, 1024, 1500)

static bool is_named(int function, int argc, char **argv) {
    for (int i = 3; i < argc; i++)
        if (strcmp(argv[i], functions[function].name) == 0) return true;
    return argc == 3;
}

int main(int argc, char **argv) {
    const uint64_t step = argc >= 3 ? strtoull(argv[1], NULL, 10) : 0;
    const uint64_t batches = argc >= 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (step == 0 || batches == 0) return 2;
    const uint64_t low = 0x3C80000000000000, high = 0x40A0000000000000;
    const uint64_t infinity = 0x7FF0000000000000;
    for (int function = 0; function < FUNCTIONS; function++)
        if (is_named(function, argc, argv))
            report_f32(function, 0, step, ((1ULL << 31) + BATCH * step - 1) / (BATCH * step));
    for (int function = 0; function < FUNCTIONS; function++) {
        uint64_t end = functions[function].far ? infinity : high;
        if (is_named(function, argc, argv))
            report_f64(function, low, (end - low) / (batches * BATCH), batches);
    }
    return 0;
}
