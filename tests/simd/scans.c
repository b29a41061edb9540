/* Every form of ts_scan.h against scalar code, lane by lane. Prints as forms.c does. */
#include "ts_scan.h"

#include <math.h>
#include <stdio.h>

static long checks, failures;

static void expect(bool good, const char *form, const char *type, long lane) {
    checks++;
    if (!good && failures++ < 40) printf("%s_%s lane %ld\n", form, type, lane);
}

static uint64_t next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

/* Small whole numbers, so that floats are exact in any order; every eighth vector has a special. */
#define SCAN(T, C, B, op, special)                                                             \
    for (int round = 0; round < 400; round++) {                                                \
        C x[TS_LANES_##B], want;                                                               \
        for (int l = 0; l < TS_LANES_##B; l++) x[l] = (C)(next_random() >> 62);                \
        if (round % 8 == 0) x[next_random() >> 32 & (TS_LANES_##B - 1)] = (C)(special);        \
        ts_##T got = ts_scan_##op##_##T(ts_load_##T(x)), last = ts_last_##T(ts_load_##T(x));   \
        ts_##T back = ts_scan_back_##op##_##T(ts_load_##T(x));                                 \
        ts_##T start = ts_start_##T(ts_load_##T(x));                                           \
        for (int l = 0; l < TS_LANES_##B; l++) {                                               \
            want = l ? ts_##op##_##T##_s(want, x[l]) : x[0];                                   \
            C lane = got[l], end = last[l], x_end = x[TS_LANES_##B - 1];                       \
            expect(lane == want || (lane != lane && want != want), "scan_" #op, #T, l);        \
            expect(end == x_end || (end != end && x_end != x_end), "last", #T, l);             \
            expect(l || memcmp(&lane, &want, sizeof lane) == 0, "first of scan_" #op, #T, l);  \
        }                                                                                      \
        for (int l = TS_LANES_##B - 1; l >= 0; l--) {                                          \
            want = l < TS_LANES_##B - 1 ? ts_##op##_##T##_s(want, x[l]) : x[l];                \
            C lane = back[l], first = start[l];                                                \
            expect(lane == want || (lane != lane && want != want), "scan_back_" #op, #T, l);   \
            expect(first == x[0] || (first != first && x[0] != x[0]), "start", #T, l);         \
        }                                                                                      \
    }
#define SCANS(T, C, B, special)                                 \
    SCAN(T, C, B, add, special) SCAN(T, C, B, mul, special)     \
    SCAN(T, C, B, min, special) SCAN(T, C, B, max, special)

int main(void) {
    const float specials_f32[] = {NAN, INFINITY, -INFINITY, -0.0f};
    const double specials_f64[] = {NAN, INFINITY, -INFINITY, -0.0};
    for (int k = 0; k < 4; k++) {
        SCANS(f32, float, 32, specials_f32[k])
        SCANS(f64, double, 64, specials_f64[k])
    }
    SCANS(i32, int32_t, 32, INT32_MIN)
    SCANS(i64, int64_t, 64, INT64_MIN)
    SCANS(u32, uint32_t, 32, UINT32_MAX)
    SCANS(u64, uint64_t, 64, UINT64_MAX)
    printf("%s: %ld checks, %ld failures\n", TS_LEVEL, checks, failures);
    return failures != 0;
}
