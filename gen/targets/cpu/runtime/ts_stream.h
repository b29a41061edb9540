/* Rows stored past the caches, line by line, wherever they begin.

   Non-temporal stores want whole aligned lines of TS_BYTES, but a row begins at any element. So its
   vectors are shifted to the lines: each store takes the end of the vector before and the start of
   the present one.

       ts_row_T row = ts_row_begin_T(p, late);   p: of the row's first element
       ts_row_push_T(&row, v);                   one vector after another
       ts_row_end_T(&row);                       stores what is left, and what fills no line
       ts_stream_fence();                        once, after a thread's last row

   A row whose neighbours are stored between its lines is kept in memory, as TS_LINE_VECTORS vectors:

       ts_line_push_T(kept, p, v, first);        v: a line of vectors, which belong at p
       ts_line_end_T(kept, p);                   what is left, before p

   T of 32 or 64 bits. At both ends, nothing but the row's own elements is touched; in between, a store
   comes one push late. Levels of 16-byte vectors have no rows. */
#ifndef TS_STREAM_H
#define TS_STREAM_H

#include "ts_simd.h"

/* How loads of a row at `read` come upon what is stored into the row at `row`, as far as the lowest 12
   bits of the addresses tell: the processor lets such a load wait for the store, and a store past the
   caches takes long. 1: upon the last TS_LATE lines before them; 2: upon as many before those, which
   stores that are late by TS_LATE lines are; 0: upon none that counts. Measured on Zen 4
   (docs/decisions.md). */
enum { TS_LATE = 5 };

enum { TS_LINE_VECTORS = 64 / TS_BYTES };

TS_INLINE int ts_row_hits(const void *row, const void *read) {
    const uintptr_t ahead = ((uintptr_t)row / 64 * 64 - (uintptr_t)read) % 4096;
    return ahead - 1 < 64 * TS_LATE ? 1 : ahead - 1 < 64 * 2 * TS_LATE ? 2 : 0;
}

#define TS_WORDS(X)        \
    X(f32, float, 32)      \
    X(i32, int32_t, 32)    \
    X(u32, uint32_t, 32)   \
    X(f64, double, 64)     \
    X(i64, int64_t, 64)    \
    X(u64, uint64_t, 64)

#if defined TS_V4

/* line: where the next store goes. index: of its lanes in the next vector, or more by TS_LANES_32 in
   the vector before, which is `kept`. before: the lanes that are from there. pushed: the vectors so
   far, up to TS_LATE + 1. late: whether lines are stored TS_LATE vectors after they are complete; wait0
   to wait4: those that wait, the last first (an array would not be held in registers). */
typedef struct ts_row {
    char *line;
    ts_i32 index, kept, wait0, wait1, wait2, wait3, wait4;
    ts_m32 before;
    int pushed;
    bool late;
} ts_row;

TS_INLINE ts_row ts_row_begin(void *p, bool late) {
    const int32_t shift = (int32_t)((uintptr_t)p % TS_BYTES / 4);
    const ts_i32 index = (ts_iota_i32() - ts_set_i32(shift)) & ts_set_i32(2 * TS_LANES_32 - 1);
    const ts_i32 none = {0};
    return (ts_row){(char *)p - 4 * shift, index, none, none, none, none, none, none,
        ts_first_m32(shift), 0, late};
}

TS_INLINE void ts_row_line(ts_row *row, ts_i32 whole) {
    _mm512_stream_si512((__m512i *)(void *)row->line, (__m512i)whole);
    row->line += TS_BYTES;
}

TS_INLINE void ts_row_push(ts_row *row, ts_i32 v) {
    const ts_i32 whole = (ts_i32)_mm512_permutex2var_epi32(
        (__m512i)v, (__m512i)row->index, (__m512i)row->kept);
    if (__builtin_expect(row->pushed == 0, 0)) {
        _mm512_mask_storeu_epi32(row->line, ts_mnot_m32(row->before), (__m512i)whole);
        row->line += TS_BYTES;
    } else if (!row->late) {
        ts_row_line(row, whole);
    } else if (__builtin_expect(row->pushed > TS_LATE, 1)) {
        ts_row_line(row, row->wait4);
    }
    row->pushed += row->pushed <= TS_LATE;
    row->kept = v;
    if (row->late) {
        row->wait4 = row->wait3;
        row->wait3 = row->wait2;
        row->wait2 = row->wait1;
        row->wait1 = row->wait0;
        row->wait0 = whole;
    }
}

TS_INLINE void ts_row_end(ts_row *row) {
    if (row->pushed == 0)
        return;
    const ts_i32 waiting[TS_LATE] = {row->wait0, row->wait1, row->wait2, row->wait3, row->wait4};
    for (int k = row->late ? row->pushed - 2 : -1; k >= 0; --k)
        ts_row_line(row, waiting[k]);
    const __m512i last = _mm512_permutexvar_epi32((__m512i)row->index, (__m512i)row->kept);
    _mm512_mask_storeu_epi32(row->line, row->before, last);
}

/* What has not filled a line is in the vector that came last. */
TS_INLINE void ts_line_push(ts_i32 *kept, void *p, const ts_i32 *v, bool first) {
    const ts_row row = ts_row_begin(p, false);
    const __m512i before = (__m512i)(first ? *v : *kept);
    const __m512i whole = _mm512_permutex2var_epi32((__m512i)*v, (__m512i)row.index, before);
    if (first)
        _mm512_mask_storeu_epi32(row.line, ts_mnot_m32(row.before), whole);
    else
        _mm512_stream_si512((__m512i *)(void *)row.line, whole);
    *kept = *v;
}

TS_INLINE void ts_line_end(const ts_i32 *kept, void *p) {
    const ts_row row = ts_row_begin(p, false);
    const __m512i last = _mm512_permutexvar_epi32((__m512i)row.index, (__m512i)*kept);
    _mm512_mask_storeu_epi32(row.line, row.before, last);
}

#elif defined TS_V3

/* A line is two stores, one right after the other: what lies between could write half a line out.
   half: where the next vector goes. index: moves the lanes of a vector up by as many, in a ring, as
   there are of `before`, the lanes that come from the vector before, which is `kept`, moved. first:
   the first half of the line, if it `waits`. */
typedef struct ts_row {
    char *half;
    ts_i32 index, kept, first;
    ts_m32 before;
    bool started, waits;
} ts_row;

TS_INLINE ts_row ts_row_begin(void *p, bool late) {
    (void)late;
    const int32_t shift = (int32_t)((uintptr_t)p % TS_BYTES / 4);
    const ts_i32 index = (ts_iota_i32() - ts_set_i32(shift)) & ts_set_i32(TS_LANES_32 - 1);
    const ts_m32 before = ts_first_m32(shift);
    return (ts_row){(char *)p - 4 * shift, index, {0}, {0}, before, false, false};
}

TS_INLINE void ts_row_push(ts_row *row, ts_i32 v) {
    const ts_i32 moved =
        (ts_i32)_mm256_permutevar8x32_epi32((__m256i)v, (__m256i)row->index);
    const ts_i32 both = ts_select_i32(row->before, row->kept, moved);
    __m256i *const half = (__m256i *)(void *)row->half;
    if (__builtin_expect(!row->started, 0)) {
        _mm256_maskstore_epi32((int *)half, (__m256i)ts_mnot_m32(row->before), (__m256i)both);
    } else if ((uintptr_t)half % 64 == 0) {
        row->first = both;
        row->waits = true;
    } else if (__builtin_expect(row->waits, 1)) {
        _mm256_stream_si256(half - 1, (__m256i)row->first);
        _mm256_stream_si256(half, (__m256i)both);
        row->waits = false;
    } else {
        _mm256_store_si256(half, (__m256i)both);
    }
    row->started = true;
    row->kept = moved;
    row->half += TS_BYTES;
}

TS_INLINE void ts_row_end(ts_row *row) {
    __m256i *const half = (__m256i *)(void *)row->half;
    if (row->waits)
        _mm256_store_si256(half - 1, (__m256i)row->first);
    if (row->started)
        _mm256_maskstore_epi32((int *)half, (__m256i)row->before, (__m256i)row->kept);
}

/* kept[0] is `kept`, and kept[1] is `first` where p lies in the second half of a line: then that
   waits. */
TS_INLINE void ts_line_push(ts_i32 *kept, void *p, const ts_i32 *v, bool first) {
    ts_row row = ts_row_begin(p, false);
    row.waits = !first && (uintptr_t)row.half % 64 != 0;
    row.started = !first;
    row.kept = first ? *v : kept[0];
    row.first = first ? *v : kept[1];
    ts_row_push(&row, v[0]);
    ts_row_push(&row, v[1]);
    kept[0] = row.kept;
    kept[1] = row.first;
}

TS_INLINE void ts_line_end(const ts_i32 *kept, void *p) {
    ts_row row = ts_row_begin(p, false);
    row.waits = (uintptr_t)row.half % 64 != 0;
    row.started = true;
    row.kept = kept[0];
    row.first = kept[1];
    ts_row_end(&row);
}

#endif

#if defined TS_V4 || defined TS_V3
#define TS_ROW(T, C, B)                                                                        \
    typedef ts_row ts_row_##T;                                                                 \
    TS_INLINE ts_row_##T ts_row_begin_##T(C *p, bool late) { return ts_row_begin(p, late); }   \
    TS_INLINE void ts_row_push_##T(ts_row_##T *row, ts_##T v) { ts_row_push(row, (ts_i32)v); } \
    TS_INLINE void ts_row_end_##T(ts_row_##T *row) { ts_row_end(row); }                        \
    TS_INLINE void ts_line_push_##T(ts_##T *kept, C *p, const ts_##T *v, bool first) {         \
        ts_line_push((ts_i32 *)kept, p, (const ts_i32 *)v, first);                             \
    }                                                                                          \
    TS_INLINE void ts_line_end_##T(const ts_##T *kept, C *p) {                                 \
        ts_line_end((const ts_i32 *)kept, p);                                                  \
    }

TS_WORDS(TS_ROW)
#undef TS_ROW
#endif
#undef TS_WORDS

#endif
