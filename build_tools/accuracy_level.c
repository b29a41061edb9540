/* The functions of accuracy_functions.h over arrays, at the level that this is compiled for: linked once a
   level. */
#include "ts_math_more.h"

#include "accuracy_functions.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define VECTORS(T) for (long i = 0; i < n; i += TS_LANES_##T)
#define SINGLES for (long i = 0; i < n; i++)
#define LOADED(T, from) ts_load_##T(from + i)

#define OF_F32(name, far, single, wide) \
    case name##_id: VECTORS(f32) ts_store_f32(out + i, ts_##name##_f32(LOADED(f32, in))); break;
#define OF_TWO_F32(name, far, single, wide)                                                    \
    case name##_id:                                                                            \
        VECTORS(f32) ts_store_f32(out + i, ts_##name##_f32(LOADED(f32, in), LOADED(f32, second))); \
        break;
#define OF_F64(name, far, single, wide) \
    case name##_id: VECTORS(f64) ts_store_f64(out + i, ts_##name##_f64(LOADED(f64, in))); break;
#define OF_TWO_F64(name, far, single, wide)                                                    \
    case name##_id:                                                                            \
        VECTORS(f64) ts_store_f64(out + i, ts_##name##_f64(LOADED(f64, in), LOADED(f64, second))); \
        break;
#define OF_SINGLE_F32(name, far, single, wide) \
    case name##_id: SINGLES out[i] = ts_##name##_f32_s(in[i]); break;
#define OF_TWO_SINGLE_F32(name, far, single, wide) \
    case name##_id: SINGLES out[i] = ts_##name##_f32_s(in[i], second[i]); break;
#define OF_SINGLE_F64(name, far, single, wide) \
    case name##_id: SINGLES out[i] = ts_##name##_f64_s(in[i]); break;
#define OF_TWO_SINGLE_F64(name, far, single, wide) \
    case name##_id: SINGLES out[i] = ts_##name##_f64_s(in[i], second[i]); break;

/* n is a multiple of every level's lanes. second: the other arguments of functions of two. */
#define DEFINE(form, C, one, two)                                                         \
    void PASTE(form, LEVEL)(int function, const C *in, const C *second, C *out, long n);  \
    void PASTE(form, LEVEL)(int function, const C *in, const C *second, C *out, long n) { \
        switch (function) { UNARY(one) BINARY(two) }                                      \
    }
DEFINE(vector_f32_, float, OF_F32, OF_TWO_F32)
DEFINE(scalar_f32_, float, OF_SINGLE_F32, OF_TWO_SINGLE_F32)
DEFINE(vector_f64_, double, OF_F64, OF_TWO_F64)
DEFINE(scalar_f64_, double, OF_SINGLE_F64, OF_TWO_SINGLE_F64)
