/* What hand-written AVX-512 code reaches: a yardstick for the generated kernels, on the same arrays.
 *
 * One function a kernel: the result, the arguments, their dims, whether to store past the caches, and
 * how many threads. Arrays are C-contiguous and may begin at any element. Tile sizes and distances of
 * reads ahead are those that measured best on Zen 4; edges are right, and no faster than need be.
 */
#if !defined(__AVX512F__) || !defined(__AVX512DQ__)
#error the probes need AVX-512
#endif
#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define ALL ((__mmask16)0xffff)

typedef __m512 floats;
typedef struct { long lower, upper; } range;

static long min(long a, long b) { return a < b ? a : b; }
static long max(long a, long b) { return a > b ? a : b; }

/* This thread's share of `count` pieces. */
INLINE range share(long count) {
    long id = omp_get_thread_num(), of = omp_get_num_threads();
    return (range){count * id / of, count * (id + 1) / of};
}

/* The first `count` lanes, of which there may be none, or more than there are. */
INLINE __mmask16 first(long count) { return (__mmask16)_bzhi_u32(0xffff, (unsigned)max(0, min(count, 16))); }

/* The lanes of a line that lie within [begin, end). */
INLINE __mmask16 within(const float *line, const float *begin, const float *end) {
    return first(end - line) & (__mmask16)~first(begin - line);
}

INLINE floats set(float value) { return _mm512_set1_ps(value); }

INLINE floats load(const float *from, __mmask16 m, float other) {
    return m == ALL ? _mm512_loadu_ps(from) : _mm512_mask_loadu_ps(set(other), m, from);
}

/* A stream stores whole lines, at their places, past the caches. */
INLINE void put(float *to, floats v, __mmask16 m, int stream) {
    if (m != ALL)
        _mm512_mask_storeu_ps(to, m, v);
    else if (stream)
        _mm512_stream_ps(to, v);
    else
        _mm512_storeu_ps(to, v);
}

/* Elements by which an address lies past a line. */
INLINE long phase(const void *p) { return (long)((uintptr_t)p % 64 / 4); }

/* The row's elements by the lines of `row`: j, and a mask m, for the first, each whole one (from the last
 * to the first, if `down`), and what is left. */
#define EACH_LINE(row, n, down, ...)                                                \
    do {                                                                            \
        const long head_ = min(n, -phase(row) & 15), lines_ = ((n)-head_) / 16;     \
        long j = 0;                                                                 \
        if (head_) { const __mmask16 m = first(head_); __VA_ARGS__ }                \
        j = head_ + (down ? 16 * (lines_ - 1) : 0);                                 \
        for (long l_ = 0; l_ < lines_; l_++, j += down ? -16 : 16) {                \
            const __mmask16 m = ALL;                                                \
            __VA_ARGS__                                                             \
        }                                                                           \
        j = head_ + 16 * lines_;                                                    \
        if (j < (n)) { const __mmask16 m = first((n)-j); __VA_ARGS__ }              \
    } while (0)

/* Loads whose addresses look, modulo 4096, like those of stores just made wait until these are done, and
 * streams are slow to be. So where a result begins a little behind its argument: from the end, or, where
 * that is no choice, through the caches. */
static int behind(const float *to, const float *from) {
    return ((uintptr_t)to / 64 * 64 - (uintptr_t)from) % 4096 - 1 < 5 * 64;
}

/* Memory that a thread keeps from call to call, in large pages. */
static float *scratch(size_t bytes) {
    static _Thread_local float *memory;
    static _Thread_local size_t size;
    const size_t page = 2 << 20;
    if (bytes > size) {
        free(memory);
        size = (bytes + page - 1) / page * page;
        memory = aligned_alloc(page, size);
        if (!memory) abort();
        madvise(memory, size, MADV_HUGEPAGE);
    }
    return memory;
}

/* ---------------------------------------------------------------- maps, and reductions of rows */

/* Cephes' polynomial. */
INLINE floats exponential(floats x) {
    floats n = _mm512_roundscale_ps(x * set(1.44269504f), 0);
    floats r = x - n * set(0.693359375f) - n * set(-2.12194440e-4f);
    floats p = set(1.9875691500e-4f);
    p = p * r + set(1.3981999507e-3f);
    p = p * r + set(8.3334519073e-3f);
    p = p * r + set(4.1665795894e-2f);
    p = p * r + set(1.6666665459e-1f);
    p = p * r + set(5.0000001201e-1f);
    return _mm512_scalef_ps(p * (r * r) + (r + set(1)), n);
}

void probe_exp(float *y, const float *x, long n, int stream, int threads) {
    const int down = behind(y, x);
#pragma omp parallel num_threads(threads)
    {
        range mine = share((n + 1023) / 1024);
        float *to = y + mine.lower * 1024;
        const float *from = x + mine.lower * 1024;
        long count = min(n, mine.upper * 1024) - mine.lower * 1024;
        EACH_LINE(to, count, down, put(to + j, exponential(load(from + j, m, 0)), m, stream););
        _mm_sfence();
    }
}

/* Four sums at a time hide the latency. `other` stands for what is past the end; `down`: from there. */
#define REDUCTION(name, start, step, join)                                          \
    static float name(const float *x, long n, float other, int down) {              \
        floats s0 = set(start), s1 = s0, s2 = s0, s3 = s0, v;                       \
        long j = down ? n / 64 * 64 - 64 : 0;                                       \
        for (long b = 0; b < n / 64; b++, j += down ? -64 : 64) {                   \
            v = load(x + j, ALL, 0), s0 = step(s0);                                 \
            v = load(x + j + 16, ALL, 0), s1 = step(s1);                            \
            v = load(x + j + 32, ALL, 0), s2 = step(s2);                            \
            v = load(x + j + 48, ALL, 0), s3 = step(s3);                            \
        }                                                                           \
        for (j = n / 64 * 64; j < n; j += 16)                                       \
            v = load(x + j, first(n - j), other), s0 = step(s0);                    \
        return join;                                                                \
    }
#define GREATER(s) _mm512_max_ps(s, v)
#define PLUS(s) (s + v)
#define PLUS_SQUARE(s) (s + (v - set(other)) * (v - set(other)))
#define SUM _mm512_reduce_add_ps(s0 + s1 + (s2 + s3))
REDUCTION(row_max, -INFINITY, GREATER,
          _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(s0, s1), _mm512_max_ps(s2, s3))))
REDUCTION(row_sum, 0, PLUS, SUM)
REDUCTION(row_squares, 0, PLUS_SQUARE, SUM) /* of the distances from `other` */

/* Short rows lie in L1 until they are scaled, and are streamed from there. */
void probe_softmax(float *y, const float *x, long m_, long n, int stream, int threads) {
    enum { SHORT = 4096 };
#pragma omp parallel num_threads(threads)
    {
        range mine = share(m_);
        float buffer[SHORT + 16] __attribute__((aligned(64)));
        for (long i = mine.lower; i < mine.upper; i++) {
            const float *from = x + i * n;
            float *to = y + i * n, *e = n <= SHORT ? buffer + phase(to) : to;
            const float peak = row_max(from, n, -INFINITY, 0);
            floats total = set(0);
            EACH_LINE(e, n, 0, {
                floats v = exponential(load(from + j, m, 0) - set(peak));
                total = _mm512_mask_add_ps(total, m, total, v);
                put(e + j, v, m, 0);
                _mm_prefetch(from + n + j, _MM_HINT_T0);
            });
            const floats scale = set(1 / _mm512_reduce_add_ps(total));
            EACH_LINE(to, n, 0, put(to + j, load(e + j, m, 0) * scale, m, stream && e != to););
        }
        _mm_sfence();
    }
}

void probe_layer_norm(float *y, const float *x, const float *weight, const float *bias, long m_, long n,
                      int stream, int threads) {
    const int down = !behind(x, y); /* a tenth faster than from the start */
#pragma omp parallel num_threads(threads)
    {
        range mine = share(m_);
        for (long i = mine.lower; i < mine.upper; i++) {
            const float *from = x + i * n;
            float *to = y + i * n;
            const float mean = row_sum(from, n, 0, down) / (float)n;
            const float scale = 1 / sqrtf(row_squares(from, n, mean, down) / (float)n + 1e-5f);
            EACH_LINE(to, n, down, {
                floats v = (load(from + j, m, 0) - set(mean)) * set(scale);
                put(to + j, v * load(weight + j, m, 0) + load(bias + j, m, 0), m, stream);
                _mm_prefetch(from + 2 * n + j, _MM_HINT_T0);
            });
        }
        _mm_sfence();
    }
}

/* ---------------------------------------------------------------- sums */

#define UP(v, lanes) \
    _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(v), _mm512_setzero_si512(), 16 - lanes))

void probe_cumsum(float *y, const float *x, long m_, long n, int stream, int threads) {
    stream = stream && !behind(y, x);
#pragma omp parallel num_threads(threads)
    {
        range mine = share(m_);
        for (long i = mine.lower; i < mine.upper; i++) {
            const float *from = x + i * n;
            float *to = y + i * n;
            floats carry = set(0); /* alone goes from vector to vector */
            EACH_LINE(to, n, 0, {
                floats v = load(from + j, m, 0);
                v += UP(v, 1);
                v += UP(v, 2);
                v += UP(v, 4);
                v += UP(v, 8);
                put(to + j, carry + v, m, stream);
                carry += _mm512_permutexvar_ps(_mm512_set1_epi32(15), v);
            });
        }
        _mm_sfence();
    }
}

/* `rows` rows of x on top of y, which lies in L1. */
INLINE void add_rows(float *y, const float *x, long n, range columns, int rows) {
    for (long j = columns.lower; j < columns.upper; j += 16) {
        const __mmask16 m = first(columns.upper - j);
        floats s = load(y + j, m, 0);
        UNROLL for (int r = 0; r < rows; r++) {
            s += load(x + r * n + j, m, 0);
            _mm_prefetch(x + (r + rows) * n + j, _MM_HINT_T1);
        }
        put(y + j, s, m, 0);
    }
}

void probe_sum_first(float *y, const float *x, long m_, long n, int stream, int threads) {
    (void)stream;
#pragma omp parallel num_threads(threads)
    {
        range mine = share((n + 15) / 16), columns = {mine.lower * 16, min(n, mine.upper * 16)};
        for (long j = columns.lower; j < columns.upper; j++) y[j] = 0;
        long i = 0;
        for (; i + 8 <= m_; i += 8) add_rows(y, x + i * n, n, columns, 8);
        for (; i < m_; i++) add_rows(y, x + i * n, n, columns, 1);
    }
}

/* ---------------------------------------------------------------- transpose */

/* In four rounds, each of which swaps squares of half the size. */
INLINE void transpose_registers(floats r[16]) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    UNROLL for (int s = 8; s; s /= 2) {
        const __mmask16 upper = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(s));
        const __m512i low = _mm512_mask_add_epi32(lane, upper, lane, _mm512_set1_epi32(16 - s));
        const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(s));
        UNROLL for (int i = 0; i < 16; i++)
            if (!(i & s)) {
                const floats a = r[i], b = r[i + s];
                r[i] = _mm512_permutex2var_ps(a, low, b);
                r[i + s] = _mm512_permutex2var_ps(a, high, b);
            }
    }
}

static void transpose_tile(float *y, const float *x, long m_, long n, long i, long j, int stream) {
    if (i < 0 || j < 0 || i + 16 > m_ || j + 16 > n) {
        for (long c = max(j, 0); c < min(j + 16, n); c++)
            for (long r = max(i, 0); r < min(i + 16, m_); r++) y[c * m_ + r] = x[r * n + c];
        return;
    }
    floats tile[16];
    UNROLL for (int r = 0; r < 16; r++) {
        tile[r] = _mm512_loadu_ps(x + (i + r) * n + j);
        _mm_prefetch(x + (i + r) * n + j + 32, _MM_HINT_T0);
    }
    transpose_registers(tile);
    UNROLL for (int c = 0; c < 16; c++) put(y + (j + c) * m_ + i, tile[c], ALL, stream);
}

/* Tiles begin with lines of both arrays, where all rows do at the same place. Streamed, each stores whole
 * lines, and 16 rows of x are read from end to end; else neighbours in a block complete the lines. */
void probe_transpose(float *y, const float *x, long m_, long n, int stream, int threads) {
    stream = stream && m_ % 16 == 0;
    const long rows = stream ? 16 : 512, columns = stream ? n + 16 : 512;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for collapse(2) schedule(static)
        for (long ii = -phase(y); ii < m_; ii += rows)
            for (long jj = -phase(x); jj < n; jj += columns)
                for (long j = jj; j < min(n, jj + columns); j += 16)
                    for (long i = ii; i < min(m_, ii + rows); i += 16)
                        transpose_tile(y, x, m_, n, i, j, stream);
        _mm_sfence();
    }
}

/* ---------------------------------------------------------------- blur */

/* A row that is stored by lines, whatever its vectors' places: each line is made of two vectors. */
typedef struct { float *line, *begin, *end; __m512i index; floats kept; } stream_row;

INLINE stream_row row_begin(float *begin, long n) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return (stream_row){begin - phase(begin), begin, begin + n,
                        _mm512_add_epi32(lane, _mm512_set1_epi32(16 - (int)phase(begin))), set(0)};
}

INLINE void row_push(stream_row *row, floats v, int whole, int stream) {
    floats both = _mm512_permutex2var_ps(row->kept, row->index, v);
    put(row->line, both, whole ? ALL : within(row->line, row->begin, row->end), stream);
    row->line += 16, row->kept = v;
}

INLINE floats from_neighbours(floats low, floats high, int lanes) {
    const __m512i a = _mm512_castps_si512(high), b = _mm512_castps_si512(low);
    return _mm512_castsi512_ps(lanes == 1 ? _mm512_alignr_epi32(a, b, 1) : _mm512_alignr_epi32(a, b, 15));
}

/* `rows` rows of the result, each vector of the rows above, within and below read once. */
INLINE void blur_rows(float *y, const float *x, long i, long h, long w, int rows, int stream) {
    const float *from[6];
    floats before[4], at[4], after[4];
    stream_row to[4];
    UNROLL for (int r = 0; r < rows + 2; r++) from[r] = x + max(0, min(h - 1, i + r - 1)) * w;
    UNROLL for (int r = 0; r < rows; r++) {
        to[r] = row_begin(y + (i + r) * w, w);
        before[r] = set(from[r][0] + from[r + 1][0] + from[r + 2][0]);
    }
#define VERTICAL(sum, j, whole)                                                              \
    {                                                                                        \
        floats v[6];                                                                         \
        UNROLL for (int r = 0; r < rows + 2; r++)                                            \
            v[r] = whole ? load(from[r] + (j), ALL, 0)                                       \
                         : load(from[r] + (j), first(w - (j)), from[r][w - 1]);              \
        UNROLL for (int r = 0; r < rows; r++) sum[r] = v[r] + v[r + 1] + v[r + 2];           \
    }
#define PUSH(whole)                                                                          \
    UNROLL for (int r = 0; r < rows; r++) {                                                  \
        const floats left = from_neighbours(before[r], at[r], 15);                           \
        const floats right = from_neighbours(at[r], after[r], 1);                            \
        row_push(&to[r], (left + at[r] + right) * set(1.0f / 9), whole, stream);             \
        before[r] = at[r], at[r] = after[r];                                                 \
    }
    VERTICAL(at, 0, 0)
    long j = 16;
    if (j < w) {
        VERTICAL(after, j, 0)
        PUSH(0)
        j += 16;
    }
    for (; j + 16 <= w; j += 16) {
        VERTICAL(after, j, 1)
        UNROLL for (int r = 0; r < rows; r++) _mm_prefetch(from[r + 2] + rows * w + j, _MM_HINT_T0);
        PUSH(1)
    }
    for (; j < w + 32; j += 16) { /* past the end, too: for the last line */
        VERTICAL(after, j, 0)
        PUSH(0)
    }
}

void probe_blur(float *y, const float *x, long h, long w, int stream, int threads) {
#pragma omp parallel num_threads(threads)
    {
        range mine = share(h);
        long i = mine.lower;
        for (; i + 4 <= mine.upper; i += 4) blur_rows(y, x, i, h, w, 4, stream);
        for (; i < mine.upper; i++) blur_rows(y, x, i, h, w, 1, stream);
        _mm_sfence();
    }
}

/* ---------------------------------------------------------------- matrix product */

/* Eight rows of a by a panel of b, [k][32]; all of k, so that c is stored once. */
static void matmul_tile(float *c, const float *a, const float *panel, long n, long k, long columns) {
    floats s[8][2];
    UNROLL for (int r = 0; r < 8; r++) s[r][0] = s[r][1] = set(0);
#pragma GCC unroll 4
    for (long p = 0; p < k; p++) {
        const floats b0 = _mm512_load_ps(panel + 32 * p), b1 = _mm512_load_ps(panel + 32 * p + 16);
        UNROLL for (int r = 0; r < 8; r++) {
            const floats element = set(a[r * k + p]);
            s[r][0] += element * b0;
            s[r][1] += element * b1;
        }
    }
    UNROLL for (int r = 0; r < 8; r++) {
        put(c + r * n, s[r][0], first(columns), 0);
        put(c + r * n + 16, s[r][1], first(columns - 16), 0);
    }
}

static void matmul_pack(float *panel, const float *b, long n, long k, long columns) {
    for (long p = 0; p < k; p++, b += n, panel += 32) {
        _mm_prefetch(b + 16 * n, _MM_HINT_T0);
        _mm_prefetch(b + 16 * n + 16, _MM_HINT_T0);
        _mm512_store_ps(panel, load(b, first(columns), 0));
        _mm512_store_ps(panel + 16, load(b + 16, first(columns - 16), 0));
    }
}

/* From 8 rows up. Each thread packs and uses panels of its own; 128 rows share one while it is in L2. */
static void matmul_packed(float *c, const float *a, const float *b, long m_, long n, long k) {
    const range mine = share((n + 31) / 32);
    float *panels = scratch((size_t)((mine.upper - mine.lower) * k * 32) * sizeof *panels);
    for (long q = mine.lower; q < mine.upper; q++)
        matmul_pack(panels + (q - mine.lower) * k * 32, b + 32 * q, n, k, n - 32 * q);
    for (long ii = 0; ii < m_; ii += 128)
        for (long q = mine.lower; q < mine.upper; q++)
            for (long i = ii; i < min(m_, ii + 128); i += 8) {
                const long at = min(i, m_ - 8); /* the last tile overlaps the one before */
                matmul_tile(c + at * n + 32 * q, a + at * k, panels + (q - mine.lower) * k * 32, n, k,
                            n - 32 * q);
            }
}

/* `steps` rows of b, each column of which goes into eight sums, [n / 16][8][16], which lie in L2. */
INLINE void skinny_steps(float *sums, const float *a, const float *b, long m_, long n, long k,
                         range columns, int steps) {
    float block[8][8] = {{0}};
    for (long r = 0; r < m_; r++)
        for (int p = 0; p < steps; p++) block[p][r] = a[r * k + p];
    const float(*elements)[8] = block;
    for (long j = columns.lower; j < columns.upper; j += 16, sums += 8 * 16) {
        __asm__("" : "+r"(elements)); /* else gcc keeps 64 vectors of them, and loads these */
        const __mmask16 m = first(columns.upper - j);
        floats s[8];
        UNROLL for (int r = 0; r < 8; r++) s[r] = _mm512_load_ps(sums + 16 * r);
        UNROLL for (int p = 0; p < steps; p++) {
            const floats row = load(b + p * n + j, m, 0);
            _mm_prefetch(b + (p + steps) * n + j, _MM_HINT_T1);
            UNROLL for (int r = 0; r < 8; r++) s[r] += set(elements[p][r]) * row;
        }
        UNROLL for (int r = 0; r < 8; r++) _mm512_store_ps(sums + 16 * r, s[r]);
    }
}

/* Up to 8 rows. */
static void matmul_skinny(float *c, const float *a, const float *b, long m_, long n, long k) {
    const range mine = share((n + 15) / 16), columns = {mine.lower * 16, min(n, mine.upper * 16)};
    const size_t bytes = (size_t)((mine.upper - mine.lower) * 8 * 16) * sizeof *c;
    float *sums = memset(scratch(bytes), 0, bytes);
    long p = 0;
    for (; p + 8 <= k; p += 8) skinny_steps(sums, a + p, b + p * n, m_, n, k, columns, 8);
    for (; p < k; p++) skinny_steps(sums, a + p, b + p * n, m_, n, k, columns, 1);
    for (long j = columns.lower; j < columns.upper; j += 16)
        for (long r = 0; r < m_; r++)
            put(c + r * n + j, _mm512_load_ps(sums + (j - columns.lower) * 8 + 16 * r),
                first(columns.upper - j), 0);
}

void probe_matmul(float *c, const float *a, const float *b, long m_, long n, long k, int stream,
                  int threads) {
    (void)stream;
#pragma omp parallel num_threads(threads)
    (m_ <= 8 ? matmul_skinny : matmul_packed)(c, a, b, m_, n, k);
}
