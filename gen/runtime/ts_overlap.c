/* Whether arrays share memory: what is written must not change what is still to be read. */
#include "ts_engine.h"

typedef struct extent { /* the first byte, and the number of bytes to the end of the last element */
    uintptr_t first;
    uint64_t bytes; /* 0: no elements */
} extent;

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Of the axes whose strides are no multiples of `period`: all axes where it is 0. */
static extent extent_of(const ts_array *array, int64_t itemsize, int64_t period)
{
    extent e = {(uintptr_t)array->data, (uint64_t)itemsize};
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] == 0)
            return (extent){e.first, 0};
        if (period && array->strides[i] % period == 0)
            continue;
        const int64_t reach = (array->shape[i] - 1) * array->strides[i];
        e.bytes += (uint64_t)magnitude(reach);
        if (reach < 0)
            e.first += (uintptr_t)reach;
    }
    return e;
}

/* Whether all elements of the one lie between those of the other, `period` bytes apart: columns of one
   matrix, channels of one image. */
static bool apart_by(const ts_array *a, int64_t a_itemsize, const ts_array *b, int64_t b_itemsize,
                     int64_t period)
{
    const extent x = extent_of(a, a_itemsize, period), y = extent_of(b, b_itemsize, period);
    const uint64_t p = (uint64_t)period;
    if (x.bytes > p || y.bytes > p)
        return false;
    /* from the first byte of the one to that of the other, going up in a circle of p bytes */
    const uint64_t up = x.first <= y.first ? (y.first - x.first) % p : (p - (x.first - y.first) % p) % p;
    return x.bytes <= up && up + y.bytes <= p;
}

bool ts_overlap(const ts_array *a, int64_t a_itemsize, const ts_array *b, int64_t b_itemsize)
{
    const extent x = extent_of(a, a_itemsize, 0), y = extent_of(b, b_itemsize, 0);
    if (!x.bytes || !y.bytes || x.first + x.bytes <= y.first || y.first + y.bytes <= x.first)
        return false;
    const ts_array *const both[] = {a, b};
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < both[which]->ndim; i++) {
            const int64_t period = magnitude(both[which]->strides[i]);
            if (both[which]->shape[i] > 1 && period &&
                apart_by(a, a_itemsize, b, b_itemsize, period))
                return false;
        }
    return true;
}

/* In the same order. */
static bool same_elements(const ts_array *a, const ts_array *b)
{
    if (a->data != b->data || a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i] || a->strides[i] != b->strides[i])
            return false;
    return true;
}

bool ts_overlaps_itself(const ts_array *array, int64_t itemsize)
{
    int64_t reach = itemsize, below = -1; /* bytes that the axes of smaller strides take */
    int64_t contiguous = itemsize;
    bool dense = true;
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (array->shape[i] == 0)
            return false;
        dense &= array->shape[i] == 1 || array->strides[i] == contiguous;
        contiguous = (int64_t)((uint64_t)contiguous * (uint64_t)array->shape[i]);
    }
    if (dense)
        return false;
    for (;;) { /* from the smallest stride to the largest, axes of one stride together */
        int64_t stride = INT64_MAX, extra = 0;
        int axes = 0;
        for (int i = 0; i < array->ndim; i++) {
            const int64_t step = magnitude(array->strides[i]);
            if (array->shape[i] < 2 || step <= below || step > stride)
                continue;
            axes = step < stride ? 1 : axes + 1;
            stride = step;
            extra = array->shape[i] - 1;
        }
        if (!axes)
            return false;
        if (axes > 1 || stride < reach)
            return true;
        reach += stride * extra;
        below = stride;
    }
}

static int64_t itemsize_of(const ts_invocation *v, int k)
{
    const ts_argument *argument = &v->kernel->arguments[k];
    return ts_itemsize(ts_dtype_of(v->overload, argument->type_variable, argument->dtype));
}

int ts_clash(const ts_invocation *v, const ts_given *given, int k)
{
    const ts_array *array = &given[k].array;
    const int64_t itemsize = itemsize_of(v, k);
    if (ts_overlaps_itself(array, itemsize))
        return k;
    for (int read = 0; read < 2; read++)
        for (int other = 0; other < v->kernel->arguments_count; other++) {
            const ts_array *others = &given[other].array;
            const int64_t size = itemsize_of(v, other);
            if (other == k || (v->kernel->arguments[other].intent == TS_IN) != read)
                continue;
            const bool in_place = v->kernel->arguments[k].in_place >> other & 1;
            if (!(in_place && size == itemsize && same_elements(array, others)) &&
                ts_overlap(array, itemsize, others, size))
                return other;
        }
    return -1;
}
