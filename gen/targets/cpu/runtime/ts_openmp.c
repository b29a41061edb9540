/* Parallel loops by OpenMP, in extensions that are built so (-Dthreads=openmp). */
#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "ts_engine.h"

const char ts_threads_by[] = "openmp";

typedef struct region {
    ts_body body;
    const void *env;
    int64_t lower, upper;
    int chunks;
    int status;
} region;

/* OpenMP's pool belongs to the thread that made it, and its workers do not survive a fork: the
   child's first thread would wait for them for ever. */
static atomic_bool forked;
static pthread_t forked_thread;

static int64_t start_of_chunk(const region *r, int chunk)
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
        const int got = r->body(r->env, start_of_chunk(r, chunk), start_of_chunk(r, chunk + 1));
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

void ts_parallel_before_fork(void) {}

void ts_parallel_after_fork(bool child)
{
    if (child) {
        forked_thread = pthread_self();
        atomic_store(&forked, true);
    }
}
#endif
