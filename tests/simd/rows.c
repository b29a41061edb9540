/* The rows of ts_stream.h: they store what plain stores would, and nothing else. Prints a line a
   failure; the last line says how many checks ran. Exits 1 if any failed. */
#include "ts_stream.h"

#include <stdio.h>

enum { VECTORS = 14, ROOM = (VECTORS + 3) * 64 };

static long checks, failures;

static void expect(bool good, const char *type, int64_t shift, int64_t vectors) {
    checks++;
    if (!good && failures++ < 40)
        printf("row_%s, %d bytes off, %d vectors\n", type, (int)shift, (int)vectors);
}

/* Two rows at once, the second late, as in an unrolled group: at each offset from a line, of each length. */
#define ROWS(T, C, B)                                                                     \
    static void rows_##T(void) {                                                          \
        C data[2][VECTORS * TS_LANES_##B];                                                \
        for (int64_t i = 0; i < VECTORS * TS_LANES_##B; i++)                              \
            data[0][i] = (C)(i + 1), data[1][i] = (C)(i + 1000);                          \
        for (int64_t shift = 0; shift < TS_BYTES; shift += (int64_t)sizeof(C))            \
            for (int64_t count = 0; count <= VECTORS; count++) {                          \
                _Alignas(64) unsigned char got[2][ROOM], wanted[2][ROOM];                 \
                memset(got, 0xA5, sizeof got);                                            \
                memset(wanted, 0xA5, sizeof wanted);                                      \
                const int64_t other = (shift * 3 + 8) % TS_BYTES;                         \
                memcpy(wanted[0] + 64 + shift, data[0], (size_t)(count * TS_BYTES));      \
                memcpy(wanted[1] + 64 + other, data[1], (size_t)(count * TS_BYTES));      \
                ts_row_##T a = ts_row_begin_##T((C *)(void *)(got[0] + 64 + shift), 0);    \
                ts_row_##T b = ts_row_begin_##T((C *)(void *)(got[1] + 64 + other), 1);    \
                for (int64_t k = 0; k < count; k++) {                                     \
                    ts_row_push_##T(&a, ts_load_##T(&data[0][k * TS_LANES_##B]));         \
                    ts_row_push_##T(&b, ts_load_##T(&data[1][k * TS_LANES_##B]));         \
                }                                                                         \
                ts_row_end_##T(&a);                                                       \
                ts_row_end_##T(&b);                                                       \
                ts_stream_fence();                                                        \
                expect(memcmp(got[0], wanted[0], sizeof got[0]) == 0, #T, shift, count);  \
                expect(memcmp(got[1], wanted[1], sizeof got[1]) == 0, #T, other, count);  \
            }                                                                             \
    }
ROWS(f32, float, 32)
ROWS(i32, int32_t, 32)
ROWS(u32, uint32_t, 32)
ROWS(f64, double, 64)
ROWS(i64, int64_t, 64)
ROWS(u64, uint64_t, 64)

int main(void) {
    rows_f32(), rows_i32(), rows_u32(), rows_f64(), rows_i64(), rows_u64();
    printf("%s: %ld checks, %ld failures\n", TS_LEVEL, checks, failures);
    return failures != 0;
}
