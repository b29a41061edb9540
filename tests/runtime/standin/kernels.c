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
