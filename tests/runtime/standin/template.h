/* The kernels for one element type T. */
#define X(k) ((const T *)call->data[k])
#define Y(k) ((T *)call->data[k])
#define S call->strides

TABLE(square, TYPES);
TABLE(softmax, TYPES);
TABLE(total, TYPES);
TABLE(max, TYPES);
TABLE(matmul, TYPES);
TABLE(affine, TYPES);
TABLE(clamp, TYPES);
TABLE(parts, TYPES);
TABLE(add_into, TYPES);
TABLE(grey, TYPES);
TABLE(greedy, TYPES);
TABLE(limits, TYPES);
TABLE(scaled, TYPES);
TABLE(windows, TYPES);

/* ---- square: ()->(), in parallel ---- */

static int NAME(square_body)(const void *env, int64_t lower, int64_t upper)
{
    const ts_call *call = env;
    for (int64_t i = lower; i < upper; i++)
        Y(1)[i * S[1]] = X(0)[i * S[0]] * X(0)[i * S[0]];
    return TS_OK;
}

static int NAME(square_run)(const ts_call *call)
{
    return ts_parallel(NAME(square_body), call, 0, call->dims[0], 1024, call->threads);
}

TABLE(square, TYPES) = {{NAME(square_run), 0, 0x3, "unit"}};

/* ---- softmax without exp, x / sum(x): (n)->(n) ---- */

static bool NAME(softmax_when)(const ts_call *call) { return call->dims[0] != 5; }

static int NAME(softmax_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++) {
        T sum = 0;
        for (int64_t j = 0; j < call->dims[1]; j++)
            sum += X(0)[i * S[0] + j * S[1]];
        for (int64_t j = 0; j < call->dims[1]; j++)
            Y(1)[i * S[2] + j * S[3]] = X(0)[i * S[0] + j * S[1]] / sum;
    }
    return TS_OK;
}

static int NAME(softmax_not_5)(const ts_call *call)
{
    return NAME(softmax_when)(call) ? NAME(softmax_run)(call) : TS_NO_MEMORY;
}

TABLE(softmax, TYPES) = {{NAME(softmax_not_5), NAME(softmax_when), 0xa, "unit"},
                         {NAME(softmax_run), 0, 0, "plain"}};

/* ---- total and max: (n)->() ---- */

static int NAME(total_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++) {
        T sum = 0;
        for (int64_t j = 0; j < call->dims[1]; j++)
            sum += X(0)[i * S[0] + j * S[1]];
        Y(1)[i * S[2]] = sum;
    }
    return TS_OK;
}

static bool NAME(always)(const ts_call *call) { return call->threads > 0; }

TABLE(total, TYPES) = {{NAME(total_run), NAME(always), 0x2, "inner"},
                       {NAME(total_run), NAME(always), 0x5, "outer"},
                       {NAME(total_run), 0, 0, "plain"}};

static int NAME(max_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++) {
        T peak = X(0)[i * S[0]];
        for (int64_t j = 1; j < call->dims[1]; j++)
            peak = X(0)[i * S[0] + j * S[1]] > peak ? X(0)[i * S[0] + j * S[1]] : peak;
        Y(1)[i * S[2]] = peak;
    }
    return TS_OK;
}

TABLE(max, TYPES) = {{NAME(max_run), 0, 0, "plain"}};

/* ---- matmul: (m,k),(k,n)->(m,n), without a loop dim ---- */

static int NAME(matmul_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++)
        for (int64_t j = 0; j < call->dims[2]; j++) {
            T sum = 0;
            for (int64_t k = 0; k < call->dims[1]; k++)
                sum += X(0)[i * S[0] + k * S[1]] * X(1)[k * S[2] + j * S[3]];
            Y(2)[i * S[4] + j * S[5]] = sum;
        }
    return TS_OK;
}

TABLE(matmul, TYPES) = {{NAME(matmul_run), NAME(always), 0x28, "unit"},
                        {NAME(matmul_run), 0, 0, "strided"}};

/* ---- affine: (k),(n,k)->(n), looped in x and y; takes w with unit strides only ---- */

static int NAME(affine_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++)
        for (int64_t j = 0; j < call->dims[2]; j++) {
            T sum = 0;
            for (int64_t k = 0; k < call->dims[1]; k++)
                sum += X(0)[i * S[0] + k * S[1]] * X(1)[j * S[2] + k];
            Y(2)[i * S[4] + j * S[5]] = sum;
        }
    return TS_OK;
}

TABLE(affine, TYPES) = {{NAME(affine_run), 0, 0x8, "unit"}};

/* ---- clamp: ()->() with scalars ---- */

static int NAME(clamp_run)(const ts_call *call)
{
    const T low = (T)call->scalars[0].f64, high = (T)call->scalars[1].f64;
    for (int64_t i = 0; i < call->dims[0]; i++) {
        const T x = X(0)[i * S[0]];
        Y(1)[i * S[1]] = (x < low ? low : x > high ? high : x) * (T)call->scalars[2].i64;
    }
    return TS_OK;
}

TABLE(clamp, TYPES) = {{NAME(clamp_run), 0, 0, "plain"}};

/* ---- parts: ()->(),(): the whole number below, and the rest ---- */

static int NAME(parts_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++) {
        const T x = X(0)[i * S[0]], whole = (T)(int64_t)x;
        Y(1)[i * S[1]] = whole;
        Y(2)[i * S[2]] = x - whole;
    }
    return TS_OK;
}

TABLE(parts, TYPES) = {{NAME(parts_run), 0, 0, "plain"}};

/* ---- add_into: a (n) inout, b (n) ---- */

static int NAME(add_into_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++)
        for (int64_t j = 0; j < call->dims[1]; j++)
            Y(0)[i * S[0] + j * S[1]] += X(1)[i * S[2] + j * S[3]];
    return TS_OK;
}

TABLE(add_into, TYPES) = {{NAME(add_into_run), 0, 0xa, "unit"}};

/* ---- grey: (3)->(), the mean of three ---- */

static int NAME(grey_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++) {
        const T *x = X(0) + i * S[0];
        Y(1)[i * S[2]] = (x[0] + x[S[1]] + x[2 * S[1]]) / 3;
    }
    return TS_OK;
}

TABLE(grey, TYPES) = {{NAME(grey_run), 0, 0, "plain"}};

/* ---- greedy: ()->(), wants more memory than there is for its third element ---- */

static int NAME(greedy_run)(const ts_call *call)
{
    void *memory = ts_workspace_acquire(call->dims[0] < 3 ? 1000 : (size_t)1 << 60);
    if (!memory)
        return TS_NO_MEMORY;
    ts_workspace_release(memory);
    for (int64_t i = 0; i < call->dims[0]; i++)
        Y(1)[i * S[1]] = X(0)[i * S[0]];
    return TS_OK;
}

TABLE(greedy, TYPES) = {{NAME(greedy_run), 0, 0, "plain"}};

/* ---- limits: (n)->(n), the bytes above which the call streams and reads ahead, in turns ---- */

static int NAME(limits_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++)
        for (int64_t j = 0; j < call->dims[1]; j++)
            Y(1)[i * S[2] + j * S[3]] = (T)(j % 2 ? call->prefetch_above : call->stream_above);
    return TS_OK;
}

TABLE(limits, TYPES) = {{NAME(limits_run), 0, 0xa, "unit"}};

/* ---- scaled: (),()->(), by an int8 ---- */

static int NAME(scaled_run)(const ts_call *call)
{
    for (int64_t i = 0; i < call->dims[0]; i++)
        Y(2)[i * S[2]] = X(0)[i * S[0]] * ((const int8_t *)call->data[1])[i * S[1]];
    return TS_OK;
}

TABLE(scaled, TYPES) = {{NAME(scaled_run), 0, 0, "plain"}};

/* ---- windows: (n)->(count), sums of `length` elements, `step` apart; both are named sizes ---- */

static int NAME(windows_run)(const ts_call *call)
{
    const int64_t length = call->dims[2], count = call->dims[3], step = call->scalars[2].i64;
    for (int64_t i = 0; i < call->dims[0]; i++)
        for (int64_t f = 0; f < count; f++) {
            T sum = 0;
            for (int64_t j = f * step; j < f * step + length; j++)
                sum += X(0)[i * S[0] + j * S[1]];
            Y(1)[i * S[2] + f * S[3]] = sum;
        }
    return TS_OK;
}

TABLE(windows, TYPES) = {{NAME(windows_run), 0, 0, "plain"}};

#undef X
#undef Y
#undef S
