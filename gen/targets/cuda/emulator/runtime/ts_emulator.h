/* What CUDA C++ text sees when g++ compiles it for the emulator (TS_EMULATED).

   Each thread of a block is a fiber. Blocks run one after another. An access to an array tells the
   engine (ts_emulator.cpp) its address and its place in the text. */
#ifndef TS_EMULATOR_H
#define TS_EMULATOR_H

#include <source_location>
#include <stddef.h>
#include <stdint.h>
#include <type_traits>
#include <utility>

#define TS_DEVICE static inline
#define __global__
#define __device__
#define __launch_bounds__(...)

struct ts_uint3 {
    uint32_t x, y, z;
};
extern ts_uint3 threadIdx, blockIdx, blockDim, gridDim; /* of the thread that runs */

/* A place in the text: line * 4096 + column. The n-th passes of a warp's threads through one place
   are one instruction of that warp. */
typedef uint32_t ts_site;

inline ts_site ts_site_of(const std::source_location &at)
{
    return at.line() << 12 | (at.column() < 4095 ? at.column() : 4095);
}

/* Who wrote an element last, and who read it. Intervals and blocks are numbered through all
   launches: an interval is what a block does between two barriers. 0: nobody. The reader is the
   first one in the interval: others do not matter, since each thread runs an interval in one go. */
struct ts_cell {
    uint32_t write_block, write_interval, read_block, read_interval;
    uint32_t other_block; /* another block that read it in this launch */
    ts_site write_site, read_site;
    uint16_t writer, reader; /* threads of a block */
    uint16_t written;        /* whether it has a value */
    uint16_t inside;         /* whether it is one of an array that has gaps */
};

/* An array of shared memory, or a piece of global memory. */
struct ts_object {
    const char *name;
    char *low, *high;
    ts_cell *cells; /* one for each `item` bytes */
    uint32_t item;
    bool shared;
    bool written;   /* what it holds at first counts as written */
    bool gaps;      /* some of it is in no array: strides leave it out */
    uint32_t block; /* of shared memory: the block that it was poisoned for */
};

void ts_emulator_enter(ts_object *shared);
const ts_object *ts_emulator_find(const void *address);
/* Checks, watches and counts an access of `bytes` bytes; does not come back where it is wrong. */
void ts_emulator_access(const ts_object *object, const char *address, uint32_t bytes, ts_site site,
                        bool write);
void ts_emulator_barrier(int number, ts_site site);

inline void ts_barrier(int number, std::source_location at = std::source_location::current())
{
    ts_emulator_barrier(number, ts_site_of(at));
}

/* An index, with the place in the text where it stands. */
struct ts_index {
    int64_t value;
    ts_site site;
    template <typename I, typename = std::enable_if_t<std::is_integral_v<I>>>
    ts_index(I value, std::source_location at = std::source_location::current())
        : value((int64_t)value), site(ts_site_of(at))
    {
    }
};

/* An element that can be written: it is read where a value is wanted. */
template <typename T> struct ts_element {
    T *address;
    const ts_object *object;
    ts_site site;

    operator T() const
    {
        ts_emulator_access(object, (const char *)address, sizeof(T), site, false);
        return *address;
    }
    T operator=(T value) const
    {
        ts_emulator_access(object, (const char *)address, sizeof(T), site, true);
        return *address = value;
    }
    T operator=(const ts_element &other) const { return *this = (T)other; }
    T operator+=(T value) const { return *this = (T)((T) * this + value); }
    T operator-=(T value) const { return *this = (T)((T) * this - value); }
    T operator*=(T value) const { return *this = (T)((T) * this * value); }
    void operator&() const = delete;
};

/* The address is made by integers: an index may lead anywhere, and it is the engine that says so. */
template <typename T> T *ts_at(const void *first, int64_t index)
{
    return (T *)((uintptr_t)first + (uintptr_t)index * sizeof(T));
}

template <typename T> class ts_global
{
    T *first;
    const ts_object *object;

  public:
    ts_global(T *first) : first(first), object(ts_emulator_find((const void *)first)) {}
    auto operator[](ts_index index) const
    {
        T *address = ts_at<T>((const void *)first, index.value);
        if constexpr (std::is_const_v<T>) {
            ts_emulator_access(object, (const char *)address, sizeof(T), index.site, false);
            return std::remove_const_t<T>(*address);
        } else {
            return ts_element<T>{address, object, index.site};
        }
    }
};

template <typename T> class ts_shared
{
    ts_object *object;

  public:
    explicit ts_shared(ts_object *object) : object(object) { ts_emulator_enter(object); }
    ts_element<T> operator[](ts_index index) const
    {
        return {ts_at<T>(object->low, index.value), object, index.site};
    }
};

#define TS_SHARED(type, name, count)                                                              \
    alignas(16) static char name##_bytes[sizeof(type) * (count)];                                 \
    static ts_cell name##_cells[count];                                                           \
    static ts_object name##_object = {                                                            \
        #name, name##_bytes, name##_bytes + sizeof name##_bytes, name##_cells, sizeof(type), true, \
        false, false, 0};                                                                                \
    const ts_shared<type> name(&name##_object)

/* A kernel's entry: its parameters lie where cuLaunchKernel would look for them. */
struct ts_entry {
    const char *symbol;
    void (*run)(void **parameters);
    uint32_t most_threads; /* of its launch bounds */
};
extern "C" const ts_entry ts_emulator_entries[]; /* the last has no symbol */

template <typename... Types, size_t... K>
void ts_unpacked(void (*entry)(Types...), void **parameters, std::index_sequence<K...>)
{
    entry(*(Types *)parameters[K]...);
}

template <typename... Types> void ts_unpack(void (*entry)(Types...), void **parameters)
{
    ts_unpacked(entry, parameters, std::index_sequence_for<Types...>{});
}

#endif
