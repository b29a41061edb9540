/* The number of threads that calls use, and what a fork does to it, to parallel loops and to workspace. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ts_engine.h"

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

/* ---- forks ---- */

static void before_fork(void)
{
    ts_parallel_before_fork();
    ts_workspace_before_fork();
}

static void in_parent(void)
{
    ts_workspace_after_fork(false);
    ts_parallel_after_fork(false);
}

static void in_child(void)
{
    ts_workspace_after_fork(true);
    ts_parallel_after_fork(true);
    ts_set_default_threads(1);
}

void ts_install_fork_handlers(void)
{
    static atomic_flag installed = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&installed))
        pthread_atfork(before_fork, in_parent, in_child);
}
