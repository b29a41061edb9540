/* Every form of ts_simd.h against scalar code, lane by lane. Prints a line a failure; the last line
   says how many checks ran. Exits 1 if any failed. */
#include "ts_simd.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static long checks, failures;

static void expect(bool good, const char *form, const char *type, long lane) {
    checks++;
    if (good) return;
    if (failures++ < 40) printf("%s_%s lane %ld\n", form, type, lane);
}

/* ------------------------------------------------------------ data */

enum { N = 1024 };

static uint64_t next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

/* Bits at random, every third of them an extreme or a small number. `counts` holds 0 to 100, which
   every type can convert to every other. */
#define DATA(T, C, B, U, CU)                               \
    static C a_##T[N], b_##T[N], c_##T[N], counts_##T[N];  \
    static C make_##T(C special) {                         \
        uint64_t bits = next_random();                     \
        C value;                                           \
        memcpy(&value, &bits, sizeof value);               \
        switch (next_random() >> 40 & 7) {                 \
        case 0: return special;                            \
        case 1: return (C)(next_random() >> 58);           \
        case 2: return (C)(0 - (CU)(next_random() >> 58)); \
        default: return value;                             \
        }                                                  \
    }                                                      \
    static bool same_##T(C x, C y) { return memcmp(&x, &y, sizeof x) == 0 || (x != x && y != y); }
TS_ALL(DATA)

static double special_double(int i) {
    const double values[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 0.5, -1.5, 1e-310, 0x1p52, 2.5};
    return values[i % 10];
}

#define FILL_FLOAT(T, C, B, U, CU)                     \
    for (int i = 0; i < N; i++) {                      \
        a_##T[i] = make_##T((C)special_double(i));     \
        b_##T[i] = make_##T((C)special_double(i / 7)); \
        c_##T[i] = make_##T((C)special_double(i / 3)); \
        counts_##T[i] = (C)(i % 101);                  \
    }
#define FILL_INTEGER(T, C, B, U, CU)                \
    for (int i = 0; i < N; i++) {                   \
        a_##T[i] = make_##T((C)((CU)1 << (B - 1))); \
        b_##T[i] = make_##T((C)-1);                 \
        c_##T[i] = make_##T((C)B);                  \
        counts_##T[i] = (C)(i % 101);               \
    }

/* ------------------------------------------------------------ arithmetic, compares */

#define EACH(T, B) for (long i = 0; i + TS_LANES_##B <= N; i += TS_LANES_##B)
#define LANES(B) for (int l = 0; l < TS_LANES_##B; l++)
#define UNARY(T, B, name)                                                                     \
    EACH(T, B) {                                                                              \
        ts_##T v = ts_##name##_##T(ts_load_##T(a_##T + i));                                   \
        LANES(B) expect(same_##T(v[l], ts_##name##_##T##_s(a_##T[i + l])), #name, #T, i + l); \
    }
#define BINARY(T, B, name)                                                                         \
    EACH(T, B) {                                                                                   \
        ts_##T v = ts_##name##_##T(ts_load_##T(a_##T + i), ts_load_##T(b_##T + i));                \
        LANES(B)                                                                                   \
        expect(same_##T(v[l], ts_##name##_##T##_s(a_##T[i + l], b_##T[i + l])), #name, #T, i + l); \
    }
#define TERNARY(T, B, name)                                                                   \
    EACH(T, B) {                                                                              \
        ts_##T v = ts_##name##_##T(ts_load_##T(a_##T + i), ts_load_##T(b_##T + i),            \
                                   ts_load_##T(c_##T + i));                                   \
        LANES(B)                                                                              \
        expect(same_##T(v[l], ts_##name##_##T##_s(a_##T[i + l], b_##T[i + l], c_##T[i + l])), \
               #name, #T, i + l);                                                             \
    }
#define COMPARE(T, B, name)                                                                   \
    EACH(T, B) {                                                                              \
        ts_m##B m = ts_##name##_##T(ts_load_##T(a_##T + i), ts_load_##T(b_##T + i));          \
        ts_##T v = ts_select_##T(m, ts_load_##T(c_##T + i), ts_load_##T(counts_##T + i));     \
        LANES(B) {                                                                            \
            bool holds = ts_##name##_##T##_s(a_##T[i + l], b_##T[i + l]);                     \
            expect(same_##T(v[l], ts_select_##T##_s(holds, c_##T[i + l], counts_##T[i + l])), \
                   #name, #T, i + l);                                                         \
        }                                                                                     \
    }
#define REDUCE(T, C, B, name)                                              \
    EACH(T, B) {                                                           \
        C lanes[TS_LANES_##B];                                             \
        memcpy(lanes, a_##T + i, sizeof lanes);                            \
        for (int half = TS_LANES_##B / 2; half; half /= 2)                 \
            for (int l = 0; l < half; l++)                                 \
                lanes[l] = ts_##name##_##T##_s(lanes[l], lanes[l + half]); \
        C got = ts_reduce_##name##_##T(ts_load_##T(a_##T + i));            \
        expect(same_##T(got, lanes[0]), "reduce_" #name, #T, i);           \
    }
#define COMMON(T, C, B, U, CU)                                                                   \
    static void common_##T(void) {                                                               \
        UNARY(T, B, neg)                                                                         \
        UNARY(T, B, abs) BINARY(T, B, add) BINARY(T, B, sub) BINARY(T, B, mul) BINARY(T, B, min) \
        BINARY(T, B, max) COMPARE(T, B, lt) COMPARE(T, B, le) COMPARE(T, B, gt)                  \
        COMPARE(T, B, ge) COMPARE(T, B, eq) COMPARE(T, B, ne) REDUCE(T, C, B, add)               \
        REDUCE(T, C, B, mul) REDUCE(T, C, B, min) REDUCE(T, C, B, max)                           \
    }
TS_ALL(COMMON)

#define PREDICATE(T, B, name, right)                                                        \
    EACH(T, B) {                                                                            \
        ts_m##B m = ts_##name##_##T(ts_load_##T(a_##T + i));                                \
        ts_##T v = ts_select_##T(m, ts_set_##T(1), ts_set_##T(0));                          \
        LANES(B) {                                                                          \
            bool holds = ts_##name##_##T##_s(a_##T[i + l]);                                 \
            expect((v[l] == 1) == holds, #name, #T, i + l);                                 \
            expect(holds == (right(a_##T[i + l]) != 0), #name "_s", #T, i + l);             \
        }                                                                                   \
    }
#define FLOATS(T, C, B, U, CU)                                                   \
    static void own_##T(void) {                                                  \
        BINARY(T, B, div) TERNARY(T, B, fma) TERNARY(T, B, clamp)                \
        PREDICATE(T, B, isnan, isnan) PREDICATE(T, B, isinf, isinf)              \
        PREDICATE(T, B, isfinite, isfinite)                                      \
        UNARY(T, B, sqrt) UNARY(T, B, floor) UNARY(T, B, ceil) UNARY(T, B, rint) \
    }
TS_FLOATS(FLOATS)
/* Shifts also by all counts around the width. */
#define INTEGERS(T, C, B, U, CU)                                              \
    static void own_##T(void) {                                               \
        BINARY(T, B, and) BINARY(T, B, or) BINARY(T, B, xor) UNARY(T, B, not) \
        BINARY(T, B, shl) BINARY(T, B, shr)                                   \
        for (int i = 0; i < N; i++) b_##T[i] = (C)(i % (B + 2));              \
        BINARY(T, B, shl) BINARY(T, B, shr)                                   \
    }
TS_INTEGERS(INTEGERS)

/* The scalar forms against C of one precision up, or by definition. */
static void scalars(void) {
    expect(ts_min_f32_s(NAN, 1) != ts_min_f32_s(NAN, 1), "min", "nan first", 0);
    expect(ts_max_f64_s(1, NAN) != ts_max_f64_s(1, NAN), "max", "nan second", 0);
    expect(ts_fma_f64_s(3, 4, 5) == 17, "fma", "f64", 0);
    expect(ts_clamp_f32_s(7, -1, 2) == 2 && ts_clamp_f32_s(-7, -1, 2) == -1, "clamp", "f32", 0);
    expect(isnan(ts_clamp_f32_s(NAN, -1, 2)), "clamp", "nan", 0);
    expect(ts_add_i8_s(127, 1) == -128 && ts_neg_i8_s(-128) == -128, "wrap", "i8", 0);
    expect(ts_mul_i64_s(INT64_MAX, 2) == -2 && ts_abs_i64_s(INT64_MIN) == INT64_MIN, "wrap", "i64",
           0);
    expect(ts_shl_i32_s(1, 32) == 0 && ts_shl_i32_s(1, -1) == 0 && ts_shl_i32_s(3, 31) == INT32_MIN,
           "shl", "i32", 0);
    expect(ts_shr_i32_s(-5, 40) == -1 && ts_shr_i32_s(-5, 1) == -3 && ts_shr_u8_s(200, 9) == 0,
           "shr", "i32", 0);
    for (int a = -9; a <= 9; a++)
        for (int b = -4; b <= 4; b++) {
            int64_t q = b ? (int64_t)floor((double)a / b) : 0, r = b ? a - b * q : 0;
            expect(ts_floordiv_i64_s(a, b) == q && ts_mod_i64_s(a, b) == r, "floordiv", "i64", a);
            expect(ts_floordiv_i8_s((int8_t)a, (int8_t)b) == q &&
                       ts_mod_i8_s((int8_t)a, (int8_t)b) == r,
                   "floordiv", "i8", a);
        }
    expect(ts_floordiv_i64_s(INT64_MIN, -1) == INT64_MIN && ts_mod_i64_s(INT64_MIN, -1) == 0,
           "floordiv", "overflow", 0);
    expect(ts_floordiv_u8_s(200, 7) == 28 && ts_mod_u8_s(200, 7) == 4 && ts_mod_u8_s(9, 0) == 0,
           "floordiv", "u8", 0);
}

/* ------------------------------------------------------------ masks */

#define MASKS(T, C, B)                                                               \
    static void masks_##T(void) {                                                    \
        ts_##T one = ts_set_##T(1), zero = (ts_##T){0};                              \
        for (int k = 0; k <= TS_LANES_##B; k++) {                                    \
            ts_m##B m = ts_first_m##B(k);                                            \
            ts_m##B odd = ts_ne_##T(ts_and_##T(ts_iota_##T(), one), zero);           \
            C flags[TS_LANES_##B];                                                   \
            uint8_t bytes[TS_LANES_##B];                                             \
            ts_store_bool_m##B(bytes, m);                                            \
            expect(ts_any_m##B(m) == (k > 0), "any", #T, k);                         \
            expect(ts_all_m##B(m) == (k == TS_LANES_##B), "all", #T, k);             \
            LANES(B) expect(bytes[l] == (l < k), "first", #T, l);                    \
            ts_store_##T(flags, ts_select_##T(ts_load_bool_m##B(bytes), one, zero)); \
            LANES(B) expect(flags[l] == (l < k), "load_bool", #T, l);                \
            ts_store_##T(flags, ts_select_##T(ts_mand_m##B(m, odd), one, zero));     \
            LANES(B) expect(flags[l] == (l < k && l % 2), "mand", #T, l);            \
            ts_store_##T(flags, ts_select_##T(ts_mor_m##B(m, odd), one, zero));      \
            LANES(B) expect(flags[l] == (l < k || l % 2), "mor", #T, l);             \
            ts_store_##T(flags, ts_select_##T(ts_mxor_m##B(m, odd), one, zero));     \
            LANES(B) expect(flags[l] == ((l < k) != l % 2), "mxor", #T, l);          \
            ts_store_##T(flags, ts_select_##T(ts_mnot_m##B(m), one, zero));          \
            LANES(B) expect(flags[l] == (l >= k), "mnot", #T, l);                    \
        }                                                                            \
    }
MASKS(i8, int8_t, 8)
MASKS(i16, int16_t, 16)
MASKS(i32, int32_t, 32)
MASKS(i64, int64_t, 64)

#define MASK_PAIR(U, T)                                               \
    for (int k = 0; k <= TS_LANES_##T; k++) {                         \
        ts_m##T m = ts_first_m##T(k);                                 \
        ts_m##U lo = ts_lo_m##U##_m##T(m), hi = ts_hi_m##U##_m##T(m); \
        uint8_t bytes[TS_LANES_##T];                                  \
        ts_store_bool_m##U(bytes, lo);                                \
        ts_store_bool_m##U(bytes + TS_LANES_##U, hi);                 \
        LANES(T) expect(bytes[l] == (l < k), "lo and hi", "m" #T, l); \
        ts_store_bool_m##T(bytes, ts_narrow_m##T##_m##U(lo, hi));     \
        LANES(T) expect(bytes[l] == (l < k), "narrow", "m" #T, l);    \
    }

/* ------------------------------------------------------------ conversions */

#define CONVERT(U, CU, T, CT)                                                                    \
    for (long i = 0; i + TS_LANES_##T <= N; i += TS_LANES_##T) {                                 \
        ts_##U u = ts_convert_##U##_##T(ts_load_##T(counts_##T + i));                            \
        ts_##T t = ts_convert_##T##_##U(ts_load_##U(counts_##U + i));                            \
        for (int l = 0; l < TS_LANES_##T; l++)                                                   \
            expect(u[l] == counts_##U[i + l] && t[l] == counts_##T[i + l], "convert", #U "_" #T, \
                   l);                                                                           \
    }
/* Widened values also of arbitrary bits, where C defines them: from integers. */
#define PAIR(U, n, T, CT, widened)                                                          \
    for (long i = 0; i + 2 * (n) <= N; i += 2 * (n)) {                                      \
        ts_##T v = ts_load_##T(counts_##T + i);                                             \
        ts_##U lo = ts_lo_##U##_##T(v), hi = ts_hi_##U##_##T(v);                            \
        ts_##T back = ts_narrow_##T##_##U(lo, hi);                                          \
        for (int l = 0; l < (n); l++)                                                       \
            expect(lo[l] == counts_##U[i + l] && hi[l] == counts_##U[i + (n) + l], "lo hi", \
                   #U "_" #T, l);                                                           \
        for (int l = 0; l < 2 * (n); l++)                                                   \
            expect(back[l] == counts_##T[i + l], "narrow", #T "_" #U, l);                   \
    }
#define INTEGER_PAIR(U, n, T)                                                                  \
    for (long i = 0; i + 2 * (n) <= N; i += 2 * (n)) {                                         \
        ts_##T v = ts_load_##T(a_##T + i);                                                     \
        ts_##T back = ts_narrow_##T##_##U(ts_lo_##U##_##T(v), ts_hi_##U##_##T(v));             \
        for (int l = 0; l < 2 * (n); l++) {                                                    \
            expect(back[l] == a_##T[i + l], "round trip", #T "_" #U, l);                       \
            expect(l >= (n) || ts_lo_##U##_##T(v)[l] == a_##T[i + l], "extend", #U "_" #T, l); \
        }                                                                                      \
    }
#define LOAD_AS(S, CS, T, CT, n)                                                             \
    for (long i = 0; i + 2 * (n) <= N; i += (n)) {                                                \
        ts_##T v = ts_load_##S##_as_##T(counts_##S + i);                                          \
        CS out[n];                                                                                \
        ts_store_##T##_as_##S(out, v);                                                            \
        for (int l = 0; l < (n); l++)                                                             \
            expect(v[l] == counts_##T[i + l] && out[l] == counts_##S[i + l], "as", #S "_" #T, l); \
        CS apart[3 * (n)] = {0};                                                                  \
        v = ts_load_strided_##S##_as_##T(counts_##S + i, 2);                                      \
        ts_store_strided_##T##_as_##S(apart, 3, v);                                               \
        for (int l = 0; l < (n); l++)                                                             \
            expect(v[l] == counts_##T[i + 2 * l] && apart[3 * l] == counts_##S[i + 2 * l],        \
                   "strided as", #S "_" #T, l);                                                   \
    }

static void short_products(void) {
    static const int32_t ends[] = {-32768, -32767, -256, -1, 0, 1, 255, 32767};
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < N; j++) {
            ts_i32 v = ts_mul_short_i32(ts_set_i32(ends[i]), ts_set_i32(a_i16[j]));
            ts_i32 w = ts_mul_short_i32(ts_set_i32(a_i16[j]), ts_set_i32(ends[i]));
            expect(v[1] == ends[i] * a_i16[j] && w[1] == v[1], "mul_short", "i32", j);
        }
}

static void conversions(void) {
    short_products();
    TS_EQUAL(CONVERT)
    TS_PAIRS(PAIR)
    INTEGER_PAIR(i64, TS_LANES_64, i32)
    INTEGER_PAIR(u64, TS_LANES_64, u32) INTEGER_PAIR(i32, TS_LANES_32, i16)
    INTEGER_PAIR(u32, TS_LANES_32, u16) INTEGER_PAIR(i16, TS_LANES_16, i8)
    INTEGER_PAIR(u16, TS_LANES_16, u8) TS_LOADS(LOAD_AS) MASK_PAIR(64, 32) MASK_PAIR(32, 16)
    MASK_PAIR(16, 8)
}

/* ------------------------------------------------------------ lanes and memory */

/* Shifts by constants have instructions of their own. */
#define SHIFTED(T, B, k)                                                         \
    if (k <= TS_LANES_##B) {                                                     \
        ts_##T v = ts_shift_##T(prev, cur, k);                                   \
        LANES(B) expect(same_##T(v[l], a_##T[1 + k + l]), "shift", #T " by " #k, l); \
    }

#define LANE_FORMS(T, C, B, U, CU)                                                             \
    static void lanes_##T(void) {                                                              \
        ts_##T prev = ts_load_##T(a_##T + 1), cur = ts_load_##T(a_##T + 1 + TS_LANES_##B);     \
        LANES(B)                                                                               \
        expect(ts_iota_##T()[l] == (C)l && ts_lane_##T(ts_set_##T(7), l) == 7, "iota", #T, l); \
        for (int k = 0; k <= TS_LANES_##B; k++) {                                              \
            ts_##T v = ts_shift_##T(prev, cur, k);                                             \
            LANES(B) expect(same_##T(v[l], a_##T[1 + k + l]), "shift", #T, k);                 \
        }                                                                                      \
        SHIFTED(T, B, 0) SHIFTED(T, B, 1) SHIFTED(T, B, 2) SHIFTED(T, B, 3) SHIFTED(T, B, 4)   \
        SHIFTED(T, B, 5) SHIFTED(T, B, 6) SHIFTED(T, B, 7) SHIFTED(T, B, 8) SHIFTED(T, B, 12)  \
        SHIFTED(T, B, 15) SHIFTED(T, B, 16) SHIFTED(T, B, 28)                                  \
        for (int stride = -2; stride <= 3; stride++) {                                         \
            C out[8 * TS_LANES_##B] = {0}, *middle = out + 3 * TS_LANES_##B;                   \
            ts_##T v = ts_load_strided_##T(a_##T + N / 2, stride);                             \
            LANES(B) expect(same_##T(v[l], a_##T[N / 2 + l * stride]), "load_strided", #T, l); \
            if (stride == 0) continue;                                                         \
            ts_store_strided_##T(middle, stride, v);                                           \
            LANES(B) expect(same_##T(middle[l * stride], v[l]), "store_strided", #T, l);       \
            long touched = 0;                                                                  \
            for (int j = 0; j < 8 * TS_LANES_##B; j++) touched += !same_##T(out[j], 0);        \
            for (int l = 0; l < TS_LANES_##B; l++) touched -= !same_##T(v[l], 0);              \
            expect(touched == 0, "store_strided", #T, -1);                                     \
            for (int k = 0; k <= TS_LANES_##B; k++) {                                          \
                C masked[8 * TS_LANES_##B] = {0}, *at = masked + 3 * TS_LANES_##B;             \
                ts_m##B rest = ts_mnot_m##B(ts_first_m##B(k));                                 \
                ts_##T w = ts_load_strided_mask_##T(a_##T + N / 2, stride, rest);              \
                LANES(B) expect(same_##T(w[l], l < k ? 0 : v[l]), "load_strided_mask", #T, l); \
                ts_store_strided_mask_##T(at, stride, v, rest);                                \
                LANES(B) expect(same_##T(at[l * stride], w[l]), "store_strided_mask", #T, l);  \
            }                                                                                  \
        }                                                                                      \
        _Alignas(64) C aligned[TS_LANES_##B];                                                  \
        ts_stream_##T(aligned, prev);                                                          \
        ts_stream_fence();                                                                     \
        LANES(B) expect(same_##T(aligned[l], prev[l]), "stream", #T, l);                       \
    }
TS_ALL(LANE_FORMS)

#define GATHER_32(T, C, B, U, CU)                                                                \
    static void gather_##T(void) {                                                               \
        int32_t at[TS_LANES_32];                                                                 \
        for (int l = 0; l < TS_LANES_32; l++) at[l] = (int32_t)(next_random() >> 32) % (N / 2);  \
        ts_i32 i = ts_load_i32(at);                                                              \
        const C *middle = a_##T + N / 2;                                                         \
        ts_i64 lo = ts_lo_i64_i32(i), hi = ts_hi_i64_i32(i);                                     \
        ts_##T v = ts_gather_##T##_i32(middle, i), w = ts_gather_##T##_i64(middle, lo, hi);      \
        LANES(32)                                                                                \
        expect(same_##T(v[l], middle[at[l]]) && same_##T(w[l], middle[at[l]]), "gather", #T, l); \
        i[0] = INT32_MAX / 2; /* masked out, so not read */                                      \
        lo[0] = INT64_MAX / 64;                                                                  \
        ts_m32 m = ts_mnot_m32(ts_first_m32(1));                                                 \
        v = ts_gather_mask_##T##_i32(middle, i, m);                                              \
        w = ts_gather_mask_##T##_i64(middle, lo, hi, m);                                         \
        LANES(32) expect(same_##T(v[l], l ? middle[at[l]] : 0), "gather_mask_i32", #T, l);       \
        LANES(32) expect(same_##T(w[l], l ? middle[at[l]] : 0), "gather_mask_i64", #T, l);       \
    }
#define GATHER_64(T, C, B, U, CU)                                                         \
    static void gather_##T(void) {                                                        \
        int64_t at[TS_LANES_64];                                                          \
        for (int l = 0; l < TS_LANES_64; l++) at[l] = (int64_t)(next_random() >> 32) % N; \
        ts_i64 i = ts_load_i64(at);                                                       \
        ts_##T v = ts_gather_##T##_i64(a_##T, i);                                         \
        LANES(64) expect(same_##T(v[l], a_##T[at[l]]), "gather", #T, l);                  \
        i[0] = INT64_MAX / 64;                                                            \
        v = ts_gather_mask_##T##_i64(a_##T, i, ts_mnot_m64(ts_first_m64(1)));             \
        LANES(64) expect(same_##T(v[l], l ? a_##T[at[l]] : 0), "gather_mask", #T, l);     \
    }
GATHER_32(f32, float, 32, u32, uint32_t)
GATHER_32(i32, int32_t, 32, u32, uint32_t)
GATHER_32(u32, uint32_t, 32, u32, uint32_t)
GATHER_64(f64, double, 64, u64, uint64_t)
GATHER_64(i64, int64_t, 64, u64, uint64_t)
GATHER_64(u64, uint64_t, 64, u64, uint64_t)

/* One page that may be touched, between two that may not. */
static char *page;
static long page_size;

static void make_page(void) {
    page_size = sysconf(_SC_PAGESIZE);
    char *all = mmap(NULL, (size_t)(3 * page_size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page = all + page_size;
    if (all == MAP_FAILED || mprotect(page, (size_t)page_size, PROT_READ | PROT_WRITE)) {
        perror("mmap");
        _exit(2);
    }
}

/* Whether the bytes from `start` to the page's end, `length` aside, are still 0xA5. */
static bool untouched(const void *start, size_t length) {
    const unsigned char *p = (const unsigned char *)page, *s = start;
    for (long i = 0; i < page_size; i++)
        if ((p + i < s || p + i >= s + length) && p[i] != 0xA5) return false;
    return true;
}

/* k elements at the end of the page and at its start; then stores, which leave the rest alone. */
#define EDGES(T, C, B, U, CU)                                                                      \
    static void edges_##T(void) {                                                                  \
        for (int k = 0; k <= TS_LANES_##B; k++) {                                                  \
            size_t bytes = (size_t)k * sizeof(C);                                                  \
            C *end = (C *)(void *)(page + page_size - bytes), *middle = (C *)(void *)(page + 128); \
            C *before = (C *)(void *)(page - bytes);                                               \
            memset(page, 0xA5, (size_t)page_size);                                                 \
            memcpy(end, b_##T, bytes);                                                             \
            memcpy(page, b_##T, sizeof(C) * TS_LANES_##B);                                         \
            ts_##T first = ts_load_first_##T(end, k),                                              \
                   masked = ts_load_mask_##T(end, ts_first_m##B(k));                               \
            ts_##T strided = ts_load_strided_first_##T(end, 1, k);                                 \
            ts_##T rest = ts_load_mask_##T(before, ts_mnot_m##B(ts_first_m##B(k)));                \
            LANES(B) {                                                                             \
                C expected = l < k ? b_##T[l] : 0;                                                 \
                expect(same_##T(first[l], expected), "load_first", #T, k);                         \
                expect(same_##T(masked[l], expected), "load_mask", #T, k);                         \
                expect(same_##T(strided[l], expected), "load_strided_first", #T, k);               \
                expect(same_##T(rest[l], l < k ? 0 : b_##T[l - k]), "load_mask rest", #T, k);      \
            }                                                                                      \
            ts_##T v = ts_load_##T(c_##T);                                                         \
            C *const places[] = {end, middle};                                                     \
            for (int j = 0; j < 2; j++) {                                                          \
                memset(page, 0xA5, (size_t)page_size);                                             \
                ts_store_first_##T(places[j], v, k);                                               \
                expect(untouched(places[j], bytes) && !memcmp(places[j], c_##T, bytes),            \
                       "store_first", #T, k);                                                      \
                memset(page, 0xA5, (size_t)page_size);                                             \
                ts_store_mask_##T(places[j], v, ts_first_m##B(k));                                 \
                expect(untouched(places[j], bytes) && !memcmp(places[j], c_##T, bytes),            \
                       "store_mask", #T, k);                                                       \
                memset(page, 0xA5, (size_t)page_size);                                             \
                ts_store_strided_first_##T(places[j], 1, v, k);                                    \
                expect(untouched(places[j], bytes) && !memcmp(places[j], c_##T, bytes),            \
                       "store_strided_first", #T, k);                                              \
            }                                                                                      \
        }                                                                                          \
    }
TS_ALL(EDGES)

#define EDGES_AS(S, CS, T, CT, n)                                                     \
    for (int k = 0; k <= (n); k++) {                                                       \
        CS *end = (CS *)(void *)(page + page_size) - k;                                    \
        size_t bytes = (size_t)k * sizeof(CS);                                             \
        memset(page, 0xA5, (size_t)page_size);                                             \
        memcpy(end, counts_##S, bytes);                                                    \
        ts_##T v = ts_load_first_##S##_as_##T(end, k);                                     \
        for (int l = 0; l < (n); l++)                                                      \
            expect(v[l] == (l < k ? counts_##T[l] : 0), "load_first_as", #S "_" #T, k);    \
        memset(page, 0xA5, (size_t)page_size);                                             \
        ts_store_first_##T##_as_##S(end, ts_load_##T(counts_##T), k);                      \
        expect(untouched(end, bytes) && !memcmp(end, counts_##S, bytes), "store_first_as", \
               #S "_" #T, k);                                                              \
    }
#define EDGES_BOOL(B)                                                                            \
    for (int k = 0; k <= TS_LANES_##B; k++) {                                                    \
        uint8_t *end = (uint8_t *)page + page_size - k, all[TS_LANES_##B];                       \
        memset(page, 0xA5, (size_t)page_size);                                                   \
        ts_store_first_bool_m##B(end, ts_first_m##B(1), k);                                      \
        expect(untouched(end, (size_t)k) && (k == 0 || end[0] == 1), "store_first_bool", #B, k); \
        ts_store_bool_m##B(all, ts_load_first_bool_m##B(end, k));                                \
        LANES(B) expect(all[l] == (k > 0 && l == 0), "load_first_bool", #B, k);                  \
    }
#define EDGES_HALF(S)                                                          \
    for (int k = 0; k <= TS_LANES_32; k++) {                                   \
        uint16_t *end = (uint16_t *)(void *)(page + page_size) - k;            \
        memset(page, 0xA5, (size_t)page_size);                                 \
        ts_store_first_f32_as_##S(end, ts_iota_f32(), k);                      \
        expect(untouched(end, 2 * (size_t)k), "store_first", #S, k);           \
        ts_f32 v = ts_load_first_##S##_as_f32(end, k);                         \
        LANES(32) expect(v[l] == (l < k ? (float)l : 0), "load_first", #S, k); \
    }
static void edges(void) {
    TS_LOADS(EDGES_AS)
    TS_WIDTHS(EDGES_BOOL)
    EDGES_HALF(f16)
    EDGES_HALF(bf16)
}

#define RUN(T, C, B, U, CU) common_##T(), own_##T(), lanes_##T(), edges_##T();

int main(void) {
    TS_FLOATS(FILL_FLOAT)
    TS_INTEGERS(FILL_INTEGER)
    make_page();
    scalars();
    conversions();
    gather_f32(), gather_i32(), gather_u32(), gather_f64(), gather_i64(), gather_u64();
    masks_i8(), masks_i16(), masks_i32(), masks_i64();
    edges();
    TS_ALL(RUN)
    printf("%s: %ld checks, %ld failures\n", TS_LEVEL, checks, failures);
    return failures != 0;
}
