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

   Who is woken may not run where its caller does: see ts_processors.h. */
#ifndef _OPENMP
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "ts_engine.h"
#include "ts_processors.h"

enum {
    PIECES = 4,    /* of a share, at most */
    REMEMBERED = 64 /* loops whose time is known */
};

/* Nanoseconds: for how long workers look for a loop, and callers for its end; what is more than the
   system itself interrupts threads for; within what time that has to happen twice; and for how long it
   counts. */
#define LOOK INT64_C(200000)
#define SET_ASIDE INT64_C(1000000)
#define TWICE INT64_C(50000000)
#define CROWDED INT64_C(300000000)

/* Nanoseconds: what a caller has to save for somebody to be woken; where processors are few, for who is
   woken may have to wait for one; and what a grain of work is taken to be until it has been timed. */
#define WORTH_WAKING INT64_C(100000)
#define WORTH_WAITING INT64_C(400000)
#define GRAIN INT64_C(10000)

const char ts_threads_by[] = "pool";

/* ---- loops and workers ---- */

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

typedef struct worker { /* on its own stack; under the lock */
    pthread_t thread;
    pthread_cond_t woken_up;
    bool asleep;
    places at;
    struct worker *further; /* the one that fell asleep before it */
} worker;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static region *regions;               /* those that want workers, and others that are not taken down yet */
static worker *asleep;                /* the last to fall asleep is the first */
static int workers, idle, sleeping;   /* how many there are, of these look for work, of these sleep */
static atomic_int times_put_up;
static _Atomic int64_t latest;    /* when a loop ended */
static _Atomic int64_t last_wake; /* when workers were last woken */

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
    if (now.time - since.time - (now.ran - since.ran) > SET_ASIDE && times_preempted())
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

/* ---- pieces ---- */

static int64_t start_of_part(int64_t lower, int64_t upper, int parts, int k)
{
    const int64_t size = (upper - lower) / parts, rest = (upper - lower) % parts;
    return lower + k * size + (k < rest ? k : rest);
}

/* How many pieces the calling thread has run. */
static int run_share(region *r, int share)
{
    const int64_t lower = start_of_part(r->lower, r->upper, r->shares, share);
    const int64_t upper = start_of_part(r->lower, r->upper, r->shares, share + 1);
    int piece, ran = 0;
    for (; (piece = atomic_fetch_add(&r->next[share], 1)) < r->pieces; ran++) {
        const int got = r->body(r->env, start_of_part(lower, upper, r->pieces, piece),
                                start_of_part(lower, upper, r->pieces, piece + 1));
        int before = atomic_load(&r->status);
        while (got > before && !atomic_compare_exchange_weak(&r->status, &before, got))
            ;
    }
    return ran;
}

static int run_pieces(region *r, int own)
{
    int ran = 0;
    inside = true;
    for (int share = own; share < r->shares; share++)
        ran += run_share(r, share);
    for (int share = 0; share < own; share++)
        ran += run_share(r, share);
    inside = false;
    return ran;
}

static region *wanting(void)
{
    region *r = regions;
    while (r && !r->wanted)
        r = r->further;
    return r;
}

/* ---- workers ---- */

/* The calling worker holds the lock before and after. */
static void sleep_until_woken(worker *self)
{
    self->asleep = true;
    self->further = asleep;
    asleep = self;
    sleeping++;
    while (self->asleep)
        pthread_cond_wait(&self->woken_up, &lock);
}

/* The one that fell asleep last, no more among those that sleep. The calling thread holds the lock,
   and signals when it has let go of it. */
static worker *wake_one(int processor)
{
    worker *one = asleep;
    asleep = one->further;
    sleeping--;
    one->asleep = false;
    keep_off(one->thread, &one->at, processor);
    return one;
}

/* A loop that wants the calling worker, which holds the lock before and after. `since`: when it last
   was asleep, or noted whether it was set aside. */
static region *wait_for_region(worker *self, moment *since)
{
    region *r;
    while (!(r = wanting())) {
        const int before = atomic_load(&times_put_up);
        pthread_mutex_unlock(&lock);
        run_anywhere(&self->at);
        *since = note_whether_set_aside(*since);
        const bool found = look_until_changed(&times_put_up, before);
        if (!found) {
            *since = note_whether_set_aside(*since);
            times_preempted(); /* from here on */
        }
        take_lock();
        if (!found && !wanting()) {
            sleep_until_woken(self);
            *since = this_moment();
            if (since->time - atomic_exchange(&last_wake, since->time) > SET_ASIDE)
                note_crowded(since->time); /* once, however many were woken */
        }
    }
    return r;
}

static void *work(void *unused)
{
    (void)unused;
    worker self = {.thread = pthread_self(), .woken_up = PTHREAD_COND_INITIALIZER};
    moment since = this_moment();
    take_lock();
    for (;;) {
        region *r = wait_for_region(&self, &since);
        idle--;
        const int share = r->shares - r->wanted--;
        r->helpers++;
        pthread_mutex_unlock(&lock);
        run_anywhere(&self.at);
        if (r->processor >= 0 && r->processor == this_processor()) { /* it has moved */
            keep_off(self.thread, &self.at, r->processor);
            run_anywhere(&self.at);
        }
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
    pthread_t thread;
    sigfillset(&others);
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        sigdelset(&others, own[k]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    const bool added = pthread_create(&thread, NULL, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (added) {
        pthread_detach(thread);
        workers++, idle++;
    }
    return added;
}

/* False, and nothing done, where nobody looks for work and nobody should be woken for it. */
static bool put_region_up(region *r, bool wake)
{
    worker *woken[TS_MOST_THREADS];
    int count = 0;
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
        while (count < r->wanted && asleep)
            woken[count++] = wake_one(r->processor);
        if (count)
            last_wake = nanoseconds(CLOCK_MONOTONIC);
    }
    r->further = regions;
    regions = r;
    pthread_mutex_unlock(&lock); /* before somebody looks: whoever sees it takes the lock */
    times_put_up++;
    for (int k = 0; k < count; k++)
        pthread_cond_signal(&woken[k]->woken_up);
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

/* ---- what a loop takes after a pause ---- */

/* Its operations are counted. But after a pause its data is far away, and how far no count tells: so the
   time of the last such loop is kept, for a grain, until another one needs the place. */
static struct {
    _Atomic(ts_body) body;
    _Atomic int64_t grain;
} known[REMEMBERED];

static size_t place_of(ts_body body) { return ((uintptr_t)body >> 4) * 31 % REMEMBERED; }

static int64_t time_of_grain(ts_body body)
{
    const size_t k = place_of(body);
    return atomic_load(&known[k].body) == body ? atomic_load(&known[k].grain) : GRAIN;
}

/* One late piece may be anybody's: it counts half. */
static void note_time(ts_body body, int64_t grain)
{
    const size_t k = place_of(body);
    atomic_store(&known[k].grain, (time_of_grain(body) + grain) / 2);
    atomic_store(&known[k].body, body);
}

/* To wake who sleeps takes as long as a short loop. But where one loop follows upon another, who is awake
   finds the next ones, too. */
static bool worth_waking(ts_body body, int64_t grains, bool pause)
{
    const bool few = crowded();
    return grains >= (few ? WORTH_WAITING : WORTH_WAKING) / (time_of_grain(body) + 1) ||
           (!few && !pause);
}

int ts_parallel(ts_body body, const void *env, int64_t lower, int64_t upper, int64_t grain,
                int threads)
{
    if (upper <= lower)
        return TS_OK;
    if (threads > TS_MOST_THREADS)
        threads = TS_MOST_THREADS;
    const int64_t most = grain > 1 ? (upper - lower) / grain : upper - lower;
    const int shares = most < threads ? (int)most : threads;
    if (shares <= 1 || inside)
        return body(env, lower, upper);

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

    const bool pause = nanoseconds(CLOCK_MONOTONIC) - latest >= LOOK;
    const bool up = put_region_up(&r, worth_waking(body, most, pause));
    const int64_t start = nanoseconds(CLOCK_MONOTONIC);
    int ran = 1, of = 1; /* pieces */
    if (up) {
        ran = run_pieces(&r, 0);
        of = shares * r.pieces;
    } else {
        r.status = body(env, lower, upper);
    }
    if (pause && ran)
        note_time(body, (nanoseconds(CLOCK_MONOTONIC) - start) / ran * of / most);
    if (up)
        take_region_down(&r);
    latest = nanoseconds(CLOCK_MONOTONIC);
    return r.status;
}

void ts_parallel_before_fork(void) { pthread_mutex_lock(&lock); }

/* In a child no other thread exists: neither workers nor those whose loops are up. */
void ts_parallel_after_fork(bool child)
{
    static const pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
    if (child) {
        regions = NULL;
        asleep = NULL;
        workers = idle = sleeping = 0;
        left = fresh;
    }
    pthread_mutex_unlock(&lock);
}
#endif
