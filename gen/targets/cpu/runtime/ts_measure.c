/* What the arrays of a call say: leading axes that broadcast, dims, sizes, constraints, strides.

   Input: the arrays as the caller has them. Output: the invocation's extents, then its operands.
   Invariant: every check of shapes has passed before an operand is bound; what does not fit is told
   with kernel, argument, expected and got. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ts_engine.h"

/* ---- messages ---- */

static _Thread_local char message[4096];

const char *ts_message(void) { return message; }

int ts_refuse(const ts_kernel *kernel, const char *format, ...)
{
    const int used = snprintf(message, sizeof message, "%s: ", kernel->name);
    va_list values;
    va_start(values, format);
    vsnprintf(message + used, sizeof message - (size_t)used, format, values);
    va_end(values);
    return TS_WRONG_ARGUMENT;
}

int ts_refuse_unknown(const char *declaration)
{
    snprintf(message, sizeof message, "the installed package has no kernel %s", declaration);
    return TS_NO_KERNEL;
}

/* A text that is put together; what does not fit is left out. */
typedef struct text {
    char characters[2048];
    size_t used;
} text;

static void append(text *t, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const size_t left = sizeof t->characters - t->used;
    const int more = vsnprintf(t->characters + t->used, left, format, values);
    va_end(values);
    t->used += (size_t)more < left ? (size_t)more : left - 1;
}

/* A shape as Python writes it: (), (3,), (2, 3). */
static const char *shape_text(text *t, int ndim, const int64_t *shape)
{
    t->used = 0;
    append(t, "(");
    for (int i = 0; i < ndim; i++)
        append(t, i ? ", %lld" : "%lld", (long long)shape[i]);
    append(t, ndim == 1 ? ",)" : ")");
    return t->characters;
}

/* The core axes as a shape in the spec's words: (m, k), (n,), (3,). */
static const char *core_text(text *t, const ts_kernel *kernel, const ts_argument *argument)
{
    t->used = 0;
    append(t, "(");
    for (int i = 0; i < argument->core; i++) {
        const int64_t dim = argument->axes[i];
        append(t, i ? ", " : "");
        if (dim < 0)
            append(t, "%lld", (long long)(-1 - dim));
        else
            append(t, "%s", dim < kernel->dims_count ? kernel->dims[dim]
                                                     : kernel->sizes[dim - kernel->dims_count].text);
    }
    append(t, argument->core == 1 ? ",)" : ")");
    return t->characters;
}

static bool named_before(const ts_term *terms, const ts_term *term)
{
    for (; terms != term; terms++)
        if (terms->operation == term->operation && terms->value == term->value)
            return true;
    return false;
}

static bool is_named(const ts_kernel *kernel, const ts_term *term)
{
    return term->operation == TS_DIM && term->value >= kernel->dims_count;
}

static const char *name_of(const ts_kernel *kernel, const ts_term *term)
{
    if (is_named(kernel, term))
        return kernel->sizes[term->value - kernel->dims_count].text;
    return term->operation == TS_DIM ? kernel->dims[term->value]
                                     : kernel->parameters[term->value].name;
}

/* A number as Python writes it: in the fewest digits that give it back, 2.0 and not 2. */
static void append_real(text *t, double number)
{
    char digits[32];
    int precision = 1;
    do
        snprintf(digits, sizeof digits, "%.*g", precision, number);
    while (strtod(digits, NULL) != number && precision++ < 17);
    append(t, digits[strspn(digits, "-0123456789")] ? "%s" : "%s.0", digits);
}

/* The names in an expression with their values: k = 5, n = 3. */
static const char *values_text(text *t, const ts_invocation *v, const ts_size *size)
{
    t->used = 0;
    append(t, "%s", "");
    for (const ts_term *term = size->terms; term->operation != TS_END; term++) {
        const bool is_dim = term->operation == TS_DIM, is_real = term->operation == TS_REAL_SCALAR;
        if ((!is_dim && !is_real && term->operation != TS_SCALAR) || named_before(size->terms, term))
            continue;
        append(t, "%s%s = ", t->used ? ", " : "", name_of(v->kernel, term));
        if (is_real)
            append_real(t, v->scalars[term->value].f64);
        else
            append(t, "%lld",
                   (long long)(is_dim ? v->dims[term->value] : v->scalars[term->value].i64));
    }
    return t->characters;
}

/* ---- where axes are ---- */

/* Which axis of an array is its first core axis: the last ones, unless axis= moved it. An array that
   has its core axis alone has it there whatever axis= says of the others. */
static int core_axis(const ts_kernel *kernel, const ts_argument *argument, int ndim, int axis)
{
    if (!kernel->has_axis || argument->core != 1 || axis == -1 || ndim == 1)
        return ndim - argument->core;
    return axis < 0 ? axis + ndim : axis;
}

/* Whether axis= names an axis of each array that has more than its core axis, and of one at least. */
static int check_axis(ts_invocation *v, const ts_given *given, int axis)
{
    const ts_kernel *kernel = v->kernel;
    const ts_argument *first = NULL;
    int first_ndim = 1;
    bool named = false;
    for (int k = 0; k < kernel->arguments_count; k++) {
        const ts_argument *argument = &kernel->arguments[k];
        if (argument->core != 1)
            continue;
        const int ndim = argument->intent == TS_OUT ? v->outer_count + 1 : given[k].array.ndim;
        const bool fits = -ndim <= axis && axis < ndim;
        if (!first || (!fits && ndim > 1)) {
            first = argument;
            first_ndim = ndim;
        }
        if (!fits && ndim > 1) {
            named = false;
            break;
        }
        named |= fits;
    }
    if (named || !first)
        return TS_OK;
    v->axis_ndim = first_ndim;
    ts_refuse(kernel, "argument %s", first->name);
    return TS_WRONG_AXIS;
}

/* ---- extents ---- */

static int measure_argument(ts_invocation *v, int k, const ts_array *array, int axis)
{
    const ts_kernel *kernel = v->kernel;
    const ts_argument *argument = &kernel->arguments[k];
    const int core = core_axis(kernel, argument, array->ndim, axis);
    int at = v->outer_count - (array->ndim - argument->core);
    for (int i = 0; i < array->ndim; i++) {
        const int64_t extent = array->shape[i];
        if (core <= i && i < core + argument->core) {
            const int64_t dim = argument->axes[i - core];
            if (dim < 0 && extent != -1 - dim)
                return ts_refuse(kernel, "argument %s: axis %d must have extent %lld, got %lld",
                                 argument->name, i, (long long)(-1 - dim), (long long)extent);
            if (dim < 0 || dim >= kernel->dims_count)
                continue; /* a size is checked once all dims are known */
            if (v->dims[dim] >= 0 && v->dims[dim] != extent)
                return ts_refuse(kernel,
                                 "argument %s: dim %s (axis %d) must be %lld, as in the arguments "
                                 "before it, got %lld",
                                 argument->name, kernel->dims[dim], i, (long long)v->dims[dim],
                                 (long long)extent);
            v->dims[dim] = extent;
            continue;
        }
        if (v->outer_shape[at] == 1)
            v->outer_shape[at] = extent;
        else if (extent != 1 && extent != v->outer_shape[at])
            return ts_refuse(kernel,
                             "argument %s: axis %d with extent %lld does not broadcast with %lld, "
                             "the extent in the arguments before it",
                             argument->name, i, (long long)extent, (long long)v->outer_shape[at]);
        at++;
    }
    return TS_OK;
}

static int count_leading_axes(ts_invocation *v, const ts_given *given)
{
    v->outer_count = 0;
    for (int k = 0; k < v->kernel->arguments_count; k++) {
        const ts_argument *argument = &v->kernel->arguments[k];
        if (argument->intent == TS_OUT)
            continue;
        const int leading = given[k].array.ndim - argument->core;
        if (leading < 0) {
            text core, shape;
            const bool vector = argument->core == 2 && given[k].array.ndim == 1;
            return ts_refuse(v->kernel,
                             "argument %s must have the axes %s at its end, got shape %s%s",
                             argument->name, core_text(&core, v->kernel, argument),
                             shape_text(&shape, given[k].array.ndim, given[k].array.shape),
                             vector ? "; [:, None] makes a vector a column, [None, :] a row" : "");
        }
        v->outer_count = leading > v->outer_count ? leading : v->outer_count;
    }
    for (int i = 0; i < v->outer_count; i++)
        v->outer_shape[i] = 1;
    return TS_OK;
}

/* ---- sizes: extents that follow from others ---- */

int ts_too_small(const ts_invocation *v)
{
    for (int d = 0; d < v->kernel->dims_count; d++)
        if (v->dims[d] < v->kernel->least[d])
            return d;
    return -1;
}

int ts_refuse_too_small(const ts_invocation *v, int d)
{
    return ts_refuse(v->kernel, "dim %s must be at least %lld, got %lld", v->kernel->dims[d],
                     (long long)v->kernel->least[d], (long long)v->dims[d]);
}

static int find_dim(ts_invocation *v, const ts_argument *argument, const ts_size *size, int axis,
                    int64_t extent)
{
    if (size->told < 0 || v->dims[size->told] >= 0)
        return TS_OK;
    if (extent < size->more)
        return ts_refuse(v->kernel,
                         "argument %s: axis %d must have extent %s, at least %lld, got %lld",
                         argument->name, axis, size->text, (long long)size->more, (long long)extent);
    /* Where that leaves a remainder, the axis is refused once all dims are known. */
    v->dims[size->told] = (extent - size->more) / size->times;
    return TS_OK;
}

/* For each axis of an input that is a size: finds the dim that it tells, or checks its extent. */
static int each_size(ts_invocation *v, const ts_given *given, int axis, bool find)
{
    const ts_kernel *kernel = v->kernel;
    for (int k = 0; k < kernel->arguments_count; k++) {
        const ts_argument *argument = &kernel->arguments[k];
        if (argument->intent == TS_OUT)
            continue;
        const int core = core_axis(kernel, argument, given[k].array.ndim, axis);
        for (int i = 0; i < argument->core; i++) {
            if (argument->axes[i] < kernel->dims_count)
                continue;
            const ts_size *size = &kernel->sizes[argument->axes[i] - kernel->dims_count];
            const int64_t extent = given[k].array.shape[core + i];
            const int64_t expected = v->dims[argument->axes[i]];
            text values;
            int status = TS_OK;
            if (find)
                status = find_dim(v, argument, size, core + i, extent);
            else if (expected != extent)
                status = ts_refuse(
                    kernel, "argument %s: axis %d must have extent %s = %lld for %s, got %lld",
                    argument->name, core + i, size->text, (long long)expected,
                    values_text(&values, v, size), (long long)extent);
            if (status != TS_OK)
                return status;
        }
    }
    return TS_OK;
}

static int evaluate(const ts_invocation *v, const ts_size *size, int64_t *value)
{
    text values;
    switch (ts_evaluate(size->terms, v->dims, v->scalars, value)) {
    case TS_EXACT:
        return TS_OK;
    case TS_TOO_LARGE:
        return ts_refuse(v->kernel, "%s is too large for %s", size->text,
                         values_text(&values, v, size));
    case TS_BAD_DIVISOR:
        break;
    }
    return ts_refuse(v->kernel, "%s has a divisor that is not positive, for %s", size->text,
                     values_text(&values, v, size));
}

static bool is_over_named(const ts_kernel *kernel, const ts_size *size)
{
    for (const ts_term *term = size->terms; term->operation != TS_END; term++)
        if (is_named(kernel, term))
            return true;
    return false;
}

/* The constraints over named sizes, or all others: sizes may divide by what these say is positive. */
static int check_constraints(const ts_invocation *v, bool named)
{
    const ts_kernel *kernel = v->kernel;
    for (int i = 0; i < kernel->constraints_count; i++) {
        const ts_size *constraint = &kernel->constraints[i];
        int64_t value;
        text values;
        if (is_over_named(kernel, constraint) != named)
            continue;
        const int status = evaluate(v, constraint, &value);
        if (status != TS_OK)
            return status;
        if (value == 0)
            return ts_refuse(kernel, "needs %s, got %s", constraint->text,
                             values_text(&values, v, constraint));
    }
    return TS_OK;
}

/* Finds what is not found yet and checks the rest; plain dims are known. */
static int measure_sizes(ts_invocation *v, const ts_given *given, int axis)
{
    const ts_kernel *kernel = v->kernel;
    int64_t value;
    text values;
    int status = each_size(v, given, axis, true);
    if (status == TS_OK)
        status = check_constraints(v, false);
    for (int i = 0; status == TS_OK && i < kernel->sizes_count; i++) {
        const ts_size *size = &kernel->sizes[i];
        status = evaluate(v, size, &value);
        if (status == TS_OK && value < 0 && ts_too_small(v) >= 0)
            return ts_refuse_too_small(v, ts_too_small(v));
        if (status == TS_OK && value < 0)
            return ts_refuse(kernel, "the size %s is negative, %lld, for %s", size->text,
                             (long long)value, values_text(&values, v, size));
        v->dims[kernel->dims_count + i] = value;
    }
    if (status == TS_OK)
        status = check_constraints(v, true);
    return status == TS_OK ? each_size(v, given, axis, false) : status;
}

/* ---- what indices allow ---- */

/* With larger sizes and scalars index arithmetic could leave 64 bits: gen/lower/index_limits.py. */
static const int64_t up_to = INT64_C(1) << 31;

/* Of the leading axes together, which the loop dim may run over at once; 1 where there is none. */
static int64_t problems(const ts_invocation *v)
{
    int64_t count = 1;
    for (int i = 0; v->kernel->loop_dim >= 0 && i < v->outer_count; i++)
        if (__builtin_mul_overflow(count, v->outer_shape[i], &count))
            count = INT64_MAX; /* and 0 where another axis is */
    return count;
}

static int check_products(ts_invocation *v)
{
    const ts_kernel *kernel = v->kernel;
    for (int i = 0; i < kernel->products_count; i++) {
        const ts_size *product = &kernel->products[i];
        int64_t value;
        text values;
        const int status = evaluate(v, product, &value);
        if (status != TS_OK)
            return status;
        if (value > TS_REACH)
            return ts_refuse(kernel, "%s is too large for %s", product->text,
                             values_text(&values, v, product));
    }
    return TS_OK;
}

static int check_sizes(ts_invocation *v, int64_t *largest)
{
    const ts_kernel *kernel = v->kernel;
    *largest = problems(v);
    if (kernel->loop_dim >= 0)
        v->dims[kernel->loop_dim] = *largest;
    for (int d = 0; d < kernel->dims_count + kernel->named_count; d++)
        *largest = v->dims[d] > *largest ? v->dims[d] : *largest;
    int status = TS_OK;
    if (*largest > kernel->largest)
        status = ts_refuse(kernel, "a size of %lld is more than its indices allow: %lld",
                           (long long)*largest, (long long)kernel->largest);
    else if (kernel->products_count)
        status = check_products(v);
    if (kernel->loop_dim >= 0)
        v->dims[kernel->loop_dim] = 1;
    return status;
}

static int check_scalars(const ts_invocation *v, int64_t largest)
{
    for (int i = 0; i < v->kernel->parameters_count; i++) {
        const ts_parameter *parameter = &v->kernel->parameters[i];
        const ts_dtype dtype = ts_dtype_of(v->overload, parameter->type_variable, parameter->dtype);
        const int64_t value = v->scalars[i].i64;
        if (parameter->limits[0] < 0 || dtype != TS_INT64)
            continue;
        const int64_t limit = parameter->limits[largest > up_to];
        if (value < -limit || value > limit)
            return ts_refuse(v->kernel,
                             "scalar %s must be at %s %lld, or indices would leave 64 bits, got %lld",
                             parameter->name, value > 0 ? "most" : "least",
                             (long long)(value > 0 ? limit : -limit), (long long)value);
    }
    return TS_OK;
}

int ts_measure(ts_invocation *v, const ts_given *given, int axis)
{
    const ts_kernel *kernel = v->kernel;
    for (int d = 0; d < kernel->dims_count; d++)
        v->dims[d] = -1;
    if (kernel->loop_dim >= 0)
        v->dims[kernel->loop_dim] = 1;
    int status = count_leading_axes(v, given);
    if (status == TS_OK && axis != -1)
        status = check_axis(v, given, axis);
    for (int k = 0; status == TS_OK && k < kernel->arguments_count; k++)
        if (kernel->arguments[k].intent != TS_OUT)
            status = measure_argument(v, k, &given[k].array, axis);
    if (status == TS_OK && (kernel->sizes_count || kernel->constraints_count))
        status = measure_sizes(v, given, axis);
    int64_t largest;
    if (status == TS_OK)
        status = check_sizes(v, &largest);
    return status == TS_OK ? check_scalars(v, largest) : status;
}

int ts_shape_of(const ts_invocation *v, int k, int axis, int64_t *shape)
{
    const ts_argument *argument = &v->kernel->arguments[k];
    const int ndim = v->outer_count + argument->core;
    const int core = core_axis(v->kernel, argument, ndim, axis);
    for (int i = 0, at = 0; i < ndim; i++) {
        if (core <= i && i < core + argument->core) {
            const int64_t dim = argument->axes[i - core];
            shape[i] = dim < 0 ? -1 - dim : v->dims[dim];
        } else {
            shape[i] = v->outer_shape[at++];
        }
    }
    return ndim;
}

int ts_refuse_shape(const ts_invocation *v, const char *what, int ndim, const int64_t *shape,
                    const ts_array *got)
{
    text expected, found;
    return ts_refuse(v->kernel, "%s must have shape %s, got %s", what,
                     shape_text(&expected, ndim, shape),
                     shape_text(&found, got->ndim, got->shape));
}

/* ---- operands ---- */

void ts_bind(ts_invocation *v, int k, const ts_given *given, int axis)
{
    const ts_argument *argument = &v->kernel->arguments[k];
    const ts_array *array = &given->array;
    const ts_dtype dtype = ts_dtype_of(v->overload, argument->type_variable, argument->dtype);
    ts_operand *operand = &v->operands[k];
    const int core = core_axis(v->kernel, argument, array->ndim, axis);
    int at = v->outer_count - (array->ndim - argument->core);
    operand->data = array->data;
    operand->itemsize = ts_itemsize(dtype);
    const int64_t unit = ts_alignment(dtype); /* a complex number is two; all sizes are powers of 2 */
    operand->swap = given->swapped && operand->itemsize > 1 ? unit : 0;
    operand->convert = operand->swap != 0 || ((int64_t)(uintptr_t)operand->data & (unit - 1)) != 0;
    for (int i = 0; i < at; i++)
        operand->outer[i] = 0;
    for (int i = 0; i < array->ndim; i++) {
        const int64_t stride = array->strides[i];
        if (array->shape[i] > 1 && (stride & (operand->itemsize - 1)) != 0)
            operand->convert = true; /* a field of a record: elements are not whole strides apart */
        if (core <= i && i < core + argument->core)
            operand->core[i - core] = stride;
        else
            operand->outer[at++] = array->shape[i] != 1 ? stride : 0;
    }
}
