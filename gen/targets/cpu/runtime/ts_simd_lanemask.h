/* For the levels without mask registers: a mask is a vector of signed integers, 0 or -1 a lane. */
#ifndef TS_SIMD_LANEMASK_H
#define TS_SIMD_LANEMASK_H

typedef ts_i8 ts_m8;
typedef ts_i16 ts_m16;
typedef ts_i32 ts_m32;
typedef ts_i64 ts_m64;

#define TS_MASKS(B)                                                        \
    TS_INLINE ts_m##B ts_first_m##B(int64_t k) {                           \
        return (ts_m##B)(ts_iota_i##B() < ts_set_i##B((int##B##_t)k));     \
    }                                                                      \
    TS_INLINE ts_m##B ts_mand_m##B(ts_m##B a, ts_m##B b) { return a & b; } \
    TS_INLINE ts_m##B ts_mor_m##B(ts_m##B a, ts_m##B b) { return a | b; }  \
    TS_INLINE ts_m##B ts_mxor_m##B(ts_m##B a, ts_m##B b) { return a ^ b; } \
    TS_INLINE ts_m##B ts_mnot_m##B(ts_m##B a) { return ~a; }
TS_WIDTHS(TS_MASKS)
#undef TS_MASKS

#define TS_MASK_PAIR(U, T)                                                          \
    TS_INLINE ts_m##U ts_lo_m##U##_m##T(ts_m##T m) { return ts_lo_i##U##_i##T(m); } \
    TS_INLINE ts_m##U ts_hi_m##U##_m##T(ts_m##T m) { return ts_hi_i##U##_i##T(m); } \
    TS_INLINE ts_m##T ts_narrow_m##T##_m##U(ts_m##U lo, ts_m##U hi) {               \
        return ts_narrow_i##T##_i##U(lo, hi);                                       \
    }
TS_MASK_PAIR(64, 32)
TS_MASK_PAIR(32, 16)
TS_MASK_PAIR(16, 8)
#undef TS_MASK_PAIR

#define TS_COMPARES(T, C, B, U, CU)                                               \
    TS_INLINE ts_m##B ts_lt_##T(ts_##T a, ts_##T b) { return (ts_m##B)(a < b); }  \
    TS_INLINE ts_m##B ts_le_##T(ts_##T a, ts_##T b) { return (ts_m##B)(a <= b); } \
    TS_INLINE ts_m##B ts_gt_##T(ts_##T a, ts_##T b) { return (ts_m##B)(a > b); }  \
    TS_INLINE ts_m##B ts_ge_##T(ts_##T a, ts_##T b) { return (ts_m##B)(a >= b); } \
    TS_INLINE ts_m##B ts_eq_##T(ts_##T a, ts_##T b) { return (ts_m##B)(a == b); } \
    TS_INLINE ts_m##B ts_ne_##T(ts_##T a, ts_##T b) { return (ts_m##B)(a != b); } \
    TS_INLINE ts_##T ts_select_##T(ts_m##B m, ts_##T a, ts_##T b) {               \
        return (ts_##T)ts_blend((ts_u8)m, (ts_u8)a, (ts_u8)b);                    \
    }
TS_ALL(TS_COMPARES)
#undef TS_COMPARES

#define TS_MINMAX(T)                                                                       \
    TS_INLINE ts_##T ts_min_##T(ts_##T a, ts_##T b) { return ts_select_##T(a < b, a, b); } \
    TS_INLINE ts_##T ts_max_##T(ts_##T a, ts_##T b) { return ts_select_##T(a > b, a, b); }
TS_MINMAX(i64)
TS_MINMAX(u64)
#undef TS_MINMAX

#define TS_ANY_ALL(B)                                                       \
    TS_INLINE bool ts_any_m##B(ts_m##B m) { return ts_any_byte((ts_u8)m); } \
    TS_INLINE bool ts_all_m##B(ts_m##B m) { return !ts_any_byte((ts_u8)~m); }
TS_WIDTHS(TS_ANY_ALL)
#undef TS_ANY_ALL

#define TS_BALLOT(B)                                                                           \
    TS_INLINE uint64_t ts_ballot_m##B(ts_m##B m) {                                             \
        uint64_t bits = 0;                                                                     \
        for (int i = 0; i < TS_LANES_##B; i++) bits |= (uint64_t)(uint##B##_t)(m[i] & 1) << i; \
        return bits;                                                                           \
    }
#ifndef TS_BALLOTS
TS_BALLOT(8)
TS_BALLOT(32)
TS_BALLOT(64)
#else
TS_BALLOTS
#endif
TS_BALLOT(16)
#undef TS_BALLOT

/* Parts of memory, where the level has no instruction. They are out of line, since they are many
   instructions, and in registers: a load of the whole would wait for parts just stored. */
#define TS_APART static __attribute__((noinline, unused))

#define TS_BYTES_AT(bits)                                         \
    TS_INLINE uint64_t ts_bytes_at_##bits(const char *p) {        \
        uint##bits##_t v;                                         \
        memcpy(&v, p, sizeof(v));                                 \
        return v;                                                 \
    }                                                             \
    TS_INLINE void ts_put_bytes_##bits(char *p, uint64_t bytes) { \
        const uint##bits##_t v = (uint##bits##_t)bytes;           \
        memcpy(p, &v, sizeof(v));                                 \
    }
TS_WIDTHS(TS_BYTES_AT)
#undef TS_BYTES_AT

/* The first n bytes of a word, where n < 1 none: two halves of it, or two quarters, that overlap. */
TS_INLINE uint64_t ts_load_word(const char *p, int64_t n) {
    if (n >= 8) return ts_bytes_at_64(p);
    if (n >= 4) return ts_bytes_at_32(p) | ts_bytes_at_32(p + n - 4) << 8 * (n - 4);
    if (n >= 2) return ts_bytes_at_16(p) | ts_bytes_at_16(p + n - 2) << 8 * (n - 2);
    return n > 0 ? ts_bytes_at_8(p) : 0;
}
TS_INLINE void ts_store_word(char *p, uint64_t word, int64_t n) {
    if (n >= 8) {
        ts_put_bytes_64(p, word);
    } else if (n >= 4) {
        ts_put_bytes_32(p, word);
        ts_put_bytes_32(p + n - 4, word >> 8 * (n - 4));
    } else if (n >= 2) {
        ts_put_bytes_16(p, word);
        ts_put_bytes_16(p + n - 2, word >> 8 * (n - 2));
    } else if (n > 0) {
        ts_put_bytes_8(p, word);
    }
}

/* The first n bytes of two words, or of a vector; what is loaded beyond them is 0. */
typedef uint64_t ts_words __attribute__((vector_size(16)));
TS_INLINE ts_words ts_load_two_words(const char *p, int64_t n) {
    return (ts_words){ts_load_word(p, n), ts_load_word(p + 8, n - 8)};
}
TS_INLINE void ts_store_two_words(char *p, ts_words v, int64_t n) {
    ts_store_word(p, v[0], n);
    ts_store_word(p + 8, v[1], n - 8);
}
TS_APART ts_words ts_load_words(const void *p, int64_t n) { return ts_load_two_words(p, n); }
TS_APART void ts_store_words(void *p, ts_words v, int64_t n) { ts_store_two_words(p, v, n); }
#ifdef TS_V3
TS_APART ts_u8 ts_load_bytes(const char *p, int64_t n) {
    const ts_words low = ts_load_two_words(p, n);
    const ts_words high = ts_load_two_words(p + 16, n - 16);
    return (ts_u8)_mm256_set_m128i((__m128i)high, (__m128i)low);
}
TS_APART void ts_store_bytes(char *p, ts_u8 v, int64_t n) {
    ts_store_two_words(p, (ts_words)_mm256_castsi256_si128((__m256i)v), n);
    const ts_words high = (ts_words)_mm256_extracti128_si256((__m256i)v, 1);
    ts_store_two_words(p + 16, high, n - 16);
}
#else
#define ts_load_bytes(p, n) ts_load_words(p, n)
#define ts_store_bytes(p, v, n) ts_store_words(p, (ts_words)(v), n)
#endif

#define TS_LANE(i) m[i] ? p[i] : 0
#define TS_MASKED_MEMORY(T, C, B)                                              \
    TS_APART ts_##T ts_load_mask_##T(const C *p, ts_m##B m) {                  \
        return (ts_##T){TS_SEQ(TS_LANES_##B, TS_LANE, 0)};                     \
    }                                                                          \
    TS_APART void ts_store_mask_##T(C *p, ts_##T v, ts_m##B m) {               \
        for (int i = 0; i < TS_LANES_##B; i++)                                 \
            if (m[i]) p[i] = v[i];                                             \
    }                                                                          \
    TS_INLINE ts_##T ts_load_first_##T(const C *p, int64_t k) {                \
        return (ts_##T)ts_load_bytes((const char *)p, k * (int64_t)sizeof(C)); \
    }                                                                          \
    TS_INLINE void ts_store_first_##T(C *p, ts_##T v, int64_t k) {             \
        ts_store_bytes((char *)p, (ts_u8)v, k * (int64_t)sizeof(C));           \
    }
#define TS_FROM(i) p[index[i]]
#define TS_FROM_MASK(i) m[i] ? p[index[i]] : 0
#define TS_GATHER(T, C, B)                                                            \
    TS_INLINE ts_##T ts_gather_##T##_i##B(const C *p, ts_i##B index) {                \
        return (ts_##T){TS_SEQ(TS_LANES_##B, TS_FROM, 0)};                            \
    }                                                                                 \
    TS_APART ts_##T ts_gather_mask_##T##_i##B(const C *p, ts_i##B index, ts_m##B m) { \
        return (ts_##T){TS_SEQ(TS_LANES_##B, TS_FROM_MASK, 0)};                       \
    }
/* With 64-bit indices, in two vectors. */
#define TS_FROM_LO(i) p[lo[i]]
#define TS_FROM_HI(i) p[hi[i]]
#define TS_FROM_LO_MASK(i) m[i] ? p[lo[i]] : 0
#define TS_FROM_HI_MASK(i) m[(i) + TS_LANES_64] ? p[hi[i]] : 0
#define TS_GATHER_WIDE(T, C)                                                               \
    TS_INLINE ts_##T ts_gather_##T##_i64(const C *p, ts_i64 lo, ts_i64 hi) {               \
        return (ts_##T){TS_SEQ(TS_LANES_64, TS_FROM_LO, 0),                                \
                        TS_SEQ(TS_LANES_64, TS_FROM_HI, 0)};                               \
    }                                                                                      \
    TS_APART ts_##T ts_gather_mask_##T##_i64(const C *p, ts_i64 lo, ts_i64 hi, ts_m32 m) { \
        return (ts_##T){TS_SEQ(TS_LANES_64, TS_FROM_LO_MASK, 0),                           \
                        TS_SEQ(TS_LANES_64, TS_FROM_HI_MASK, 0)};                          \
    }

#define TS_MEMORY_8(T, C) TS_MASKED_MEMORY(T, C, 8)
#define TS_MEMORY_16(T, C) TS_MASKED_MEMORY(T, C, 16)
#ifdef TS_V3
#define TS_MEMORY_32(T, C) TS_V3_MEMORY(T, C, 32) TS_GATHER_WIDE(T, C)
#define TS_MEMORY_64(T, C) TS_V3_MEMORY(T, C, 64)
#else
#define TS_MEMORY_32(T, C) TS_MASKED_MEMORY(T, C, 32) TS_GATHER(T, C, 32) TS_GATHER_WIDE(T, C)
#define TS_MEMORY_64(T, C) TS_MASKED_MEMORY(T, C, 64) TS_GATHER(T, C, 64)
#endif
#define TS_MEMORY(T, C, B, U, CU) TS_MEMORY_##B(T, C)
TS_ALL(TS_MEMORY)
#undef TS_MEMORY
#undef TS_MEMORY_8
#undef TS_MEMORY_16
#undef TS_MEMORY_32
#undef TS_MEMORY_64
#undef TS_MASKED_MEMORY
#undef TS_GATHER
#undef TS_GATHER_WIDE
#undef TS_LANE
#undef TS_FROM
#undef TS_FROM_MASK
#undef TS_FROM_LO
#undef TS_FROM_HI
#undef TS_FROM_LO_MASK
#undef TS_FROM_HI_MASK

#define TS_SHIFT(T, C, B, U, CU)                                                        \
    TS_INLINE ts_##T ts_shift_##T(ts_##T prev, ts_##T cur, int64_t k) {                 \
        return (ts_##T)ts_shift_bytes((ts_u8)prev, (ts_u8)cur, k * (int64_t)sizeof(C)); \
    }
TS_ALL(TS_SHIFT)
#undef TS_SHIFT

#endif
