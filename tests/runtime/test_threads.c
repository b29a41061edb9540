/* ts_parallel and the workspace, called as kernels call them. Prints nothing and exits 0 if right. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ts_abi.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { MOST = 100 };
static int seen[MOST], calls, smallest, in_region;

static int count(const void *env, int64_t lower, int64_t upper)
{
#pragma omp critical
    {
        calls++;
        in_region |= omp_in_parallel();
        smallest = upper - lower < smallest ? (int)(upper - lower) : smallest;
    }
    for (int64_t i = lower; i < upper; i++) {
#pragma omp atomic
        seen[i]++;
    }
    return env && lower <= 3 && 3 < upper ? TS_NO_MEMORY : TS_OK;
}

static int run(const void *env, int64_t lower, int64_t upper, int64_t grain, int threads)
{
    memset(seen, 0, sizeof seen);
    calls = in_region = 0;
    smallest = MOST;
    return ts_parallel(count, env, lower, upper, grain, threads);
}

static int nested(const void *env, int64_t lower, int64_t upper)
{
    (void)env, (void)lower, (void)upper;
    return ts_parallel(count, NULL, 0, MOST, 1, 4);
}

static void parallel_loops(void)
{
    for (int lower = 0; lower < 3; lower++)
        for (int upper = 0; upper <= 20; upper++)
            for (int grain = 0; grain < 8; grain++)
                for (int threads = 1; threads <= 5; threads++) {
                    CHECK(run(NULL, lower, upper, grain, threads) == TS_OK);
                    for (int i = 0; i < MOST; i++)
                        CHECK(seen[i] == (i >= lower && i < upper));
                    CHECK(calls <= threads);
                    CHECK(calls > 1 || !in_region); /* one chunk: outside any OpenMP construct */
                    CHECK(calls <= 1 || smallest >= grain);
                }
    CHECK(run("fails", 0, 40, 1, 4) == TS_NO_MEMORY);
    CHECK(calls == 4);

    calls = 0;
    memset(seen, 0, sizeof seen);
    CHECK(ts_parallel(nested, NULL, 0, 2, 1, 2) == TS_OK);
    CHECK(calls == 2 && seen[0] == 2); /* each inner loop was one chunk */
}

static void workspace(void)
{
    for (int round = 0; round < 3; round++) { /* first beside the arena, then in it */
        char *a = ts_workspace_acquire(0), *b = ts_workspace_acquire(1000);
        char *c = ts_workspace_acquire((size_t)100 << 20);
        CHECK(a && b && c && a != b);
        CHECK((uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0 && (uintptr_t)c % 64 == 0);
        memset(b, 1, 1000);
        c[0] = c[((size_t)100 << 20) - 1] = 2;
        CHECK(b[0] == 1 && b[999] == 1 && c[0] == 2);
        ts_workspace_release(c);
        CHECK(!ts_workspace_acquire(SIZE_MAX) && !ts_workspace_acquire(SIZE_MAX / 4));
        ts_workspace_release(b);
        ts_workspace_release(a);
    }
    char *first = ts_workspace_acquire(5000);
    ts_workspace_release(first);
    char *second = ts_workspace_acquire(5000);
    CHECK(first == second); /* kept between calls */
    ts_workspace_release(second);
}

int main(void)
{
    parallel_loops();
    workspace();
    return 0;
}
