/* Parallel loops, the default number of threads, and what a fork does to both. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "ts_engine.h"

static atomic_int default_threads = 1;

/* OpenMP's pool belongs to the thread that made it, and its workers do not survive a fork: the
   child's first thread would wait for them for ever. */
static atomic_bool forked;
static pthread_t forked_thread;

static _Thread_local int threads_here;

int ts_threads_here(void) { return threads_here; }

void ts_set_threads_here(int threads) { threads_here = threads; }

int ts_default_threads(void)
{
    return threads_here ? threads_here : atomic_load_explicit(&default_threads, memory_order_relaxed);
}

void ts_set_default_threads(int threads) { atomic_store(&default_threads, threads); }

int ts_available_processors(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : (int)online;
}

static void before_fork(void) { ts_workspace_before_fork(); }

static void in_parent(void) { ts_workspace_after_fork(false); }

static void in_child(void)
{
    ts_workspace_after_fork(true);
    forked_thread = pthread_self();
    atomic_store(&forked, true);
    ts_set_default_threads(1);
}

void ts_install_fork_handlers(void)
{
    static atomic_flag installed = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&installed))
        pthread_atfork(before_fork, in_parent, in_child);
}

#ifndef _OPENMP

bool ts_has_openmp(void) { return false; }

int ts_parallel(ts_body body, const void *env, int64_t lower, int64_t upper, int64_t grain,
                int threads)
{
    (void)grain, (void)threads;
    return upper > lower ? body(env, lower, upper) : TS_OK;
}

#else

typedef struct region {
    ts_body body;
    const void *env;
    int64_t lower, upper;
    int chunks;
    int status;
} region;

bool ts_has_openmp(void) { return true; }

static int64_t chunk_start(const region *r, int chunk)
{
    const int64_t size = (r->upper - r->lower) / r->chunks, rest = (r->upper - r->lower) % r->chunks;
    return r->lower + chunk * size + (chunk < rest ? chunk : rest);
}

static void *run_region(void *argument)
{
    region *r = argument;
    int status = TS_OK;
    /* A chunk is fixed by its number, so fewer threads than asked for change nothing but the time. */
#pragma omp parallel for num_threads(r->chunks) schedule(static, 1) reduction(max : status)
    for (int chunk = 0; chunk < r->chunks; chunk++) {
        const int got = r->body(r->env, chunk_start(r, chunk), chunk_start(r, chunk + 1));
        status = got > status ? got : status;
    }
    r->status = status;
    return NULL;
}

int ts_parallel(ts_body body, const void *env, int64_t lower, int64_t upper, int64_t grain,
                int threads)
{
    if (upper <= lower)
        return TS_OK;
    const int64_t most = grain > 1 ? (upper - lower) / grain : upper - lower;
    const int chunks = most < threads ? (int)most : threads;
    if (chunks <= 1 || omp_in_parallel())
        return body(env, lower, upper);

    region r = {body, env, lower, upper, chunks, TS_OK};
    if (atomic_load_explicit(&forked, memory_order_relaxed) &&
        pthread_equal(pthread_self(), forked_thread)) {
        pthread_t helper; /* has a pool of its own, with workers that exist */
        if (pthread_create(&helper, NULL, run_region, &r) != 0)
            return body(env, lower, upper);
        pthread_join(helper, NULL);
    } else {
        run_region(&r);
    }
    return r.status;
}

#endif
