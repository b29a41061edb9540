/* ts_math.h over arrays, at the level that this is compiled for: linked once a level. */
#include "ts_math.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define EVALUATE(T, C, name)                                             \
    case name##_id:                                                      \
        for (long i = 0; i < n; i += TS_LANES_##T)                       \
            ts_store_##T(out + i, ts_##name##_##T(ts_load_##T(in + i))); \
        break;
#define EVALUATE_POW(T, C)                                                                   \
    case pow_id:                                                                             \
        for (long i = 0; i < n; i += TS_LANES_##T)                                           \
            ts_store_##T(out + i, ts_pow_##T(ts_load_##T(in + i), ts_load_##T(second + i))); \
        break;
#define EVALUATE_POW_SCALAR(T, C)                                               \
    case pow_id:                                                                \
        for (long i = 0; i < n; i++) out[i] = ts_pow_##T##_s(in[i], second[i]); \
        break;
#define EVALUATE_SCALAR(T, C, name)                                       \
    case name##_id:                                                       \
        for (long i = 0; i < n; i++) out[i] = ts_##name##_##T##_s(in[i]); \
        break;

enum {
    exp_id,
    log_id,
    tanh_id,
    erf_id,
    rsqrt_id,
    sigmoid_id,
    log1p_id,
    expm1_id,
    pow_id,
    sin_id,
    cos_id
};

/* n is a multiple of every level's lanes. second: the exponents of pow. */
#define ALL(T, C)                                                                                  \
    void PASTE(vector_##T##_, LEVEL)(int function, const C *in, const C *second, C *out, long n);  \
    void PASTE(scalar_##T##_, LEVEL)(int function, const C *in, const C *second, C *out, long n);  \
    void PASTE(vector_##T##_, LEVEL)(int function, const C *in, const C *second, C *out, long n) { \
        switch (function) {                                                                        \
            EVALUATE(T, C, exp)                                                                    \
            EVALUATE(T, C, log)                                                                    \
            EVALUATE(T, C, tanh)                                                                   \
            EVALUATE(T, C, erf)                                                                    \
            EVALUATE(T, C, rsqrt)                                                                  \
            EVALUATE(T, C, sigmoid)                                                                \
            EVALUATE(T, C, log1p)                                                                  \
            EVALUATE(T, C, expm1)                                                                  \
            EVALUATE_POW(T, C)                                                                     \
            EVALUATE(T, C, sin)                                                                    \
            EVALUATE(T, C, cos)                                                                    \
        }                                                                                          \
    }                                                                                              \
    void PASTE(scalar_##T##_, LEVEL)(int function, const C *in, const C *second, C *out, long n) { \
        switch (function) {                                                                        \
            EVALUATE_SCALAR(T, C, exp)                                                             \
            EVALUATE_SCALAR(T, C, log)                                                             \
            EVALUATE_SCALAR(T, C, tanh)                                                            \
            EVALUATE_SCALAR(T, C, erf)                                                             \
            EVALUATE_SCALAR(T, C, rsqrt)                                                           \
            EVALUATE_SCALAR(T, C, sigmoid)                                                         \
            EVALUATE_SCALAR(T, C, log1p)                                                           \
            EVALUATE_SCALAR(T, C, expm1)                                                           \
            EVALUATE_POW_SCALAR(T, C)                                                              \
            EVALUATE_SCALAR(T, C, sin)                                                             \
            EVALUATE_SCALAR(T, C, cos)                                                             \
        }                                                                                          \
    }
ALL(f32, float)
ALL(f64, double)
