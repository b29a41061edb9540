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
TS_INLINE V F(expm1_small)(V x) {
    V k = F(rint)(x * K(0x1.71547652b82fep+0));
    V r = F(minus_ln2)(x, k);
    V two = F(pow2)(k);
    return F(fma)(two, F(fma)(F(exp_tail)(r), r * r, r), two - K(1.0));
}

/* |v| with the sign of x. */
TS_INLINE V F(with_sign)(V v, V x) {
    return F(from_bits)((F(bits)(v) & 0x7FFFFFFFFFFFFFFFu) | (F(bits)(x) & 0x8000000000000000u));
}

/* At the ends of the clamp it is -1 and infinity. 2^k is one power less where it would overflow. */
TS_INLINE V F(expm1)(V input) {
    V x = F(clamp)(input, K(-40.0), K(710.0));
    V k = F(rint)(x * K(0x1.71547652b82fep+0));
    V r = F(minus_ln2)(x, k);
    V two = F(pow2)(F(clamp)(k, K(-1022.0), K(1023.0)));
    V result = F(fma)(two, F(fma)(F(exp_tail)(r), r * r, r), two - K(1.0));
    result = F(select)(F(gt)(k, K(1023.0)), result + result, result);
    return F(with_sign)(result, input);
}

/* 1 / (1 + e), or e / (1 + e) below 0, for an e = exp(-|x|) that cannot overflow: n / (1 + e) as
   n - n q, where the errors of q = e / (1 + e) count little if e is small. */
TS_INLINE V F(sigmoid)(V x) {
    V e = F(exp)(-F(abs)(x));
    V q = e / (e + K(1.0));
    V n = F(select)(F(lt)(x, K(0.0)), e, K(1.0));
    return F(fma)(-n, q, n);
}

/* Below 11/32 an odd polynomial; above, m / (m + 2) for m = exp(2x) - 1. */
TS_INLINE V F(tanh)(V input) {
    V y = F(clamp)(F(abs)(input), K(0.0), K(20.0));
    V x = y * y;
    V p = K(TS_TANH_F64_TOP);
    TS_TANH_F64(HORNER)
    V small = F(fma)(x * y, p, y);
    V m = F(expm1_small)(y + y);
    V large = m / (m + K(2.0));
    return F(with_sign)(F(select)(F(lt)(y, K(0.34375)), small, large), input);
}

/* erf(x) = 1 - exp(-(x + x p(x))) */
TS_INLINE V F(erf)(V input) {
    V x = F(clamp)(F(abs)(input), K(0.0), K(6.0));
    V p = K(TS_ERF_F64_TOP);
    TS_ERF_F64(HORNER)
    return F(with_sign)(F(expm1_small)(-F(fma)(x, p, x)), input);
}

/* e ln 2 + log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = 2 atanh(s). */
TS_INLINE V F(log_joined)(V e, V f) {
    V s = f / (f + K(2.0));
    V x = s * s;
    V p = K(TS_LOG_F64_TOP);
    TS_LOG_F64(HORNER)
    V half = K(0.5) * f * f;
    V rest = F(fma)(s, F(fma)(x, p, half), e * K(0x1.a39ef35793c76p-33));
    return F(fma)(e, K(0x1.62e42feep-1), f - (half - rest));
}

/* input = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). */
TS_INLINE V F(log)(V input) {
    V normal = F(select)(F(lt)(input, K(0x1p-1022)), input * K(0x1p52), input);
    V bias = F(select)(F(lt)(input, K(0x1p-1022)), K(0x1p52 + 1023 + 52), K(0x1p52 + 1023));
    U shifted = F(bits)(normal) + (0x3FF0000000000000u - 0x3FE6A09E667F3BCDu);
    V e = F(from_bits)((shifted >> 52) + 0x4330000000000000u) - bias;
    V f = F(from_bits)((shifted & 0xFFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu) - K(1.0);
    V result = F(log_joined)(e, f);
    result = F(select)(F(lt)(input, K(TS_INF_F64)), result, input); /* infinity and NaN */
    V pole = F(select)(F(eq)(input, K(0.0)), K(-TS_INF_F64), K(TS_NAN_F64));
    return F(select)(F(le)(input, K(0.0)), pole, result);
}

/* What the rounded product p = a b has lost. */
TS_INLINE V F(product_lost)(V a, V b, V p) {
#if TS_HAS_FMA
    return F(fma)(a, b, -p);
#else /* by T. Dekker's halves of 26 bits (A floating-point technique, 1971) */
    V s = a * K(0x1.000002p27), t = b * K(0x1.000002p27);
    V a1 = s - (s - a), b1 = t - (t - b), a2 = a - a1, b2 = b - b1;
    return a2 * b2 + (a2 * b1 + (a1 * b2 + (a1 * b1 - p)));
#endif
}

typedef struct {
    V high, low;
} F(pair);

/* log(x) for x of at least 0 as the sum of two, some 2^-64 of it wrong: 2 atanh(s) as for log, but
   s, s^3 and 2/3 in two parts each. Infinity gives that, 0 its negative. */
TS_INLINE F(pair) F(log_pair)(V input) {
    V normal = F(select)(F(lt)(input, K(0x1p-1022)), input * K(0x1p52), input);
    V bias = F(select)(F(lt)(input, K(0x1p-1022)), K(0x1p52 + 1023 + 52), K(0x1p52 + 1023));
    U shifted = F(bits)(normal) + (0x3FF0000000000000u - 0x3FE6A09E667F3BCDu);
    V e = F(from_bits)((shifted >> 52) + 0x4330000000000000u) - bias;
    V f = F(from_bits)((shifted & 0xFFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu) - K(1.0);

    V d = f + K(2.0), d_low = f - (d - K(2.0));
    V s = f / d, sd = s * d;
    V s_low = ((f - sd) - F(product_lost)(s, d, sd) - s * d_low) / d;
    V x = s * s, x_low = F(product_lost)(s, s, x) + (s + s) * s_low;
    V p = K(2.0 / 25);
    p = F(fma)(p, x, K(2.0 / 23));
    p = F(fma)(p, x, K(2.0 / 21));
    p = F(fma)(p, x, K(2.0 / 19));
    p = F(fma)(p, x, K(2.0 / 17));
    p = F(fma)(p, x, K(2.0 / 15));
    p = F(fma)(p, x, K(2.0 / 13));
    p = F(fma)(p, x, K(2.0 / 11));
    p = F(fma)(p, x, K(2.0 / 9));
    p = F(fma)(p, x, K(2.0 / 7));
    p = F(fma)(p, x, K(2.0 / 5)) * x;
    V u = p + K(0x1.5555555555555p-1), u_low = K(0x1.5555555555555p-1) - u + p + K(0x1.5555555555555p-55);
    V v = x * u, v_low = F(product_lost)(x, u, v) + x * u_low + x_low * u;
    V w = s * v, w_low = F(product_lost)(s, v, w) + s * v_low + s_low * v;
    V h = (s + s) + w, l = ((s + s) - h + w) + (w_low + (s_low + s_low));

    V most = e * K(0x1.62e42feep-1); /* exact */
    V high = most + h, low = (most - high + h) + F(fma)(e, K(0x1.a39ef35793c76p-33), l);
    V sum = high + low;
    low = high - sum + low;
    V limit = F(select)(F(eq)(input, K(0.0)), K(-TS_INF_F64), input);
    V is_finite = F(select)(F(eq)(input, K(0.0)), K(0.0), K(1.0));
    is_finite = F(select)(F(lt)(input, K(TS_INF_F64)), is_finite, K(0.0));
    F(pair) result = {F(select)(F(eq)(is_finite, K(1.0)), sum, limit),
                      F(select)(F(eq)(is_finite, K(1.0)), low, K(0.0))};
    return result;
}

/* x^y, given |x|^y. The sign is x's where y is odd; where y is no integer, a finite negative x has
   none. x^0 and 1^y are 1, whatever the other is. */
TS_INLINE V F(pow_signed)(V power, V x, V y) {
    V half = y * K(0.5);
    V whole = F(select)(F(eq)(F(rint)(half), half), power, F(with_sign)(power, x));
    V other = F(select)(F(gt)(x, K(-TS_INF_F64)), K(TS_NAN_F64), power);
    other = F(select)(F(lt)(x, K(0.0)), other, power);
    V result = F(select)(F(eq)(F(rint)(y), y), whole, other);
    result = F(select)(F(eq)(x, K(1.0)), K(1.0), result);
    return F(select)(F(eq)(y, K(0.0)), K(1.0), result);
}

/* exp(y log(x)), with what the product and the logarithm leave out. */
TS_INLINE V F(pow)(V x, V input) {
    V y = F(clamp)(input, K(-0x1p100), K(0x1p100)); /* beyond, the result is 0, 1 or infinity */
    F(pair) log = F(log_pair)(F(abs)(x));
    V high = y * log.high;
    V low = F(product_lost)(y, log.high, high) + y * log.low;
    low = F(select)(F(lt)(F(abs)(high), K(1000.0)), low, K(0.0));
    high = F(clamp)(high, K(-746.0), K(710.0));
    V k = F(rint)(high * K(0x1.71547652b82fep+0));
    V power = F(scale)(F(exp_reduced)(F(minus_ln2)(high, k) + low), k);
    return F(pow_signed)(power, x, input);
}

/* The same within some 2^-45. */
TS_INLINE V F(pow_near)(V x, V y) {
    V log = F(log)(F(abs)(x));
    return F(pow_signed)(F(exp)(F(clamp)(y, K(-0x1p100), K(0x1p100)) * log), x, y);
}

/* 1 + x = 2^e (1 + f), f with what the sum lost of x, by 2^-e. A large x loses nothing that
   matters, and its 2^-e may be none. */
TS_INLINE V F(log1p)(V input) {
    V sum = input + K(1.0), lost = input - (sum - K(1.0));
    U shifted = F(bits)(sum) + (0x3FF0000000000000u - 0x3FE6A09E667F3BCDu);
    V e = F(from_bits)((shifted >> 52) + 0x4330000000000000u) - K(0x1p52 + 1023);
    V f = F(from_bits)((shifted & 0xFFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu) - K(1.0);
    V scale = F(from_bits)(0x7FE0000000000000u - (shifted & ~0xFFFFFFFFFFFFFu));
    f = F(select)(F(lt)(input, K(0x1p128)), F(fma)(lost, scale, f), f);
    V result = F(with_sign)(F(log_joined)(e, f), input);
    result = F(select)(F(lt)(input, K(TS_INF_F64)), result, input); /* infinity and NaN */
    V pole = F(select)(F(eq)(sum, K(0.0)), K(-TS_INF_F64), K(TS_NAN_F64));
    return F(select)(F(le)(sum, K(0.0)), pole, result);
}

#ifdef TS_MATH_TURNS_H
#if TS_HAS_FMA /* of angles that three parts of pi/2 will do for */
#define LIMIT 0x1p30
#else
#define LIMIT 0x1p16
#endif

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
        uint64_t low = (uint64_t)k;
        memcpy((char *)&angle->r + i * sizeof(C), &r, sizeof(C));
        memcpy((char *)&angle->k + i * sizeof(C), &low, sizeof(C));
    }
}

/* x - k pi/2 for the nearest k, and k's low bits, for x of at least 0: see float32. */
TS_INLINE F(angle) F(less_quarters_of)(V x) {
#if TS_HAS_FMA
    V shifted = F(fma)(x, K(TS_TWO_OVER_PI), K(0x1.8p52));
    V k = shifted - K(0x1.8p52);
    V r = F(fma)(k, K(-TS_QUARTER_F64_1), x);
    r = F(fma)(k, K(-TS_QUARTER_F64_3), F(fma)(k, K(-TS_QUARTER_F64_2), r));
#else
    V k = F(rint)(x * K(TS_TWO_OVER_PI));
    V shifted = k + K(0x1.8p52);
    V first = x - k * K(TS_QUARTER_F64_V2_1), second = k * K(TS_QUARTER_F64_V2_2);
    V r = first - second; /* what it lost to rounding goes with the last part */
    r += first - r - second - k * K(TS_QUARTER_F64_V2_3);
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
    V p = K(TS_SIN_F64_TOP);
    TS_SIN_F64(HORNER)
    V sine = F(fma)(r * x, p, r);
    p = K(TS_COS_F64_TOP);
    TS_COS_F64(HORNER)
    V most = F(fma)(K(-0.5), x, K(1.0)); /* and what it lost to rounding */
    V cosine = most + F(fma)(x * x, p, F(fma)(K(-0.5), x, K(1.0) - most));
    U turn = k << 62;
    V odd = F(from_bits)(turn & 0x4000000000000000u); /* 2 or 0 */
    V result = F(select)(F(gt)(odd, K(1.0)), cosine, sine);
    return F(from_bits)(F(bits)(result) ^ (turn & 0x8000000000000000u));
}

TS_INLINE V F(sin)(V x) {
    F(angle) angle = F(less_quarters_of)(F(abs)(x));
    V result = F(sin_joined)(angle.r, angle.k);
    return F(from_bits)(F(bits)(result) ^ (F(bits)(x) & 0x8000000000000000u));
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
    V y = K(1.0) / F(sqrt)(x);
    V product = x * y;
    V error = F(fma)(-F(fma)(x, y, -product), y, F(fma)(-product, y, K(1.0)));
    V better = F(fma)(y * K(0.5), error, y);
    return F(select)(F(eq)(better, better), better, y); /* at 0 and infinity it is NaN */
}
#endif
