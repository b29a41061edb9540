/* The forms of ts_complex.h: of vectors against scalar code, lane by lane, and scalar code against long
   double. Prints a line a failure; the last line says how many checks ran. Exits 1 if any failed. */
#include "ts_complex.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static long checks, failures;

static void expect(bool good, const char *form, const char *type, long lane) {
    checks++;
    if (good) return;
    if (failures++ < 40) printf("%s_%s lane %ld\n", form, type, lane);
}

enum { N = 2048 };

static uint64_t next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

/* A part of a number: of any magnitude, near 1, or special. */
static double part(double least, double most) {
    const double special[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1.0, -1.0, least, most, -most};
    const double unit = (double)(next_random() >> 11) * 0x1p-52 - 1;
    switch (next_random() >> 40 & 7) {
    case 0: return special[(next_random() >> 33) % 10];
    case 1: return most * unit;
    case 2: return least * 100 * unit;
    case 3: return ldexp(unit, (int)(next_random() >> 40) % (2 * ilogb(most)) - ilogb(most));
    default: return 4 * unit;
    }
}

/* One page that may be touched, between two that may not. */
static char *page_end;
static void make_page(void) {
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *all = mmap(NULL, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + size, size, PROT_READ | PROT_WRITE)) _exit(2);
    page_end = all + 2 * size;
}

/* X(T, number in memory, part, its suffix, its bits, least and most magnitude) */
#define TYPES(X)                                                                                   \
    X(c64, ts_complex64, float, f32, 32, 0x1p-149f, FLT_MAX)                                       \
    X(c128, ts_complex128, double, f64, 64, 0x1p-1074, DBL_MAX)

#define DATA(T, S, C, R, B, LEAST, MOST)                                                           \
    static S a_##T[N], b_##T[N], c_##T[N];                                                         \
    static bool same_##R(C x, C y) { return memcmp(&x, &y, sizeof x) == 0 || (x != x && y != y); } \
    static bool same_##T(S x, S y) { return same_##R(x.re, y.re) && same_##R(x.im, y.im); }        \
    static void fill_##T(void) {                                                                   \
        S *all[] = {a_##T, b_##T, c_##T};                                                          \
        for (int k = 0; k < 3; k++)                                                                \
            for (int i = 0; i < N; i++)                                                            \
                all[k][i] = (S){(C)part((double)LEAST, (double)MOST), (C)part((double)LEAST, (double)MOST)}; \
    }
TYPES(DATA)

/* ------------------------------------------------------------ arithmetic */

#define EACH(B) for (long i = 0; i + TS_LANES_##B <= N; i += TS_LANES_##B)
#define LANES(B) for (int l = 0; l < TS_LANES_##B; l++)
#define UNARY(T, B, name)                                                                          \
    EACH(B) {                                                                                      \
        ts_##T v = ts_##name##_##T(ts_load_##T(a_##T + i));                                        \
        LANES(B)                                                                                   \
        expect(same_##T(ts_lane_##T(v, l), ts_##name##_##T##_s(a_##T[i + l])), #name, #T, i + l);  \
    }
#define TO_REAL(T, R, B, name)                                                                     \
    EACH(B) {                                                                                      \
        ts_##R v = ts_##name##_##T(ts_load_##T(a_##T + i));                                        \
        LANES(B) expect(same_##R(v[l], ts_##name##_##T##_s(a_##T[i + l])), #name, #T, i + l);      \
    }
#define BINARY(T, B, name)                                                                         \
    EACH(B) {                                                                                      \
        ts_##T v = ts_##name##_##T(ts_load_##T(a_##T + i), ts_load_##T(b_##T + i));                \
        LANES(B)                                                                                   \
        expect(same_##T(ts_lane_##T(v, l), ts_##name##_##T##_s(a_##T[i + l], b_##T[i + l])),       \
               #name, #T, i + l);                                                                  \
    }
#define COMPARE(T, R, B, name)                                                                     \
    EACH(B) {                                                                                      \
        S_##T *right = next_random() >> 40 & 1 ? a_##T : b_##T;                                    \
        ts_m##B m = ts_##name##_##T(ts_load_##T(a_##T + i), ts_load_##T(right + i));               \
        ts_##R v = ts_select_##R(m, ts_set_##R(1), ts_set_##R(0));                                 \
        LANES(B)                                                                                   \
        expect((v[l] == 1) == ts_##name##_##T##_s(a_##T[i + l], right[i + l]), #name, #T, i + l);  \
    }
typedef ts_complex64 S_c64;
typedef ts_complex128 S_c128;

/* By the tree of ts_simd.h: lane i with lane i + lanes/2, and so on. Scans: after the step of k, the
   upper halves of blocks of 2k lanes have taken on the last lane of the lower halves. */
#define REDUCE(T, S, B, name)                                                                      \
    EACH(B) {                                                                                      \
        S lanes[TS_LANES_##B];                                                                     \
        memcpy(lanes, a_##T + i, sizeof lanes);                                                    \
        for (int half = TS_LANES_##B / 2; half; half /= 2)                                         \
            for (int l = 0; l < half; l++)                                                         \
                lanes[l] = ts_##name##_##T##_s(lanes[l], lanes[l + half]);                         \
        S got = ts_reduce_##name##_##T(ts_load_##T(a_##T + i));                                    \
        expect(same_##T(got, lanes[0]), "reduce_" #name, #T, i);                                   \
    }
#define SCAN(T, S, B, name)                                                                        \
    EACH(B) {                                                                                      \
        S lanes[TS_LANES_##B];                                                                     \
        memcpy(lanes, a_##T + i, sizeof lanes);                                                    \
        for (int k = 1; k < TS_LANES_##B; k *= 2)                                                  \
            LANES(B) if (l & k) lanes[l] = ts_##name##_##T##_s(lanes[l / k * k - 1], lanes[l]);    \
        ts_##T v = ts_scan_##name##_##T(ts_load_##T(a_##T + i)), last = ts_last_##T(v);            \
        LANES(B) {                                                                                 \
            expect(same_##T(ts_lane_##T(v, l), lanes[l]), "scan_" #name, #T, l);                   \
            expect(same_##T(ts_lane_##T(last, l), lanes[TS_LANES_##B - 1]), "last", #T, l);        \
        }                                                                                          \
    }
#define ARITHMETIC(T, S, C, R, B, LEAST, MOST)                                                     \
    static void arithmetic_##T(void) {                                                             \
        UNARY(T, B, neg) UNARY(T, B, conj) UNARY(T, B, exp)                                        \
        TO_REAL(T, R, B, real) TO_REAL(T, R, B, imag) TO_REAL(T, R, B, abs)                        \
        BINARY(T, B, add) BINARY(T, B, sub) BINARY(T, B, mul) BINARY(T, B, div)                    \
        COMPARE(T, R, B, eq) COMPARE(T, R, B, ne) REDUCE(T, S, B, add) REDUCE(T, S, B, mul)        \
        SCAN(T, S, B, add) SCAN(T, S, B, mul)                                                      \
        EACH(B) {                                                                                  \
            ts_##T a = ts_load_##T(a_##T + i), b = ts_load_##T(b_##T + i);                         \
            ts_##T sum = ts_fma_##T(a, b, ts_load_##T(c_##T + i));                                 \
            ts_##T made = ts_complex_##R(b.im, a.re), all = ts_set_##T(a_##T[i]);                  \
            ts_m##B nan = ts_isnan_##T(a);                                                         \
            ts_##R no = ts_set_##R(0), yes = ts_set_##R(1);                                        \
            ts_##R infinite = ts_select_##R(ts_isinf_##T(a), yes, no);                             \
            ts_##R finite = ts_select_##R(ts_isfinite_##T(a), yes, no);                            \
            ts_##T chosen = ts_select_##T(nan, b, a), moved[TS_LANES_##B + 1];                     \
            for (int k = 0; k <= TS_LANES_##B; k++) moved[k] = ts_shift_##T(a, b, k);              \
            LANES(B) {                                                                             \
                S x = a_##T[i + l], y = b_##T[i + l];                                              \
                expect(same_##T(ts_lane_##T(sum, l), ts_fma_##T##_s(x, y, c_##T[i + l])), "fma", #T, l); \
                expect(same_##T(ts_lane_##T(made, l), ts_complex_##R##_s(y.im, x.re)), "complex", #T, l); \
                expect(same_##T(ts_lane_##T(all, l), a_##T[i]), "set", #T, l);                     \
                bool is = ts_isnan_##T##_s(x);                                                     \
                expect(is == (x.re != x.re || x.im != x.im), "isnan", #T, l);                      \
                bool one = isinf(x.re) || isinf(x.im), all_are = isfinite(x.re) && isfinite(x.im); \
                expect(one == ts_isinf_##T##_s(x) && one == (infinite[l] == 1), "isinf", #T, l);   \
                expect(all_are == ts_isfinite_##T##_s(x) && all_are == (finite[l] == 1),           \
                       "isfinite", #T, l);                                                         \
                expect(same_##T(ts_lane_##T(chosen, l), ts_select_##T##_s(is, y, x)), "select", #T, l); \
                for (int k = 0; k <= TS_LANES_##B; k++) {                                          \
                    S from = l + k < TS_LANES_##B ? a_##T[i + l + k] : b_##T[i + l + k - TS_LANES_##B]; \
                    expect(same_##T(ts_lane_##T(moved[k], l), from), "shift", #T, k);              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
TYPES(ARITHMETIC)

/* ------------------------------------------------------------ memory */

/* Right before a page that may not be touched, what is left alone being a_T. */
#define MEMORY(T, S, C, R, B, LEAST, MOST)                                                         \
    static void memory_##T(void) {                                                                 \
        const S zero = {0, 0};                                                                     \
        ts_##T v = ts_load_##T(b_##T + 1);                                                         \
        for (int k = 0; k <= TS_LANES_##B; k++) {                                                  \
            S *p = (S *)(void *)page_end - k;                                                      \
            memcpy(p, a_##T, (size_t)k * sizeof(S));                                               \
            ts_##T got = ts_load_first_##T(p, k);                                                  \
            LANES(B) expect(same_##T(ts_lane_##T(got, l), l < k ? a_##T[l] : zero), "load_first", #T, l); \
            got = ts_load_mask_##T(p, ts_first_m##B(k));                                           \
            LANES(B) expect(same_##T(ts_lane_##T(got, l), l < k ? a_##T[l] : zero), "load_mask", #T, l); \
            ts_store_first_##T(p, v, k);                                                           \
            for (int l = 0; l < k; l++) expect(same_##T(p[l], b_##T[1 + l]), "store_first", #T, l); \
            memcpy(p, a_##T, (size_t)k * sizeof(S));                                               \
            ts_store_mask_##T(p, v, ts_first_m##B(k));                                             \
            for (int l = 0; l < k; l++) expect(same_##T(p[l], b_##T[1 + l]), "store_mask", #T, l); \
            for (int stride = -2; stride <= 3; stride++) {                                         \
                ts_m##B rest = ts_mnot_m##B(ts_first_m##B(k));                                     \
                const S *from = a_##T + N / 2;                                                     \
                ts_##T x = ts_load_strided_##T(from, stride);                                      \
                ts_##T y = ts_load_strided_first_##T(from, stride, k);                             \
                ts_##T z = ts_load_strided_mask_##T(from, stride, rest);                           \
                LANES(B) {                                                                         \
                    S at = from[l * stride];                                                       \
                    expect(same_##T(ts_lane_##T(x, l), at), "load_strided", #T, l);                \
                    expect(same_##T(ts_lane_##T(y, l), l < k ? at : zero), "strided_first", #T, l); \
                    expect(same_##T(ts_lane_##T(z, l), l < k ? zero : at), "strided_mask", #T, l); \
                }                                                                                  \
                if (stride == 0) continue;                                                         \
                S out[3][8 * TS_LANES_##B];                                                        \
                memset(out, 0x40, sizeof out);                                                     \
                const S old = out[0][0];                                                           \
                ts_store_strided_##T(out[0] + 3 * TS_LANES_##B, stride, v);                        \
                ts_store_strided_first_##T(out[1] + 3 * TS_LANES_##B, stride, v, k);               \
                ts_store_strided_mask_##T(out[2] + 3 * TS_LANES_##B, stride, v, rest);             \
                for (int j = 0; j < 8 * TS_LANES_##B; j++) {                                       \
                    const int at = j - 3 * TS_LANES_##B, l = at / stride;                          \
                    const bool stored = at % stride == 0 && l >= 0 && l < TS_LANES_##B;            \
                    const bool on[] = {stored, stored && l < k, stored && l >= k};                 \
                    for (int form = 0; form < 3; form++)                                           \
                        expect(same_##T(out[form][j], on[form] ? b_##T[1 + l] : old),              \
                               "store_strided", #T, form);                                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        S whole[TS_LANES_##B];                                                                     \
        ts_store_##T(whole, v);                                                                    \
        LANES(B) expect(same_##T(whole[l], b_##T[1 + l]), "store", #T, l);                         \
    }
TYPES(MEMORY)

static void conversions(void) {
    for (long i = 0; i + TS_LANES_32 <= N; i += TS_LANES_32) {
        ts_c64 v = ts_load_c64(a_c64 + i);
        ts_c128 lo = ts_lo_c128_c64(v), hi = ts_hi_c128_c64(v);
        ts_c64 back = ts_narrow_c64_c128(lo, hi);
        LANES(32) {
            const ts_complex128 wide = ts_convert_c128_c64_s(a_c64[i + l]);
            const int half = l % TS_LANES_64;
            expect(same_c128(ts_lane_c128(l < TS_LANES_64 ? lo : hi, half), wide), "lo hi", "c64", l);
            expect(same_c64(ts_lane_c64(back, l), ts_convert_c64_c128_s(wide)), "narrow", "c64", l);
        }
    }
}

/* ------------------------------------------------------------ values */

/* Whether a part is right to `most` units in the last place of `size`, the number's magnitude, or of
   the least normal number. */
#define NEAR(T, S, C, R, B, LEAST, MOST)                                                           \
    static bool near_##T(C got, long double exact, long double size, double most) {                \
        const long double least = ldexpl(LEAST, B == 32 ? 23 : 52);                                \
        const C of = (C)fabsl(size > least ? size : least);                                        \
        const long double ulp = of < (C)INFINITY ? (long double)(of * (B == 32 ? 0x1p-23L : 0x1p-52L)) : 0; \
        return isnan(got) ? isnan(exact)                                                           \
               : isinf(got) ? fabsl(exact) > MOST * (1 - 1e-6L)                                    \
                            : fabsl(got - exact) <= most * ulp;                                    \
    }
TYPES(NEAR)

/* Quotients and magnitudes of finite numbers, in long double, whose range holds all squares. */
#define VALUES(T, S, C, R, B, LEAST, MOST)                                                         \
    static void values_##T(void) {                                                                 \
        for (int i = 0; i < N; i++) {                                                              \
            S x = a_##T[i], y = b_##T[i];                                                          \
            long double a = x.re, b = x.im, c = y.re, d = y.im, q = c * c + d * d;                 \
            if (isfinite(a) && isfinite(b))                                                        \
                expect(near_##T(ts_abs_##T##_s(x), sqrtl(a * a + b * b), sqrtl(a * a + b * b), 1.01 + !TS_HAS_FMA), \
                       "abs", #T, i);                                                              \
            long double re = a * c - b * d, im = a * d + b * c, size = hypotl(re, im);             \
            S got = ts_mul_##T##_s(x, y);                                                          \
            if (fabsl(a) < sqrtl(MOST) && fabsl(b) < sqrtl(MOST) / 2 && fabsl(c) < sqrtl(MOST) &&  \
                fabsl(d) < sqrtl(MOST) / 2) {                                                      \
                expect(near_##T(got.re, re, size, 2), "mul", #T, i);                               \
                expect(near_##T(got.im, im, size, 2), "mul", #T, i);                               \
            }                                                                                      \
            re = (a * c + b * d) / q, im = (b * c - a * d) / q, size = hypotl(re, im);             \
            const bool tame = fabsl(a) < MOST / 4 && fabsl(b) < MOST / 4 && fabsl(c) < MOST / 4 && \
                              fabsl(d) < MOST / 4 && size < MOST / 4 && size > LEAST * 1e20L &&    \
                              sqrtl(q) > LEAST * 1e20L && hypotl(a, b) > LEAST * 1e20L;            \
            if (tame) {                                                                            \
                got = ts_div_##T##_s(x, y);                                                        \
                expect(near_##T(got.re, re, size, 6), "div", #T, i);                               \
                expect(near_##T(got.im, im, size, 6), "div", #T, i);                               \
            }                                                                                      \
            const long double most = B == 32 ? 170 : 1400;                                         \
            if (fabsl(a) < most && fabsl(b) < 1e6L) {                                              \
                got = ts_exp_##T##_s(x);                                                           \
                size = expl(a);                                                                    \
                expect(near_##T(got.re, size * cosl(b), size, 8), "exp", #T, i);                   \
                expect(near_##T(got.im, size * sinl(b), size, 8), "exp", #T, i);                   \
            }                                                                                      \
        }                                                                                          \
        for (int i = -40; i <= 40; i++) { /* exp also where exp(x) alone overflows */              \
            const C x = (C)((B == 32 ? 88 : 709) + i / 8), y = (C)(i % 8 * 0.9);                   \
            const S sum = ts_fma_##T##_s((S){x, y}, (S){(C)i, -2}, (S){y, x});                     \
            const long double size = expl(x) < MOST / 4 ? expl(x) : MOST / 4;                      \
            S got = ts_exp_##T##_s((S){x, y});                                                     \
            expect(near_##T(got.re, expl(x) * cosl(y), size, 8), "exp", "large", i);               \
            expect(near_##T(got.im, expl(x) * sinl(y), size, 8), "exp", "large", i);               \
            got = ts_exp_##T##_s((S){x, (C)1.5707963267948966});                                   \
            expect(isfinite(got.re), "exp", "imaginary", i);                                       \
            expect(near_##T(sum.re, (long double)x * i + 2 * (long double)y + y, 2000, 4), "fma", #T, i); \
            expect(near_##T(sum.im, (long double)y * i - 2 * (long double)x + x, 2000, 4), "fma", #T, i); \
        }                                                                                          \
        const C big = (C)(MOST / 4), tiny = (C)(LEAST * 1024), infinity = (C)INFINITY;             \
        S one = ts_div_##T##_s((S){big, big}, (S){big, big});                                      \
        expect(one.re == 1 && one.im == 0, "div", "large", B);                                     \
        one = ts_div_##T##_s((S){tiny, -tiny}, (S){tiny, -tiny});                                  \
        expect(one.re == 1 && one.im == 0, "div", "small", B);                                     \
        S by_zero = ts_div_##T##_s((S){1, -2}, (S){0, 0});                                         \
        expect(by_zero.re == infinity && by_zero.im == -infinity, "div", "by 0", B);               \
        by_zero = ts_div_##T##_s((S){0, infinity}, (S){0, -(C)0});                                 \
        expect(isnan(by_zero.re) && by_zero.im == infinity, "div", "by 0", B);                     \
        by_zero = ts_div_##T##_s((S){1, 1}, (S){-(C)0, 0});                                        \
        expect(by_zero.re == infinity && by_zero.im == infinity, "div", "by -0", B);               \
        expect(isnan(ts_div_##T##_s((S){1, 1}, (S){0, (C)NAN}).re), "div", "by nan", B);           \
        expect(ts_abs_##T##_s((S){(C)NAN, -infinity}) == infinity, "abs", "infinity", B);          \
        expect(isnan(ts_abs_##T##_s((S){(C)NAN, 3})), "abs", "nan", B);                            \
        expect(ts_abs_##T##_s((S){0, -(C)0}) == 0, "abs", "zero", B);                              \
        expect(same_##R(ts_abs_##T##_s((S){3 * big, big}), ts_abs_##T##_s((S){-big, 3 * big})), "abs", "swapped", B); \
        S power = ts_exp_##T##_s((S){-infinity, (C)NAN});                                          \
        expect(power.re == 0 && power.im == 0, "exp", "-infinity", B);                             \
        power = ts_exp_##T##_s((S){infinity, 0});                                                  \
        expect(power.re == infinity && power.im == 0, "exp", "infinity", B);                       \
    }
TYPES(VALUES)

int main(void) {
    make_page();
    fill_c64();
    fill_c128();
    arithmetic_c64();
    arithmetic_c128();
    memory_c64();
    memory_c128();
    conversions();
    values_c64();
    values_c128();
    printf("%s: %ld checks, %ld failures\n", TS_LEVEL, checks, failures);
    return failures != 0;
}
