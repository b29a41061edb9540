/* One call on a GPU: its axes put in order and collapsed, its variant chosen, its launches; and what
   has to be copied first, since no variant takes it or there would be many launches. */
#include "ts_plan.h"

enum { MOST_LAUNCHES = 4 }; /* of a call, where they would be one after a copy */

/* The arguments that have axes among these bits of `unit`. */
static uint32_t operands_of(const ts_kernel *kernel, uint64_t axes)
{
    uint32_t operands = 0;
    for (int k = 0, at = 0; k < kernel->arguments_count; k++)
        for (int i = kernel->arguments[k].looped + kernel->arguments[k].core; i > 0; i--, at++)
            operands |= (uint32_t)(axes >> at & 1) << k;
    return operands;
}

/* Whether the outer axes of operand k would be one with the loop dim. */
static bool is_one_loop(const plan *p, int k)
{
    const ts_invocation *v = p->invocation;
    int64_t inner = p->loop_strides[k] * p->loop_extent;
    for (int axis = v->outer_count - 1; axis >= 0; axis--) {
        if (v->operands[k].outer[axis] != inner)
            return false;
        inner *= v->outer_shape[axis];
    }
    return true;
}

/* Looped arguments to be copied so that the outer axes become one loop, along which there is one
   launch; none where arguments that are not looped need many launches whatever the others are. */
static uint32_t operands_to_join(const plan *p)
{
    const ts_invocation *v = p->invocation;
    uint32_t joined = 0;
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        if (v->kernel->arguments[k].looped) {
            joined |= (uint32_t)!is_one_loop(p, k) << k;
            continue;
        }
        for (int axis = 0; axis < v->outer_count; axis++)
            if (v->operands[k].outer[axis] != 0)
                return 0;
    }
    return joined;
}

/* Describes argument k as it is, and as a copy of it will be. */
static void view_of(const plan *p, int k, bool rows_inside, ts_view *view)
{
    const ts_invocation *v = p->invocation;
    const ts_argument *argument = &v->kernel->arguments[k];
    const ts_operand *o = &v->operands[k];
    int ndim = 0;
    for (int axis = 0; axis < v->outer_count; axis++, ndim++) {
        view->shape[ndim] = argument->looped || o->outer[axis] ? v->outer_shape[axis] : 1;
        view->strides[ndim] = o->outer[axis];
    }
    const int loop = ndim++;
    view->shape[loop] = argument->looped ? p->loop_extent : 1;
    view->strides[loop] = p->loop_strides[k];
    for (int axis = 0; axis < argument->core; axis++, ndim++) {
        view->shape[ndim] = core_extent(v, argument, axis);
        view->strides[ndim] = o->core[axis];
    }
    view->ndim = ndim;
    view->data = o->data;
    int64_t contiguous = o->itemsize * (rows_inside ? view->shape[loop] : 1);
    for (int axis = ndim - 1; axis >= 0; axis--) {
        const bool first = rows_inside && axis == loop;
        view->dense[axis] = first ? o->itemsize : contiguous;
        contiguous *= first ? 1 : view->shape[axis];
    }
    view->bytes = contiguous;
}

/* Binds argument k to its copy: its axes are still as view_of saw them. */
static void take_copy(plan *p, ts_invocation *v, int k, const ts_view *view)
{
    ts_operand *o = &v->operands[k];
    o->data = view->copy;
    for (int axis = 0; axis < v->outer_count; axis++)
        o->outer[axis] = view->shape[axis] == v->outer_shape[axis] ? view->dense[axis] : 0;
    p->loop_strides[k] = v->kernel->arguments[k].looped ? view->dense[v->outer_count] : 0;
    for (int axis = 0; axis < v->kernel->arguments[k].core; axis++)
        o->core[axis] = view->dense[v->outer_count + 1 + axis];
}

/* The loop dim is the last of the outer axes again. */
static void give_loop_axis(const plan *p, ts_invocation *v)
{
    v->outer_shape[v->outer_count] = p->loop_extent;
    for (int k = 0; k < v->kernel->arguments_count; k++)
        v->operands[k].outer[v->outer_count] = p->loop_strides[k];
    v->outer_count++;
}

/* Chooses the variant; returns the axes that it wants with stride 1 and that have another. */
static uint64_t choose_for_gpu(plan *p)
{
    frame f;
    uint64_t packable, read;
    describe(&f, p, p->loop_extent);
    const uint64_t strided = strided_axes(&f, p->invocation, &packable, &read);
    p->variant = choose(p->invocation, &f, strided, UINT64_MAX, read);
    if (p->copied && p->variant->unit & strided) /* what no copy gives it */
        p->variant = choose(p->invocation, &f, strided, 0, read);
    return p->variant ? p->variant->unit & strided : 0;
}

static bool has_elements(const ts_array *array)
{
    bool some = true;
    for (int axis = 0; axis < array->ndim; axis++)
        some &= array->shape[axis] != 0;
    return some;
}

static int launch_slices(plan *p, const ts_gpu *gpu, int64_t outer)
{
    const ts_invocation *v = p->invocation;
    ts_set_last_run((ts_record){v->kernel->name, p->variant->name, false, v->copied || p->copied,
                                ts_level_names[gpu->level]});
    return run_whole_slices(p, 0, outer);
}

int ts_launch_out(ts_invocation *v, const ts_given *given, int axis, const ts_gpu *gpu,
                  ts_prepared *prepared)
{
    plan p = {.invocation = v, .threads = 1, .stream_above = TS_NEVER, .prefetch_above = TS_NEVER,
              .device = &gpu->device};
    prepared->copies = 0;
    for (int k = 0; k < v->kernel->arguments_count; k++)
        ts_bind(v, k, &given[k], axis);
    const int64_t outer = outer_iterations(&p, v);
    if (outer == 0)
        return TS_OK;
    for (int k = 0; k < v->kernel->arguments_count; k++)
        if (v->operands[k].convert && has_elements(&given[k].array))
            return ts_refuse(v->kernel, "argument %s: its elements are not aligned, as a GPU needs them",
                             v->kernel->arguments[k].name);
    prepared->copies = operands_of(v->kernel, choose_for_gpu(&p));
    if (outer > MOST_LAUNCHES && v->kernel->loop_dim >= 0)
        prepared->copies |= operands_to_join(&p);
    if (!prepared->copies)
        return launch_slices(&p, gpu, outer);
    const uint32_t by_rows = operands_by_rows(v, p.variant);
    for (int k = 0; k < v->kernel->arguments_count; k++)
        if (prepared->copies >> k & 1)
            view_of(&p, k, by_rows >> k & 1, &prepared->views[k]);
    prepared->loop_extent = p.loop_extent;
    for (int k = 0; k < v->kernel->arguments_count; k++)
        prepared->loop_strides[k] = p.loop_strides[k];
    return TS_NEEDS_COPY;
}

int ts_launch_copies(ts_invocation *v, const ts_gpu *gpu, const ts_prepared *prepared)
{
    plan p = {.invocation = v, .threads = 1, .stream_above = TS_NEVER, .prefetch_above = TS_NEVER,
              .device = &gpu->device, .copied = true, .loop_extent = prepared->loop_extent};
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        p.loop_strides[k] = prepared->loop_strides[k];
        if (prepared->copies >> k & 1)
            take_copy(&p, v, k, &prepared->views[k]);
    }
    give_loop_axis(&p, v);
    const int64_t outer = outer_iterations(&p, v);
    choose_for_gpu(&p);
    return p.variant ? launch_slices(&p, gpu, outer) : TS_NEEDS_COPY;
}
