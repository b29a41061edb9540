/* What this machine can do at best: bytes moved and multiply-adds, by threads and working set.
 *
 * Each function runs `repeats` times over memory that its threads have touched before, and returns
 * the seconds that one time takes. Every thread works on its own part, without a barrier between
 * the repeats, so that the figures are those of the memory and not of OpenMP.
 */
#include <omp.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif

typedef float floats __attribute__((vector_size(WIDTH), may_alias));
typedef double doubles __attribute__((vector_size(WIDTH), may_alias));

static inline void stream(floats *to, floats value) {
#if defined(__AVX512F__)
    _mm512_stream_ps((float *)to, (__m512)value);
#elif defined(__AVX__)
    _mm256_stream_ps((float *)to, (__m256)value);
#elif defined(__x86_64__)
    _mm_stream_ps((float *)to, (__m128)value);
#else
    *to = value;
#endif
}

static inline void fence(void) {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

#if defined(__x86_64__)
#define IN_REGISTER "+x"
#else
#define IN_REGISTER "+w"
#endif

/* The compiler may not drop the loads that led here, nor join one repeat with the next. */
#define KEEP(v) __asm__ volatile("" : : "m"(v) : "memory")

static void read_once(const floats *from, size_t n) {
    floats s[8] = {{0}};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) s[k] += from[i + k];
    for (; i < n; i++) s[0] += from[i];
    for (int k = 1; k < 8; k++) s[0] += s[k];
    KEEP(s[0]);
}

/* Four places at once: more of the hardware's prefetchers at work. */
static void read_four(const floats *from, size_t n) {
    floats s[8] = {{0}};
    size_t quarter = n / 4 / 2 * 2;
    for (size_t i = 0; i < quarter; i += 2)
        for (int q = 0; q < 4; q++) {
            s[2 * q] += from[q * quarter + i];
            s[2 * q + 1] += from[q * quarter + i + 1];
        }
    for (int k = 1; k < 8; k++) s[0] += s[k];
    KEEP(s[0]);
    read_once(from + 4 * quarter, n - 4 * quarter);
}

static void copy(floats *to, const floats *from, size_t n) {
    for (size_t i = 0; i < n; i++) {
        floats v = from[i];
        __asm__("" : IN_REGISTER(v)); /* else gcc calls memcpy, which picks its own kind of store */
        to[i] = v;
    }
    KEEP(*to);
}

static void copy_nt(floats *to, const floats *from, size_t n) {
    for (size_t i = 0; i < n; i++) stream(to + i, from[i]);
    fence();
}

static void fill(floats *to, size_t n) {
    floats v = {0};
    for (size_t i = 0; i < n; i++) {
        __asm__("" : IN_REGISTER(v));
        to[i] = v;
    }
    KEEP(*to);
}

static void fill_nt(floats *to, size_t n) {
    floats v = {0};
    for (size_t i = 0; i < n; i++) stream(to + i, v);
    fence();
}

enum { READ, READ_FOUR, COPY, COPY_NT, FILL, FILL_NT };

/* `bytes` in all: half of them read and half written by a copy. */
double ceiling_stream(int kind, char *memory, size_t bytes, long repeats, int threads) {
    double seconds = 0;
#pragma omp parallel num_threads(threads) reduction(max : seconds)
    {
        size_t mine = bytes / WIDTH / (size_t)omp_get_num_threads();
        floats *start = (floats *)memory + mine * (size_t)omp_get_thread_num();
        size_t half = mine / 2;
#pragma omp barrier
        double before = omp_get_wtime();
        for (long r = 0; r < repeats; r++) switch (kind) {
            case READ: read_once(start, mine); break;
            case READ_FOUR: read_four(start, mine); break;
            case COPY: copy(start + half, start, half); break;
            case COPY_NT: copy_nt(start + half, start, half); break;
            case FILL: fill(start, mine); break;
            case FILL_NT: fill_nt(start, mine); break;
            }
        seconds = omp_get_wtime() - before;
    }
    return seconds / (double)repeats;
}

/* Twelve chains: enough to hide the latency, few enough for 16 registers. Named one by one, since
 * gcc leaves an array of them in memory. */
#define CHAINS 12
#define EACH_CHAIN(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11)
#define START(c) a##c = x * c, /* unlike, or gcc makes one chain of them */
#define STEP(c) a##c = a##c * x + y;
#define TOTAL(c) y += a##c;

#define MULTIPLY_ADDS(name, vector, scalar)                                     \
    static void name(long steps) {                                              \
        vector x, y;                                                            \
        for (size_t k = 0; k < WIDTH / sizeof(scalar); k++) x[k] = 1, y[k] = 0; \
        vector EACH_CHAIN(START) unused;                                        \
        (void)unused;                                                           \
        for (long i = 0; i < steps; i++) {                                      \
            __asm__ volatile("" : IN_REGISTER(x), IN_REGISTER(y));                            \
            EACH_CHAIN(STEP)                                                    \
        }                                                                       \
        EACH_CHAIN(TOTAL)                                                       \
        KEEP(y);                                                                \
    }
MULTIPLY_ADDS(multiply_adds_float, floats, float)
MULTIPLY_ADDS(multiply_adds_double, doubles, double)

/* Operations a second: a multiply-add is two. */
double ceiling_operations(int size, long steps, int threads) {
    double seconds = 0;
    int started = 1;
#pragma omp parallel num_threads(threads) reduction(max : seconds)
    {
#pragma omp single
        started = omp_get_num_threads();
        double before = omp_get_wtime();
        if (size == 4)
            multiply_adds_float(steps);
        else
            multiply_adds_double(steps);
        seconds = omp_get_wtime() - before;
    }
    return 2.0 * CHAINS * (WIDTH / size) * (double)steps * started / seconds;
}
