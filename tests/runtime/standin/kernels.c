/* Hand-written kernels behind the contract of ts_abi.h, for tests of the runtime: LEVEL is defined
   by the build. Variants are named after what they take; none is fast. */
#include "ts_abi.h"

#define JOIN_(kernel, types, level) ts_##kernel##_##types##_##level
#define JOIN(kernel, types, level) JOIN_(kernel, types, level)
#define TABLE(kernel, types) const ts_variant JOIN(kernel, types, LEVEL)[]

#define T float
#define TYPES float32
#define NAME(kernel) kernel##_float32
#include "template.h"
#undef T
#undef TYPES
#undef NAME

#define T double
#define TYPES float64
#define NAME(kernel) kernel##_float64
#include "template.h"

/* ---- turn: ()->(),(): complex numbers times a complex scalar, plus real ones; and a part of them ---- */

#define P(k) ((const R *)call->data[k])
#define Q(k) ((R *)call->data[k])
#define TURN(types, R_)                                                                       \
    static int turn_##types(const ts_call *call)                                              \
    {                                                                                         \
        typedef R_ R;                                                                         \
        const int64_t *s = call->strides;                                                     \
        const double re = call->scalars[0].parts[0], im = call->scalars[0].parts[1];          \
        for (int64_t i = 0; i < call->dims[0]; i++) {                                         \
            const R a = P(0)[2 * i * s[0]], b = P(0)[2 * i * s[0] + 1], w = P(1)[i * s[1]];   \
            Q(2)[2 * i * s[2]] = (R)(a * re - b * im) + w * (R)call->scalars[1].f64;          \
            Q(2)[2 * i * s[2] + 1] = (R)(a * im + b * re);                                    \
            Q(3)[i * s[3]] = b;                                                               \
        }                                                                                     \
        return TS_OK;                                                                         \
    }                                                                                         \
    TABLE(turn, types) = {{turn_##types, 0, 0, "plain"}};
TURN(complex64_float32, float)
TURN(complex128_float64, double)
