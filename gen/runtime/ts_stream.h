/* Rows stored past the caches, line by line, wherever they begin.

   Non-temporal stores want whole aligned lines of TS_BYTES, but a row begins at any element. So its
   vectors are shifted to the lines: each store takes the end of the vector before and the start of
   the present one.

       ts_row_T row = ts_row_begin_T(p);   p: of the row's first element
       ts_row_push_T(&row, v);             one vector after another
       ts_row_end_T(&row);                 stores what has not filled a line
       ts_stream_fence();                  once, after a thread's last row

   T of 32 or 64 bits. At both ends, nothing but the row's own elements is touched; in between, a store
   comes one push late. Levels of 16-byte vectors store at once, and through the caches. */
#ifndef TS_STREAM_H
#define TS_STREAM_H

#include "ts_simd.h"

#define TS_WORDS(X)        \
    X(f32, float, 32)      \
    X(i32, int32_t, 32)    \
    X(u32, uint32_t, 32)   \
    X(f64, double, 64)     \
    X(i64, int64_t, 64)    \
    X(u64, uint64_t, 64)

#if defined TS_V4 || defined TS_V3

/* ts_turn: the 32-bit lanes of v, in a ring, `shift` places up. ts_meet: a line's lanes, the first
   `shift` from the vector before. What is kept of a vector until the next one comes is ts_kept: on v4
   the vector, since one instruction both turns and joins two; on v3 the vector already turned. */
#ifdef TS_V4
TS_INLINE ts_i32 ts_turn(ts_i32 v, ts_i32 index) {
    return (ts_i32)_mm512_permutexvar_epi32((__m512i)index, (__m512i)v);
}
TS_INLINE ts_i32 ts_meet(ts_i32 kept, ts_i32 v, ts_i32 index, ts_m32 before) {
    (void)before;
    return (ts_i32)_mm512_permutex2var_epi32((__m512i)v, (__m512i)index, (__m512i)kept);
}
TS_INLINE ts_i32 ts_kept(ts_i32 v, ts_i32 index) {
    (void)index;
    return v;
}
#else
TS_INLINE ts_i32 ts_turn(ts_i32 v, ts_i32 index) {
    return (ts_i32)_mm256_permutevar8x32_epi32((__m256i)v, (__m256i)index);
}
TS_INLINE ts_i32 ts_meet(ts_i32 kept, ts_i32 v, ts_i32 index, ts_m32 before) {
    return ts_select_i32(before, kept, ts_turn(v, index));
}
TS_INLINE ts_i32 ts_kept(ts_i32 v, ts_i32 index) { return ts_turn(v, index); }
#endif

/* line: where the next store goes. index, before: for ts_turn and ts_meet; its lanes are below
   TS_LANES_32, more by that much where they are of the vector before. started: whether there is one,
   `kept`. */
typedef struct ts_row {
    char *line;
    ts_i32 index;
    ts_m32 before;
    ts_i32 kept;
    bool started;
} ts_row;

TS_INLINE ts_row ts_row_begin(void *p) {
    const int32_t shift = (int32_t)((uintptr_t)p % TS_BYTES / 4);
    return (ts_row){
        .line = (char *)p - 4 * shift,
        .index = (ts_iota_i32() - ts_set_i32(shift)) & ts_set_i32(2 * TS_LANES_32 - 1),
        .before = ts_first_m32(shift),
        .kept = {0},
        .started = false,
    };
}

TS_INLINE void ts_row_push(ts_row *row, ts_i32 v) {
    int32_t *const line = (int32_t *)(void *)row->line;
    if (__builtin_expect(row->started, 1))
        ts_stream_i32(line, ts_meet(row->kept, v, row->index, row->before));
    else
        ts_store_mask_i32(line, ts_turn(v, row->index), ts_mnot_m32(row->before));
    row->started = true;
    row->kept = ts_kept(v, row->index);
    row->line += TS_BYTES;
}

TS_INLINE void ts_row_end(const ts_row *row) {
    const ts_i32 last = ts_meet(row->kept, row->kept, row->index, row->before);
    if (row->started)
        ts_store_mask_i32((int32_t *)(void *)row->line, last, row->before);
}

#define TS_ROW(T, C, B)                                                                        \
    typedef ts_row ts_row_##T;                                                                 \
    TS_INLINE ts_row_##T ts_row_begin_##T(C *p) { return ts_row_begin(p); }                    \
    TS_INLINE void ts_row_push_##T(ts_row_##T *row, ts_##T v) { ts_row_push(row, (ts_i32)v); } \
    TS_INLINE void ts_row_end_##T(const ts_row_##T *row) { ts_row_end(row); }

#else

#define TS_ROW(T, C, B)                                         \
    typedef C *ts_row_##T;                                      \
    TS_INLINE ts_row_##T ts_row_begin_##T(C *p) { return p; }   \
    TS_INLINE void ts_row_push_##T(ts_row_##T *row, ts_##T v) { \
        ts_store_##T(*row, v);                                  \
        *row += TS_LANES_##B;                                   \
    }                                                           \
    TS_INLINE void ts_row_end_##T(const ts_row_##T *row) { (void)row; }

#endif
TS_WORDS(TS_ROW)
#undef TS_ROW
#undef TS_WORDS

#endif
