/* The functions of float64 (see ts_math.h). */

/* 2^k for an integral k in [-1022, 1023]: the low bits of k + 3/2 * 2^52 are k's. */
TS_INLINE V F(pow2)(V k) {
    return F(from_bits)((F(bits)(k + K(0x1.8p52)) << 52) + 0x3FF0000000000000u);
}

/* p * 2^k, rounded once, for p in [1/2, 2] and an integral k in [-2044, 2046]: see float32. */
TS_INLINE V F(scale)(V p, V k) {
#ifdef SCALE
    return SCALE(p, k);
#else
    U bits = F(bits)(k + K(0x1.8p52)), half = (bits >> 1) << 52, rest = (bits << 52) - half;
    return p * F(from_bits)(half + 0x3FF0000000000000u) * F(from_bits)(rest + 0x3FF0000000000000u);
#endif
}

/* x - k ln 2 for an integral k: the product with the upper part of ln 2 is exact. */
TS_INLINE V F(minus_ln2)(V x, V k) {
    return F(fma)(k, K(-0x1.a39ef35793c76p-33), F(fma)(k, K(-0x1.62e42feep-1), x));
}

/* (exp(x) - 1 - x) / x^2 for |x| <= ln(2) / 2 */
TS_INLINE V F(exp_tail)(V x) {
    V p = K(TS_EXP_F64_TOP);
    TS_EXP_F64(HORNER)
    return p;
}

/* exp(r) for |r| <= ln(2) / 2, in the order that rounds least. */
TS_INLINE V F(exp_reduced)(V r) {
#if TS_HAS_FMA
    return F(fma)(F(fma)(F(exp_tail)(r), r, K(1.0)), r, K(1.0));
#else
    return K(1.0) + (r + F(exp_tail)(r) * (r * r));
#endif
}

/* At the ends of the clamp the result is 0 and infinity. */
TS_INLINE V F(exp)(V x) {
    x = F(clamp)(x, K(-746.0), K(710.0));
    V k = F(rint)(x * K(0x1.71547652b82fep+0));
    return F(scale)(F(exp_reduced)(F(minus_ln2)(x, k)), k);
}

/* exp(x) - 1 for x in [-512, 512], as accurate where x is small. */
TS_INLINE V F(expm1)(V x) {
    V k = F(rint)(x * K(0x1.71547652b82fep+0));
    V r = F(minus_ln2)(x, k);
    V two = F(pow2)(k);
    return F(fma)(two, F(fma)(F(exp_tail)(r), r * r, r), two - K(1.0));
}

/* |v| with the sign of x. */
TS_INLINE V F(with_sign)(V v, V x) {
    return F(from_bits)((F(bits)(v) & 0x7FFFFFFFFFFFFFFFu) | (F(bits)(x) & 0x8000000000000000u));
}

/* Below 9/16 an odd polynomial; above, 1 - 2e / (1 + e) for e = exp(-2x). */
TS_INLINE V F(tanh)(V input) {
    V y = F(clamp)(F(abs)(input), K(0.0), K(20.0));
    V x = y * y;
    V p = K(TS_TANH_F64_TOP);
    TS_TANH_F64(HORNER)
    V small = F(fma)(x * y, p, y);
    V e = F(expm1)(K(-2.0) * y) + K(1.0);
    V large = K(1.0) - (e + e) / (e + K(1.0));
    return F(with_sign)(F(select)(F(lt)(y, K(0.5625)), small, large), input);
}

/* erf(x) = 1 - exp(-(x + x p(x))) */
TS_INLINE V F(erf)(V input) {
    V x = F(clamp)(F(abs)(input), K(0.0), K(6.0));
    V p = K(TS_ERF_F64_TOP);
    TS_ERF_F64(HORNER)
    return F(with_sign)(F(expm1)(-F(fma)(x, p, x)), input);
}

/* input = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = 2 atanh(s). */
TS_INLINE V F(log)(V input) {
    V normal = F(select)(F(lt)(input, K(0x1p-1022)), input * K(0x1p52), input);
    V bias = F(select)(F(lt)(input, K(0x1p-1022)), K(0x1p52 + 1023 + 52), K(0x1p52 + 1023));
    U shifted = F(bits)(normal) + (0x3FF0000000000000u - 0x3FE6A09E667F3BCDu);
    V e = F(from_bits)((shifted >> 52) + 0x4330000000000000u) - bias;
    V f = F(from_bits)((shifted & 0xFFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu) - K(1.0);
    V s = f / (f + K(2.0));
    V x = s * s;
    V p = K(TS_LOG_F64_TOP);
    TS_LOG_F64(HORNER)
    V half = K(0.5) * f * f;
    V rest = F(fma)(s, F(fma)(x, p, half), e * K(0x1.a39ef35793c76p-33));
    V result = F(fma)(e, K(0x1.62e42feep-1), f - (half - rest));
    result = F(select)(F(lt)(input, K(__builtin_inf())), result, input); /* infinity and NaN */
    V pole = F(select)(F(eq)(input, K(0.0)), K(-__builtin_inf()), K(__builtin_nan("")));
    return F(select)(F(le)(input, K(0.0)), pole, result);
}

#if TS_HAS_FMA
/* 1/sqrt is off by up to 3/2 units; one Newton step with the exact 1 - x y^2 mends it. */
TS_INLINE V F(rsqrt)(V x) {
    V y = K(1.0) / F(sqrt)(x);
    V product = x * y;
    V error = F(fma)(-F(fma)(x, y, -product), y, F(fma)(-product, y, K(1.0)));
    V better = F(fma)(y * K(0.5), error, y);
    return F(select)(F(eq)(better, better), better, y); /* at 0 and infinity it is NaN */
}
#endif
