/* Each second, third or fourth element, on v4 up to each eighth, picked from vectors that are loaded as
   they lie. Included by ts_simd.h. The last vector ends with the last element, so that nothing beyond it
   is touched. */
#ifndef TS_EVERY_H
#define TS_EVERY_H

/* Where lane i of a result comes from: n lanes of vector a, then those of b. Lanes that a later step
   fills are 0. */
#define TS_SECOND(i, n) (2 * (i) < (n) ? 2 * (i) : 2 * (i) + 1)
#define TS_THIRD(i, n) (3 * (i) < 2 * (n) ? 3 * (i) : 0)
#define TS_THIRD_OR(i, n) (3 * (i) < 2 * (n) ? (i) : 3 * (i)-(n) + 2)
#define TS_FOURTH(i, n) (4 * (i) < 2 * (n) ? 4 * (i) : 0)
#define TS_FOURTH_ON(i, n) \
    (4 * (i) < 2 * (n) ? 0 : 4 * (i)-2 * (n) + (4 * (i) < 3 * (n) ? 0 : 3))
#define TS_UPPER_OR(i, n) (2 * (i) < (n) ? (i) : (n) + (i))

#define TS_SECOND_32(i) TS_SECOND(i, TS_LANES_32)
#define TS_SECOND_64(i) TS_SECOND(i, TS_LANES_64)
#define TS_THIRD_32(i) TS_THIRD(i, TS_LANES_32)
#define TS_THIRD_64(i) TS_THIRD(i, TS_LANES_64)
#define TS_THIRD_OR_32(i) TS_THIRD_OR(i, TS_LANES_32)
#define TS_THIRD_OR_64(i) TS_THIRD_OR(i, TS_LANES_64)
#define TS_FOURTH_32(i) TS_FOURTH(i, TS_LANES_32)
#define TS_FOURTH_64(i) TS_FOURTH(i, TS_LANES_64)
#define TS_FOURTH_ON_32(i) TS_FOURTH_ON(i, TS_LANES_32)
#define TS_FOURTH_ON_64(i) TS_FOURTH_ON(i, TS_LANES_64)
#define TS_UPPER_OR_32(i) TS_UPPER_OR(i, TS_LANES_32)
#define TS_UPPER_OR_64(i) TS_UPPER_OR(i, TS_LANES_64)
#define TS_PICK(B, which, a, b) __builtin_shufflevector(a, b, TS_SEQ(TS_LANES_##B, TS_##which##_##B, 0))

#define TS_NTH(i) p[(i) * step]

#define TS_EVERY_WIDE(T, C, B)                                                                \
    TS_INLINE ts_##T ts_every_##T(const C *p, int64_t step) {                                 \
        enum { N = TS_LANES_##B };                                                            \
        if (step == 4 && N < 4) return (ts_##T){TS_SEQ(TS_LANES_##B, TS_NTH, 0)};             \
        const ts_##T a = ts_load_##T(p), last = ts_load_##T(p + (step - 1) * (N - 1));        \
        if (step == 2) return TS_PICK(B, SECOND, a, last);                                    \
        const ts_##T b = ts_load_##T(p + N);                                                  \
        if (step == 3) return TS_PICK(B, THIRD_OR, TS_PICK(B, THIRD, a, b), last);            \
        const ts_##T c = TS_PICK(B, FOURTH_ON, ts_load_##T(p + 2 * N), last);                 \
        return TS_PICK(B, UPPER_OR, TS_PICK(B, FOURTH, a, b), c);                             \
    }

/* Of words, where an instruction picks any lanes of two vectors, steps of 2 to 8, known or not. */
#ifdef TS_V4
#define TS_EVERY_BY_PAIRS(T, C, B)                                                                  \
    TS_INLINE bool ts_is_every_by_pairs_##T(int64_t step) { return 2 <= step && step <= 8; }        \
    TS_INLINE ts_##T ts_every_by_pairs_##T(const C *p, int64_t step) {                              \
        enum { N = TS_LANES_##B };                                                                   \
        const uint32_t end = (uint32_t)(step - 1) * (N - 1); /* where the last vector begins */      \
        const ts_u32 place = ts_iota_u32() * (uint32_t)step, from = place / N;                       \
        const ts_u32 lane = place - ts_min_u32(from * N, ts_set_u32(end)), which = lane + from % 2 * N; \
        const ts_##T last = ts_load_##T(p + end);                                                    \
        ts_##T v = TS_OF_TWO(T, ts_load_##T(p), TS_VECTOR_OR(T, 1, last));                           \
        if (step <= 2) return v;                                                                     \
        v = TS_FROM(T, 2 * N, TS_OF_TWO(T, TS_VECTOR_OR(T, 2, last), TS_VECTOR_OR(T, 3, last)), v);  \
        if (step <= 4) return v;                                                                     \
        v = TS_FROM(T, 4 * N, TS_OF_TWO(T, TS_VECTOR_OR(T, 4, last), TS_VECTOR_OR(T, 5, last)), v);  \
        if (step <= 6) return v;                                                                     \
        return TS_FROM(T, 6 * N, TS_OF_TWO(T, TS_VECTOR_OR(T, 6, last), last), v);                   \
    }
#define TS_VECTOR_OR(T, k, last) ((k) < step - 1 ? ts_load_##T(p + (k) * N) : last)
#define TS_OF_TWO(T, a, b) (ts_##T)_mm512_permutex2var_epi32((__m512i)(a), (__m512i)which, (__m512i)(b))
#define TS_FROM(T, first, then, before) \
    ts_select_##T(ts_ge_u32(place, ts_set_u32(first)), then, before)
#else
#define TS_EVERY_BY_PAIRS(T, C, B) TS_NO_EVERY_BY_PAIRS(T, C, B)
#endif
#define TS_NO_EVERY_BY_PAIRS(T, C, B)                                                               \
    TS_INLINE bool ts_is_every_by_pairs_##T(int64_t step) { (void)step; return false; }             \
    TS_INLINE ts_##T ts_every_by_pairs_##T(const C *p, int64_t step) { (void)p, (void)step; return (ts_##T){0}; }

/* Those under a mask, where the level loads under masks: what the mask leaves out is not touched, and
   neither is what lies between. */
#if defined TS_V3 || defined TS_V4
#define TS_EVEN_OF(i) 2 * (i)
#define TS_EVERY_MASK(T, C, B)                                                                   \
    TS_INLINE bool ts_is_every_mask_##T(int64_t step) { return __builtin_constant_p(step) && step == 2; } \
    TS_INLINE ts_##T ts_every_mask_##T(const C *p, ts_m##B m) {                                  \
        const ts_##T a = ts_load_mask_##T(p, ts_spread_m##B(m, false));                          \
        const ts_##T b = ts_load_mask_##T(p + TS_LANES_##B, ts_spread_m##B(m, true));            \
        return __builtin_shufflevector(a, b, TS_SEQ(TS_LANES_##B, TS_EVEN_OF, 0));               \
    }
#else
#define TS_EVERY_MASK(T, C, B) TS_NO_EVERY_MASK(T, C, B)
#endif
#define TS_NO_EVERY_MASK(T, C, B)                                                                \
    TS_INLINE bool ts_is_every_mask_##T(int64_t step) { (void)step; return false; }              \
    TS_INLINE ts_##T ts_every_mask_##T(const C *p, ts_m##B m) { (void)p, (void)m; return (ts_##T){0}; }

/* Of narrower elements as many are in a vector as take several instructions to pick. */
#define TS_EVERY_NARROW(T, C, B)                                  \
    TS_INLINE ts_##T ts_every_##T(const C *p, int64_t step) {     \
        return (ts_##T){TS_SEQ(TS_LANES_##B, TS_NTH, 0)};         \
    }

#define TS_EVERY_8(T, C, B) TS_EVERY_NARROW(T, C, B) TS_NO_EVERY_BY_PAIRS(T, C, B) TS_NO_EVERY_MASK(T, C, B)
#define TS_EVERY_16(T, C, B) TS_EVERY_NARROW(T, C, B) TS_NO_EVERY_BY_PAIRS(T, C, B) TS_NO_EVERY_MASK(T, C, B)
#define TS_EVERY_32(T, C, B) TS_EVERY_WIDE(T, C, B) TS_EVERY_BY_PAIRS(T, C, B) TS_EVERY_MASK(T, C, B)
#define TS_EVERY_64(T, C, B) TS_EVERY_WIDE(T, C, B) TS_NO_EVERY_BY_PAIRS(T, C, B) TS_EVERY_MASK(T, C, B)
#define TS_EVERY(T, C, B, U, CU) TS_EVERY_##B(T, C, B)
TS_ALL(TS_EVERY)
#undef TS_EVERY
#undef TS_EVERY_8
#undef TS_EVERY_16
#undef TS_EVERY_32
#undef TS_EVERY_64
#undef TS_EVERY_WIDE
#undef TS_EVERY_BY_PAIRS
#undef TS_NO_EVERY_BY_PAIRS
#undef TS_VECTOR_OR
#undef TS_OF_TWO
#undef TS_FROM
#undef TS_EVERY_MASK
#undef TS_NO_EVERY_MASK
#undef TS_EVEN_OF
#undef TS_EVERY_NARROW
#undef TS_NTH
#undef TS_PICK

#endif
