/* Square tiles of vectors transposed in registers.

   ts_transpose_T(t)    t[i] lane j and t[j] lane i exchanged, for TS_LANES_T vectors; T of 32 or 64
                        bits. A compiler keeps a local array `t` in registers.
   ts_transpose_tile_T(t, k)   the same of k * TS_LANES_T rows of k vectors, one after another

   In log2(lanes) steps. Step `bit` takes the vectors in pairs whose numbers differ in that bit, and
   exchanges it with a bit of the lane's number, while the other bits of the latter move by one: to
   the left within each 16 bytes (LOW, HIGH), to the right in the number of the 16 bytes (EVEN, ODD).
   After all of them each has moved through its whole part. Each vector of a step is one instruction
   on every level. */
#ifndef TS_TRANSPOSE_H
#define TS_TRANSPOSE_H

#include "ts_simd.h"

/* Before a function whose loops walk many rows of an array at once. gcc would advance an address for
   each row, more than it has registers for, and the loads of those from the stack wait for stores
   past the caches to places that are alike modulo 4096. */
#if defined __GNUC__ && !defined __clang__
#define TS_MANY_ROWS __attribute__((optimize("no-ivopts")))
#else
#define TS_MANY_ROWS
#endif

/* Where lane i of a result comes from: n lanes of vector a, then those of b. e: lanes in 16 bytes.
   LOW, HIGH: the lower (upper) halves of each 16 bytes, a's and b's lanes in turn.
   EVEN, ODD: the 16 bytes with even (odd) numbers, a's and then b's. */
#define TS_LOW(i, n, e) ((i) / (e) * (e) + (i) % (e) / 2 + (i) % 2 * (n))
#define TS_HIGH(i, n, e) (TS_LOW(i, n, e) + (e) / 2)
#define TS_EVEN(i, n, e) ((i) / (e)*2 * (e) + (i) % (e))
#define TS_ODD(i, n, e) (TS_EVEN(i, n, e) + (e))
#define TS_LOW_32(i) TS_LOW(i, TS_LANES_32, 4)
#define TS_HIGH_32(i) TS_HIGH(i, TS_LANES_32, 4)
#define TS_EVEN_32(i) TS_EVEN(i, TS_LANES_32, 4)
#define TS_ODD_32(i) TS_ODD(i, TS_LANES_32, 4)
#define TS_LOW_64(i) TS_LOW(i, TS_LANES_64, 2)
#define TS_HIGH_64(i) TS_HIGH(i, TS_LANES_64, 2)
#define TS_EVEN_64(i) TS_EVEN(i, TS_LANES_64, 2)
#define TS_ODD_64(i) TS_ODD(i, TS_LANES_64, 2)

/* Pair p of step `bit`: p with a 0 put in at that bit, and with a 1. */
#define TS_PAIR_OF(p, bit) ((p) >> (bit) << ((bit) + 1) | ((p) & ((1 << (bit)) - 1)))
#define TS_EXCHANGE(T, B, first, second, bit, p)                                                   \
    {                                                                                              \
        const ts_##T a = t[TS_PAIR_OF(p, bit)], b = t[TS_PAIR_OF(p, bit) + (1 << (bit))];          \
        t[TS_PAIR_OF(p, bit)] =                                                                    \
            __builtin_shufflevector(a, b, TS_SEQ(TS_LANES_##B, TS_##first##_##B, 0));              \
        t[TS_PAIR_OF(p, bit) + (1 << (bit))] =                                                     \
            __builtin_shufflevector(a, b, TS_SEQ(TS_LANES_##B, TS_##second##_##B, 0));             \
    }
#define TS_PAIRS_1(T, B, f, s, bit, p) TS_EXCHANGE(T, B, f, s, bit, p)
#define TS_PAIRS_2(T, B, f, s, bit, p) \
    TS_PAIRS_1(T, B, f, s, bit, p) TS_PAIRS_1(T, B, f, s, bit, (p) + 1)
#define TS_PAIRS_4(T, B, f, s, bit, p) \
    TS_PAIRS_2(T, B, f, s, bit, p) TS_PAIRS_2(T, B, f, s, bit, (p) + 2)
#define TS_PAIRS_8(T, B, f, s, bit, p) \
    TS_PAIRS_4(T, B, f, s, bit, p) TS_PAIRS_4(T, B, f, s, bit, (p) + 4)

#if TS_BYTES == 64
#define TS_STEP_32(T, f, s, bit) TS_PAIRS_8(T, 32, f, s, bit, 0)
#define TS_STEP_64(T, f, s, bit) TS_PAIRS_4(T, 64, f, s, bit, 0)
#define TS_ACROSS_32(T) TS_STEP_32(T, EVEN, ODD, 2) TS_STEP_32(T, EVEN, ODD, 3)
#define TS_ACROSS_64(T) TS_STEP_64(T, EVEN, ODD, 1) TS_STEP_64(T, EVEN, ODD, 2)
#elif TS_BYTES == 32
#define TS_STEP_32(T, f, s, bit) TS_PAIRS_4(T, 32, f, s, bit, 0)
#define TS_STEP_64(T, f, s, bit) TS_PAIRS_2(T, 64, f, s, bit, 0)
#define TS_ACROSS_32(T) TS_STEP_32(T, EVEN, ODD, 2)
#define TS_ACROSS_64(T) TS_STEP_64(T, EVEN, ODD, 1)
#else
#define TS_STEP_32(T, f, s, bit) TS_PAIRS_2(T, 32, f, s, bit, 0)
#define TS_STEP_64(T, f, s, bit) TS_PAIRS_1(T, 64, f, s, bit, 0)
#define TS_ACROSS_32(T)
#define TS_ACROSS_64(T)
#endif
#define TS_WITHIN_32(T) TS_STEP_32(T, LOW, HIGH, 1) TS_STEP_32(T, LOW, HIGH, 0)
#define TS_WITHIN_64(T) TS_STEP_64(T, LOW, HIGH, 0)

#define TS_TRANSPOSE(T, B)                                                               \
    TS_INLINE void ts_transpose_##T(ts_##T *t) { TS_WITHIN_##B(T) TS_ACROSS_##B(T) }     \
    TS_INLINE void ts_transpose_tile_##T(ts_##T *t, const int k) {                       \
        const int n = TS_LANES_##B;                                                      \
        _Pragma("GCC unroll 4") for (int row = 0; row < k; ++row) {                      \
            _Pragma("GCC unroll 4") for (int column = row; column < k; ++column) {       \
                ts_##T upper[TS_LANES_##B], lower[TS_LANES_##B];                         \
                _Pragma("GCC unroll 16") for (int i = 0; i < n; ++i) {                   \
                    upper[i] = t[(row * n + i) * k + column];                            \
                    lower[i] = t[(column * n + i) * k + row];                            \
                }                                                                        \
                ts_transpose_##T(upper);                                                 \
                ts_transpose_##T(lower);                                                 \
                _Pragma("GCC unroll 16") for (int i = 0; i < n; ++i) {                   \
                    t[(row * n + i) * k + column] = lower[i];                            \
                    t[(column * n + i) * k + row] = upper[i];                            \
                }                                                                        \
            }                                                                            \
        }                                                                                \
    }
TS_TRANSPOSE(f32, 32)
TS_TRANSPOSE(i32, 32)
TS_TRANSPOSE(u32, 32)
TS_TRANSPOSE(f64, 64)
TS_TRANSPOSE(i64, 64)
TS_TRANSPOSE(u64, 64)

#undef TS_TRANSPOSE
#undef TS_WITHIN_32
#undef TS_WITHIN_64
#undef TS_ACROSS_32
#undef TS_ACROSS_64
#undef TS_STEP_32
#undef TS_STEP_64
#undef TS_PAIRS_8
#undef TS_PAIRS_4
#undef TS_PAIRS_2
#undef TS_PAIRS_1
#undef TS_EXCHANGE
#undef TS_PAIR_OF
#undef TS_LOW_32
#undef TS_HIGH_32
#undef TS_EVEN_32
#undef TS_ODD_32
#undef TS_LOW_64
#undef TS_HIGH_64
#undef TS_EVEN_64
#undef TS_ODD_64
#undef TS_LOW
#undef TS_HIGH
#undef TS_EVEN
#undef TS_ODD

#endif
