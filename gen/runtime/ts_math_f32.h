/* The functions of float32 (see ts_math.h). */

/* 2^k for an integral k in [-126, 127]: the low bits of k + 3/2 * 2^23 are k's. */
TS_INLINE V F(pow2)(V k) { return F(from_bits)((F(bits)(k + K(0x1.8p23f)) << 23) + 0x3F800000u); }

/* p * 2^k, rounded once, for p in [1/2, 2] and an integral k in [-252, 254], in two halves that fit into
   an exponent; the division is of integers. */
TS_INLINE V F(scale)(V p, V k) {
#ifdef SCALE
    return SCALE(p, k);
#else
    U bits = F(bits)(k + K(0x1.8p23f)), half = (bits >> 1) << 23, rest = (bits << 23) - half;
    return p * F(from_bits)(half + 0x3F800000u) * F(from_bits)(rest + 0x3F800000u);
#endif
}

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

/* exp(r) for |r| <= ln(2) / 2, in the order that rounds least. */
TS_INLINE V F(exp_reduced)(V r) {
#if TS_HAS_FMA
    return F(fma)(F(fma)(F(exp_tail)(r), r, K(1.0f)), r, K(1.0f));
#else
    return K(1.0f) + (r + F(exp_tail)(r) * (r * r));
#endif
}

/* At the ends of the clamp the result is 0 and infinity. */
TS_INLINE V F(exp)(V x) {
    x = F(clamp)(x, K(-104.0f), K(89.0f));
    V k = F(rint)(x * K(0x1.715476p+0f));
    return F(scale)(F(exp_reduced)(F(minus_ln2)(x, k)), k);
}

/* exp(x) - 1 for x in [-64, 64], as accurate where x is small. */
TS_INLINE V F(expm1)(V x) {
    V k = F(rint)(x * K(0x1.715476p+0f));
    V r = F(minus_ln2)(x, k);
    V two = F(pow2)(k);
    return F(fma)(two, F(fma)(F(exp_tail)(r), r * r, r), two - K(1.0f));
}

/* |v| with the sign of x. */
TS_INLINE V F(with_sign)(V v, V x) {
    return F(from_bits)((F(bits)(v) & 0x7FFFFFFFu) | (F(bits)(x) & 0x80000000u));
}

/* Below 9/16 an odd polynomial; above, 1 - 2e / (1 + e) for e = exp(-2x). */
TS_INLINE V F(tanh)(V input) {
    V y = F(clamp)(F(abs)(input), K(0.0f), K(10.0f));
    V x = y * y;
    V p = K(TS_TANH_F32_TOP);
    TS_TANH_F32(HORNER)
    V small = F(fma)(x * y, p, y);
    V e = F(expm1)(K(-2.0f) * y) + K(1.0f);
    V large = K(1.0f) - (e + e) / (e + K(1.0f));
    return F(with_sign)(F(select)(F(lt)(y, K(0.5625f)), small, large), input);
}

/* erf(x) = 1 - exp(-(x + x p(x))) */
TS_INLINE V F(erf)(V input) {
    V x = F(clamp)(F(abs)(input), K(0.0f), K(4.0f));
    V p = K(TS_ERF_F32_TOP);
    TS_ERF_F32(HORNER)
    return F(with_sign)(F(expm1)(-F(fma)(x, p, x)), input);
}

/* input = 2^e (1 + x) with 1 + x in [sqrt(1/2), sqrt(2)). */
TS_INLINE V F(log)(V input) {
    V normal = F(select)(F(lt)(input, K(0x1p-126f)), input * K(0x1p23f), input);
    V bias = F(select)(F(lt)(input, K(0x1p-126f)), K(0x1p23f + 127 + 23), K(0x1p23f + 127));
    U shifted = F(bits)(normal) + (0x3F800000u - 0x3F3504F3u);
    V e = F(from_bits)((shifted >> 23) + 0x4B000000u) - bias;
    V x = F(from_bits)((shifted & 0x7FFFFFu) + 0x3F3504F3u) - K(1.0f);
    V p = K(TS_LOG_F32_TOP);
    TS_LOG_F32(HORNER)
    V square = x * x;
    V rest = F(fma)(e, K(-0x1.bd0106p-13f), square * x * p);
    V result = F(fma)(e, K(0x1.63p-1f), x + F(fma)(K(-0.5f), square, rest));
    result = F(select)(F(lt)(input, K(__builtin_inff())), result, input); /* infinity and NaN */
    V pole = F(select)(F(eq)(input, K(0.0f)), K(-__builtin_inff()), K(__builtin_nanf("")));
    return F(select)(F(le)(input, K(0.0f)), pole, result);
}

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
