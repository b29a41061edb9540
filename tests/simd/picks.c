/* Loads of every second, third and fourth element, and with strides that a compiler does not know,
   lane by lane, of arrays that end with a page: what is beyond may not be touched. Prints as forms.c does. */
#include "ts_abi.h"
#include "ts_simd.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static long checks, failures;

static void expect(bool good, const char *form, long lane) {
    checks++;
    if (!good && failures++ < 40) printf("%s lane %ld\n", form, lane);
}

static char *last_of_page(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static char *start;
    if (!start) {
        start = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(start + page, page, PROT_NONE);
    }
    return start + page - bytes;
}

/* After a page that may not be touched. */
static char *first_of_page(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static char *start;
    if (!start) {
        start = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(start, page, PROT_NONE);
    }
    return start + page;
}

#define STEP(T, C, B, step)                                                       \
    {                                                                             \
        const int count = (step) * (TS_LANES_##B - 1) + 1;                        \
        C *const p = (C *)last_of_page((size_t)count * sizeof(C)), got[64];       \
        for (int i = 0; i < count; i++) p[i] = (C)(i + 1);                        \
        ts_store_##T(got, ts_load_strided_##T(p, step));                          \
        for (int i = 0; i < TS_LANES_##B; i++)                                    \
            expect(got[i] == p[i * (step)], "ts_load_strided_" #T " " #step, i);  \
    }
static volatile int64_t unknown; /* so that no compiler knows it */
#define UNKNOWN(T, C, B)                                                                    \
    for (int64_t step = -5; step <= 9; step++) {                                            \
        const int64_t far = step * (TS_LANES_##B - 1), count = (far < 0 ? -far : far) + 1;  \
        C *const start = step < 0 ? (C *)first_of_page()                                    \
                                  : (C *)last_of_page((size_t)count * sizeof(C));           \
        C *const p = far < 0 ? start - far : start, got[64];                                \
        for (int64_t i = 0; i < count; i++) start[i] = (C)(i + 1);                          \
        unknown = step;                                                                     \
        ts_store_##T(got, ts_load_strided_##T(p, unknown));                                 \
        for (int i = 0; i < TS_LANES_##B; i++)                                              \
            expect(got[i] == p[i * step], "ts_load_strided_" #T " of any step", i);         \
    }
/* The first k, which end the page, and under a mask those from k on, which begin a page after none. */
#define SOME(T, C, B, step)                                                                    \
    for (int k = 1; k <= TS_LANES_##B; k++) {                                                  \
        const int count = (step) * (k - 1) + 1, all = (step) * (TS_LANES_##B - 1) + 1;         \
        C *p = (C *)last_of_page((size_t)count * sizeof(C)), got[64];                          \
        for (int i = 0; i < count; i++) p[i] = (C)(i + 1);                                     \
        ts_store_##T(got, ts_load_strided_first_##T(p, step, k));                              \
        for (int i = 0; i < TS_LANES_##B; i++)                                                 \
            expect(got[i] == (i < k ? p[i * (step)] : 0), "first " #T " " #step, i);           \
        ts_store_##T(got, ts_load_strided_mask_##T(p, step, ts_first_m##B(k)));                \
        for (int i = 0; i < TS_LANES_##B; i++)                                                 \
            expect(got[i] == (i < k ? p[i * (step)] : 0), "mask " #T " " #step, i);            \
        p = (C *)first_of_page() - (step) * k;                                                 \
        for (int i = (step) * k; i < all; i++) p[i] = (C)(i + 1);                              \
        ts_store_##T(got, ts_load_strided_mask_##T(p, step, ts_mnot_m##B(ts_first_m##B(k))));  \
        for (int i = 0; i < TS_LANES_##B; i++)                                                 \
            expect(got[i] == (i < k ? 0 : p[i * (step)]), "rest " #T " " #step, i);            \
    }
#define STEPS(T, C, B, U, CU) \
    STEP(T, C, B, 2) STEP(T, C, B, 3) STEP(T, C, B, 4) STEP(T, C, B, 7) SOME(T, C, B, 2) SOME(T, C, B, 3) \
    UNKNOWN(T, C, B)

int main(void) {
    TS_ALL(STEPS)
    printf("%s: %ld checks, %ld failures\n", TS_LEVEL, checks, failures);
    return failures != 0;
}
