/* The caches of this machine, and from how many bytes on a call should mind them. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "ts_engine.h"

/* Where the machine does not say. */
enum { USUAL_SECOND = 1 << 20, USUAL_LAST = 8 << 20 };

#ifdef __x86_64__

/* One leaf for Intel's processors, one for AMD's, of the same layout: a cache each subleaf. How many
   processors share the last-level cache; 0 where nothing says so. */
static int ask(ts_caches *found)
{
    unsigned a, b, c, d, leaf = 4;
    int sharers = 0;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d) && c >> 22 & 1)
        leaf = 0x8000001D;
    for (unsigned k = 0; k < 8; k++) {
        if (!__get_cpuid_count(leaf, k, &a, &b, &c, &d) || (a & 31) == 0)
            break;
        const bool instructions = (a & 31) == 2;
        const unsigned level = a >> 5 & 7;
        const int64_t ways = (b >> 22) + 1, parts = (b >> 12 & 1023) + 1, line = (b & 4095) + 1;
        const int64_t bytes = ways * parts * line * ((int64_t)c + 1);
        if (instructions || level < 2)
            continue;
        if (level == 2)
            found->second = bytes;
        found->last = bytes;
        sharers = (int)(a >> 14 & 4095) + 1;
    }
    return sharers;
}

#else

static int ask(ts_caches *found)
{
#if defined _SC_LEVEL2_CACHE_SIZE && defined _SC_LEVEL3_CACHE_SIZE
    const long second = sysconf(_SC_LEVEL2_CACHE_SIZE), last = sysconf(_SC_LEVEL3_CACHE_SIZE);
    found->second = second > 0 ? second : 0;
    found->last = last > 0 ? last : 0;
#endif
    (void)found;
    return 0;
}

#endif

ts_caches ts_find_caches(void)
{
    static _Atomic int64_t second, last;
    static atomic_int lasts; /* written last: 0 while nothing is known */
    if (!atomic_load_explicit(&lasts, memory_order_acquire)) {
        ts_caches found = {0, 0, 0};
        int sharers = ask(&found);
        const int processors = ts_available_processors();
        sharers = sharers > 0 ? sharers : processors;
        atomic_store(&second, found.second > 0 ? found.second : USUAL_SECOND);
        atomic_store(&last, found.last > 0 ? found.last : USUAL_LAST);
        atomic_store(&lasts, (processors + sharers - 1) / sharers);
    }
    return (ts_caches){atomic_load_explicit(&second, memory_order_relaxed),
                       atomic_load_explicit(&last, memory_order_relaxed),
                       atomic_load_explicit(&lasts, memory_order_relaxed)};
}

static atomic_int streaming = TS_STREAM_BY_SIZE;

void ts_set_streaming(ts_streaming how) { atomic_store(&streaming, (int)how); }

/* Half of the last-level cache, which is where streaming begins to win when calls repeat: from there on
   too little of the result is still there when it is written again. Threads are taken to run on as
   many of these caches as they can. */
double ts_stream_above(int threads)
{
    const int how = atomic_load_explicit(&streaming, memory_order_relaxed);
    if (how != TS_STREAM_BY_SIZE)
        return how == TS_STREAM_ON ? -1.0 : TS_NEVER;
    const ts_caches caches = ts_find_caches();
    return (double)caches.last / 2 * (threads < caches.lasts ? threads : caches.lasts);
}

double ts_prefetch_above(void) { return (double)ts_find_caches().second; }
