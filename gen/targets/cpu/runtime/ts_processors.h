/* Processors and threads, as the system gives the ones to the others.

   Threads that wake up are kept off the processor of who wakes them. In a virtual machine an idle processor
   looks like one that is taken, so that Linux would let them wait on their caller's until it sleeps. */
#ifndef TS_PROCESSORS_H
#define TS_PROCESSORS_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#ifdef __linux__
typedef struct places { /* a thread's processors, and those of them that it may wake up on */
    bool fewer;
    cpu_set_t all, some;
} places;

/* Which one the calling thread runs on, or a negative number where that is not known. */
static int this_processor(void) { return sched_getcpu(); }

/* The thread may run on any processor but this one, until `run_anywhere`. That is soon: whoever chooses
   its processors meanwhile might choose just these, or more. */
static void keep_off(pthread_t thread, places *at, int processor)
{
    if (processor < 0 || processor >= CPU_SETSIZE ||
        pthread_getaffinity_np(thread, sizeof at->all, &at->all))
        return;
    at->some = at->all;
    CPU_CLR((size_t)processor, &at->some);
    at->fewer =
        CPU_COUNT(&at->some) && !pthread_setaffinity_np(thread, sizeof at->some, &at->some);
}

/* For the calling thread, unless somebody else has chosen its processors meanwhile. */
static void run_anywhere(places *at)
{
    cpu_set_t now;
    if (at->fewer && !sched_getaffinity(0, sizeof now, &now) && CPU_EQUAL(&now, &at->some))
        sched_setaffinity(0, sizeof at->all, &at->all);
    at->fewer = false;
}

/* How often the system took the calling thread's processor for others, since it asked last. To be stopped,
   as a whole program may be, does not count. */
static int64_t times_preempted(void)
{
    static _Thread_local long before;
    struct rusage use;
    if (getrusage(RUSAGE_THREAD, &use))
        return 1;
    const long times = use.ru_nivcsw - before;
    before = use.ru_nivcsw;
    return times;
}
#else
typedef struct places {
    bool fewer;
} places;

static int this_processor(void) { return -1; }
static void keep_off(pthread_t thread, places *at, int processor)
{
    (void)thread, (void)at, (void)processor;
}
static void run_anywhere(places *at) { (void)at; }
static int64_t times_preempted(void) { return 1; } /* not known */
#endif

#endif
