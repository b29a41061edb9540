/* Included by ts_complex.h, once a type: what vectors of complex numbers and single ones share. */

TS_INLINE Z R(complex)(V re, V im) { return (Z){re, im}; }
TS_INLINE V F(real)(Z a) { return a.re; }
TS_INLINE V F(imag)(Z a) { return a.im; }

TS_INLINE Z F(add)(Z a, Z b) { return (Z){R(add)(a.re, b.re), R(add)(a.im, b.im)}; }
TS_INLINE Z F(sub)(Z a, Z b) { return (Z){R(sub)(a.re, b.re), R(sub)(a.im, b.im)}; }
TS_INLINE Z F(neg)(Z a) { return (Z){R(neg)(a.re), R(neg)(a.im)}; }
TS_INLINE Z F(conj)(Z a) { return (Z){a.re, R(neg)(a.im)}; }

TS_INLINE Z F(mul)(Z a, Z b) {
    return (Z){R(fma)(a.re, b.re, R(neg)(R(mul)(a.im, b.im))),
               R(fma)(a.re, b.im, R(mul)(a.im, b.re))};
}

TS_INLINE Z F(fma)(Z a, Z b, Z c) {
    return (Z){R(fma)(a.re, b.re, R(fma)(R(neg)(a.im), b.im, c.re)),
               R(fma)(a.re, b.im, R(fma)(a.im, b.re, c.im))};
}

TS_INLINE M F(eq)(Z a, Z b) { return BOTH(R(eq)(a.re, b.re), R(eq)(a.im, b.im)); }
TS_INLINE M F(ne)(Z a, Z b) { return EITHER(R(ne)(a.re, b.re), R(ne)(a.im, b.im)); }
TS_INLINE M F(isnan)(Z a) { return EITHER(R(isnan)(a.re), R(isnan)(a.im)); }
TS_INLINE M F(isinf)(Z a) { return EITHER(R(isinf)(a.re), R(isinf)(a.im)); }
TS_INLINE M F(isfinite)(Z a) { return BOTH(R(isfinite)(a.re), R(isfinite)(a.im)); }
TS_INLINE Z F(select)(M m, Z a, Z b) {
    return (Z){R(select)(m, a.re, b.re), R(select)(m, a.im, b.im)};
}

/* With the divisor's parts as large and small, and the dividend's in the same order as x and y, the
   quotient's are (x + y r) / (large + small r) and (y - x r) / (large + small r), r = small / large,
   the latter negated where the imaginary part is the large one. */
TS_INLINE Z F(div)(Z a, Z b) {
    V zero = R(set)(0), size = R(abs)(b.re);
    M flip = R(gt)(R(abs)(b.im), size), none = BOTH(R(eq)(b.re, zero), R(eq)(b.im, zero));
    V large = R(select)(flip, b.im, b.re), small = R(select)(flip, b.re, b.im);
    V x = R(select)(flip, a.im, a.re), y = R(select)(flip, a.re, a.im);
    V ratio = R(div)(small, large);
    V whole = R(select)(none, size, R(fma)(small, ratio, large));
    V across = R(select)(flip, x, R(neg)(x)), along = R(select)(flip, R(neg)(y), y);
    V re = R(select)(none, x, R(fma)(y, ratio, x));
    V im = R(select)(none, y, R(fma)(across, ratio, along));
    return (Z){R(div)(re, whole), R(div)(im, whole)};
}

TS_INLINE V F(abs)(Z a) {
    V x = R(abs)(a.re), y = R(abs)(a.im), infinity = R(set)(__builtin_inff());
    V most = R(max)(x, y), least = R(min)(x, y), one = R(set)(1);
    M large = R(gt)(most, R(set)(LARGE)), small = R(lt)(most, R(set)(SMALL));
    V scale = R(select)(large, R(set)(1 / DOWN), R(select)(small, R(set)(UP), one));
    V back = R(select)(large, R(set)(DOWN), R(select)(small, R(set)(1 / UP), one));
    most = R(mul)(most, scale);
    least = R(mul)(least, scale);
    V size = R(mul)(R(sqrt)(R(fma)(most, most, R(mul)(least, least))), back);
    return R(select)(EITHER(R(eq)(x, infinity), R(eq)(y, infinity)), infinity, size);
}

/* Real numbers stay real. Of -infinity it is 0 in whatever direction, also where that is NaN. */
TS_INLINE Z F(exp)(Z a) {
    V zero = R(set)(0), most = R(set)(MOST);
    M beyond = R(gt)(a.re, most), nothing = R(eq)(a.re, R(set)(-__builtin_inff()));
    V size = R(exp)(R(select)(beyond, R(sub)(a.re, most), a.re));
    V rest = R(select)(beyond, R(set)(GREATEST), R(set)(1));
    V re = R(mul)(R(mul)(size, R(cos)(a.im)), rest), im = R(mul)(R(mul)(size, R(sin)(a.im)), rest);
    re = R(select)(BOTH(nothing, R(isnan)(re)), zero, re);
    im = R(select)(BOTH(nothing, R(isnan)(im)), zero, im);
    return (Z){re, R(select)(R(eq)(a.im, zero), a.im, im)};
}
