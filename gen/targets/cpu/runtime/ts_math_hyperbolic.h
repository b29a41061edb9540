/* Hyperbolic functions and their inverses (see ts_math_more.h). */

/* With x = k ln 2 + r of at least 0, plus and minus are cosh(k ln 2) and sinh(k ln 2), and even and odd
   what cosh(r) has more than 1 and sinh(r) more than r; halved where `beyond` is 1, as 2^k overflows
   before its half does. */
typedef struct {
    V plus, minus, r, even, odd, beyond;
} F(hyperbolic);

/* At the end of the clamp both functions are infinite. */
TS_INLINE F(hyperbolic) F(hyperbolic_of)(V input) {
    V y = F(clamp)(F(abs)(input), K(0), K(SINGLE ? 89.6 : 710.7));
    V k = F(rint)(y * K(1.4426950408889634)), r = F(minus_ln2)(y, k), x = r * r;
    V beyond = F(select)(F(gt)(k, K(BIAS / 2)), K(1), K(0));
    V grows = F(pow2)(k - K(1) - beyond), falls = F(pow2)(K(-1) - F(clamp)(k, K(0), K(BIAS / 2)));
    V p = K(TOP(SINH));
    REST(SINH)(HORNER)
    V odd = r * x * p;
    p = K(TOP(COSH));
    REST(COSH)(HORNER)
    V even = F(fma)(x * x, p, K(0.5) * x);
    F(hyperbolic) result = {grows + falls, grows - falls, r, even, odd, beyond};
    return result;
}

/* sinh(k ln 2 + r) by the theorem of addition; for k = 0 it is sinh(r), as exact where x is small. */
TS_INLINE V F(sinh)(V input) {
    F(hyperbolic) h = F(hyperbolic_of)(input);
    V rest = F(fma)(h.plus, h.r, F(fma)(h.minus, h.even, h.plus * h.odd));
    V result = h.minus + rest;
    return F(with_sign)(F(fma)(result, h.beyond, result), input);
}

TS_INLINE V F(cosh)(V input) {
    F(hyperbolic) h = F(hyperbolic_of)(input);
    V rest = F(fma)(h.minus, h.r, F(fma)(h.plus, h.even, h.minus * h.odd));
    V result = h.plus + rest;
    return F(fma)(result, h.beyond, result);
}

/* ---------------------------------------------------------------- inverses */

/* log(sum + lost) + more ln 2 for a normal sum of up to half of the largest number, as log1p has it. */
TS_INLINE V F(log_of_sum)(V sum, V lost, V more) {
    U shifted = F(bits)(sum) + (ONE - ROOT);
    V e = F(from_bits)((shifted >> FRACTION) + WHOLE_BITS) - K(WHOLE + BIAS);
    V f = F(from_bits)((shifted & MANTISSA) + ROOT) - K(1);
    V scale = F(from_bits)(((CU)(2 * BIAS) << FRACTION) - (shifted & ~MANTISSA));
    return F(log_joined)(e + more, F(fma)(lost, scale, f));
}

/* log(hypot(x, y)), as exact where that is next to 1: half the logarithm of the squares in two parts. */
TS_INLINE V F(log_hypot)(V x, V y) {
    F(squares) s = F(squares_of)(x, y);
    V e = F(from_bits)((F(bits)(s.unit) >> FRACTION) + WHOLE_BITS) - K(WHOLE + BIAS);
    V result = K(0.5) * F(log_of_sum)(s.sum, s.rest, e + e);
    result = F(select)(F(eq)(s.sum, K(0)), K(-INFINITE), result);
    result = F(select)(F(eq)(s.sum, s.sum), result, s.sum);
    return F(or_infinite)(result, x, y);
}

/* log(y + sqrt(y^2 + one)) for one of 1 and -1, where y is at least 1/2; square, root and sum with what they
   lose. Above BIG it is log(2 y), by way of y / 2, whose 2^-e there is. */
#define BIG (SINGLE ? 0x1p13 : 0x1p28)
TS_INLINE V F(log_with_root)(V y, V one) {
    V x = F(clamp)(y, K(0), K(BIG)), square = x * x, sum = square + one;
    V rest = F(sum_lost)(square, one, sum) + F(lost)(x, x, square);
    V whole = sum + rest, root = F(sqrt)(whole), back = root * root;
    rest = sum - whole + rest;
    V root_low = (whole - back - F(lost)(root, root, back) + rest) / F(max)(root + root, K(LEAST));
    V total = x + root, lost = F(sum_lost)(x, root, total) + root_low;
    total = F(select)(F(gt)(y, K(BIG)), K(0.5) * y, total);
    lost = F(select)(F(gt)(y, K(BIG)), K(0), lost);
    V result = F(log_of_sum)(total, lost, F(select)(F(gt)(y, K(BIG)), K(2), K(0)));
    return F(select)(F(lt)(y, K(INFINITE)), result, y); /* infinity and NaN */
}
#undef BIG

/* Below 1/2 an odd polynomial. */
TS_INLINE V F(asinh)(V input) {
    V y = F(abs)(input), x = y * y, p = K(TOP(ASINH));
    REST(ASINH)(HORNER)
    V small = F(fma)(y * x, p, y), large = F(log_with_root)(y, K(1));
    return F(with_sign)(F(select)(F(lt)(y, K(0.5)), small, large), input);
}

/* Below 1 the root is NaN. */
TS_INLINE V F(acosh)(V x) { return F(log_with_root)(x, K(-1)); }

/* Below 1/2 an odd polynomial; above, half of log((1 + y) / (1 - y)), the quotient with what it loses. */
TS_INLINE V F(atanh)(V input) {
    V y = F(abs)(input), x = y * y, p = K(TOP(ATANH));
    REST(ATANH)(HORNER)
    V small = F(fma)(y * x, p, y);
    V n = y + K(1), d = K(1) - y, q = n / d, back = q * d;
    V low = (n - back - F(lost)(q, d, back) + (y - (n - K(1)))) / d;
    V large = K(0.5) * F(log_of_sum)(q, low, K(0));
    V ends = F(select)(F(eq)(y, K(1)), K(INFINITE), K(NOT_A_NUMBER));
    large = F(select)(F(lt)(y, K(1)), large, ends);
    return F(with_sign)(F(select)(F(lt)(y, K(0.5)), small, large), input);
}
