/* tan, and angles from what their functions are (see ts_math_more.h). */

#ifdef TS_MATH_TURNS_H
/* For x = r + k pi/2 it is tan(r), or by an odd k -1 / tan(r): of the sum of two, by a rounded quotient
   and what that leaves. */
TS_INLINE V F(tan)(V input) {
    F(angle) angle = F(less_quarters_of)(F(abs)(input));
    V r = angle.r, x = r * r, p = K(TOP(TAN));
    REST(TAN)(HORNER)
    V rest = r * x * p, tangent = r + rest, low = r - tangent + rest;
    V inverse = K(-1) / tangent, back = inverse * tangent;
    V left = K(-1) - back - F(lost)(inverse, tangent, back) - inverse * low;
    inverse = F(fma)(-inverse, left, inverse);
    V odd = F(from_bits)(angle.k << (BITS - 2) & (SIGN >> 1)); /* 2 or 0 */
    V result = F(select)(F(gt)(odd, K(1)), inverse, tangent);
    return F(from_bits)(F(bits)(result) ^ (F(bits)(input) & SIGN));
}
#endif

/* atan(t) - t for t in [0, 1] */
TS_INLINE V F(atan_rest)(V t) {
    V x = t * t, p = K(TOP(ATAN));
    REST(ATAN)(HORNER)
    return t * x * p;
}

TS_INLINE V F(atan)(V input) {
    V y = F(abs)(input), t = F(select)(F(gt)(y, K(1)), K(1) / y, y);
    V rest = F(atan_rest)(t);
    V steep = K(PART1(QUARTER)) - t - (rest - K(PART2(QUARTER)));
    return F(with_sign)(F(select)(F(gt)(y, K(1)), steep, t + rest), input);
}

/* The angle in the eighth turn next to the x axis, then moved to where x and y are. */
TS_INLINE V F(atan2)(V y, V x) {
    V a = F(abs)(y), b = F(abs)(x), most = F(max)(a, b), less = F(min)(a, b);
    V same = F(select)(F(eq)(most, K(0)), K(0), K(1)); /* of zeros and infinities, too */
    V t = F(select)(F(eq)(less, most), same, less / most), rest = F(atan_rest)(t);
    V side = F(with_sign)(K(1), x), quarters = F(select)(F(lt)(side, K(0)), K(2), K(0));
    quarters = F(select)(F(gt)(a, b), K(1), quarters);
    side = F(select)(F(gt)(a, b), -side, side);
    V high = F(fma)(side, t, quarters * K(PART1(QUARTER)));
    V low = F(fma)(side, rest, quarters * K(PART2(QUARTER)));
    return F(with_sign)(high + low, y);
}

/* asin(s) = s + rest for s in [0, 1/2] and x = s^2 */
TS_INLINE V F(asin_rest)(V s, V x) {
    V p = K(TOP(ASIN));
    REST(ASIN)(HORNER)
    return s * x * p;
}

/* sqrt((1 - |y|) / 2), the sine of half the complement's angle, and in two parts, of which the first has
   half of the bits. */
typedef struct {
    V square, whole, high, low;
} F(half_sine);

TS_INLINE F(half_sine) F(half_sine_of)(V y) {
    V square = (K(1) - y) * K(0.5), s = F(sqrt)(square);
    V high = F(from_bits)(F(bits)(s) & UPPER);
    F(half_sine) result = {square, s, high, (square - high * high) / F(max)(s + high, K(LEAST))};
    return result;
}

/* Above 1/2, pi/2 - 2 asin(sqrt((1 - y) / 2)), as in FreeBSD's e_asin.c. */
TS_INLINE V F(asin)(V input) {
    V y = F(abs)(input), x = y * y;
    F(half_sine) s = F(half_sine_of)(y);
    V small = y + F(asin_rest)(y, x);
    V rest = F(asin_rest)(s.whole, s.square), eighth = K(0.5 * PART1(QUARTER));
    V large = (rest + rest) - (K(PART2(QUARTER)) - (s.low + s.low));
    large = eighth - (large - (eighth - (s.high + s.high)));
    return F(with_sign)(F(select)(F(gt)(y, K(0.5)), large, small), input);
}

TS_INLINE V F(acos)(V input) {
    V y = F(abs)(input);
    F(half_sine) s = F(half_sine_of)(y);
    V small = K(PART1(QUARTER)) - (input - (K(PART2(QUARTER)) - F(asin_rest)(input, input * input)));
    V rest = F(asin_rest)(s.whole, s.square);
    V right = s.high + (rest + s.low), left = K(PART1(QUARTER)) - (s.whole + (rest - K(PART2(QUARTER))));
    V large = F(select)(F(lt)(input, K(0)), left, right);
    return F(select)(F(gt)(y, K(0.5)), large + large, small);
}
