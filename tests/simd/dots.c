/* Every form of ts_dot.h against scalar code, lane by lane, those of features where they are. Prints
   as forms.c does. */
#include "ts_dot.h"
#include "ts_scalar.h"

#include <stdio.h>

static long checks, failures;

static void expect(bool good, const char *form, long lane) {
    checks++;
    if (!good && failures++ < 40) printf("%s lane %ld\n", form, lane);
}

static uint64_t next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

/* Any byte; every other round only those that make the largest products. */
static uint8_t byte(int round) {
    static const uint8_t extremes[] = {0, 127, 128, 255};
    uint8_t any = (uint8_t)(next_random() >> 40);
    return round % 2 ? any : extremes[any % 4];
}

#define BYTES(T, C, S, D, name, form)                                                         \
    static void name(int round) {                                                             \
        C a[TS_LANES_8];                                                                      \
        D b[TS_LANES_8];                                                                      \
        int32_t c[TS_LANES_32], got[TS_LANES_32];                                             \
        for (int l = 0; l < TS_LANES_8; l++) a[l] = (C)byte(round), b[l] = (D)byte(round);    \
        for (int l = 0; l < TS_LANES_32; l++) c[l] = (int32_t)(next_random() >> 20);          \
        ts_store_i32(got, form(ts_load_i32(c), ts_load_##T(a), ts_load_##S(b)));              \
        for (int l = 0; l < TS_LANES_32; l++) {                                               \
            uint32_t want = (uint32_t)c[l];                                                   \
            for (int k = 0; k < 4; k++) want += (uint32_t)((int)a[4 * l + k] * b[4 * l + k]); \
            expect(got[l] == (int32_t)want, #form, l);                                        \
        }                                                                                     \
    }
BYTES(u8, uint8_t, i8, int8_t, mixed, ts_dot_u8_i8)
BYTES(i8, int8_t, i8, int8_t, signed_, ts_dot_i8_i8)
#ifdef TS_V4
TS_WITH("avx512vnni") BYTES(u8, uint8_t, i8, int8_t, mixed_vnni, ts_dot_u8_i8_avx512vnni)
TS_WITH("avx512vnni") BYTES(i8, int8_t, i8, int8_t, signed_vnni, ts_dot_i8_i8_avx512vnni)
#endif

/* Numbers whose sums and products are far from the smallest ones; an infinity or a NaN now and then. */
static uint16_t half(int round) {
    if (round % 16 == 0 && next_random() >> 60 == 0) return next_random() >> 63 ? 0x7F80 : 0xFFC0;
    return (uint16_t)((next_random() >> 48 & 0x80FF) | (120 + (next_random() >> 60)) << 7);
}

#define HALVES(name, form)                                                                    \
    static void name(int round) {                                                             \
        uint16_t a[TS_LANES_16], b[TS_LANES_16];                                              \
        float c[TS_LANES_32], got[TS_LANES_32];                                               \
        for (int l = 0; l < TS_LANES_16; l++) a[l] = half(round), b[l] = half(round);         \
        for (int l = 0; l < TS_LANES_32; l++) c[l] = (float)(next_random() >> 44) - 0x80000;  \
        ts_store_f32(got, form(ts_load_f32(c), ts_load_u16(a), ts_load_u16(b)));              \
        for (int l = 0; l < TS_LANES_32; l++) {                                               \
            float want = c[l];                                                                \
            for (int k = 1; k >= 0; k--)                                                      \
                want = ts_fma_f32_s(ts_convert_f32_bf16_s(a[2 * l + k]),                      \
                                    ts_convert_f32_bf16_s(b[2 * l + k]), want);               \
            expect(memcmp(&got[l], &want, 4) == 0 || (got[l] != got[l] && want != want),      \
                   #form, l);                                                                 \
        }                                                                                     \
    }
HALVES(halves, ts_dot_bf16)
#ifdef TS_V4
TS_WITH("avx512bf16") HALVES(halves_bf16, ts_dot_bf16_avx512bf16)
#endif

#define GROUPS(n, T, C, S, stride)                                                   \
    for (int l = 0; l < TS_LANES_##S; l++) {                                         \
        C from[3 * n];                                                               \
        for (int k = 0; k < 3 * n; k++) from[k] = (C)(7 * k + 1);                    \
        expect(ts_lane_##T(ts_group##n##_##T(from, stride), l) == from[l % n * stride], \
               "ts_group" #n "_" #T, l);                                             \
    }

int main(void) {
    for (int round = 0; round < 2000; round++) {
        mixed(round);
        signed_(round);
        halves(round);
#ifdef TS_V4
        if (__builtin_cpu_supports("avx512vnni")) mixed_vnni(round), signed_vnni(round);
        if (__builtin_cpu_supports("avx512bf16")) halves_bf16(round);
#endif
    }
    GROUPS(4, u8, uint8_t, 8, 1) GROUPS(4, i8, int8_t, 8, 3) GROUPS(2, u16, uint16_t, 16, 1)
    GROUPS(2, u16, uint16_t, 16, 2)
    printf("%s: %ld checks, %ld failures\n", TS_LEVEL, checks, failures);
    return failures != 0;
}
