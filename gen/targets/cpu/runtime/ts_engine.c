/* One call of a kernel: its axes put in order and collapsed, its variant chosen, its slices packed. */
#include "ts_engine.h"

enum {
    PACKED_BYTES = 128 << 10,     /* of slices at once: within a core's second-level cache */
    PACKED_BYTES_MOST = 4 << 20,  /* ... but whole cache lines of a strided input are worth more */
    ROWS_OF_A_LINE = 16,
    GRAIN = 16384,                /* iterations of a kernel that are worth a thread */
    MOST_LAUNCHES = 4             /* of a call on a GPU, where they would be one after a copy */
};

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

static _Thread_local ts_record latest;

ts_record ts_last_run(void) { return latest; }

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

static int64_t core_extent(const ts_invocation *v, const ts_argument *argument, int axis)
{
    const int64_t dim = argument->axes[axis];
    return dim < 0 ? -1 - dim : v->dims[dim];
}

/* ---- axes ---- */

static void copy_axis(ts_invocation *v, int to, int from)
{
    v->outer_shape[to] = v->outer_shape[from];
    for (int k = 0; k < v->kernel->arguments_count; k++)
        v->operands[k].outer[to] = v->operands[k].outer[from];
}

static void remove_axis(ts_invocation *v, int axis)
{
    v->outer_count--;
    for (; axis < v->outer_count; axis++)
        copy_axis(v, axis, axis + 1);
}

static void swap_axes(ts_invocation *v, int a, int b)
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
static void make_ascending(ts_invocation *v, int axis)
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
static bool belongs_outside(const ts_invocation *v, int b, int a)
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

static bool collapsible(const ts_invocation *v, int outer, int inner)
{
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        const int64_t *strides = v->operands[k].outer;
        if (strides[outer] != strides[inner] * v->outer_shape[inner])
            return false;
    }
    return true;
}

static void normalise_axes(ts_invocation *v)
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
static void take_loop_axis(plan *p, ts_invocation *v)
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
static void describe(frame *f, const plan *p, int64_t rows)
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

static bool is_empty(const frame *f, const ts_invocation *v, const ts_argument *argument)
{
    bool empty = argument->looped && f->dims[v->kernel->loop_dim] == 0;
    for (int axis = 0; axis < argument->core; axis++)
        empty |= core_extent(v, argument, axis) == 0;
    return empty;
}

/* The axes, as bits of `unit`, that have neither stride 1 nor extent at most 1; none of an empty
   array, whose strides mean nothing. `packable`: those of them that packing would make so: the last
   axes of looped arrays. `given`: those of the arrays that are read. */
static uint64_t strided_axes(const frame *f, const ts_invocation *v, uint64_t *packable,
                             uint64_t *given)
{
    const ts_kernel *kernel = v->kernel;
    uint64_t strided = 0;
    int at = 0;
    *packable = *given = 0;
    for (int k = 0; k < kernel->arguments_count; k++) {
        const ts_argument *argument = &kernel->arguments[k];
        const bool empty = is_empty(f, v, argument);
        for (int axis = -(int)argument->looped; axis < argument->core; axis++, at++) {
            const int64_t extent =
                axis < 0 ? f->dims[kernel->loop_dim] : core_extent(v, argument, axis);
            strided |= (uint64_t)(f->strides[at] != 1 && extent > 1 && !empty) << at;
            *packable |= (uint64_t)(argument->looped && axis == argument->core - 1) << at;
            *given |= (uint64_t)(argument->intent != TS_OUT) << at;
        }
    }
    return strided;
}

/* The first variant that may run and is ready as the arrays are or after packing; rather than pack
   what is read, a later one that wants the unit strides that there are. The layout of what is only
   written has no say, since a result must not depend on `out=`. NULL: there is none. */
static const ts_variant *choose(const ts_invocation *v, const frame *f, uint64_t strided,
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

static uint64_t units_of_all(const ts_variant *variants)
{
    uint64_t units = 0;
    for (const ts_variant *variant = variants;; variant++) {
        units |= variant->unit;
        if (!variant->when)
            return units;
    }
}

/* ---- packing ---- */

/* Operands to be packed: those that kernels must not see, and where the variant needs packing, all
   that any variant would want packed: which one runs is found for each block. */
static uint32_t operands_to_pack(const ts_invocation *v, uint64_t wanted)
{
    uint32_t packed = 0;
    int at = 0;
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        const ts_argument *argument = &v->kernel->arguments[k];
        at += argument->looped + argument->core;
        const bool needed = argument->looped && (wanted >> (at - 1) & 1);
        packed |= (uint32_t)(needed || v->operands[k].convert) << k;
    }
    return packed;
}

/* Operands that the variant wants with stride 1 along the loop dim: packed, they have it still. */
static uint32_t operands_by_rows(const ts_invocation *v, const ts_variant *variant)
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

static void plan_blocks(plan *p)
{
    const ts_invocation *v = p->invocation;
    int64_t bytes = 0;
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        if (!(p->packed >> k & 1))
            continue;
        p->slice_bytes[k] = v->operands[k].itemsize;
        for (int axis = 0; axis < v->kernel->arguments[k].core; axis++)
            p->slice_bytes[k] *= core_extent(v, &v->kernel->arguments[k], axis);
        bytes += p->slice_bytes[k];
    }
    int64_t rows = PACKED_BYTES / (bytes > 0 ? bytes : 1);
    const int64_t most = PACKED_BYTES_MOST / (bytes > 0 ? bytes : 1);
    rows = rows < ROWS_OF_A_LINE ? ROWS_OF_A_LINE : rows;
    rows = rows > most ? most : rows;
    rows = rows > p->loop_extent ? p->loop_extent : rows;
    p->rows = rows < 1 ? 1 : rows;
    p->blocks = (p->loop_extent + p->rows - 1) / p->rows;
}

/* Moves a block of one operand into its packed layout, or out of it. */
static void move_block(const plan *p, int k, char *packed, char *base, int64_t rows, bool out)
{
    const ts_argument *argument = &p->invocation->kernel->arguments[k];
    const ts_operand *o = &p->invocation->operands[k];
    int64_t shape[TS_MAX_CORE + 1], dense[TS_MAX_CORE + 1], strides[TS_MAX_CORE + 1];
    const bool inside = p->rows_inside >> k & 1;
    int64_t contiguous = o->itemsize * (inside ? p->rows : 1);
    for (int axis = argument->core - 1; axis >= 0; axis--) {
        shape[axis + 1] = core_extent(p->invocation, argument, axis);
        strides[axis + 1] = o->core[axis];
        dense[axis + 1] = contiguous;
        contiguous *= shape[axis + 1];
    }
    shape[0] = rows, strides[0] = p->loop_strides[k], dense[0] = inside ? o->itemsize : contiguous;
    if (out)
        ts_move(base, strides, packed, dense, shape, argument->core + 1, o->itemsize, o->swap);
    else
        ts_move(packed, dense, base, strides, shape, argument->core + 1, o->itemsize, o->swap);
}

static int run_packed_block(const plan *p, frame *f, char *const *base, char *workspace,
                            int64_t rows)
{
    const ts_kernel *kernel = p->invocation->kernel;
    describe(f, p, rows);
    for (int k = 0; k < kernel->arguments_count; k++) {
        f->data[k] = base[k];
        if (!(p->packed >> k & 1))
            continue;
        f->data[k] = workspace;
        workspace += (p->slice_bytes[k] * p->rows + 63) / 64 * 64;
        if (kernel->arguments[k].intent != TS_OUT)
            move_block(p, k, f->data[k], base[k], rows, false);
    }
    uint64_t packable, given;
    const uint64_t strided = strided_axes(f, p->invocation, &packable, &given);
    const ts_variant *variant = choose(p->invocation, f, strided, 0, given);
    if (!variant)
        return TS_NEEDS_COPY;
    const int status = variant->run(&f->call);
    for (int k = 0; status == TS_OK && k < kernel->arguments_count; k++)
        if (p->packed >> k & 1 && kernel->arguments[k].intent != TS_IN)
            move_block(p, k, f->data[k], base[k], rows, true);
    return status;
}

/* ---- tasks ---- */

/* Where the outer iterations stand: their indices, and each operand's first element. */
typedef struct cursor {
    int64_t at[TS_MAX_OUTER];
    char *data[TS_MAX_ARGUMENTS];
} cursor;

static void set_cursor(cursor *c, const ts_invocation *v, int64_t iteration)
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

static void advance(cursor *c, const ts_invocation *v)
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

static int run_whole_slices(const void *env, int64_t lower, int64_t upper)
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

static int run_packed(const void *env, int64_t lower, int64_t upper)
{
    const plan *p = env;
    const ts_invocation *v = p->invocation;
    size_t bytes = 0;
    for (int k = 0; k < v->kernel->arguments_count; k++)
        if (p->packed >> k & 1)
            bytes += (size_t)((p->slice_bytes[k] * p->rows + 63) / 64 * 64);
    char *workspace = ts_workspace_acquire(bytes);
    if (!workspace)
        return TS_NO_MEMORY;

    int status = TS_OK;
    frame f;
    cursor c;
    set_cursor(&c, v, lower / p->blocks);
    for (int64_t task = lower; task < upper && status == TS_OK; task++) {
        const int64_t start = task % p->blocks * p->rows;
        const int64_t left = p->loop_extent - start;
        char *base[TS_MAX_ARGUMENTS];
        for (int k = 0; k < v->kernel->arguments_count; k++)
            base[k] = c.data[k] + start * p->loop_strides[k];
        status = run_packed_block(p, &f, base, workspace, left < p->rows ? left : p->rows);
        if (task % p->blocks == p->blocks - 1)
            advance(&c, v);
    }
    ts_workspace_release(workspace);
    return status;
}

/* Points of the kernel's loops, as far as it matters. */
static int64_t volume(const frame *f, const ts_kernel *kernel)
{
    int64_t product = 1;
    for (int d = 0; d < kernel->dims_count; d++)
        product *= f->dims[d] > 0 && product < GRAIN ? f->dims[d] : 1;
    return product;
}

static bool has_inout(const ts_kernel *kernel)
{
    for (int k = 0; k < kernel->arguments_count; k++)
        if (kernel->arguments[k].intent == TS_INOUT)
            return true;
    return false;
}

/* From how many bytes on each of `tasks` kernel calls is part of too much for the caches. Slices that
   are packed are in the caches, and stay there. */
static void set_limits(plan *p, int64_t tasks)
{
    const ts_kernel *kernel = p->invocation->kernel;
    p->stream_above = ts_stream_above(p->invocation->threads) / (double)tasks;
    p->prefetch_above = p->packed ? TS_NEVER : ts_prefetch_above() / (double)tasks;
    for (int k = 0; k < kernel->arguments_count; k++)
        if (p->packed >> k & 1 && kernel->arguments[k].intent != TS_IN && p->stream_above > 0)
            p->stream_above = TS_NEVER;
}

static bool nothing_to_write(const plan *p)
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
static int64_t outer_iterations(plan *p, ts_invocation *v)
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

int ts_run(ts_invocation *v)
{
    plan p = {.invocation = v, .threads = v->threads};
    frame f;
    const int64_t outer = outer_iterations(&p, v);
    if (outer == 0)
        return TS_OK;
    describe(&f, &p, p.loop_extent);
    uint64_t packable, given;
    const uint64_t strided = strided_axes(&f, v, &packable, &given);
    p.variant = choose(v, &f, strided, packable, given);
    if (!p.variant)
        return TS_NEEDS_COPY;
    const bool ready = !(p.variant->unit & strided);
    uint64_t pack = ready ? 0 : units_of_all(v->variants) & strided & packable;
    if (!(p.variant->unit & strided & given) && !has_inout(v->kernel))
        pack &= ~given; /* packing what is read would let the layout of `out=` choose a variant */
    p.packed = operands_to_pack(v, pack);
    latest = (ts_record){v->kernel->name, p.variant->name, p.packed != 0, v->copied, NULL};
    if (p.packed) {
        p.rows_inside = ready ? p.packed & operands_by_rows(v, p.variant) : 0;
        plan_blocks(&p);
    }
    const int64_t tasks = p.packed ? outer * p.blocks : outer;
    set_limits(&p, tasks);
    const ts_body run = p.packed ? run_packed : run_whole_slices;
    if (tasks >= v->threads) { /* enough of them to go round: one thread each */
        p.threads = 1;
        const int64_t grain = GRAIN / (volume(&f, v->kernel) / (tasks / outer) + 1) + 1;
        return ts_parallel(run, &p, 0, tasks, grain, v->threads);
    }
    return run(&p, 0, tasks);
}

/* ---- calls on a GPU ---- */

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
    latest = (ts_record){v->kernel->name, p->variant->name, false, v->copied || p->copied,
                         ts_level_names[gpu->level]};
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
