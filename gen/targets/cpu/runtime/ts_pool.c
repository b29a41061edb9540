/* Parallel loops by threads of the runtime's own.

   A loop is cut into pieces before anything runs, so who runs them changes no bit of a result. Each
   thread has a share of neighbouring pieces, and begins with it; then it takes what is left of the
   others'. The calling thread puts its loop up, takes pieces as the workers do, and waits for those
   that others took. So a worker that is late, or that there was no memory for, costs time and nothing
   else, and one that the system sets aside holds up one piece at most.

   Workers look out for the next loop for a while, then sleep. One that was set aside, or that woke up
   late, says that processors are few; for some time nobody looks then, and all sleep at once. For
   systems are fair: who has slept gets a processor soon, and who never did loses it in the midst of a
   piece.

   Who sleeps may not wake up on the processor of its last caller, which is the one that wakes it up:
   in a virtual machine an idle processor looks like one that is taken, so that Linux would let the
   worker wait on the caller's until the loop is done. */
#ifndef _OPENMP
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "ts_engine.h"

enum {
    PIECES = 4,       /* of a share, at most */
    WORTH_WAKING = 10 /* pieces of the least size; for fewer, nobody is woken */
};

/* Nanoseconds: for how long workers look for a loop, and callers for its end; what is more than the
   system itself interrupts threads for; within what time that has to happen twice; and for how long it
   counts. */
#define LOOK INT64_C(200000)
#define SET_ASIDE INT64_C(250000)
#define TWICE INT64_C(50000000)
#define CROWDED INT64_C(300000000)

const char ts_threads_by[] = "pool";

typedef struct region { /* a loop that is up, on its caller's stack */
    ts_body body;
    const void *env;
    int64_t lower, upper;
    int shares, pieces; /* pieces of each share */
    int processor;      /* the caller's */
    atomic_int status;  /* the largest so far */
    atomic_int helpers; /* workers that are at it; changed under the lock */
    int wanted;         /* workers that may still come; under the lock, as what follows */
    struct region *further;
    atomic_int next[TS_MOST_THREADS]; /* of each share, the first piece that nobody has taken */
} region;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t put_up = PTHREAD_COND_INITIALIZER, left = PTHREAD_COND_INITIALIZER;
static region *regions;     /* those that want workers, and others that are not taken down yet */
static int workers, idle;   /* how many there are; of these, how many look for work */
static atomic_int sleeping; /* of the idle ones; changed under the lock */
static atomic_int times_put_up;
static _Atomic int64_t latest;     /* when a loop ended */
static _Atomic int64_t last_wake;  /* when workers were last woken */

static _Thread_local bool inside; /* this thread runs a piece: loops in it are run by it alone */

/* ---- waiting ---- */

static int64_t nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void pause_briefly(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* Others hold it for a few instructions. To sleep meanwhile would take longer. */
static void take_lock(void)
{
    for (int tries = 0; tries < 100; tries++) {
        if (pthread_mutex_trylock(&lock) == 0)
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&lock);
}

static _Atomic int64_t crowded_until, last_noted;

static bool crowded(void)
{
    const int64_t until = atomic_load(&crowded_until);
    return until && until > nanoseconds(CLOCK_MONOTONIC);
}

/* Once may be anybody's: a system has work of its own. */
static void note_crowded(int64_t now)
{
    if (now - atomic_exchange(&last_noted, now) < TWICE)
        atomic_store(&crowded_until, now + CROWDED);
}

/* ---- processors ---- */

#ifdef __linux__
typedef struct places { /* a thread's processors, and those of them that it may use while it sleeps */
    bool fewer;
    cpu_set_t all, some;
} places;

/* Which one the calling thread runs on, or a negative number where that is not known. */
static int this_processor(void) { return sched_getcpu(); }

/* The calling thread may not run on the processor, until `run_anywhere`. */
static void keep_off(places *at, int processor)
{
    if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof at->all, &at->all))
        return;
    at->some = at->all;
    CPU_CLR((size_t)processor, &at->some);
    at->fewer = CPU_COUNT(&at->some) && !sched_setaffinity(0, sizeof at->some, &at->some);
}

/* Not where somebody else has chosen the thread's processors meanwhile. */
static void run_anywhere(places *at)
{
    cpu_set_t now;
    if (at->fewer && !sched_getaffinity(0, sizeof now, &now) && CPU_EQUAL(&now, &at->some))
        sched_setaffinity(0, sizeof at->all, &at->all);
    at->fewer = false;
}
#else
typedef struct places {
    bool fewer;
} places;

static int this_processor(void) { return -1; }
static void keep_off(places *at, int processor) { (void)at, (void)processor; }
static void run_anywhere(places *at) { (void)at; }
#endif

typedef struct moment {
    int64_t time, ran; /* now; for how long this thread ran so far */
} moment;

static moment this_moment(void)
{
    return (moment){nanoseconds(CLOCK_MONOTONIC), nanoseconds(CLOCK_THREAD_CPUTIME_ID)};
}

/* Since then this thread did not mean to sleep. */
static moment note_whether_set_aside(moment since)
{
    const moment now = this_moment();
    if (now.time - since.time - (now.ran - since.ran) > SET_ASIDE)
        note_crowded(now.time);
    return now;
}

/* Whether a number is another one than before, after looking at it until it is, or for so long. */
static bool look_until_changed(const atomic_int *number, int before)
{
    if (atomic_load(number) != before)
        return true;
    if (crowded())
        return false;
    const int64_t end = nanoseconds(CLOCK_MONOTONIC) + LOOK;
    do {
        for (int look = 0; look < 16; look++) {
            if (atomic_load(number) != before)
                return true;
            pause_briefly();
        }
    } while (nanoseconds(CLOCK_MONOTONIC) < end);
    return false;
}

/* ---- loops and workers ---- */

static int64_t start_of_part(int64_t lower, int64_t upper, int parts, int k)
{
    const int64_t size = (upper - lower) / parts, rest = (upper - lower) % parts;
    return lower + k * size + (k < rest ? k : rest);
}

static void run_share(region *r, int share)
{
    const int64_t lower = start_of_part(r->lower, r->upper, r->shares, share);
    const int64_t upper = start_of_part(r->lower, r->upper, r->shares, share + 1);
    int piece;
    while ((piece = atomic_fetch_add(&r->next[share], 1)) < r->pieces) {
        const int got = r->body(r->env, start_of_part(lower, upper, r->pieces, piece),
                                start_of_part(lower, upper, r->pieces, piece + 1));
        int before = atomic_load(&r->status);
        while (got > before && !atomic_compare_exchange_weak(&r->status, &before, got))
            ;
    }
}

static void run_pieces(region *r, int own)
{
    inside = true;
    for (int share = own; share < r->shares; share++)
        run_share(r, share);
    for (int share = 0; share < own; share++)
        run_share(r, share);
    inside = false;
}

static region *wanting(void)
{
    region *r = regions;
    while (r && !r->wanted)
        r = r->further;
    return r;
}

/* A loop that wants the calling worker, which holds the lock before and after. `since`: when it last
   was asleep, or noted whether it was set aside. caller: the processor of its last loop. */
static region *wait_for_region(moment *since, places *at, int caller)
{
    region *r;
    bool looked = false;
    while (!(r = wanting())) {
        if (looked) {
            sleeping++;
            pthread_cond_wait(&put_up, &lock);
            sleeping--;
            *since = this_moment();
            if (since->time - last_wake > SET_ASIDE)
                note_crowded(since->time);
        }
        const int before = atomic_load(&times_put_up);
        pthread_mutex_unlock(&lock);
        *since = note_whether_set_aside(*since);
        looked = !look_until_changed(&times_put_up, before);
        if (looked) {
            *since = note_whether_set_aside(*since);
            if (!at->fewer)
                keep_off(at, caller);
        }
        take_lock();
    }
    return r;
}

static void *work(void *unused)
{
    (void)unused;
    moment since = this_moment();
    places at = {0};
    int caller = -1;
    take_lock();
    for (;;) {
        region *r = wait_for_region(&since, &at, caller);
        idle--;
        const int share = r->shares - r->wanted--;
        r->helpers++;
        pthread_mutex_unlock(&lock);
        caller = r->processor;
        if (caller >= 0 && caller == this_processor()) { /* it has moved */
            run_anywhere(&at);
            keep_off(&at, caller);
        }
        run_anywhere(&at);
        run_pieces(r, share);
        take_lock();
        idle++;
        if (--r->helpers == 0)
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

/* False, and nothing done, where nobody looks for work and nobody should be woken for it. */
static bool put_region_up(region *r, bool wake)
{
    int woken = 0;
    take_lock();
    if (!wake && idle <= sleeping) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    if (wake) {
        int wanted = r->wanted;
        for (const region *other = regions; other; other = other->further)
            wanted += other->wanted;
        while (idle < wanted && workers < TS_MOST_THREADS && add_worker())
            ;
        woken = r->wanted < sleeping ? r->wanted : sleeping;
        if (woken)
            last_wake = nanoseconds(CLOCK_MONOTONIC);
    }
    r->further = regions;
    regions = r;
    pthread_mutex_unlock(&lock); /* before somebody looks: whoever sees it takes the lock */
    times_put_up++;
    for (int k = 0; k < woken; k++)
        pthread_cond_signal(&put_up);
    return true;
}

/* No worker comes to it any more, and those that came have left. */
static void take_region_down(region *r)
{
    take_lock();
    region **place = &regions;
    while (*place != r)
        place = &(*place)->further;
    *place = r->further;
    pthread_mutex_unlock(&lock);
    for (int helpers; (helpers = r->helpers) && look_until_changed(&r->helpers, helpers);)
        ;
    take_lock(); /* also where they have left: the last one still holds it */
    while (r->helpers)
        pthread_cond_wait(&left, &lock);
    pthread_mutex_unlock(&lock);
}

/* Whether to wake who sleeps for a loop of so many pieces of the least size. To wake takes as long as
   to run a few of them. But where one loop follows upon another, who is awake finds the next ones, too. */
static bool worth_waking(int64_t most)
{
    if (crowded())
        return most >= 4 * WORTH_WAKING; /* who is woken may have to wait for a processor */
    return most >= WORTH_WAKING || nanoseconds(CLOCK_MONOTONIC) - latest < LOOK;
}

int ts_parallel(ts_body body, const void *env, int64_t lower, int64_t upper, int64_t grain,
                int threads)
{
    if (upper <= lower)
        return TS_OK;
    const int64_t most = grain > 1 ? (upper - lower) / grain : upper - lower;
    const int shares = most < threads ? (int)most : threads;
    if (shares <= 1 || inside)
        return body(env, lower, upper);

    int status;
    region r; /* of `next` no more is set than there are shares */
    r.body = body, r.env = env, r.lower = lower, r.upper = upper;
    r.shares = shares;
    r.pieces = most / shares < PIECES ? (int)(most / shares) : PIECES;
    atomic_init(&r.status, TS_OK);
    atomic_init(&r.helpers, 0);
    r.wanted = shares - 1;
    r.processor = this_processor();
    for (int share = 0; share < shares; share++)
        atomic_init(&r.next[share], 0);
    if (put_region_up(&r, worth_waking(most))) {
        run_pieces(&r, 0);
        take_region_down(&r);
        status = r.status;
    } else {
        status = body(env, lower, upper);
    }
    latest = nanoseconds(CLOCK_MONOTONIC);
    return status;
}

void ts_parallel_before_fork(void) { pthread_mutex_lock(&lock); }

/* In a child no other thread exists: neither workers nor those whose loops are up. */
void ts_parallel_after_fork(bool child)
{
    static const pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
    if (child) {
        regions = NULL;
        workers = idle = 0;
        sleeping = 0;
        put_up = left = fresh;
    }
    pthread_mutex_unlock(&lock);
}
#endif
