/* Carries out the calls that a file describes and writes what each left in its arrays: kernels and
   the calling engine without Python, under sanitizers, or for another machine.

   driver INPUT OUTPUT: see driver.py for both. Every array has an allocation of exactly its size. */
#include <stdio.h>
#include <stdlib.h>

#include "ts_engine.h"

static FILE *input, *output;

static void get(void *to, size_t bytes)
{
    if (fread(to, 1, bytes, input) != bytes) {
        fprintf(stderr, "the input ends within a call\n");
        exit(2);
    }
}

static int64_t get_integer(void)
{
    int64_t value;
    get(&value, sizeof value);
    return value;
}

static void get_integers(int64_t *to, int count)
{
    for (int k = 0; k < count; k++)
        to[k] = get_integer();
}

/* Returns the allocation; the operand's first element may lie within it. */
static char *get_operand(ts_invocation *v, int k, size_t *bytes)
{
    ts_operand *o = &v->operands[k];
    *bytes = (size_t)get_integer();
    const int64_t first = get_integer();
    o->itemsize = get_integer();
    get_integers(o->outer, v->outer_count);
    get_integers(o->core, v->kernel->arguments[k].core);
    char *memory = malloc(*bytes);
    get(memory, *bytes);
    o->data = memory + first;
    return memory;
}

static void carry_out(int64_t overload)
{
    ts_invocation v = {.kernel = &ts_kernels[0]};
    char *memory[TS_MAX_ARGUMENTS];
    size_t bytes[TS_MAX_ARGUMENTS];
    int level = 0;
    while (!(ts_levels_built >> level & 1))
        level++;
    v.variants = v.kernel->overloads[overload].variants[level];
    v.threads = (int)get_integer();
    v.outer_count = (int)get_integer();
    get_integers(v.outer_shape, v.outer_count);
    get_integers(v.dims, v.kernel->dims_count);
    get(v.scalars, (size_t)v.kernel->parameters_count * sizeof v.scalars[0]);
    for (int k = 0; k < v.kernel->sizes_count; k++)
        if (ts_evaluate(v.kernel->sizes[k].terms, v.dims, v.scalars,
                        &v.dims[v.kernel->dims_count + k]) != TS_EXACT)
            exit(2);
    for (int k = 0; k < v.kernel->arguments_count; k++)
        memory[k] = get_operand(&v, k, &bytes[k]);
    const int status = ts_run(&v);
    if (status != TS_OK) {
        fprintf(stderr, "ts_run: status %d\n", status);
        exit(2);
    }
    for (int k = 0; k < v.kernel->arguments_count; k++) {
        fwrite(memory[k], 1, bytes[k], output);
        free(memory[k]);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3 || !(input = fopen(argv[1], "rb")) || !(output = fopen(argv[2], "wb")))
        return 2;
    for (int64_t overload; fread(&overload, sizeof overload, 1, input) == 1;)
        carry_out(overload);
    return fclose(output) == 0 && fclose(input) == 0 ? 0 : 2;
}
