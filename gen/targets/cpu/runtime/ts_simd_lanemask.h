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

#define TS_BALLOT(B)                                                                            \
    TS_INLINE uint64_t ts_ballot_m##B(ts_m##B m) {                                              \
        uint64_t bits = 0;                                                                      \
        for (int i = 0; i < TS_LANES_##B; i++) bits |= (uint64_t)(uint##B##_t)(m[i] & 1) << i;  \
        return bits;                                                                            \
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

/* Lanes through memory, where the level has no instruction. */
#define TS_MASKED_MEMORY(T, C, B)                                             \
    TS_INLINE ts_##T ts_load_mask_##T(const C *p, ts_m##B m) {                \
        C lanes[TS_LANES_##B];                                                \
        for (int i = 0; i < TS_LANES_##B; i++) lanes[i] = m[i] ? p[i] : (C)0; \
        return ts_load_##T(lanes);                                            \
    }                                                                         \
    TS_INLINE void ts_store_mask_##T(C *p, ts_##T v, ts_m##B m) {             \
        for (int i = 0; i < TS_LANES_##B; i++)                                \
            if (m[i]) p[i] = v[i];                                            \
    }                                                                         \
    TS_INLINE ts_##T ts_load_first_##T(const C *p, int64_t k) {               \
        ts_##T v = {0};                                                       \
        ts_copy_bytes(&v, p, k * (int64_t)sizeof(C), TS_BYTES);               \
        return v;                                                             \
    }                                                                         \
    TS_INLINE void ts_store_first_##T(C *p, ts_##T v, int64_t k) {            \
        ts_copy_bytes(p, &v, k * (int64_t)sizeof(C), TS_BYTES);               \
    }
#define TS_GATHER(T, C, B)                                                             \
    TS_INLINE ts_##T ts_gather_mask_##T##_i##B(const C *p, ts_i##B index, ts_m##B m) { \
        C lanes[TS_LANES_##B];                                                         \
        for (int i = 0; i < TS_LANES_##B; i++) lanes[i] = m[i] ? p[index[i]] : (C)0;   \
        return ts_load_##T(lanes);                                                     \
    }
/* What every level has by instruction or as above: gathers without a mask; with 64-bit indices. */
#define TS_GATHER_ALL(T, C, B)                                         \
    TS_INLINE ts_##T ts_gather_##T##_i##B(const C *p, ts_i##B index) { \
        return ts_gather_mask_##T##_i##B(p, index, ~(ts_m##B){0});     \
    }
#define TS_GATHER_WIDE(T, C)                                                                \
    TS_INLINE ts_##T ts_gather_mask_##T##_i64(const C *p, ts_i64 lo, ts_i64 hi, ts_m32 m) { \
        C lanes[TS_LANES_32];                                                               \
        for (int i = 0; i < TS_LANES_64; i++) {                                             \
            lanes[i] = m[i] ? p[lo[i]] : (C)0;                                              \
            lanes[i + TS_LANES_64] = m[i + TS_LANES_64] ? p[hi[i]] : (C)0;                  \
        }                                                                                   \
        return ts_load_##T(lanes);                                                          \
    }                                                                                       \
    TS_INLINE ts_##T ts_gather_##T##_i64(const C *p, ts_i64 lo, ts_i64 hi) {                \
        return ts_gather_mask_##T##_i64(p, lo, hi, ~(ts_m32){0});                           \
    }

#define TS_MEMORY_8(T, C) TS_MASKED_MEMORY(T, C, 8)
#define TS_MEMORY_16(T, C) TS_MASKED_MEMORY(T, C, 16)
#ifdef TS_V3
#define TS_MEMORY_32(T, C) TS_V3_MEMORY(T, C, 32) TS_GATHER_ALL(T, C, 32) TS_GATHER_WIDE(T, C)
#define TS_MEMORY_64(T, C) TS_V3_MEMORY(T, C, 64) TS_GATHER_ALL(T, C, 64)
#else
#define TS_MEMORY_32(T, C) \
    TS_MASKED_MEMORY(T, C, 32) TS_GATHER(T, C, 32) TS_GATHER_ALL(T, C, 32) TS_GATHER_WIDE(T, C)
#define TS_MEMORY_64(T, C) TS_MASKED_MEMORY(T, C, 64) TS_GATHER(T, C, 64) TS_GATHER_ALL(T, C, 64)
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
#undef TS_GATHER_ALL
#undef TS_GATHER_WIDE

#define TS_SHIFT(T, C, B, U, CU)                                                        \
    TS_INLINE ts_##T ts_shift_##T(ts_##T prev, ts_##T cur, int64_t k) {                 \
        return (ts_##T)ts_shift_bytes((ts_u8)prev, (ts_u8)cur, k * (int64_t)sizeof(C)); \
    }
TS_ALL(TS_SHIFT)
#undef TS_SHIFT

#endif
