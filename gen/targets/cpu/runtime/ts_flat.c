/* Calls of elementwise kernels on arrays whose elements lie side by side in the same order.

   Such a call is all loop dim: there are no axes to put in order, and nothing is packed. To find that
   out the general way takes longer than the work of a small one. */
#include "ts_engine.h"

static bool is_elementwise(const ts_kernel *kernel)
{
    if (kernel->loop_dim != 0 || kernel->dims_count != 1 || kernel->sizes_count ||
        kernel->constraints_count)
        return false;
    for (int k = 0; k < kernel->arguments_count; k++)
        if (!kernel->arguments[k].looped || kernel->arguments[k].core)
            return false;
    return true;
}

/* Whether what argument k writes leaves the others alone: apart from them, or in place. */
static bool is_safe(const ts_overload *overload, void *const *data, int k, int64_t count)
{
    const ts_kernel *kernel = &ts_kernels[overload->kernel];
    const ts_argument *written = &kernel->arguments[k];
    const int64_t size = ts_itemsize(ts_dtype_of(overload, written->type_variable, written->dtype));
    const uintptr_t first = (uintptr_t)data[k], end = first + (uintptr_t)(count * size);
    for (int other = 0; other < kernel->arguments_count; other++) {
        const ts_argument *read = &kernel->arguments[other];
        const int64_t its = ts_itemsize(ts_dtype_of(overload, read->type_variable, read->dtype));
        const uintptr_t from = (uintptr_t)data[other];
        const bool apart = end <= from || from + (uintptr_t)(count * its) <= first;
        const bool same = from == first && its == size && written->in_place[0] >> other & 1;
        if (other != k && !apart && !same)
            return false;
    }
    return true;
}

int ts_flat_output(const ts_kernel *kernel)
{
    int written = -1;
    for (int k = 0; k < kernel->arguments_count; k++) {
        if (kernel->arguments[k].intent == TS_INOUT ||
            (kernel->arguments[k].intent == TS_OUT && written >= 0))
            return -1;
        written = kernel->arguments[k].intent == TS_OUT ? k : written;
    }
    return is_elementwise(kernel) ? written : -1;
}

int ts_run_flat(const ts_overload *overload, void *const *data, const ts_scalar *scalars, int k,
                int64_t count, int threads)
{
    int64_t strides[TS_MAX_ARGUMENTS];
    if (!is_safe(overload, data, k, count))
        return TS_NEEDS_COPY;
    const ts_kernel *kernel = &ts_kernels[overload->kernel];
    for (int each = 0; each < kernel->arguments_count; each++)
        strides[each] = 1;
    const double stream_above = ts_stream_above(threads), prefetch_above = ts_prefetch_above();
    const ts_call call = {data,    strides,      &count,         scalars,
                          threads, stream_above, prefetch_above, NULL};
    const ts_variant *variant = overload->variants[ts_level_used()];
    while (variant->when && !variant->when(&call))
        variant++;
    ts_set_last_run((ts_record){kernel->name, variant->name, false, false, NULL});
    return variant->run(&call);
}
