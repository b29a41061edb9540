/* Calls from C: what the package's header (gen/binding/header.py) reaches by the capsule `_C_API`.

   Input: arrays as ts_caller.h has them. Output: a status, and a message. Invariant: nothing of Python
   is touched, so no GIL is needed; a call runs at the level, in the variant and with the bits that
   one from Python does. Memory that outputs share with other arrays is refused, not copied. */
#include <stdio.h>
#include <string.h>

#include "ts_engine.h"

enum { MOST_AXES = TS_MAX_OUTER + TS_MAX_CORE };

typedef struct bound { /* the arrays of a call, and the strides of those that have none of their own */
    ts_given given[TS_MAX_ARGUMENTS];
    int64_t strides[TS_MAX_ARGUMENTS][MOST_AXES];
} bound;

static const void *find(const char *declaration)
{
    for (int k = 0; k < ts_kernels_count; k++)
        for (int i = 0; i < ts_kernels[k].overloads_count; i++)
            if (!strcmp(ts_kernels[k].overloads[i].declaration, declaration))
                return &ts_kernels[k].overloads[i];
    return NULL;
}

/* ---- what a call is given ---- */

/* The array as the engine wants it: its strides are there, and it is what it says. */
static int take_array(const ts_kernel *kernel, int k, const ts_array *array, int64_t itemsize, bound *b)
{
    const char *name = kernel->arguments[k].name;
    if (!array)
        return ts_refuse(kernel, "argument %s is NULL", name);
    if (array->ndim < 0 || array->ndim > TS_MAX_OUTER)
        return ts_refuse(kernel, "argument %s: ndim must be from 0 to %d, got %d", name, TS_MAX_OUTER,
                         array->ndim);
    if (array->ndim > 0 && !array->shape)
        return ts_refuse(kernel, "argument %s has no shape", name);
    size_t bytes = (size_t)itemsize;
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (array->shape[i] < 0)
            return ts_refuse(kernel, "argument %s: axis %d has the negative extent %lld", name, i,
                             (long long)array->shape[i]);
        b->strides[k][i] = array->strides ? array->strides[i] : (int64_t)bytes;
        bytes = ts_bytes(array->shape[i], bytes);
    }
    if (bytes && !array->data)
        return ts_refuse(kernel, "argument %s has no data", name);
    b->given[k] = (ts_given){{array->data, array->ndim, array->shape, b->strides[k]}, false};
    return TS_OK;
}

static ts_scalar take_scalar(ts_dtype dtype, const void *value)
{
    switch (dtype) {
    case TS_BOOL: return (ts_scalar){.i64 = *(const bool *)value};
    case TS_INT8: return (ts_scalar){.i64 = *(const int8_t *)value};
    case TS_INT16: return (ts_scalar){.i64 = *(const int16_t *)value};
    case TS_INT32: return (ts_scalar){.i64 = *(const int32_t *)value};
    case TS_INT64: return (ts_scalar){.i64 = *(const int64_t *)value};
    case TS_UINT8: return (ts_scalar){.i64 = *(const uint8_t *)value};
    case TS_UINT16: return (ts_scalar){.i64 = *(const uint16_t *)value};
    case TS_UINT32: return (ts_scalar){.i64 = *(const uint32_t *)value};
    case TS_UINT64: return (ts_scalar){.i64 = (int64_t)*(const uint64_t *)value};
    case TS_FLOAT16: case TS_BFLOAT16: /* as they are computed in */
    case TS_FLOAT32: return (ts_scalar){.f64 = *(const float *)value};
    case TS_COMPLEX64: {
        const ts_complex64 *z = value;
        return (ts_scalar){.parts = {z->re, z->im}};
    }
    case TS_COMPLEX128: {
        const ts_complex128 *z = value;
        return (ts_scalar){.parts = {z->re, z->im}};
    }
    case TS_FLOAT64: case TS_DTYPES: break;
    }
    return (ts_scalar){.f64 = *(const double *)value};
}

/* ---- what is written ---- */

static int check_written(const ts_invocation *v, int k, const bound *b)
{
    const ts_kernel *kernel = v->kernel;
    const ts_argument *argument = &kernel->arguments[k];
    const ts_array *array = &b->given[k].array;
    int64_t shape[MOST_AXES];
    const int ndim = ts_shape_of(v, k, -1, shape);
    bool same = array->ndim == ndim;
    for (int i = 0; same && i < ndim; i++)
        same = array->shape[i] == shape[i];
    if (!same) {
        char what[128];
        snprintf(what, sizeof what, "argument %s", argument->name);
        return ts_refuse_shape(v, what, ndim, shape, array);
    }
    const int other = ts_clash(v, b->given, k, false);
    if (other == k)
        return ts_refuse(kernel, "argument %s is written and has several elements in one place",
                         argument->name);
    if (other >= 0)
        return ts_refuse(kernel, "argument %s is written and shares memory with argument %s",
                         argument->name, kernel->arguments[other].name);
    return TS_OK;
}

/* Whether there is anything to compute, as for calls from Python: a dim that is too small is wrong only
   where there is. */
static bool writes_something(const ts_kernel *kernel, const bound *b)
{
    bool outputs = false;
    for (int k = 0; k < kernel->arguments_count; k++) {
        bool empty = false;
        if (kernel->arguments[k].intent != TS_OUT)
            continue;
        outputs = true;
        for (int i = 0; i < b->given[k].array.ndim; i++)
            empty |= b->given[k].array.shape[i] == 0;
        if (!empty)
            return true;
    }
    return !outputs;
}

/* ---- the call ---- */

static int take(ts_invocation *v, const ts_array *const *arrays, const void *const *scalars,
                int num_threads, bound *b)
{
    const ts_kernel *kernel = v->kernel;
    if (num_threads < 0 || num_threads > TS_MOST_THREADS)
        return ts_refuse(kernel, "num_threads must be from 0, the default, to %d, got %d",
                         TS_MOST_THREADS, num_threads);
    v->threads = num_threads ? num_threads : ts_default_threads();
    for (int k = 0; k < kernel->arguments_count; k++) {
        const ts_argument *argument = &kernel->arguments[k];
        const ts_dtype dtype = ts_dtype_of(v->overload, argument->type_variable, argument->dtype);
        const int status = take_array(kernel, k, arrays[k], ts_itemsize(dtype), b);
        if (status != TS_OK)
            return status;
    }
    for (int i = 0; i < kernel->parameters_count; i++)
        v->scalars[i] = take_scalar(ts_dtype_of(v->overload, kernel->parameters[i].type_variable,
                                                kernel->parameters[i].dtype),
                                    scalars[i]);
    return ts_measure(v, b->given, -1);
}

static int call(const ts_function *function, const ts_array *const *arrays,
                const void *const *scalars, int num_threads)
{
    const ts_overload *overload = function->kernel;
    if (!overload)
        return ts_refuse_unknown(function->declaration);
    const ts_kernel *kernel = &ts_kernels[overload->kernel];
    ts_invocation v;
    bound b;
    v.kernel = kernel;
    v.overload = overload;
    v.variants = overload->variants[ts_level_used()];
    v.copied = false;
    int status = take(&v, arrays, scalars, num_threads, &b);
    for (int k = 0; status == TS_OK && k < kernel->arguments_count; k++)
        if (kernel->arguments[k].intent != TS_IN)
            status = check_written(&v, k, &b);
    if (status != TS_OK)
        return status;
    if (ts_too_small(&v) >= 0)
        return writes_something(kernel, &b) ? ts_refuse_too_small(&v, ts_too_small(&v)) : TS_OK;
    status = ts_carry_out(&v, b.given, -1);
    if (status == TS_NO_MEMORY)
        ts_refuse(kernel, "no memory for the kernel's workspace");
    return status;
}

const ts_caller_api ts_this_api = {1, find, call, ts_message};
