/* How a call is carried out, as calls on processors and on GPUs share it: its axes put in order and
   collapsed, the variant chosen, the kernel run for each outer iteration. In a header, so that each has
   it compiled for itself alone. */
#ifndef TS_PLAN_H
#define TS_PLAN_H

#include "ts_engine.h"

/* A call as it will be carried out: `tasks` = outer iterations x blocks of the loop dim. */
typedef struct plan {
    const ts_invocation *invocation;
    const ts_variant *variant;              /* NULL where it is chosen for each block */
    int64_t loop_extent;
    int64_t loop_strides[TS_MAX_ARGUMENTS]; /* bytes */
    int64_t rows, blocks;                   /* of the loop dim: rows a block */
    uint32_t packed;                        /* bit k: argument k is packed */
    uint32_t rows_inside;                   /* ... with the loop dim as its last axis, not its first */
    int64_t slice_bytes[TS_MAX_ARGUMENTS];
    int threads;                            /* inside the kernel */
    double stream_above, prefetch_above;    /* as in ts_call */
    const ts_device *device;                /* likewise */
    bool copied;                            /* on a GPU: arrays are copies, made for their strides */
} plan;

/* A ts_call and what it points to. */
typedef struct frame {
    ts_call call;
    void *data[TS_MAX_ARGUMENTS];
    int64_t strides[TS_MAX_AXES];
    int64_t dims[TS_MAX_DIMS + TS_MAX_SIZES]; /* named sizes behind those that arrays tell */
} frame;

static inline int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

static inline int64_t core_extent(const ts_invocation *v, const ts_argument *argument, int axis)
{
    const int64_t dim = argument->axes[axis];
    return dim < 0 ? -1 - dim : v->dims[dim];
}

/* ---- axes ---- */

static inline void copy_axis(ts_invocation *v, int to, int from)
{
    v->outer_shape[to] = v->outer_shape[from];
    for (int k = 0; k < v->kernel->arguments_count; k++)
        v->operands[k].outer[to] = v->operands[k].outer[from];
}

static inline void remove_axis(ts_invocation *v, int axis)
{
    v->outer_count--;
    for (; axis < v->outer_count; axis++)
        copy_axis(v, axis, axis + 1);
}

static inline void swap_axes(ts_invocation *v, int a, int b)
{
    const int64_t extent = v->outer_shape[a];
    v->outer_shape[a] = v->outer_shape[b];
    v->outer_shape[b] = extent;
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        int64_t *outer = v->operands[k].outer, stride = outer[a];
        outer[a] = outer[b];
        outer[b] = stride;
    }
}

/* Iterations are independent: an axis along which nothing that is read ascends may as well run backwards.
   What is only written has no say, since the axis chooses the variant. */
static inline void make_ascending(ts_invocation *v, int axis)
{
    bool descends = false;
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        if (v->kernel->arguments[k].intent == TS_OUT)
            continue;
        if (v->operands[k].outer[axis] > 0)
            return;
        descends |= v->operands[k].outer[axis] < 0;
    }
    for (int k = 0; descends && k < v->kernel->arguments_count; k++) {
        ts_operand *o = &v->operands[k];
        o->data += o->outer[axis] * (v->outer_shape[axis] - 1);
        o->outer[axis] = -o->outer[axis];
    }
}

/* Whether axis b, now inside a, should be outside: by the first array that is read and varies along both;
   axes that none tells apart stay in order. */
static inline bool belongs_outside(const ts_invocation *v, int b, int a)
{
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        if (v->kernel->arguments[k].intent == TS_OUT)
            continue;
        const int64_t at_a = magnitude(v->operands[k].outer[a]);
        const int64_t at_b = magnitude(v->operands[k].outer[b]);
        if (at_a != 0 && at_b != 0 && at_a != at_b)
            return at_b > at_a;
    }
    return false;
}

static inline bool collapsible(const ts_invocation *v, int outer, int inner)
{
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        const int64_t *strides = v->operands[k].outer;
        if (strides[outer] != strides[inner] * v->outer_shape[inner])
            return false;
    }
    return true;
}

static inline void normalise_axes(ts_invocation *v)
{
    for (int axis = v->outer_count - 1; axis >= 0; axis--) {
        if (v->outer_shape[axis] == 1)
            remove_axis(v, axis);
        else
            make_ascending(v, axis);
    }
    for (int axis = 1; axis < v->outer_count; axis++)
        for (int at = axis; at > 0 && belongs_outside(v, at, at - 1); at--)
            swap_axes(v, at - 1, at);
    for (int axis = v->outer_count - 2; axis >= 0; axis--) {
        if (!collapsible(v, axis, axis + 1))
            continue;
        v->outer_shape[axis + 1] *= v->outer_shape[axis];
        remove_axis(v, axis);
    }
}

/* The innermost axis along which only looped arrays vary becomes the loop dim. */
static inline void take_loop_axis(plan *p, ts_invocation *v)
{
    const ts_kernel *kernel = v->kernel;
    p->loop_extent = 1;
    for (int k = 0; k < kernel->arguments_count; k++)
        p->loop_strides[k] = 0;
    for (int axis = v->outer_count - 1; kernel->loop_dim >= 0 && axis >= 0; axis--) {
        bool shared = true;
        for (int k = 0; k < kernel->arguments_count; k++)
            shared &= kernel->arguments[k].looped || v->operands[k].outer[axis] == 0;
        if (!shared)
            continue;
        p->loop_extent = v->outer_shape[axis];
        for (int k = 0; k < kernel->arguments_count; k++)
            p->loop_strides[k] = v->operands[k].outer[axis];
        remove_axis(v, axis);
        return;
    }
}

/* ---- the kernel's view of a block ---- */

/* Fills the frame for `rows` iterations of the loop dim at the operands' first elements, packed
   operands in their packed layout. */
static inline void describe(frame *f, const plan *p, int64_t rows)
{
    const ts_invocation *v = p->invocation;
    const ts_kernel *kernel = v->kernel;
    int at = 0;
    for (int d = 0; d < kernel->dims_count + kernel->named_count; d++)
        f->dims[d] = v->dims[d];
    if (kernel->loop_dim >= 0)
        f->dims[kernel->loop_dim] = rows;
    for (int k = 0; k < kernel->arguments_count; k++) {
        const ts_argument *argument = &kernel->arguments[k];
        const ts_operand *o = &v->operands[k];
        const bool packed = p->packed >> k & 1, inside = p->rows_inside >> k & 1;
        const int first = at + argument->looped;
        if (argument->looped)
            f->strides[at] = packed && inside ? 1
                             : (packed ? p->slice_bytes[k] : p->loop_strides[k]) / o->itemsize;
        at = first + argument->core;
        int64_t contiguous = inside ? p->rows : 1;
        for (int axis = argument->core - 1; axis >= 0; axis--) {
            f->strides[first + axis] = packed ? contiguous : o->core[axis] / o->itemsize;
            contiguous *= core_extent(v, argument, axis);
        }
        f->data[k] = o->data;
    }
    f->call = (ts_call){f->data, f->strides, f->dims, v->scalars, p->threads, p->stream_above,
                        p->prefetch_above, p->device};
}

static inline bool is_empty(const frame *f, const ts_invocation *v, const ts_argument *argument)
{
    bool empty = argument->looped && f->dims[v->kernel->loop_dim] == 0;
    for (int axis = 0; axis < argument->core; axis++)
        empty |= core_extent(v, argument, axis) == 0;
    return empty;
}

/* The axes, as bits of `unit`, that have neither stride 1 nor extent at most 1; none of an empty
   array, whose strides mean nothing. One row that is read with gaps, as x[::2], has a loop axis among
   them: to take each of its elements for a row of a column would leave all lanes but one idle.
   `packable`: those of them that packing would make so: the last axes of looped arrays. `given`:
   those of the arrays that are read. */
static inline uint64_t strided_axes(const frame *f, const ts_invocation *v, uint64_t *packable,
                             uint64_t *given)
{
    const ts_kernel *kernel = v->kernel;
    uint64_t strided = 0;
    int at = 0;
    *packable = *given = 0;
    for (int k = 0; k < kernel->arguments_count; k++) {
        const ts_argument *argument = &kernel->arguments[k];
        const bool empty = is_empty(f, v, argument);
        const int first = at;
        for (int axis = -(int)argument->looped; axis < argument->core; axis++, at++) {
            const int64_t extent =
                axis < 0 ? f->dims[kernel->loop_dim] : core_extent(v, argument, axis);
            strided |= (uint64_t)(f->strides[at] != 1 && extent > 1 && !empty) << at;
            *packable |= (uint64_t)(argument->looped && axis == argument->core - 1) << at;
            *given |= (uint64_t)(argument->intent != TS_OUT) << at;
        }
        if (argument->looped && argument->core && argument->intent != TS_OUT &&
            f->dims[kernel->loop_dim] == 1)
            strided |= (strided >> (at - 1) & 1) << first;
    }
    return strided;
}

/* The first variant that may run and is ready as the arrays are or after packing; rather than pack
   what is read, a later one that wants the unit strides that there are. The layout of what is only
   written has no say, since a result must not depend on `out=`. NULL: there is none. */
static inline const ts_variant *choose(const ts_invocation *v, const frame *f, uint64_t strided,
                                uint64_t packable, uint64_t given)
{
    const ts_variant *first = NULL;
    for (const ts_variant *variant = v->variants;; variant++) {
        const bool ready = !(variant->unit & strided & given);
        if (!(variant->unit & strided & ~packable) && (!first || (ready && variant->unit)) &&
            (!variant->when || variant->when(&f->call))) {
            if (ready)
                return variant;
            first = variant;
        }
        if (!variant->when)
            return first;
    }
}

/* Operands that the variant wants with stride 1 along the loop dim: packed, they have it still. */
static inline uint32_t operands_by_rows(const ts_invocation *v, const ts_variant *variant)
{
    uint32_t by_rows = 0;
    int at = 0;
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        const ts_argument *argument = &v->kernel->arguments[k];
        by_rows |= (uint32_t)(argument->looped && argument->core && variant->unit >> at & 1) << k;
        at += argument->looped + argument->core;
    }
    return by_rows;
}

/* ---- the outer iterations ---- */

/* Where the outer iterations stand: their indices, and each operand's first element. */
typedef struct cursor {
    int64_t at[TS_MAX_OUTER];
    char *data[TS_MAX_ARGUMENTS];
} cursor;

static inline void set_cursor(cursor *c, const ts_invocation *v, int64_t iteration)
{
    for (int k = 0; k < v->kernel->arguments_count; k++)
        c->data[k] = v->operands[k].data;
    for (int axis = v->outer_count - 1; axis >= 0; axis--) {
        c->at[axis] = iteration % v->outer_shape[axis];
        iteration /= v->outer_shape[axis];
        for (int k = 0; k < v->kernel->arguments_count; k++)
            c->data[k] += c->at[axis] * v->operands[k].outer[axis];
    }
}

static inline void advance(cursor *c, const ts_invocation *v)
{
    for (int axis = v->outer_count - 1; axis >= 0; axis--) {
        const bool wraps = ++c->at[axis] == v->outer_shape[axis];
        const int64_t steps = wraps ? 1 - v->outer_shape[axis] : 1;
        for (int k = 0; k < v->kernel->arguments_count; k++)
            c->data[k] += steps * v->operands[k].outer[axis];
        if (!wraps)
            return;
        c->at[axis] = 0;
    }
}

static inline int run_whole_slices(const void *env, int64_t lower, int64_t upper)
{
    const plan *p = env;
    frame f;
    cursor c;
    describe(&f, p, p->loop_extent);
    set_cursor(&c, p->invocation, lower);
    for (int64_t task = lower; task < upper; task++) {
        for (int k = 0; k < p->invocation->kernel->arguments_count; k++)
            f.data[k] = c.data[k];
        const int status = p->variant->run(&f.call);
        if (status != TS_OK)
            return status;
        advance(&c, p->invocation);
    }
    return TS_OK;
}

static inline bool nothing_to_write(const plan *p)
{
    const ts_invocation *v = p->invocation;
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        const ts_argument *argument = &v->kernel->arguments[k];
        bool empty = argument->looped && p->loop_extent == 0;
        for (int axis = 0; axis < argument->core; axis++)
            empty = empty || core_extent(v, argument, axis) == 0;
        if (argument->intent != TS_IN && !empty)
            return false;
    }
    return true;
}

/* Puts the axes in order, and counts what is outside the kernel's loops; 0 where there is nothing to
   write. */
static inline int64_t outer_iterations(plan *p, ts_invocation *v)
{
    for (int axis = 0; axis < v->outer_count; axis++)
        if (v->outer_shape[axis] == 0)
            return 0;
    normalise_axes(v);
    take_loop_axis(p, v);
    if (nothing_to_write(p)) /* there may be ever so many rows of nothing */
        return 0;
    int64_t outer = 1;
    for (int axis = 0; axis < v->outer_count; axis++)
        outer *= v->outer_shape[axis];
    return outer;
}

#endif
