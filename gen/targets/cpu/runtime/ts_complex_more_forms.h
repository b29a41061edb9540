/* Included by ts_complex_more.h, once a type: what vectors of complex numbers and single ones share. */

/* By W. Kahan (Branch cuts for complex elementary functions, 1987): the larger part is the root of half of
   the magnitude and the real part's, and twice the product of both is the imaginary part. Magnitudes near
   the ends of the range are scaled by powers of 4. */
TS_INLINE Z F(sqrt)(Z a) {
    V x = R(abs)(a.re), y = R(abs)(a.im), most = R(max)(x, y), one = R(set)(1);
    M large = R(gt)(most, R(set)(LARGE)), small = R(lt)(most, R(set)(1 / LARGE));
    V scale = R(select)(large, R(set)(0.25f), R(select)(small, R(set)(UP * UP), one));
    V back = R(select)(large, R(set)(2), R(select)(small, R(set)(1 / UP), one));
    x = R(mul)(x, scale);
    y = R(mul)(y, scale);
    V root = R(sqrt)(R(mul)(R(add)(x, R(hypot)(x, y)), R(set)(0.5f)));
    V other = R(div)(y, R(add)(root, root));
    other = R(select)(R(eq)(root, R(set)(0)), root, other);
    M left = R(lt)(a.re, R(set)(0)), endless = R(isinf)(a.im);
    V re = R(mul)(R(select)(left, other, root), back), im = R(mul)(R(select)(left, root, other), back);
    V infinity = R(abs)(a.im);
    im = R(select)(endless, infinity, im);
    return (Z){R(select)(endless, infinity, re), R(copysign)(im, a.im)};
}

TS_INLINE Z F(log)(Z a) { return (Z){R(log_hypot)(a.re, a.im), R(atan2)(a.im, a.re)}; }
