/* Numbers as whole ones, and what is left of them (see ts_math_more.h). */

/* To the nearest integer, ties to the even one. */
TS_INLINE V F(round)(V x) { return F(rint)(x); }

TS_INLINE V F(trunc)(V x) { return F(with_sign)(F(floor)(F(abs)(x)), x); }

TS_INLINE V F(copysign)(V x, V y) { return F(with_sign)(x, y); }

/* Both zeros give +0, as in NumPy. */
TS_INLINE V F(sign)(V x) {
    V side = F(select)(F(gt)(x, K(0)), K(1), K(-1));
    V result = F(select)(F(eq)(x, K(0)), K(0), side);
    return F(select)(F(eq)(x, x), result, x);
}

/* What the rounded product p = a b has lost. */
TS_INLINE V F(lost)(V a, V b, V p) {
#if TS_HAS_FMA
    return F(fma)(a, b, -p);
#else /* by T. Dekker's halves (A floating-point technique, 1971) */
    V s = a * K(((CU)1 << (FRACTION / 2 + 1)) + 1), t = b * K(((CU)1 << (FRACTION / 2 + 1)) + 1);
    V a1 = s - (s - a), b1 = t - (t - b), a2 = a - a1, b2 = b - b1;
    return a2 * b2 + (a2 * b1 + (a1 * b2 + (a1 * b1 - p)));
#endif
}

/* What the rounded sum s = a + b has lost, whichever is larger (D. Knuth, The Art of Computer
   Programming 2, 4.2.2). */
TS_INLINE V F(sum_lost)(V a, V b, V s) {
    V rest = s - a;
    return (a - (s - rest)) + (b - rest);
}

/* ---------------------------------------------------------------- fmod */

/* Of quotients below this the floor is at most one too large. */
#define LIMIT (WHOLE / 2)
#if TS_HAS_FMA
#define IS_LARGE(quotient, divisor) F(ge)(quotient, K(LIMIT))
#else /* the halves of a large divisor overflow: its quotient counts as infinite */
#define MOST (SINGLE ? 0x1p100 : 0x1p990)
#define IS_LARGE(quotient, divisor) \
    F(ge)(F(select)(F(gt)(divisor, K(MOST)), K(INFINITE), quotient), K(LIMIT))
#endif

/* p 2^(e - 1075) for a product that float64 holds. */
#define SCALED(p, e) \
    ((double)(p) * ts_from_bits_f64_s((e) > 52 ? (uint64_t)((e)-52) << 52 : (uint64_t)1 << ((e)-1)))

/* The remainders of the lanes a >= b with large quotients, one by one: float64 holds both types' numbers,
   and integers of 64 bits its 53 and 11 more at a time. */
TS_COLD void F(large_quotients)(const V *a, const V *b, V *rest) {
    for (size_t i = 0; i < sizeof(V) / sizeof(C); i++) {
        C x, y;
        memcpy(&x, (const char *)a + i * sizeof(C), sizeof(C));
        memcpy(&y, (const char *)b + i * sizeof(C), sizeof(C));
        if (!(x >= y && y > 0 && x < INFINITE)) continue;
        uint64_t p = ts_bits_f64_s((double)x), q = ts_bits_f64_s((double)y);
        int e = (int)(p >> 52), d = (int)(q >> 52);
        p = (p & 0xFFFFFFFFFFFFFu) | (uint64_t)(e != 0) << 52;
        q = (q & 0xFFFFFFFFFFFFFu) | (uint64_t)(d != 0) << 52;
        d += d == 0; /* subnormal numbers have the least exponent, too */
        for (p %= q; e > d;) {
            int step = e - d < 11 ? e - d : 11;
            p = (p << step) % q;
            e -= step;
        }
        C value = (C)SCALED(p, d);
        memcpy((char *)rest + i * sizeof(C), &value, sizeof(C));
    }
}

/* x - n y for the integer n towards 0, exactly: what is left of x is a multiple of the divisor's last
   bit and less than the divisor, so all differences here are exact. Of infinity, and by 0, the
   products are NaN. */
TS_INLINE V F(fmod)(V x, V y) {
    V a = F(abs)(x), b = F(abs)(y), quotient = a / b, q = F(floor)(quotient);
#if TS_HAS_FMA
    V rest = F(fma)(-q, b, a);
#else
    V product = q * b, rest = a - product - F(lost)(q, b, product);
#endif
    rest = F(select)(F(lt)(rest, K(0)), rest + b, rest);
    if (__builtin_expect(ANY(IS_LARGE(quotient, b)), 0)) {
        V dividends = a, divisors = b, rests = rest; /* what has an address is in memory */
        F(large_quotients)(&dividends, &divisors, &rests);
        rest = rests;
    }
    return F(with_sign)(F(select)(F(lt)(a, b), a, rest), x);
}
#undef LIMIT
#undef MOST
#undef IS_LARGE
#undef SCALED
