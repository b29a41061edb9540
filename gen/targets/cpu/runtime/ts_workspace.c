/* Workspace: one arena a thread, kept between calls up to a limit, used as a stack.

   What does not fit in the arena is allocated by itself, and the arena grows to what was needed once
   it is empty. Large pieces ask Linux for large pages: a first touch of 128 MiB is 64 page faults
   then, not 32,768. To clear these pages takes as long as to write them: what is kept saves that.
   Arenas are in a list, so that ts_free_workspace reaches those of idle threads; `busy` keeps it
   off the others. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "ts_engine.h"

enum { ALIGNMENT = 64 };
#define LARGE_PAGE ((size_t)2 << 20)
#define KEPT_BYTES ((size_t)256 << 20)

typedef struct arena {
    struct arena *previous, *next;
    atomic_flag busy;
    char *memory;
    size_t size, used;
    size_t wanted; /* the most that was in use at once, arena and others together */
    size_t in_use;
} arena;

typedef struct header { /* ALIGNMENT bytes, just before each piece of memory */
    size_t bytes;
    bool in_arena;
} header;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static arena *list;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_exit;
static _Thread_local arena *mine;

static void unlink_arena(arena *a)
{
    if (a->previous)
        a->previous->next = a->next;
    else
        list = a->next;
    if (a->next)
        a->next->previous = a->previous;
}

static void discard(void *argument)
{
    arena *a = argument;
    pthread_mutex_lock(&list_lock);
    unlink_arena(a);
    pthread_mutex_unlock(&list_lock);
    free(a->memory);
    free(a);
    mine = NULL;
}

static void make_key(void) { pthread_key_create(&at_exit, discard); }

static arena *own_arena(void)
{
    if (mine)
        return mine;
    arena *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    atomic_flag_clear(&a->busy);
    pthread_once(&once, make_key);
    if (pthread_setspecific(at_exit, a) != 0) {
        free(a);
        return NULL;
    }
    pthread_mutex_lock(&list_lock);
    a->next = list;
    if (list)
        list->previous = a;
    list = a;
    pthread_mutex_unlock(&list_lock);
    return mine = a;
}

/* A multiple of ALIGNMENT, which `free` takes. */
static void *allocate(size_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (bytes >= 2 * LARGE_PAGE && bytes <= SIZE_MAX - LARGE_PAGE) {
        const size_t whole = (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
        void *memory = aligned_alloc(LARGE_PAGE, whole);
        if (memory)
            madvise(memory, whole, MADV_HUGEPAGE); /* where it fails, pages are small */
        return memory;
    }
#endif
    return aligned_alloc(ALIGNMENT, bytes);
}

static void grow(arena *a)
{
    const size_t size = a->wanted < KEPT_BYTES ? a->wanted : KEPT_BYTES;
    if (size <= a->size)
        return;
    free(a->memory);
    a->memory = allocate(size);
    a->size = a->memory ? size : 0;
}

static void leave_if_empty(arena *a)
{
    if (a->in_use == 0)
        atomic_flag_clear_explicit(&a->busy, memory_order_release);
}

void *ts_workspace_acquire(size_t bytes)
{
    if (bytes > PTRDIFF_MAX - 2 * ALIGNMENT)
        return NULL;
    arena *a = own_arena();
    if (!a)
        return NULL;
    if (a->in_use == 0) {
        while (atomic_flag_test_and_set_explicit(&a->busy, memory_order_acquire))
            ; /* ts_free_workspace holds it for one call of free */
        grow(a);
    }
    const size_t need = ALIGNMENT + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const bool fits = need <= a->size - a->used;
    char *piece = fits ? a->memory + a->used : allocate(need);
    if (!piece) {
        leave_if_empty(a);
        return NULL;
    }
    *(header *)(void *)piece = (header){need, fits};
    a->used += fits ? need : 0;
    a->in_use += need;
    a->wanted = a->in_use > a->wanted ? a->in_use : a->wanted;
    return piece + ALIGNMENT;
}

void ts_workspace_release(void *memory)
{
    arena *a = mine;
    char *piece = (char *)memory - ALIGNMENT;
    const header h = *(header *)(void *)piece;
    a->in_use -= h.bytes;
    if (h.in_arena)
        a->used -= h.bytes;
    else
        free(piece);
    leave_if_empty(a);
}

void ts_free_workspace(void)
{
    pthread_mutex_lock(&list_lock);
    for (arena *a = list; a; a = a->next) {
        if (atomic_flag_test_and_set_explicit(&a->busy, memory_order_acquire))
            continue;
        free(a->memory);
        a->memory = NULL;
        a->size = a->wanted = 0;
        atomic_flag_clear_explicit(&a->busy, memory_order_release);
    }
    pthread_mutex_unlock(&list_lock);
#ifdef __GLIBC__
    malloc_trim(0); /* glibc would keep it for the process */
#endif
}

void ts_workspace_before_fork(void) { pthread_mutex_lock(&list_lock); }

void ts_workspace_after_fork(bool child)
{
    for (arena *a = child ? list : NULL, *next; a; a = next) {
        next = a->next;
        if (a == mine)
            continue;
        unlink_arena(a); /* its thread does not exist here */
        free(a->memory);
        free(a);
    }
    pthread_mutex_unlock(&list_lock);
}
