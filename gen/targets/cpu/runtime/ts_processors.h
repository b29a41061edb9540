/* Processors and threads, as the system gives the ones to the others.

   Threads that wake up are kept off the processor of who wakes them. In a virtual machine an idle processor
   looks like one that is taken, so that Linux would let them wait on their caller's until it sleeps. */
#ifndef TS_PROCESSORS_H
#define TS_PROCESSORS_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __linux__
typedef struct places { /* a thread's processors, and those of them that it may wake up on */
    bool fewer;
    int but; /* these are all but this one, where they are fewer */
    cpu_set_t all, some;
} places;

/* Which one the calling thread runs on, or a negative number where that is not known. */
static int this_processor(void) { return sched_getcpu(); }

/* The thread may run on any processor but this one, until `run_anywhere`. */
static void keep_off(pthread_t thread, places *at, int processor)
{
    cpu_set_t now;
    if (processor < 0 || processor >= CPU_SETSIZE || (at->fewer && at->but == processor) ||
        pthread_getaffinity_np(thread, sizeof now, &now))
        return;
    if (!at->fewer || !CPU_EQUAL(&now, &at->some)) /* or somebody else has chosen them meanwhile */
        at->all = now;
    at->but = processor;
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

/* For how many nanoseconds the calling thread waited for a processor that others had, since it asked last;
   the largest number where the system does not say. A program that is stopped waits for none. */
static int64_t waited_for_processor(void)
{
    static _Thread_local int64_t before;
    long long ran = 0, waited = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    if (!file)
        return INT64_MAX;
    const bool known = fscanf(file, "%lld %lld", &ran, &waited) == 2 && ran;
    fclose(file);
    const int64_t since = waited - before;
    before = waited;
    return known ? since : INT64_MAX;
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
static int64_t waited_for_processor(void) { return INT64_MAX; }
#endif

#endif
