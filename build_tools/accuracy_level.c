/* ts_math.h over arrays, at the level that this is compiled for: linked once a level. */
#include "ts_math.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define EVALUATE(T, C, name)                                             \
    case name##_id:                                                      \
        for (long i = 0; i < n; i += TS_LANES_##T)                       \
            ts_store_##T(out + i, ts_##name##_##T(ts_load_##T(in + i))); \
        break;
#define EVALUATE_SCALAR(T, C, name)                                       \
    case name##_id:                                                       \
        for (long i = 0; i < n; i++) out[i] = ts_##name##_##T##_s(in[i]); \
        break;

enum { exp_id, log_id, tanh_id, erf_id, rsqrt_id };

/* n is a multiple of every level's lanes. */
#define ALL(T, C)                                                                 \
    void PASTE(vector_##T##_, LEVEL)(int function, const C *in, C *out, long n);  \
    void PASTE(scalar_##T##_, LEVEL)(int function, const C *in, C *out, long n);  \
    void PASTE(vector_##T##_, LEVEL)(int function, const C *in, C *out, long n) { \
        switch (function) {                                                       \
            EVALUATE(T, C, exp)                                                   \
            EVALUATE(T, C, log)                                                   \
            EVALUATE(T, C, tanh)                                                  \
            EVALUATE(T, C, erf)                                                   \
            EVALUATE(T, C, rsqrt)                                                 \
        }                                                                         \
    }                                                                             \
    void PASTE(scalar_##T##_, LEVEL)(int function, const C *in, C *out, long n) { \
        switch (function) {                                                       \
            EVALUATE_SCALAR(T, C, exp)                                            \
            EVALUATE_SCALAR(T, C, log)                                            \
            EVALUATE_SCALAR(T, C, tanh)                                           \
            EVALUATE_SCALAR(T, C, erf)                                            \
            EVALUATE_SCALAR(T, C, rsqrt)                                          \
        }                                                                         \
    }
ALL(f32, float)
ALL(f64, double)
