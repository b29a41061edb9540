/* Element types, for macros that define a function of each. */
#ifndef TS_TYPES_H
#define TS_TYPES_H

/* X(T, C type, bits, unsigned T of that width, unsigned C type) */
#define TS_FLOATS(X) X(f32, float, 32, u32, uint32_t) X(f64, double, 64, u64, uint64_t)
#define TS_SIGNED(X)                                                 \
    X(i8, int8_t, 8, u8, uint8_t) X(i16, int16_t, 16, u16, uint16_t) \
    X(i32, int32_t, 32, u32, uint32_t) X(i64, int64_t, 64, u64, uint64_t)
#define TS_UNSIGNED(X)                                                 \
    X(u8, uint8_t, 8, u8, uint8_t) X(u16, uint16_t, 16, u16, uint16_t) \
    X(u32, uint32_t, 32, u32, uint32_t) X(u64, uint64_t, 64, u64, uint64_t)
#define TS_INTEGERS(X) TS_SIGNED(X) TS_UNSIGNED(X)
#define TS_ALL(X) TS_FLOATS(X) TS_INTEGERS(X)
/* X(bits) */
#define TS_WIDTHS(X) X(8) X(16) X(32) X(64)

#endif
