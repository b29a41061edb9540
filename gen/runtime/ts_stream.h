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

/* TS_TURN(T): the lanes moved up by ts_turn, those at the end coming first. TS_MEET: the lanes of a
   line, from two vectors that were turned. */
#define TS_WORDS(X) X(f32, float, 32) X(i32, int32_t, 32) X(u32, uint32_t, 32) \
    X(f64, double, 64) X(i64, int64_t, 64) X(u64, uint64_t, 64)

#if defined TS_V4 || defined TS_V3

#ifdef TS_V4
TS_INLINE ts_i32 ts_turned(ts_i32 v, ts_i32 index) {
    return (ts_i32)_mm512_permutexvar_epi32((__m512i)index, (__m512i)v);
}
#else
TS_INLINE ts_i32 ts_turned(ts_i32 v, ts_i32 index) {
    return (ts_i32)_mm256_permutevar8x32_epi32((__m256i)v, (__m256i)index);
}
#endif

/* line: where the next store goes. shift: how many 32-bit lanes of it come before the next vector.
   index, before: turn a vector up by so many lanes; the lanes that the vector before fills. held: that
   vector, turned. started: the first line is behind. */
typedef struct ts_row {
    char *line;
    int64_t shift;
    ts_i32 index;
    ts_m32 before;
    ts_i32 held;
    bool started;
} ts_row;

TS_INLINE ts_row ts_row_begin(void *p) {
    const int64_t shift = (int64_t)((uintptr_t)p % TS_BYTES / 4);
    return (ts_row){
        .line = (char *)p - 4 * shift,
        .shift = shift,
        .index = (ts_iota_i32() - ts_set_i32((int32_t)shift)) & ts_set_i32(TS_LANES_32 - 1),
        .before = ts_first_m32(shift),
        .held = {0},
        .started = false,
    };
}

TS_INLINE void ts_row_push(ts_row *row, ts_i32 v) {
    const ts_i32 turned = ts_turned(v, row->index);
    if (__builtin_expect(row->started, 1))
        ts_stream_i32((int32_t *)(void *)row->line, ts_select_i32(row->before, row->held, turned));
    else
        ts_store_mask_i32((int32_t *)(void *)row->line, turned, ts_mnot_m32(row->before));
    row->started = true;
    row->held = turned;
    row->line += TS_BYTES;
}

TS_INLINE void ts_row_end(const ts_row *row) {
    if (row->started)
        ts_store_mask_i32((int32_t *)(void *)row->line, row->held, row->before);
}

#define TS_ROW(T, C, B)                                                                  \
    typedef ts_row ts_row_##T;                                                           \
    TS_INLINE ts_row_##T ts_row_begin_##T(C *p) { return ts_row_begin(p); }              \
    TS_INLINE void ts_row_push_##T(ts_row_##T *row, ts_##T v) { ts_row_push(row, (ts_i32)v); } \
    TS_INLINE void ts_row_end_##T(const ts_row_##T *row) { ts_row_end(row); }

#else

#define TS_ROW(T, C, B)                                                   \
    typedef C *ts_row_##T;                                                \
    TS_INLINE ts_row_##T ts_row_begin_##T(C *p) { return p; }             \
    TS_INLINE void ts_row_push_##T(ts_row_##T *row, ts_##T v) {           \
        ts_store_##T(*row, v);                                            \
        *row += TS_LANES_##B;                                             \
    }                                                                     \
    TS_INLINE void ts_row_end_##T(const ts_row_##T *row) { (void)row; }

#endif
TS_WORDS(TS_ROW)
#undef TS_ROW
#undef TS_WORDS

#endif
