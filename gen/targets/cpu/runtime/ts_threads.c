/* The default number of threads, the threads that parallel loops share, and what a fork does to both.

   A loop is cut into chunks before anything runs, so who runs them changes no bit of a result. The
   calling thread puts its loop up, takes chunks itself, and waits for those that others took; workers
   take what is left of any loop that is up. So a worker that is late, or that there was no memory for,
   costs time and nothing else. Workers look out for the next loop for a moment, then sleep. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ts_engine.h"

enum { LOOKS = 1000 }; /* for work, or for its end, before going to sleep: some 10 to 50 microseconds */

static atomic_int default_threads = 1;

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

/* ---- loops and workers ---- */

typedef struct region { /* a loop that is up, on its caller's stack */
    ts_body body;
    const void *env;
    int64_t lower, upper;
    int chunks;
    atomic_int next;   /* the first chunk that nobody has taken */
    atomic_int status; /* the largest so far */
    atomic_int helpers; /* workers that are at it; changed under the lock */
    int wanted;        /* workers that may still come; under the lock, as what follows */
    struct region *further;
} region;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t put_up = PTHREAD_COND_INITIALIZER, left = PTHREAD_COND_INITIALIZER;
static region *regions;    /* those that want workers, and others that are not taken down yet */
static int workers, idle;  /* how many there are; of these, how many look for work */
static int sleeping;       /* of the idle ones */
static atomic_uint times_put_up;

static _Thread_local bool inside; /* this thread runs a chunk: loops in it are run by it alone */

static void pause_briefly(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

static int64_t chunk_start(const region *r, int chunk)
{
    const int64_t size = (r->upper - r->lower) / r->chunks, rest = (r->upper - r->lower) % r->chunks;
    return r->lower + chunk * size + (chunk < rest ? chunk : rest);
}

static void run_chunks(region *r)
{
    int chunk;
    inside = true;
    while ((chunk = atomic_fetch_add(&r->next, 1)) < r->chunks) {
        const int got = r->body(r->env, chunk_start(r, chunk), chunk_start(r, chunk + 1));
        int before = atomic_load(&r->status);
        while (got > before && !atomic_compare_exchange_weak(&r->status, &before, got))
            ;
    }
    inside = false;
}

static region *wanting(void)
{
    region *r = regions;
    while (r && !r->wanted)
        r = r->further;
    return r;
}

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        region *r;
        while (!(r = wanting())) {
            const unsigned seen = atomic_load(&times_put_up);
            pthread_mutex_unlock(&lock);
            for (int look = 0; look < LOOKS && atomic_load(&times_put_up) == seen; look++)
                pause_briefly();
            pthread_mutex_lock(&lock);
            if (atomic_load(&times_put_up) == seen) {
                sleeping++;
                pthread_cond_wait(&put_up, &lock);
                sleeping--;
            }
        }
        idle--;
        r->wanted--;
        atomic_fetch_add(&r->helpers, 1);
        pthread_mutex_unlock(&lock);
        run_chunks(r);
        pthread_mutex_lock(&lock);
        idle++;
        if (atomic_fetch_sub(&r->helpers, 1) == 1)
            pthread_cond_broadcast(&left);
    }
    return NULL;
}

/* Another worker, if there is memory for it and the system allows one. Signals are for other threads, but
   for those of a fault of its own: blocked, they would end the process before their handler ran. */
static bool add_worker(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t others, before;
    pthread_t worker;
    sigfillset(&others);
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        sigdelset(&others, own[k]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    const bool added = pthread_create(&worker, NULL, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (added) {
        pthread_detach(worker);
        workers++, idle++;
    }
    return added;
}

static void put_region_up(region *r)
{
    pthread_mutex_lock(&lock);
    int wanted = r->wanted;
    for (const region *other = regions; other; other = other->further)
        wanted += other->wanted;
    while (idle < wanted && workers < TS_MOST_THREADS && add_worker())
        ;
    r->further = regions;
    regions = r;
    atomic_fetch_add(&times_put_up, 1);
    for (int k = 0; k < r->wanted && k < sleeping; k++)
        pthread_cond_signal(&put_up);
    pthread_mutex_unlock(&lock);
}

/* No worker comes to it any more, and those that came have left. */
static void take_region_down(region *r)
{
    pthread_mutex_lock(&lock);
    region **place = &regions;
    while (*place != r)
        place = &(*place)->further;
    *place = r->further;
    pthread_mutex_unlock(&lock);
    for (int look = 0; look < LOOKS && atomic_load(&r->helpers); look++)
        pause_briefly();
    pthread_mutex_lock(&lock); /* also where they have left: the last one still holds it */
    while (atomic_load(&r->helpers))
        pthread_cond_wait(&left, &lock);
    pthread_mutex_unlock(&lock);
}

int ts_parallel(ts_body body, const void *env, int64_t lower, int64_t upper, int64_t grain,
                int threads)
{
    if (upper <= lower)
        return TS_OK;
    const int64_t most = grain > 1 ? (upper - lower) / grain : upper - lower;
    const int chunks = most < threads ? (int)most : threads;
    if (chunks <= 1 || inside)
        return body(env, lower, upper);

    region r = {.body = body, .env = env, .lower = lower, .upper = upper, .chunks = chunks,
                .wanted = chunks - 1};
    put_region_up(&r);
    run_chunks(&r);
    take_region_down(&r);
    return atomic_load(&r.status);
}

/* ---- forks ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    ts_workspace_before_fork();
}

static void in_parent(void)
{
    ts_workspace_after_fork(false);
    pthread_mutex_unlock(&lock);
}

/* No other thread exists here: neither workers nor those whose loops are up. */
static void in_child(void)
{
    static const pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
    ts_workspace_after_fork(true);
    regions = NULL;
    workers = idle = sleeping = 0;
    put_up = left = fresh;
    ts_set_default_threads(1);
    pthread_mutex_unlock(&lock);
}

void ts_install_fork_handlers(void)
{
    static atomic_flag installed = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&installed))
        pthread_atfork(before_fork, in_parent, in_child);
}
