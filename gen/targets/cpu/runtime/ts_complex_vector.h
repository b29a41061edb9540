/* Included by ts_complex.h, once a type: forms of vectors alone. */

TS_INLINE Z F(set)(S x) { return (Z){R(set)(x.re), R(set)(x.im)}; }
TS_INLINE S F(lane)(Z v, int i) { return (S){v.re[i], v.im[i]}; }
TS_INLINE Z F(shift)(Z prev, Z cur, int64_t k) {
    return (Z){R(shift)(prev.re, cur.re, k), R(shift)(prev.im, cur.im, k)};
}

/* ---------------------------------------------------------------- memory

   Of the two native vectors that numbers fill in memory, `lo` has the first half of the numbers. */

#define EVEN(i) (2 * (i))
#define ODD(i) (2 * (i) + 1)
#define LOWER(i) ((i) / 2 + (i) % 2 * LANES)
#define UPPER(i) ((LANES + (i)) / 2 + (i) % 2 * LANES)

TS_INLINE Z F(parted)(V lo, V hi) {
    return (Z){__builtin_shufflevector(lo, hi, TS_SEQ(LANES, EVEN, 0)),
               __builtin_shufflevector(lo, hi, TS_SEQ(LANES, ODD, 0))};
}
TS_INLINE V F(lower)(Z v) { return __builtin_shufflevector(v.re, v.im, TS_SEQ(LANES, LOWER, 0)); }
TS_INLINE V F(upper)(Z v) { return __builtin_shufflevector(v.re, v.im, TS_SEQ(LANES, UPPER, 0)); }

#undef EVEN
#undef ODD
#undef LOWER
#undef UPPER

TS_INLINE Z F(load)(const S *p) {
    const C *parts = (const void *)p;
    return F(parted)(R(load)(parts), R(load)(parts + LANES));
}
TS_INLINE void F(store)(S *p, Z v) {
    C *parts = (void *)p;
    R(store)(parts, F(lower)(v));
    R(store)(parts + LANES, F(upper)(v));
}

/* Of the first k numbers, how many parts are in `lo`, and in `hi`. */
TS_INLINE int64_t F(in_lo)(int64_t k) { return 2 * k < LANES ? 2 * k : LANES; }
TS_INLINE int64_t F(in_hi)(int64_t k) { return 2 * k < LANES ? 0 : 2 * k - LANES; }

TS_INLINE Z F(load_first)(const S *p, int64_t k) {
    const C *parts = (const void *)p;
    return F(parted)(R(load_first)(parts, F(in_lo)(k)), R(load_first)(parts + LANES, F(in_hi)(k)));
}
TS_INLINE void F(store_first)(S *p, Z v, int64_t k) {
    C *parts = (void *)p;
    R(store_first)(parts, F(lower)(v), F(in_lo)(k));
    R(store_first)(parts + LANES, F(upper)(v), F(in_hi)(k));
}

/* Masks of the parts: a number's is on for both. */
TS_INLINE Z F(flags)(M m) {
    V flags = R(select)(m, R(set)(1), R(set)(0));
    return (Z){flags, flags};
}
TS_INLINE M F(mask_lo)(M m) { return R(ne)(F(lower)(F(flags)(m)), R(set)(0)); }
TS_INLINE M F(mask_hi)(M m) { return R(ne)(F(upper)(F(flags)(m)), R(set)(0)); }

TS_INLINE Z F(load_mask)(const S *p, M m) {
    const C *parts = (const void *)p;
    return F(parted)(R(load_mask)(parts, F(mask_lo)(m)), R(load_mask)(parts + LANES, F(mask_hi)(m)));
}
TS_INLINE void F(store_mask)(S *p, Z v, M m) {
    C *parts = (void *)p;
    R(store_mask)(parts, F(lower)(v), F(mask_lo)(m));
    R(store_mask)(parts + LANES, F(upper)(v), F(mask_hi)(m));
}

TS_INLINE Z F(load_strided_first)(const S *p, int64_t stride, int64_t k) {
    if (stride == 1) return F(load_first)(p, k);
    S lanes[LANES] = {{0, 0}};
    for (int64_t i = 0; i < k; i++) lanes[i] = p[i * stride];
    return F(load)(lanes);
}
TS_INLINE Z F(load_strided)(const S *p, int64_t stride) {
    if (stride == 1) return F(load)(p);
#define RE(i) p[(i) * stride].re
#define IM(i) p[(i) * stride].im
    return (Z){(V){TS_SEQ(LANES, RE, 0)}, (V){TS_SEQ(LANES, IM, 0)}};
#undef RE
#undef IM
}
TS_INLINE Z F(load_strided_mask)(const S *p, int64_t stride, M m) {
    if (stride == 1) return F(load_mask)(p, m);
    S lanes[LANES];
    C active[LANES];
    R(store)(active, F(flags)(m).re);
    for (int64_t i = 0; i < LANES; i++) lanes[i] = active[i] != 0 ? p[i * stride] : (S){0, 0};
    return F(load)(lanes);
}
TS_INLINE void F(store_strided_first)(S *p, int64_t stride, Z v, int64_t k) {
    if (stride == 1) {
        F(store_first)(p, v, k);
        return;
    }
    S lanes[LANES];
    F(store)(lanes, v);
    for (int64_t i = 0; i < k; i++) p[i * stride] = lanes[i];
}
TS_INLINE void F(store_strided)(S *p, int64_t stride, Z v) {
    if (stride == 1)
        F(store)(p, v);
    else
        F(store_strided_first)(p, stride, v, LANES);
}
TS_INLINE void F(store_strided_mask)(S *p, int64_t stride, Z v, M m) {
    if (stride == 1) {
        F(store_mask)(p, v, m);
        return;
    }
    S lanes[LANES];
    C active[LANES];
    R(store)(active, F(flags)(m).re);
    F(store)(lanes, v);
    for (int64_t i = 0; i < LANES; i++)
        if (active[i] != 0) p[i * stride] = lanes[i];
}

/* ---------------------------------------------------------------- reductions and scans */

TS_INLINE Z F(down)(Z v, int bytes) {
    return (Z){(V)ts_down((ts_u8)v.re, bytes), (V)ts_down((ts_u8)v.im, bytes)};
}
#define REDUCE(op)                                            \
    TS_INLINE S F(reduce_##op)(Z v) {                         \
        if (TS_BYTES > 32) v = F(op)(v, F(down)(v, 32));      \
        if (TS_BYTES > 16) v = F(op)(v, F(down)(v, 16));      \
        v = F(op)(v, F(down)(v, 8));                          \
        if (sizeof(C) < 8) v = F(op)(v, F(down)(v, 4));       \
        return F(lane)(v, 0);                                 \
    }
REDUCE(add)
REDUCE(mul)
#undef REDUCE

/* As ts_scan.h has it: blocks of k lanes have their running reductions, then blocks of 2k. */
#define SPREAD(v, k) __builtin_shufflevector(v, v, TS_SEQ(LANES, LAST_##k, 0))
#define LAST_1(i) ((i) & ~1)
#define LAST_2(i) ((((i) & ~3) + 1) & (LANES - 1))
#define LAST_4(i) ((((i) & ~7) + 3) & (LANES - 1))
#define LAST_8(i) (7 & (LANES - 1))
#define END(i) (LANES - 1)
#define UPPER_1(i) ((i) + ((i) & 1) * LANES)
#define UPPER_2(i) ((i) + ((i) >> 1 & 1) * LANES)
#define UPPER_4(i) ((i) + ((i) >> 2 & 1) * LANES)
#define UPPER_8(i) ((i) + ((i) >> 3 & 1) * LANES)
#define STEP(op, k)                                                                        \
    if (LANES > k) {                                                                       \
        Z both = F(op)((Z){SPREAD(v.re, k), SPREAD(v.im, k)}, v);                          \
        v.re = __builtin_shufflevector(v.re, both.re, TS_SEQ(LANES, UPPER_##k, 0));        \
        v.im = __builtin_shufflevector(v.im, both.im, TS_SEQ(LANES, UPPER_##k, 0));        \
    }
TS_INLINE Z F(scan_add)(Z v) {
    STEP(add, 1) STEP(add, 2) STEP(add, 4) STEP(add, 8)
    return v;
}
TS_INLINE Z F(scan_mul)(Z v) {
    STEP(mul, 1) STEP(mul, 2) STEP(mul, 4) STEP(mul, 8)
    return v;
}
TS_INLINE Z F(last)(Z v) {
    return (Z){__builtin_shufflevector(v.re, v.re, TS_SEQ(LANES, END, 0)),
               __builtin_shufflevector(v.im, v.im, TS_SEQ(LANES, END, 0))};
}
#undef SPREAD
#undef LAST_1
#undef LAST_2
#undef LAST_4
#undef LAST_8
#undef END
#undef UPPER_1
#undef UPPER_2
#undef UPPER_4
#undef UPPER_8
#undef STEP
