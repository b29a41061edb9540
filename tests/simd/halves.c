/* float16 and bfloat16 in ts_simd.h beside arithmetic in double: each of their values widened, and
   floats and doubles at and around each boundary of rounding narrowed. Prints a line a failure. */
#include "ts_simd.h"

#include <math.h>
#include <stdio.h>

static long checks, failures;

static void expect(bool good, const char *form, const char *type, double x) {
    checks++;
    if (good) return;
    if (failures++ < 40) printf("%s_%s of %a\n", form, type, x);
}

/* A format's bits of mantissa and least exponent. */
typedef struct format {
    const char *name;
    int mantissa, least;
    uint16_t infinity;
} format;

static const format FORMATS[] = {{"f16", 10, -14, 0x7C00}, {"bf16", 7, -126, 0x7F80}};

static double value(uint16_t h, const format *f) {
    int m = h & ((1 << f->mantissa) - 1), e = (h & 0x7FFF) >> f->mantissa;
    double x = ldexp(e ? m + (1 << f->mantissa) : m, (e ? e - 1 : 0) + f->least - f->mantissa);
    if ((h & 0x7FFF) >= f->infinity) x = m ? NAN : INFINITY;
    return h >> 15 ? -x : x;
}

static uint16_t rounded(double x, const format *f) {
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isinf(x)) return sign | f->infinity;
    if (x == 0) return sign;
    int e = ilogb(x) > f->least ? ilogb(x) : f->least;
    long bits = ((long)(e - f->least) << f->mantissa) + lrint(ldexp(fabs(x), f->mantissa - e));
    return (uint16_t)(sign | (bits < f->infinity ? bits : f->infinity));
}

static bool same(float x, double y) { return x != x ? y != y : (x == (float)y && !signbit(x) == !signbit(y)); }

/* X(S, k): the format number k. */
#define HALVES(X) X(f16, 0) X(bf16, 1)

#define WIDEN(S, k)                                                                         \
    static void widen_##S(void) {                                                           \
        for (uint32_t h = 0; h < 65536; h += TS_LANES_16) {                                 \
            uint16_t in[TS_LANES_16], out[TS_LANES_16];                                     \
            for (int l = 0; l < TS_LANES_16; l++) in[l] = (uint16_t)(h + (uint32_t)l);      \
            ts_f32 parts[] = {ts_load_##S##_as_f32(in), ts_load_##S##_as_f32(in + TS_LANES_32), \
                              ts_lo_f32_##S(ts_load_u16(in)), ts_hi_f32_##S(ts_load_u16(in))}; \
            ts_store_u16(out, ts_narrow_##S##_f32(parts[0], parts[1]));                     \
            for (int l = 0; l < TS_LANES_16; l++) {                                         \
                double right = value(in[l], &FORMATS[k]);                                   \
                expect(same(ts_convert_f32_##S##_s(in[l]), right), "scalar", #S, right);    \
                for (int p = 0; p < 4; p += 2)                                              \
                    expect(same(parts[p + l / TS_LANES_32][l % TS_LANES_32], right), "load", #S, right); \
                uint16_t quiet = (uint16_t)(in[l] | 1 << (FORMATS[k].mantissa - 1));        \
                expect(out[l] == (right == right ? in[l] : quiet), "narrow", #S, right);    \
            }                                                                               \
        }                                                                                   \
    }
HALVES(WIDEN)

/* As many doubles as a vector of floats has lanes, the same floats. */
#define NARROW(S, k)                                                                               \
    static void narrow_##S(const double *x) {                                                      \
        float single[TS_LANES_32];                                                                 \
        uint16_t out[TS_LANES_32], wide[TS_LANES_32];                                              \
        for (int l = 0; l < TS_LANES_32; l++) single[l] = (float)x[l];                             \
        ts_store_f32_as_##S(out, ts_load_f32(single));                                             \
        ts_f64 lo = ts_load_f64(x), hi = ts_load_f64(x + TS_LANES_64);                             \
        ts_store_f32_as_##S(wide, ts_narrow_odd_f64(lo, hi));                                      \
        for (int l = 0; l < TS_LANES_32; l++) {                                                    \
            uint16_t right = rounded(single[l], &FORMATS[k]);                                      \
            expect(out[l] == right, "store", #S, single[l]);                                       \
            expect(ts_convert_##S##_f32_s(single[l]) == right, "scalar", #S, single[l]);           \
            right = rounded(x[l], &FORMATS[k]);                                                    \
            expect(wide[l] == right, "of f64", #S, x[l]);                                          \
            expect(ts_convert_##S##_f64_s(x[l]) == right, "scalar of f64", #S, x[l]);              \
        }                                                                                          \
    }
HALVES(NARROW)

/* At each value, halfway to the next, and a step of float and of double on either side. */
#define BOUNDARIES(S, k)                                                                  \
    static void boundaries_##S(void) {                                                    \
        double x[TS_LANES_32];                                                            \
        int count = 0;                                                                    \
        for (uint16_t h = 0; h < FORMATS[k].infinity; h++) {                              \
            const double at = value(h, &FORMATS[k]);                                      \
            const double step = ldexp(1.0, (ilogb(at) > FORMATS[k].least && h             \
                                                ? ilogb(at) : FORMATS[k].least) - FORMATS[k].mantissa); \
            const float middle = (float)(at + step / 2);                                  \
            const double points[] = {                                                     \
                at, nextafterf((float)at, INFINITY), nextafterf((float)at, 0), middle,    \
                nextafterf(middle, INFINITY), nextafterf(middle, 0),                      \
                nextafter(middle, INFINITY), nextafter(middle, 0)};                       \
            for (int i = 0; i < 8; i++) {                                                 \
                x[count++] = (i + h) % 2 ? points[i] : -points[i];                        \
                if (count == TS_LANES_32) narrow_##S(x), count = 0;                       \
            }                                                                             \
        }                                                                                 \
    }
HALVES(BOUNDARIES)

#define SPECIAL(S, k)                                                                        \
    for (int i = 0; i < 12; i++) {                                                           \
        static const double most[] = {INFINITY, 1e300, 0x1p128, 0x1.fffffep127, 0x1p-149,    \
                                      1e-60, 5e-324, 0, 65520, 65519.99999, 1e5, 0x1p-25};   \
        double x[TS_LANES_32];                                                               \
        for (int l = 0; l < TS_LANES_32; l++) x[l] = l % 2 ? most[i] : -most[i];             \
        narrow_##S(x);                                                                       \
    }                                                                                        \
    expect(value(ts_convert_##S##_f32_s(NAN), &FORMATS[k]) != 0, "nan", #S, NAN);            \
    expect(isnan(value(ts_convert_##S##_f32_s(-NAN), &FORMATS[k])), "nan", #S, NAN);         \
    expect(isnan(value(ts_convert_##S##_f64_s(NAN), &FORMATS[k])), "nan of f64", #S, NAN);   \
    ts_store_f32_as_##S(nans, ts_narrow_odd_f64(ts_set_f64(NAN), ts_set_f64(-NAN)));         \
    for (int l = 0; l < TS_LANES_32; l++)                                                    \
        expect(isnan(value(nans[l], &FORMATS[k])), "nan of f64", #S, NAN);

int main(void) {
    uint16_t nans[TS_LANES_32];
    widen_f16(), widen_bf16();
    boundaries_f16(), boundaries_bf16();
    HALVES(SPECIAL)
    printf("%s: %ld checks, %ld failures\n", TS_LEVEL, checks, failures);
    return failures != 0;
}
