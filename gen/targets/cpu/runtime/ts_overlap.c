/* Whether arrays share memory: what is written must not change what is still to be read.

   Two elements share a byte where sum(step[k] * x[k]) == distance has a solution with whole numbers
   0 <= x[k] <= most[k]: an x for each axis, and one for the bytes within the elements. That is decided
   exactly, largest step first: what the smaller steps reach bounds an x, and their greatest common
   divisor leaves one value in many. The last two are solved at once. The number of trials is limited,
   since the problem is NP-hard; real layouts take a handful. */
#include "ts_engine.h"

enum { MOST_TERMS = 2 * (TS_MAX_OUTER + TS_MAX_CORE) + 1, MOST_TRIALS = 1 << 20 };

__extension__ typedef unsigned __int128 wide;

typedef enum answer { NONE, SOME, UNKNOWN } answer;

typedef struct equation {
    int64_t distance;
    bool too_large; /* for 64 bits: memory is not */
    int trials;
    int count; /* of terms, by step, the largest last; steps and mosts are positive */
    int64_t step[MOST_TERMS], most[MOST_TERMS];
    int64_t reach[MOST_TERMS];   /* the largest sum of this term and those before it */
    int64_t divisor[MOST_TERMS]; /* of the steps of this term and those before it */
} equation;

/* Without terms. To clear these would take longer than most answers. */
static void begin(equation *e, int64_t distance, int trials)
{
    e->distance = distance;
    e->too_large = false;
    e->trials = trials;
    e->count = 0;
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* x modulo `by`, for x above -by and below it. */
static int64_t not_negative(int64_t x, int64_t by) { return x < 0 ? x + by : x; }

static int64_t divisor_of(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* x from 0 to b - 1 with a * x == c modulo b, for a and b without a common divisor. */
static int64_t quotient_modulo(int64_t c, int64_t a, int64_t b)
{
    int64_t x = 0, next = 1, r = b, r_next = a % b; /* a * x == r modulo b */
    while (r_next) {
        const int64_t q = r / r_next, x_was = x, r_was = r;
        x = next, next = x_was - q * next;
        r = r_next, r_next = r_was - q * r_next;
    }
    return (int64_t)((wide)not_negative(x, b) * (wide)(c % b) % (wide)b);
}

static void add_term(equation *e, int64_t step, int64_t most)
{
    if (most <= 0 || step == 0)
        return;
    int at = e->count;
    while (at > 0 && e->step[at - 1] > step)
        at--;
    if (at > 0 && e->step[at - 1] == step) {
        e->too_large |= __builtin_add_overflow(e->most[at - 1], most, &e->most[at - 1]);
        return;
    }
    for (int k = e->count++; k > at; k--)
        e->step[k] = e->step[k - 1], e->most[k] = e->most[k - 1];
    e->step[at] = step, e->most[at] = most;
}

/* step * x for x from `least` to `greatest`, on the left of the equation. */
static void add_range(equation *e, int64_t step, int64_t least, int64_t greatest)
{
    int64_t first = 0, most = 0;
    /* from the end at which it is least */
    e->too_large |= step == INT64_MIN || __builtin_sub_overflow(greatest, least, &most) ||
                    __builtin_mul_overflow(step, step < 0 ? greatest : least, &first) ||
                    __builtin_sub_overflow(e->distance, first, &e->distance);
    if (!e->too_large)
        add_term(e, magnitude(step), most);
}

/* The bytes of the elements, from `least` to `most`, on the left: those alone that the steps can meet. */
static void add_bytes(equation *e, int64_t least, int64_t most)
{
    int64_t divisor = 0, ahead;
    for (int k = 0; k < e->count; k++)
        divisor = divisor_of(e->step[k], divisor);
    divisor = divisor ? divisor : 1;
    e->too_large |= __builtin_sub_overflow(e->distance, least, &ahead);
    if (e->too_large)
        return;
    ahead = not_negative(ahead % divisor, divisor);
    if (ahead > most - least) {
        e->distance = -1;
        return;
    }
    add_range(e, 1, least + ahead, least + ahead);
    add_term(e, divisor, (most - least - ahead) / divisor);
}

/* Whether terms 0 to k reach `distance`. */
static answer solve_from(equation *e, int k, int64_t distance)
{
    if (distance == 0)
        return SOME;
    if (k < 0 || distance < 0 || distance > e->reach[k] || distance % e->divisor[k])
        return NONE;
    const int64_t step = e->step[k];
    if (k == 0)
        return SOME; /* a multiple of the step, and no farther than it reaches */
    /* The smaller steps make up for what is left, so that is a multiple of what divides them all. */
    const int64_t below = e->reach[k - 1], rest = distance - below;
    const int64_t common = divisor_of(step, e->divisor[k - 1]);
    const int64_t each = e->divisor[k - 1] / common;
    const int64_t least = rest <= 0 ? 0 : rest / step + (rest % step != 0);
    const int64_t most = distance / step < e->most[k] ? distance / step : e->most[k];
    if (least > most)
        return NONE;
    const int64_t fits = quotient_modulo(distance / common, step / common, each);
    const int64_t further = not_negative(fits - least % each, each); /* to the first that fits */
    if (further > most - least)
        return NONE;
    if (k == 1) /* what is left is a multiple of the one step below, and no farther than it reaches */
        return SOME;
    answer found = NONE;
    for (int64_t x = least + further;; x += each) {
        if (++e->trials > MOST_TRIALS)
            return UNKNOWN;
        found = solve_from(e, k - 1, distance - x * step);
        if (found != NONE || each > most - x)
            return found;
    }
}

static answer solve(equation *e)
{
    int64_t reach = 0, divisor = 0;
    for (int k = 0; !e->too_large && k < e->count; k++) {
        int64_t most;
        e->too_large |= __builtin_mul_overflow(e->step[k], e->most[k], &most) ||
                        __builtin_add_overflow(reach, most, &reach);
        e->reach[k] = reach;
        e->divisor[k] = divisor = divisor_of(e->step[k], divisor);
    }
    return e->too_large ? UNKNOWN : solve_from(e, e->count - 1, e->distance);
}

static bool is_empty(const ts_array *array)
{
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0)
            return true;
    return false;
}

/* The first byte of an array and the one behind its last. False: 64 bits do not hold them. */
static bool bounds(const ts_array *array, int64_t itemsize, int64_t *first, int64_t *end)
{
    bool fit = !__builtin_add_overflow((int64_t)(uintptr_t)array->data, itemsize, end);
    *first = (int64_t)(uintptr_t)array->data;
    for (int i = 0; i < array->ndim; i++) {
        int64_t length, *moved = array->strides[i] < 0 ? first : end;
        fit &= !__builtin_mul_overflow(array->strides[i], array->shape[i] - 1, &length) &&
               !__builtin_add_overflow(*moved, length, moved);
    }
    return fit;
}

static bool is_apart(const ts_array *a, int64_t a_itemsize, const ts_array *b, int64_t b_itemsize)
{
    int64_t a_first, a_end, b_first, b_end;
    return bounds(a, a_itemsize, &a_first, &a_end) && bounds(b, b_itemsize, &b_first, &b_end) &&
           (a_end <= b_first || b_end <= a_first);
}

bool ts_overlap(const ts_array *a, int64_t a_itemsize, const ts_array *b, int64_t b_itemsize)
{
    if (is_empty(a) || is_empty(b) || is_apart(a, a_itemsize, b, b_itemsize))
        return false;
    equation e; /* a's element and a byte of it, less b's: the distance from a to b */
    begin(&e, (int64_t)((uintptr_t)b->data - (uintptr_t)a->data), 0);
    for (int i = 0; i < a->ndim; i++)
        add_range(&e, a->strides[i], 0, a->shape[i] - 1);
    for (int i = 0; i < b->ndim; i++)
        add_range(&e, b->strides[i] == INT64_MIN ? INT64_MIN : -b->strides[i], 0, b->shape[i] - 1);
    add_bytes(&e, 1 - b_itemsize, a_itemsize - 1);
    return solve(&e) != NONE;
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

static bool is_dense(const ts_array *array, int64_t itemsize)
{
    int64_t contiguous = itemsize;
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (array->shape[i] != 1 && array->strides[i] != contiguous)
            return false;
        contiguous = (int64_t)((uint64_t)contiguous * (uint64_t)array->shape[i]);
    }
    return true;
}

bool ts_overlaps_itself(const ts_array *array, int64_t itemsize)
{
    if (is_empty(array) || is_dense(array, itemsize))
        return false;
    int trials = 0;
    /* Of two elements, `first` is the first axis on which they are apart: by 1 or more, and on the
       axes behind it by anything. */
    for (int first = 0; first < array->ndim; first++) {
        if (array->shape[first] < 2)
            continue;
        equation e;
        begin(&e, 0, trials);
        add_range(&e, array->strides[first], 1, array->shape[first] - 1);
        for (int i = first + 1; i < array->ndim; i++)
            add_range(&e, array->strides[i], 1 - array->shape[i], array->shape[i] - 1);
        add_bytes(&e, 1 - itemsize, itemsize - 1);
        if (solve(&e) != NONE)
            return true;
        trials = e.trials;
    }
    return false;
}

static int64_t itemsize_of(const ts_invocation *v, int k)
{
    const ts_argument *argument = &v->kernel->arguments[k];
    return ts_itemsize(ts_dtype_of(v->overload, argument->type_variable, argument->dtype));
}

int ts_clash(const ts_invocation *v, const ts_given *given, int k, bool on_gpu)
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
            const bool in_place = v->kernel->arguments[k].in_place[on_gpu] >> other & 1;
            if (!(in_place && size == itemsize && same_elements(array, others)) &&
                ts_overlap(array, itemsize, others, size))
                return other;
        }
    return -1;
}
