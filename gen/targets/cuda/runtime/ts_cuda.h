/* What device text is written in: CUDA C++ that nvcc, NVRTC and, with TS_EMULATED, a C++ compiler take.

   TS_DEVICE           what stands before a function of a GPU
   ts_global<T>        points to elements in the GPU's memory
   TS_SHARED(T, a, n)  an array of a block's shared memory
   ts_barrier(n)       all threads of a block wait for each other; n numbers it in its file
   ts_..._s            scalar functions, the same to the last bit as a CPU's (ts_scalar.h, ts_math.h)
   ts_..._index<T>     of indices in T, rounded as in Python

   Compile with --fmad=false: where a product is added fused, it says so. */
#ifndef TS_CUDA_H
#define TS_CUDA_H

#define TS_CUDA 1

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
#define INT64_C(x) x##ll
#define UINT64_C(x) x##ull
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif

#ifdef TS_EMULATED
#include "ts_emulator.h"
#define TS_INLINE static inline
#define TS_COLD static inline
#define TS_INF_F32 __builtin_inff()
#define TS_INF_F64 __builtin_inf()
#define TS_NAN_F32 __builtin_nanf("")
#define TS_NAN_F64 __builtin_nan("")
#define TS_LEADING_ZEROS(x) __builtin_clzll(x)
#else
/* Not static: names of shared memory in static functions have a hash of the file's folder in them. */
#define TS_DEVICE __device__ __forceinline__
#define TS_INLINE TS_DEVICE
#define TS_COLD inline __device__ __noinline__
template <typename T> using ts_global = T *;
#define TS_SHARED(type, name, count) __shared__ type name[count]
#define ts_barrier(number) __syncthreads()
#define TS_INF_F32 __int_as_float(0x7F800000)
#define TS_INF_F64 __longlong_as_double(0x7FF0000000000000ll)
#define TS_NAN_F32 __int_as_float(0x7FC00000)
#define TS_NAN_F64 __longlong_as_double(0x7FF8000000000000ll)
#define TS_LEADING_ZEROS(x) __clzll((long long)(x))
#endif

#define TS_HAS_FMA 1

#include "ts_types.h"

#include "ts_scalar.h"

#if defined __SIZEOF_INT128__ || defined __CUDACC_RTC_INT128__
#include "ts_math_turns.h" /* sin and cos; NVRTC has them with --device-int128 */
#endif

#include "ts_math.h"

/* ---------------------------------------------------------------- indices */

template <typename T> TS_INLINE T ts_min_index(T a, T b) { return a < b ? a : b; }
template <typename T> TS_INLINE T ts_max_index(T a, T b) { return a > b ? a : b; }
template <typename T> TS_INLINE T ts_floordiv_index(T a, T b) {
    if (b == 0) return 0;
    T quotient = a / b;
    return quotient - (T)(a % b != 0 && (a < 0) != (b < 0));
}
template <typename T> TS_INLINE T ts_mod_index(T a, T b) {
    if (b == 0) return 0;
    T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <typename T> TS_INLINE T ts_and_index(T a, T b) { return a & b; }
template <typename T> TS_INLINE T ts_or_index(T a, T b) { return a | b; }
template <typename T> TS_INLINE T ts_xor_index(T a, T b) { return a ^ b; }
template <typename T> TS_INLINE T ts_shl_index(T a, T b) { return (T)ts_shl_i64_s(a, b); }
template <typename T> TS_INLINE T ts_shr_index(T a, T b) { return (T)ts_shr_i64_s(a, b); }

#endif
