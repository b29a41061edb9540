/* ts_parallel and the workspace, called as kernels call them. Prints nothing and exits 0 if right. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ts_engine.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { MOST = 100 };
static atomic_int seen[MOST], calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int smallest, running, most_at_once;

static int count(const void *env, int64_t lower, int64_t upper)
{
    pthread_mutex_lock(&lock);
    calls++;
    smallest = upper - lower < smallest ? (int)(upper - lower) : smallest;
    running++;
    most_at_once = running > most_at_once ? running : most_at_once;
    pthread_mutex_unlock(&lock);
    for (int64_t i = lower; i < upper; i++)
        seen[i]++;
    pthread_mutex_lock(&lock);
    running--;
    pthread_mutex_unlock(&lock);
    return env && lower <= 3 && 3 < upper ? TS_NO_MEMORY : TS_OK;
}

static int run(const void *env, int64_t lower, int64_t upper, int64_t grain, int threads)
{
    for (int i = 0; i < MOST; i++)
        seen[i] = 0;
    calls = 0;
    smallest = MOST;
    most_at_once = 0;
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
                    CHECK(most_at_once <= threads);
                    CHECK(calls <= 1 || threads > 1);
                    CHECK(calls <= 1 || smallest >= grain);
                }
    CHECK(run("fails", 0, 40, 1, 4) == TS_NO_MEMORY);
    for (int i = 0; i < 40; i++)
        CHECK(seen[i] == 1);

    run(NULL, 0, 0, 1, 1);
    CHECK(ts_parallel(nested, NULL, 0, MOST, 1, 2) == TS_OK);
    CHECK(calls == seen[0] && calls > 1); /* each inner loop was one chunk */
}

/* Many callers at once, each with a loop of its own. */

static int add(const void *env, int64_t lower, int64_t upper)
{
    atomic_int *sum = *(atomic_int *const *)env;
    for (int64_t i = lower; i < upper; i++)
        *sum += (int)i;
    return TS_OK;
}

static void *call_often(void *unused)
{
    for (int round = 0; round < 2000; round++) {
        atomic_int sum = 0, *at = &sum;
        CHECK(ts_parallel(add, &at, 0, 50, 1, 1 + round % 7) == TS_OK && sum == 49 * 25);
    }
    return unused;
}

static void many_callers(void)
{
    pthread_t callers[6];
    for (int k = 0; k < 6; k++)
        CHECK(pthread_create(&callers[k], NULL, call_often, NULL) == 0);
    for (int k = 0; k < 6; k++)
        pthread_join(callers[k], NULL);
}

/* A thread that gets stuck, as one that the system has set aside: what it has not begun is done by others. */

#ifndef _OPENMP
typedef struct stuck {
    pthread_t caller;
    bool of_caller; /* who gets stuck; the other waits until then */
    atomic_bool is_stuck;
    atomic_int done;
} stuck;

static int get_stuck(const void *env, int64_t lower, int64_t upper)
{
    stuck *s = *(stuck *const *)env;
    CHECK(upper - lower < 20); /* not all of its share */
    if (pthread_equal(pthread_self(), s->caller) == s->of_caller) {
        s->is_stuck = true;
        for (int waits = 0; s->done < MOST - (int)(upper - lower); waits++) {
            CHECK(waits < 50000);
            usleep(100);
        }
    }
    while (!s->is_stuck)
        usleep(100);
    s->done += (int)(upper - lower);
    return TS_OK;
}

static void stuck_threads(void)
{
    for (int of_caller = 0; of_caller < 2; of_caller++) {
        stuck s = {.caller = pthread_self(), .of_caller = of_caller}, *at = &s;
        CHECK(ts_parallel(get_stuck, &at, 0, MOST, 1, 2) == TS_OK && s.done == MOST);
    }
}

typedef struct slow {
    pthread_t caller;
    atomic_bool helped;
} slow;

static int take_long(const void *env, int64_t lower, int64_t upper)
{
    slow *s = *(slow *const *)env;
    if (!pthread_equal(pthread_self(), s->caller))
        s->helped = true;
    usleep(5000 * (unsigned)(upper - lower));
    return TS_OK;
}

/* Too few grains to wake somebody for, by their number. */
static void slow_grains(void)
{
    slow s = {.caller = pthread_self()}, *at = &s;
    for (int calls_left = 100; !s.helped; calls_left--) {
        CHECK(calls_left);
        usleep(5000); /* workers fall asleep */
        CHECK(ts_parallel(take_long, &at, 0, 4, 1, 2) == TS_OK);
    }
}

static int add_up(const void *env, int64_t lower, int64_t upper)
{
    **(atomic_int *const *)env += (int)(upper - lower);
    return TS_OK;
}

/* As a machine may have processors. */
static void more_threads_than_there_may_be(void)
{
    atomic_int sum = 0, *at = &sum;
    CHECK(ts_parallel(add_up, &at, 0, 3 * TS_MOST_THREADS, 1, 2 * TS_MOST_THREADS) == TS_OK);
    CHECK(sum == 3 * TS_MOST_THREADS);
}
#endif

/* What f prints, and how it ends, is the parent's to judge. With AddressSanitizer it does not run: a
   lock of its allocator that another thread holds stays locked in the child. */
static void in_child(void f(void))
{
#ifdef __SANITIZE_ADDRESS__
    (void)f;
#else
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        f();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
#endif
}

static void call_with_threads(void)
{
    CHECK(ts_default_threads() == 1); /* of a child */
    many_callers();
    in_child(many_callers);
}

#ifndef _OPENMP /* whose threads take signals, and which ends the process where it gets no thread */
/* A fault in a worker comes to the handler, as one in the caller does; other signals never do. */

static void handle(int number) { _exit(number == SIGFPE ? 0 : 1); }

static int fail_in_worker(const void *caller, int64_t lower, int64_t upper)
{
    (void)lower, (void)upper;
    static atomic_bool no_fault;
    if (pthread_equal(pthread_self(), *(const pthread_t *)caller)) {
        while (!no_fault)
            usleep(100);
        return TS_OK;
    }
    raise(SIGTERM); /* blocked */
    raise(SIGFPE);
    no_fault = true;
    return TS_OK;
}

static void fault(void)
{
    const pthread_t caller = pthread_self();
    signal(SIGTERM, handle);
    signal(SIGFPE, handle);
    ts_parallel(fail_in_worker, &caller, 0, MOST, 1, 2);
    _exit(1);
}

/* Where there are no more threads to have, or no memory for their stacks: fewer, and no other result. */

static void limit(int resource, rlim_t most)
{
    const struct rlimit limits = {most, most};
    CHECK(setrlimit(resource, &limits) == 0);
}

static void use_up_threads(void)
{
    CHECK(run(NULL, 0, MOST, 1, 3) == TS_OK); /* some that are there already */
    if (getuid() != 0) /* whom it does not bind */
        limit(RLIMIT_NPROC, 1);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ /* which need much of it */
    limit(RLIMIT_AS, (rlim_t)100 << 20);
#endif
    for (int threads = 64; threads <= TS_MOST_THREADS; threads *= 4) {
        CHECK(run(NULL, 0, MOST, 1, threads) == TS_OK);
        for (int i = 0; i < MOST; i++)
            CHECK(seen[i] == 1);
    }
}

#endif

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

static long page_faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
}

enum { NO, YES, NOBODY_KNOWS };

/* Whether the system was asked for large pages for an address. */
static int asked_for_large_pages(const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    char line[512];
    bool here = false;
    int asked = NOBODY_KNOWS;
    FILE *maps = fopen("/proc/self/smaps", "r");
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0 || !maps)
        return asked;
    while (fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            here = from <= at && at < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            asked = strstr(line, " hg") ? YES : NO;
    }
    fclose(maps);
    return asked;
}

/* Kept between calls, up to a limit; what is beyond is given back. */
static void large_workspace(void)
{
    const size_t kept = (size_t)200 << 20, beyond = (size_t)300 << 20;
    for (int round = 0; round < 3; round++) {
        char *piece = ts_workspace_acquire(kept);
        CHECK(piece && asked_for_large_pages(piece + kept / 2) != NO);
        const long before = page_faults();
        for (size_t k = 0; k < kept; k += 4096)
            piece[k] = 1;
        CHECK(round < 2 || page_faults() - before < 100);
        ts_workspace_release(piece);
    }
    char *other = ts_workspace_acquire(beyond);
    CHECK(other && asked_for_large_pages(other + beyond / 2) != NO);
    other[beyond - 1] = 1;
    ts_workspace_release(other);
    ts_free_workspace();
    char *small = ts_workspace_acquire(100);
    CHECK(small && asked_for_large_pages(small) != YES);
    ts_workspace_release(small);
}

/* In a child, to which those that slept in its parent may still seem to be there to be woken. */
static void keep_processors(void)
{
#ifdef __linux__
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    call_with_threads();
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after));
#endif
}

int main(void)
{
    ts_install_fork_handlers();
    in_child(call_with_threads); /* before there are threads, and after */
    parallel_loops();
    many_callers();
    in_child(call_with_threads);
    usleep(10000); /* workers fall asleep */
    in_child(keep_processors);
#ifndef _OPENMP
    stuck_threads();
    slow_grains();
    in_child(fault);
    in_child(use_up_threads);
    more_threads_than_there_may_be();
#endif
    workspace();
    large_workspace();
    return 0;
}
