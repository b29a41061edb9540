/* How a kernel's host side starts launches. Needs nothing of CUDA: the GPU is `call->device`. */
#ifndef TS_LAUNCH_H
#define TS_LAUNCH_H

#include "ts_abi.h"

#define TS_INLINE static inline
#include "ts_integers.h"

/* What indices of 32 bits come to at most; the rest is for what float64 rounds off. */
#define TS_NARROW 2146435072.0

/* The magnitude of a size or a scalar, and of the offsets along an axis. */
static inline double ts_far(int64_t size) { return size < 0 ? -(double)size : (double)size; }
static inline double ts_span(int64_t size, int64_t stride) { return ts_far(size) * ts_far(stride); }

/* Pieces of memory, each beginning where any type may; SIZE_MAX where there is too much. */
static inline size_t ts_piece(size_t bytes)
{
    return bytes > SIZE_MAX - 255 ? SIZE_MAX : (bytes + 255) & ~(size_t)255;
}
static inline size_t ts_pieces(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

/* Runs a function over a grid of blocks, in as many launches as it takes: blocks depend on no other
   blocks. `first`, to which parameters may point, says where on the grid each of these begins. An
   empty grid is not launched. Parameters that are indices are addresses of int64_t: where the
   function takes an int32_t it reads the lower half, which is the number if that fits, as machines
   with CUDA have the lower half first. */
static inline int ts_launch(const ts_call *call, const char *function, const int64_t grid[3],
                            const uint32_t block[3], int64_t first[3], void **parameters)
{
    static const int64_t most[3] = {INT32_MAX, 65535, 65535};
    for (first[2] = 0; first[2] < grid[2]; first[2] += most[2])
        for (first[1] = 0; first[1] < grid[1]; first[1] += most[1])
            for (first[0] = 0; first[0] < grid[0]; first[0] += most[0]) {
                uint32_t part[3];
                for (int k = 0; k < 3; k++) {
                    int64_t left = grid[k] - first[k];
                    part[k] = (uint32_t)(left < most[k] ? left : most[k]);
                }
                int status = call->device->launch(call->device, function, part, block, parameters);
                if (status != TS_OK) return status;
            }
    return TS_OK;
}

#endif
