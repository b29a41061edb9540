/* The functions of float32 (see ts_math.h). */

/* 2^k for an integral k in [-126, 127]: the low bits of k + 3/2 * 2^23 are k's. */
TS_INLINE V F(pow2)(V k) { return F(from_bits)((F(bits)(k + K(0x1.8p23f)) << 23) + 0x3F800000u); }

/* x - k ln 2 for an integral k: the product with the upper part of ln 2 is exact. */
TS_INLINE V F(minus_ln2)(V x, V k) {
    return F(fma)(k, K(0x1.bd0106p-13f), F(fma)(k, K(-0x1.63p-1f), x));
}

/* (exp(x) - 1 - x) / x^2 for |x| <= ln(2) / 2 */
TS_INLINE V F(exp_tail)(V x) {
    V p = K(TS_EXP_F32_TOP);
    TS_EXP_F32(HORNER)
    return p;
}

/* unit * exp(r) for |r| <= ln(2) / 2 and a power of two, in the order that rounds least. */
TS_INLINE V F(exp_reduced)(V r, V tail, V unit) {
#if TS_HAS_FMA
    return F(fma)(F(fma)(tail, r, K(1.0f)), r * unit, unit);
#else
    V first = r * unit;
    return unit + (first + tail * (r * first));
#endif
}

/* x = k ln 2 + r; the low bits of `shifted` are k + 254: the sum of two halves that are exponents,
   as one may not hold all of k. */
typedef struct {
    V r, k, shifted;
} F(split);

/* At the ends of the clamp exp is 0 and infinity. */
TS_INLINE F(split) F(exp_split)(V x) {
    x = F(clamp)(x, K(-104.0f), K(89.0f));
#ifdef TS_V4
    V k = F(rint)(x * K(0x1.715476p+0f)), shifted = k + K(0x1.8p23f + 254);
#else
    V shifted = F(fma)(x, K(0x1.715476p+0f), K(0x1.8p23f + 254)), k = shifted - K(0x1.8p23f + 254);
#endif
    F(split) split = {F(minus_ln2)(x, k), k, shifted};
    return split;
}

TS_INLINE V F(exp_joined)(F(split) x, V tail) {
#ifdef SCALE
    return SCALE(F(exp_reduced)(x.r, tail, K(1.0f)), x.k);
#else
    U half = (F(bits)(x.shifted) & ~1u) << 22, rest = (F(bits)(x.shifted) << 23) - half;
    return F(exp_reduced)(x.r, tail, F(from_bits)(half)) * F(from_bits)(rest);
#endif
}

TS_INLINE V F(exp)(V x) {
    F(split) s = F(exp_split)(x);
    return F(exp_joined)(s, F(exp_tail)(s.r));
}

/* Of four, one stage of all before the next: each is a chain of operations, and one chain after the
   other fills the processor's queues with what has to wait. */
TS_INLINE void F(exp_by_four)(V *v) {
    F(split) a = F(exp_split)(v[0]), b = F(exp_split)(v[1]), c = F(exp_split)(v[2]),
             d = F(exp_split)(v[3]);
    V p = F(exp_tail)(a.r), q = F(exp_tail)(b.r), s = F(exp_tail)(c.r), t = F(exp_tail)(d.r);
    v[0] = F(exp_joined)(a, p);
    v[1] = F(exp_joined)(b, q);
    v[2] = F(exp_joined)(c, s);
    v[3] = F(exp_joined)(d, t);
}

/* exp(x) - 1 for x in [-64, 64], as accurate where x is small. */
TS_INLINE V F(expm1_small)(V x) {
    V k = F(rint)(x * K(0x1.715476p+0f));
    V r = F(minus_ln2)(x, k);
    V two = F(pow2)(k);
    return F(fma)(two, F(fma)(F(exp_tail)(r), r * r, r), two - K(1.0f));
}

/* |v| with the sign of x. */
TS_INLINE V F(with_sign)(V v, V x) {
    return F(from_bits)((F(bits)(v) & 0x7FFFFFFFu) | (F(bits)(x) & 0x80000000u));
}

/* At the ends of the clamp it is -1 and infinity. 2^k is one power less where it would overflow. */
TS_INLINE V F(expm1)(V input) {
    V x = F(clamp)(input, K(-20.0f), K(89.0f));
    V k = F(rint)(x * K(0x1.715476p+0f));
    V r = F(minus_ln2)(x, k);
    V two = F(pow2)(F(clamp)(k, K(-126.0f), K(127.0f)));
    V result = F(fma)(two, F(fma)(F(exp_tail)(r), r * r, r), two - K(1.0f));
    result = F(select)(F(gt)(k, K(127.0f)), result + result, result);
    return F(with_sign)(result, input);
}

/* 1 / (1 + e), or e / (1 + e) below 0, for an e = exp(-|x|) that cannot overflow: n / (1 + e) as
   n - n q, where the errors of q = e / (1 + e) count little if e is small. */
TS_INLINE V F(sigmoid)(V x) {
    V e = F(exp)(-F(abs)(x));
    V q = e / (e + K(1.0f));
    V n = F(select)(F(lt)(x, K(0.0f)), e, K(1.0f));
    return F(fma)(-n, q, n);
}

/* Below 11/32 an odd polynomial; above, m / (m + 2) for m = exp(2x) - 1, whose error counts less
   the larger it is. */
TS_INLINE V F(tanh)(V input) {
    V y = F(clamp)(F(abs)(input), K(0.0f), K(10.0f));
    V x = y * y;
    V p = K(TS_TANH_F32_TOP);
    TS_TANH_F32(HORNER)
    V small = F(fma)(x * y, p, y);
    V m = F(expm1_small)(y + y);
    V large = m / (m + K(2.0f));
    return F(with_sign)(F(select)(F(lt)(y, K(0.34375f)), small, large), input);
}

/* erf(x) = 1 - exp(-(x + x p(x))) */
TS_INLINE V F(erf)(V input) {
    V x = F(clamp)(F(abs)(input), K(0.0f), K(4.0f));
    V p = K(TS_ERF_F32_TOP);
    TS_ERF_F32(HORNER)
    return F(with_sign)(F(expm1_small)(-F(fma)(x, p, x)), input);
}

/* e ln 2 + log(1 + x) for 1 + x in [sqrt(1/2), sqrt(2)). */
TS_INLINE V F(log_joined)(V e, V x) {
    V p = K(TS_LOG_F32_TOP);
    TS_LOG_F32(HORNER)
    V square = x * x;
    V rest = F(fma)(e, K(-0x1.bd0106p-13f), square * x * p);
    return F(fma)(e, K(0x1.63p-1f), x + F(fma)(K(-0.5f), square, rest));
}

/* input = 2^e (1 + x) with 1 + x in [sqrt(1/2), sqrt(2)). */
TS_INLINE V F(log)(V input) {
    V normal = F(select)(F(lt)(input, K(0x1p-126f)), input * K(0x1p23f), input);
    V bias = F(select)(F(lt)(input, K(0x1p-126f)), K(0x1p23f + 127 + 23), K(0x1p23f + 127));
    U shifted = F(bits)(normal) + (0x3F800000u - 0x3F3504F3u);
    V e = F(from_bits)((shifted >> 23) + 0x4B000000u) - bias;
    V x = F(from_bits)((shifted & 0x7FFFFFu) + 0x3F3504F3u) - K(1.0f);
    V result = F(log_joined)(e, x);
    result = F(select)(F(lt)(input, K(TS_INF_F32)), result, input); /* infinity and NaN */
    V pole = F(select)(F(eq)(input, K(0.0f)), K(-TS_INF_F32), K(TS_NAN_F32));
    return F(select)(F(le)(input, K(0.0f)), pole, result);
}

/* 1 + x = 2^e (1 + f), f with what the sum lost of x, by 2^-e. A large x loses nothing that
   matters, and its 2^-e may be none. */
TS_INLINE V F(log1p)(V input) {
    V sum = input + K(1.0f), lost = input - (sum - K(1.0f));
    U shifted = F(bits)(sum) + (0x3F800000u - 0x3F3504F3u);
    V e = F(from_bits)((shifted >> 23) + 0x4B000000u) - K(0x1p23f + 127);
    V f = F(from_bits)((shifted & 0x7FFFFFu) + 0x3F3504F3u) - K(1.0f);
    V scale = F(from_bits)(0x7F000000u - (shifted & ~0x7FFFFFu));
    f = F(select)(F(lt)(input, K(0x1p64f)), F(fma)(lost, scale, f), f);
    V result = F(with_sign)(F(log_joined)(e, f), input);
    result = F(select)(F(lt)(input, K(TS_INF_F32)), result, input); /* infinity and NaN */
    V pole = F(select)(F(eq)(sum, K(0.0f)), K(-TS_INF_F32), K(TS_NAN_F32));
    return F(select)(F(le)(sum, K(0.0f)), pole, result);
}

#ifdef TS_MATH_TURNS_H
#define LIMIT 0x1p18f /* of angles that three parts of pi/2 will do for */

typedef struct {
    V r;
    U k;
} F(angle);

/* The lanes of x above the limit, one by one. */
TS_COLD void F(large_angles)(const V *x, F(angle) *angle) {
    for (size_t i = 0; i < sizeof(V) / sizeof(C); i++) {
        C value;
        memcpy(&value, (const char *)x + i * sizeof(C), sizeof(C));
        if (!(value > LIMIT)) continue;
        uint64_t k;
        C r = (C)ts_less_quarters(value, &k);
        uint32_t low = (uint32_t)k;
        memcpy((char *)&angle->r + i * sizeof(C), &r, sizeof(C));
        memcpy((char *)&angle->k + i * sizeof(C), &low, sizeof(C));
    }
}

/* x - k pi/2 for the nearest k, and k's low bits, for x of at least 0, by W. Cody's and W. Waite's
   parts of pi/2 (Software Manual for the Elementary Functions, 1980). What the first fma gives is
   exact, and so is what the second gives where it cancels. */
TS_INLINE F(angle) F(less_quarters_of)(V x) {
#if TS_HAS_FMA
    V shifted = F(fma)(x, K(0x1.45f306p-1f), K(0x1.8p23f));
    V k = shifted - K(0x1.8p23f);
    V r = F(fma)(k, K(-TS_QUARTER_F32_1), x);
    r = F(fma)(k, K(-TS_QUARTER_F32_3), F(fma)(k, K(-TS_QUARTER_F32_2), r));
#else
    V k, r = F(less_quarters)(x, &k);
    V shifted = k + K(0x1.8p23f);
#endif
    F(angle) angle = {r, F(bits)(shifted)};
    if (__builtin_expect(ANY(F(gt)(x, K(LIMIT))), 0)) {
        V copy = x; /* what has an address is in memory */
        F(angle) whole = angle;
        F(large_angles)(&copy, &whole);
        angle = whole;
    }
    return angle;
}

/* sin(r + k pi/2) for |r| <= pi/4: by k the sine or the cosine of r, or their negatives. */
TS_INLINE V F(sin_joined)(V r, U k) {
    V x = r * r;
    V p = K(TS_SIN_F32_TOP);
    TS_SIN_F32(HORNER)
    V sine = F(fma)(r * x, p, r);
    p = K(TS_COS_F32_TOP);
    TS_COS_F32(HORNER)
    V most = F(fma)(K(-0.5f), x, K(1.0f)); /* and what it lost to rounding */
    V cosine = most + F(fma)(x * x, p, F(fma)(K(-0.5f), x, K(1.0f) - most));
    U turn = k << 30;
    V odd = F(from_bits)(turn & 0x40000000u); /* 2 or 0 */
    V result = F(select)(F(gt)(odd, K(1.0f)), cosine, sine);
    return F(from_bits)(F(bits)(result) ^ (turn & 0x80000000u));
}

TS_INLINE V F(sin)(V x) {
    F(angle) angle = F(less_quarters_of)(F(abs)(x));
    V result = F(sin_joined)(angle.r, angle.k);
    return F(from_bits)(F(bits)(result) ^ (F(bits)(x) & 0x80000000u));
}

TS_INLINE V F(cos)(V x) {
    F(angle) angle = F(less_quarters_of)(F(abs)(x));
    return F(sin_joined)(angle.r, angle.k + 1u);
}
#undef LIMIT
#endif

#if TS_HAS_FMA
/* 1/sqrt is off by up to 3/2 units; one Newton step with the exact 1 - x y^2 mends it. */
TS_INLINE V F(rsqrt)(V x) {
    V y = K(1.0f) / F(sqrt)(x);
    V product = x * y;
    V error = F(fma)(-F(fma)(x, y, -product), y, F(fma)(-product, y, K(1.0f)));
    V better = F(fma)(y * K(0.5f), error, y);
    return F(select)(F(eq)(better, better), better, y); /* at 0 and infinity it is NaN */
}
#endif
