/* ts_complex_more.h: vectors against scalar code, and that against the C library in long double, special
   values too. Prints a line a failure and exits 1 if there was one. */
#include "ts_complex_more.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

static int failures;

static void check(bool good, const char *name, double re, double im, double got, double other) {
    if (!good && failures++ < 40) printf("%s(%a, %a) gave %a, %a\n", name, re, im, got, other);
}

#define SAME(a, b) (((a) != (a) && (b) != (b)) || ((a) == (b) && !signbit(a) == !signbit(b)))

/* Within `limit` units in the last place, of subnormal numbers in the least one's; the sign of 0 too. */
static bool near(long double got, long double exact, int digits, long double least, double limit) {
    if (isnan(exact) || isinf(exact) || exact == 0) return SAME(got, exact);
    long double size = fabsl(exact) < least ? least : fabsl(exact);
    return fabsl(got - exact) <= limit * ldexpl(1, ilogbl(size) - digits + 1) &&
           !signbit(got) == !signbit(exact);
}

static uint64_t next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

static double uniform(void) { return (double)(next_random() >> 11) * 0x1p-52 - 1; }

static const double special[] = {0, -0.0, 1, -1, 0.5, -2, INFINITY, -INFINITY, NAN, 1e-30, -1e30, 0x1p-149,
                                 0x1p-1074, 0x1.fffffep127, DBL_MAX, -DBL_MAX, 1e-310, 0x1.8p-1};
enum { COUNT = sizeof special / sizeof special[0], N = 40000 };

/* Special values with each other, numbers next to the unit circle, of one size, and of any. */
static void draw(int i, double *re, double *im) {
    double turn = 3.2 * uniform();
    *re = i < COUNT * COUNT ? special[i / COUNT] : cos(turn) * (1 + 1e-9 * uniform());
    *im = i < COUNT * COUNT ? special[i % COUNT] : sin(turn);
    if (i >= COUNT * COUNT && i % 3 == 1) *re = 4 * uniform(), *im = 4 * uniform();
    if (i >= COUNT * COUNT && i % 3 == 2) {
        *re = ldexp(uniform(), (int)(next_random() >> 40) % 2000 - 1040);
        *im = ldexp(uniform(), (int)(next_random() >> 40) % 2000 - 1040);
    }
}

/* next_to_0: below what size of the real part its error is that of a part of this size. */
#define CHECK(name, T, S, C, digits, least, exact, limit, next_to_0)                              \
    for (int i = 0; i < N; i += TS_LANES_##C) {                                                   \
        S in[TS_LANES_##C];                                                                       \
        for (int l = 0; l < TS_LANES_##C; l++) {                                                  \
            double re, im;                                                                        \
            draw(i + l, &re, &im);                                                                \
            in[l] = (S){(PART_##C)re, (PART_##C)im};                                              \
        }                                                                                         \
        ts_##T v = ts_##name##_##T(ts_load_##T(in));                                              \
        for (int l = 0; l < TS_LANES_##C; l++) {                                                  \
            S got = ts_##name##_##T##_s(in[l]), lane = ts_lane_##T(v, l);                         \
            double re = (double)in[l].re, im = (double)in[l].im;                                  \
            long double complex right = exact(CMPLXL((long double)re, (long double)im));          \
            bool good = near((long double)got.re, creall(right), digits, next_to_0, limit) &&     \
                        near((long double)got.im, cimagl(right), digits, least, limit);           \
            check(good, #name "_" #T, re, im, (double)got.re, (double)got.im);                    \
            good = SAME(got.re, lane.re) && SAME(got.im, lane.im);                                \
            check(good, "vector " #name "_" #T, re, im, (double)lane.re, (double)lane.im);        \
        }                                                                                         \
    }
#define PART_f32 float
#define PART_f64 double

int main(void) {
    CHECK(sqrt, c64, ts_complex64, f32, 24, FLT_MIN, csqrtl, 2.5, FLT_MIN)
    CHECK(log, c64, ts_complex64, f32, 24, FLT_MIN, clogl, 2.5, FLT_EPSILON)
    CHECK(sqrt, c128, ts_complex128, f64, 53, DBL_MIN, csqrtl, 2.5, DBL_MIN)
    CHECK(log, c128, ts_complex128, f64, 53, DBL_MIN, clogl, 2.5, DBL_EPSILON)
    printf("%s: %d failures\n", TS_LEVEL, failures);
    return failures != 0;
}
