/* The logarithm of the gamma function (see ts_math_more.h). */

/* A number as the sum of two, the first of which is nearest to it. */
typedef struct {
    V high, low;
} F(two);

/* The logarithm of an x above 0, less than 2^-3 of a unit of 1 wrong, also where it is large. */
TS_INLINE F(two) F(log_in_two)(V x) {
    F(log_parts) log = F(log_apart)(x);
    V most = log.e * K(PART1(LN2)), sum = most + log.high;
    V low = most - sum + log.high + (log.low + log.e * K(PART2(LN2))), high = sum + low;
    F(two) result = {high, sum - high + low};
    return result;
}

/* lgamma(y) for y of at least -3/4. From 13/4 on it is Stirling's series (Abramowitz and Stegun, 6.1.40),
   of which (y - 1/2) (log(y) - 1) cancels nowhere. Below, with x = y - k in [-3/4, 1/4] for an integer k, it is
   lgamma(2 + x) = x (x + 1) p(x), whose factors are exact, so that it is as accurate beside the zeros; and the
   logarithm that gamma(y + 1) = y gamma(y) asks for: of 1 / (y (1 + y)), 1 / y, 1 and y - 1, for k = 0, 1, 2, 3.
   Were x up to 1/2, the two would cancel below 3/2. */
TS_INLINE F(two) F(lgamma_right)(V y) {
    V k = F(rint)(y + K(0.25)), size = F(abs)(y), x = y - k, p = K(TOP(LGAMMA));
    REST(LGAMMA)(HORNER)
    V near_two = x * (x + K(1)) * p;
    V factor = F(select)(F(gt)(k, K(2)), y - K(1), K(1));
    factor = F(select)(F(lt)(k, K(2)), y, factor);
    factor = F(select)(F(lt)(k, K(1)), F(fma)(size, y, size), factor);
    factor = F(select)(F(gt)(k, K(3)), y, factor);
    F(two) log = F(log_in_two)(factor);

    V over = K(1) / y, a = y - K(0.5), b = log.high - K(1), product = a * b;
    x = over * over;
    p = K(TOP(STIRLING));
    REST(STIRLING)(HORNER)
    V lost = F(select)(F(lt)(y, K(SINGLE ? 0x1p100 : 0x1p990)), F(lost)(a, b, product), K(0));
    V low = F(fma)(a, log.low, lost) + F(fma)(over, p, K(0.41893853320467274178)); /* (log(2 pi) - 1) / 2 */

    V side = F(select)(F(lt)(k, K(2)), K(-1), K(1));
    F(two) result = {F(select)(F(gt)(k, K(3)), product, side * log.high),
                     F(select)(F(gt)(k, K(3)), low, F(fma)(side, log.low, near_two))};
    return result;
}

/* Below -3/4 by gamma(-y) gamma(y) = -pi / (y sin(pi y)), whose sine is that of y's distance from an integer.
   Both logarithms are sums of two, since they cancel around the zeros there. */
TS_INLINE V F(lgamma)(V input) {
    V y = F(select)(F(lt)(input, K(-0.75)), -input, input);
    F(two) right = F(lgamma_right)(y);
    V result = right.high + right.low;
    if (ANY(F(lt)(input, K(-0.75)))) {
        V d = F(abs)(y - F(rint)(y)), x = d * d, p = K(TOP(SINPI));
        REST(SINPI)(HORNER)
        F(two) log = F(log_in_two)(y * F(fma)(d * x, p, d));
        V left = -(right.high + log.high + (right.low + log.low)); /* where they cancel, that is exact */
        left = F(select)(F(eq)(d, K(0)), K(INFINITE), left);
        result = F(select)(F(lt)(input, K(-0.75)), left, result);
    }
    V size = F(abs)(input);
    result = F(select)(F(eq)(size, K(0)), K(INFINITE), result);
    return F(select)(F(lt)(size, K(INFINITE)), result, size);
}
