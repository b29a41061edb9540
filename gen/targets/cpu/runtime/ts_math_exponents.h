/* Powers and logarithms of 2 and 10, roots, erfc and the inverse of erf (see ts_math_more.h). */

/* p 2^k, rounded once, for an integral k of up to twice the largest exponent in size: the factor is two
   numbers, as one may not hold it. */
TS_INLINE V F(scaled)(V p, V k) {
#ifdef SCALE
    return SCALE(p, k);
#else
    U bits = F(bits)(k + K(1.5 * WHOLE)), half = (bits >> 1) << FRACTION;
    U rest = (bits << FRACTION) - half;
    return p * F(from_bits)(half + ONE) * F(from_bits)(rest + ONE);
#endif
}

/* At the ends of the clamp the result is 0 and infinity. */
TS_INLINE V F(exp2)(V input) {
    V y = F(clamp)(input, K(-BIAS - FRACTION - 1), K(BIAS + 1));
    V k = F(rint)(y), x = y - k;
    V p = K(TOP(EXP2));
    REST(EXP2)(HORNER)
    return F(scaled)(F(fma)(p, x, K(1)), k);
}

/* ---------------------------------------------------------------- logarithms */

/* log(1 + f) = f - half + rest, for 1 + f in [sqrt(1/2), sqrt(2)) and half = f^2 / 2: see F(log_joined). */
TS_INLINE V F(log_rest)(V f, V half) {
#if SINGLE
    V x = f, p = K(TOP(LOG));
    REST(LOG)(HORNER)
    (void)half;
    return f * f * f * p;
#else
    V s = f / (f + K(2)), x = s * s, p = K(TOP(LOG));
    REST(LOG)(HORNER)
    return s * F(fma)(x, p, half);
#endif
}

/* The logarithm of an x above 0: e ln 2 + high + low, where high has half of the bits. */
typedef struct {
    V e, high, low;
} F(log_parts);

TS_INLINE F(log_parts) F(log_apart)(V input) {
    V normal = F(select)(F(lt)(input, K(LEAST)), input * K(WHOLE), input);
    V bias = F(select)(F(lt)(input, K(LEAST)), K(WHOLE + BIAS + FRACTION), K(WHOLE + BIAS));
    U shifted = F(bits)(normal) + (ONE - ROOT);
    V f = F(from_bits)((shifted & MANTISSA) + ROOT) - K(1), half = K(0.5) * f * f;
    V high = F(from_bits)(F(bits)(f - half) & UPPER);
    F(log_parts) parts = {F(from_bits)((shifted >> FRACTION) + WHOLE_BITS) - bias, high,
                          f - high - half + F(log_rest)(f, half)};
    return parts;
}

/* A logarithm of the input, given what it is where that is above 0 and finite. */
TS_INLINE V F(log_ends)(V result, V input) {
    result = F(select)(F(lt)(input, K(INFINITE)), result, input); /* infinity and NaN */
    V pole = F(select)(F(eq)(input, K(0)), K(-INFINITE), K(NOT_A_NUMBER));
    return F(select)(F(le)(input, K(0)), pole, result);
}

/* By the products of halves of FreeBSD's e_log2.c and e_log10.c: the large ones are exact. */
TS_INLINE V F(log2)(V input) {
    F(log_parts) log = F(log_apart)(input);
    V high = log.high * K(PART1(INVLN2));
    V low = (log.low + log.high) * K(PART2(INVLN2)) + log.low * K(PART1(INVLN2));
    V sum = log.e + high;
    return F(log_ends)(sum + (low + (log.e - sum + high)), input);
}

TS_INLINE V F(log10)(V input) {
    F(log_parts) log = F(log_apart)(input);
    V most = log.e * K(PART1(LOG10_2)), high = log.high * K(PART1(INVLN10));
    V low = (log.low + log.high) * K(PART2(INVLN10)) + log.low * K(PART1(INVLN10));
    low += log.e * K(PART2(LOG10_2));
    V sum = most + high;
    return F(log_ends)(sum + (low + (most - sum + high)), input);
}

/* ---------------------------------------------------------------- roots */

/* With m in [1/2, 4) and x = m 8^k: the polynomial of m^(-1/3), two or three bits wrong, then Halley's
   steps, each with three times as many bits, and a step of Newton's for m (m^(-1/3))^2, whose cube is
   taken in two parts. */
TS_INLINE V F(cbrt)(V input) {
    V y = F(abs)(input);
    V more = K((CU)1 << (SINGLE ? 24 : 54)); /* of which there is a root */
    V normal = F(select)(F(lt)(y, K(LEAST)), y * more, y);
    V bias = F(select)(F(lt)(y, K(LEAST)), K(WHOLE + BIAS + (SINGLE ? 24 : 54)), K(WHOLE + BIAS));
    V e = F(from_bits)((F(bits)(normal) >> FRACTION) + WHOLE_BITS) - bias;
    V k = F(rint)(e * K(1.0 / 3));
    V m = F(from_bits)((F(bits)(normal) & MANTISSA) + ONE) * F(pow2)(e - k * K(3));
    V x = m, p = K(TOP(CBRT));
    REST(CBRT)(HORNER)
    for (int step = 0; step < (SINGLE ? 1 : 2); step++) {
        V h = K(1) - m * p * (p * p);
        p += p * h * (K(1.0 / 3) + h * K(2.0 / 9));
    }
    V r = m * p * p, square = r * r, cube = square * r;
    V left = m - cube - F(lost)(square, r, cube) - F(lost)(r, r, square) * r;
    V result = (r + left * (p * p) * K(1.0 / 3)) * F(pow2)(k);
    result = F(select)(F(eq)(y, K(0)), y, result);
    result = F(select)(F(lt)(y, K(INFINITE)), result, y);
    return F(with_sign)(result, input);
}

/* The sum of two numbers' squares over the square of `unit`, the power of two in the larger one, so that
   they stay in range; and what it leaves out. */
typedef struct {
    V unit, sum, rest;
} F(squares);

TS_INLINE F(squares) F(squares_of)(V x, V y) {
    V a = F(abs)(x), b = F(abs)(y), most = F(max)(a, b), less = F(min)(a, b);
    V unit = F(from_bits)(F(bits)(F(clamp)(most, K(LEAST), K(1 / LEAST))) & ~MANTISSA);
    most = most / unit;
    less = less / unit;
    V p = most * most, q = less * less, sum = p + q;
    V rest = p - sum + q + (F(lost)(most, most, p) + F(lost)(less, less, q));
    F(squares) result = {unit, sum, rest};
    return result;
}

/* Infinity where a side is, also where the other is NaN. */
TS_INLINE V F(or_infinite)(V result, V x, V y) {
    V a = F(abs)(x), b = F(abs)(y);
    result = F(select)(F(eq)(a, K(INFINITE)), a, result);
    return F(select)(F(eq)(b, K(INFINITE)), b, result);
}

/* The rounded root, and what is left of the squares over it (C. Borges, Algorithm 1014, ACM TOMS 47,
   2020). */
TS_INLINE V F(hypot)(V x, V y) {
    F(squares) s = F(squares_of)(x, y);
    V root = F(sqrt)(s.sum), square = root * root;
    V left = s.sum - square - F(lost)(root, root, square) + s.rest;
    V result = (root + left / F(max)(root + root, K(LEAST))) * s.unit;
    return F(or_infinite)(result, x, y);
}

/* ---------------------------------------------------------------- erfc */

/* exp(-y^2) (1 + u p(t)) / (1 + 2 y), where t = (y - middle) / (y + middle) and u = 1 + t: the polynomial
   of build_tools/more_polynomials.py. All three factors are sums of two. Below 0, 2 less that. At the end
   of the clamp it is 0. */
TS_INLINE V F(erfc)(V input) {
    V y = F(clamp)(F(abs)(input), K(0), K(SINGLE ? 10.2 : 27.5));
    V middle = K(SINGLE ? 2 : 4), over = K(1) / (y + middle), x = (y - middle) * over;
    V p = K(TOP(ERFC));
    REST(ERFC)(HORNER)
    V more = p * ((y + y) * over), n = more + K(1), n_low = more - (n - K(1));
    V d = y + y + K(1), d_low = F(sum_lost)(y + y, K(1), d);
    V q = n / d, back = q * d;
    V q_low = (n - back - F(lost)(q, d, back) + (n_low - q * d_low)) / d;

    V square = y * y, k = F(rint)(square * K(-1.4426950408889634));
    V r = F(minus_ln2)(-square, k) - F(lost)(y, y, square);
    V e = r + K(1), e_low = F(fma)(r * r, F(exp_tail)(r), r - (e - K(1)));
    V result = F(scaled)(F(fma)(q, e, F(fma)(q, e_low, q_low * e)), k);
    return F(select)(F(lt)(input, K(0)), K(2) - result, result);
}

/* Up to 0.53, where the result is above 1/2 and has a bit less after the point, an odd polynomial; above, polynomials of s = sqrt(-log(1 - y)), of which the result is nearly
   a line with slope 1: so what the rounded root leaves is added to it. */
TS_INLINE V F(erfinv)(V input) {
    V y = F(abs)(input), x = y * y, p = K(TOP(ERFINV));
    REST(ERFINV)(HORNER)
    V small = F(fma)(y, p, y), w = -F(log)(K(1) - y), s = F(sqrt)(w), square = s * s;
    V low = (w - square - F(lost)(s, s, square)) / (s + s);
    x = s - K(SINGLE ? 1.5 : 1.375);
    p = K(TOP(ERFINV1));
    REST(ERFINV1)(HORNER)
    V ratio = p;
    x = s - K(SINGLE ? 3 : 2.5);
    p = K(TOP(ERFINV2));
    REST(ERFINV2)(HORNER)
    ratio = F(select)(F(gt)(s, K(SINGLE ? 2.125 : 1.875)), p, ratio);
#if !SINGLE
    x = s - K(4.5);
    p = K(TOP(ERFINV3));
    REST(ERFINV3)(HORNER)
    ratio = F(select)(F(gt)(s, K(3.25)), p, ratio);
#endif
    V large = F(select)(F(lt)(y, K(1)), F(fma)(s, ratio, low) + s, s); /* infinity of 1, NaN above */
    return F(with_sign)(F(select)(F(le)(y, K(0.53)), small, large), input);
}
