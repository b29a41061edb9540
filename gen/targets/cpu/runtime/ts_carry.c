/* One call carried out: its arrays bound, those copied that no variant takes as they are, ts_run. */
#include "ts_engine.h"

/* A contiguous copy of an array, in workspace. */
typedef struct copy {
    char *memory;
    int64_t strides[TS_MAX_OUTER + TS_MAX_CORE];
    int64_t itemsize, swap; /* of the array */
} copy;

static bool is_dense(const ts_array *array, int64_t itemsize)
{
    int64_t contiguous = itemsize;
    for (int axis = array->ndim - 1; axis >= 0; axis--) {
        if (array->shape[axis] == 0)
            return true;
        if (array->shape[axis] > 1 && array->strides[axis] != contiguous)
            return false;
        contiguous *= array->shape[axis];
    }
    return true;
}

/* Binds argument k to a copy of its array, filled unless the kernel only writes it. */
static int bind_copy(ts_invocation *v, int k, const ts_given *given, int axis, copy *c)
{
    const ts_array *array = &given->array;
    size_t bytes = (size_t)(c->itemsize = v->operands[k].itemsize);
    c->swap = v->operands[k].swap;
    for (int i = array->ndim - 1; i >= 0; i--) {
        c->strides[i] = (int64_t)bytes;
        bytes = ts_bytes(array->shape[i], bytes);
    }
    c->memory = ts_workspace_acquire(bytes);
    if (!c->memory)
        return TS_NO_MEMORY;
    if (v->kernel->arguments[k].intent != TS_OUT)
        ts_move(c->memory, c->strides, array->data, array->strides, array->shape, array->ndim,
                c->itemsize, c->swap);
    const ts_given dense = {{c->memory, array->ndim, array->shape, c->strides}, false};
    ts_bind(v, k, &dense, axis);
    v->copied = true;
    return TS_OK;
}

/* `dense`: copies what is not looped and not contiguous. */
static int attempt(ts_invocation *v, const ts_given *given, int axis, bool dense)
{
    const ts_kernel *kernel = v->kernel;
    copy copies[TS_MAX_ARGUMENTS];
    uint32_t copied = 0; /* bit k: argument k is */
    int status = TS_OK;
    for (int k = 0; status == TS_OK && k < kernel->arguments_count; k++) {
        const ts_operand *o = &v->operands[k];
        ts_bind(v, k, &given[k], axis);
        if (kernel->arguments[k].looped ||
            (!o->convert && (!dense || is_dense(&given[k].array, o->itemsize))))
            continue;
        status = bind_copy(v, k, &given[k], axis, &copies[k]);
        copied |= (uint32_t)(status == TS_OK) << k;
    }
    if (status == TS_OK)
        status = ts_run(v);
    for (int k = kernel->arguments_count; copied && k-- > 0;) { /* workspace is a stack */
        const copy *c = &copies[k];
        const ts_array *array = &given[k].array;
        if (!(copied >> k & 1))
            continue;
        if (status == TS_OK && kernel->arguments[k].intent != TS_IN)
            ts_move(array->data, array->strides, c->memory, c->strides, array->shape, array->ndim,
                    c->itemsize, c->swap);
        ts_workspace_release(c->memory);
    }
    return status;
}

int ts_carry_out(ts_invocation *v, const ts_given *given, int axis)
{
    const int status = attempt(v, given, axis, false);
    if (status != TS_NEEDS_COPY)
        return status;
    ts_measure(v, given, axis); /* as before: ts_run has changed the axes */
    return attempt(v, given, axis, true);
}
