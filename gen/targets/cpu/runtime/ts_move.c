/* Copying between strided layouts: what packs slices for a kernel and unpacks them after it. */
#include <string.h>

#include "ts_engine.h"

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

static void reverse_units(char *to, const char *from, int64_t itemsize, int64_t unit)
{
    for (int64_t start = 0; start < itemsize; start += unit)
        for (int64_t i = 0; i < unit; i++)
            to[start + i] = from[start + unit - 1 - i];
}

/* Every second element of four bytes, as x[::2] has them, by two vectors a time as long as one more
   element follows: nothing is read beyond the last. Returns how many it moved. */
static int64_t move_every_second(char *to, const char *from, int64_t count)
{
    typedef uint32_t vector __attribute__((vector_size(16)));
    int64_t i = 0;
    for (; i + 4 < count; i += 4) {
        vector first, last;
        memcpy(&first, from + 8 * i, sizeof first);
        memcpy(&last, from + 8 * i + sizeof first, sizeof last);
        const vector even = __builtin_shufflevector(first, last, 0, 2, 4, 6);
        memcpy(to + 4 * i, &even, sizeof even);
    }
    return i;
}

/* Four a time: to step two addresses takes as long as to move an element. */
#define MOVE_LINE(size)                                                                            \
    for (; i + 4 <= count; i += 4, to += 4 * to_stride, from += 4 * from_stride) {                 \
        memcpy(to, from, size);                                                                    \
        memcpy(to + to_stride, from + from_stride, size);                                          \
        memcpy(to + 2 * to_stride, from + 2 * from_stride, size);                                  \
        memcpy(to + 3 * to_stride, from + 3 * from_stride, size);                                  \
    }                                                                                              \
    for (; i < count; i++, to += to_stride, from += from_stride)                                   \
        memcpy(to, from, size)

static void move_line(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                      int64_t count, int64_t itemsize, int64_t swap)
{
    if (swap) {
        for (int64_t i = 0; i < count; i++)
            reverse_units(to + i * to_stride, from + i * from_stride, itemsize, swap);
    } else if (to_stride == itemsize && from_stride == itemsize) {
        memcpy(to, from, (size_t)(count * itemsize));
    } else {
        const bool second = itemsize == 4 && to_stride == 4 && from_stride == 8;
        int64_t i = second ? move_every_second(to, from, count) : 0;
        to += i * to_stride, from += i * from_stride;
        switch (itemsize) { /* constant sizes compile to one load and one store */
        case 1: MOVE_LINE(1); break;
        case 2: MOVE_LINE(2); break;
        case 4: MOVE_LINE(4); break;
        case 8: MOVE_LINE(8); break;
        default: MOVE_LINE((size_t)itemsize); break;
        }
    }
}

void ts_move(char *to, const int64_t *to_strides, const char *from, const int64_t *from_strides,
             const int64_t *shape, int axes, int64_t itemsize, int64_t swap)
{
    /* Lines run along the axis on which the two layouts lie closest together: memory is read and
       written by whole cache lines where either allows. */
    int inner = -1;
    for (int axis = axes - 1; axis >= 0; axis--) {
        if (shape[axis] == 0)
            return;
        if (shape[axis] > 1 &&
            (inner < 0 || magnitude(from_strides[axis]) + magnitude(to_strides[axis]) <
                              magnitude(from_strides[inner]) + magnitude(to_strides[inner])))
            inner = axis;
    }
    if (inner < 0) {
        move_line(to, itemsize, from, itemsize, 1, itemsize, swap);
        return;
    }
    int64_t at[TS_MAX_OUTER + TS_MAX_CORE];
    for (int axis = 0; axis < axes; axis++)
        at[axis] = 0;
    for (;;) {
        move_line(to, to_strides[inner], from, from_strides[inner], shape[inner], itemsize, swap);
        int axis = axes - 1;
        for (; axis >= 0; axis--) {
            if (axis == inner)
                continue;
            to += to_strides[axis], from += from_strides[axis];
            if (++at[axis] < shape[axis])
                break;
            to -= to_strides[axis] * shape[axis], from -= from_strides[axis] * shape[axis];
            at[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}
