/* One call of a kernel: its axes put in order and collapsed, its variant chosen, its slices packed. */
#include "ts_plan.h"

enum {
    PACKED_BYTES = 128 << 10,     /* of slices at once: within a core's second-level cache */
    PACKED_BYTES_MOST = 4 << 20,  /* ... but whole cache lines of a strided input are worth more */
    ROWS_OF_A_LINE = 16,          /* so blocks have 8 and more, see first_row */
    GRAIN = 16384                 /* iterations of a kernel that are worth a thread */
};

static _Thread_local ts_record latest;

ts_record ts_last_run(void) { return latest; }

void ts_set_last_run(ts_record record) { latest = record; }

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

/* The first row of a block; of the one behind the last, the end. Blocks differ by a row at most: a
   variant that is for 8 rows and more, and sums in an order of its own, takes all of them or none. */
static int64_t first_row(const plan *p, int64_t block)
{
    const int64_t each = p->loop_extent / p->blocks, more = p->loop_extent % p->blocks;
    return block * each + (block < more ? block : more);
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
        const int64_t block = task % p->blocks, start = first_row(p, block);
        char *base[TS_MAX_ARGUMENTS];
        for (int k = 0; k < v->kernel->arguments_count; k++)
            base[k] = c.data[k] + start * p->loop_strides[k];
        status = run_packed_block(p, &f, base, workspace, first_row(p, block + 1) - start);
        if (block == p->blocks - 1)
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

int ts_run(ts_invocation *v)
{
    plan p; /* set field by field: to clear it takes a tenth of a small call */
    frame f;
    p.invocation = v;
    p.threads = v->threads;
    p.packed = p.rows_inside = 0;
    p.device = NULL;
    p.copied = false;
    p.stream_above = p.prefetch_above = TS_NEVER;
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
