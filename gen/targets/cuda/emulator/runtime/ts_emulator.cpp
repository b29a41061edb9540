/* The emulator's engine: launches, fibers, barriers, and what is known of each element.

   A launch runs its blocks one after another. The threads of a block are fibers; between two
   barriers each runs once, in random order. Whatever is wrong ends the launch: `stop` leaves the
   fiber for good, since nothing in a kernel has to be tidied up. One call at a time. */
#include "ts_emulator.h"

#include "ts_emulator_counts.h"
#include "ts_emulator_fibers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <vector>

ts_uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

enum class State : uint8_t { Ready, Waits, Done };

struct Thread {
    State state;
    int barrier;
    ts_site site;
};

const int MOST_BARRIERS = 4096, NOT_LAUNCHED = 4; /* TS_NOT_LAUNCHED of ts_abi.h */

struct {
    uint64_t seed;
    bool watched = true, counted = false;
    bool off[MOST_BARRIERS];
} settings;

struct {
    const ts_entry *entry;
    void **parameters;
    uint32_t threads, thread;
    uint32_t block, first_block; /* numbered through all launches, from 1; this launch's first */
    uint32_t interval;
    bool failed;
} now;

std::map<const char *, ts_object> memory; /* by its first byte; pieces do not overlap */
ts_object *latest;                        /* of them */
std::deque<std::string> names;
std::vector<void *> reserved;
std::vector<Thread> threads;
std::string message;
const ts_object nowhere = {"", nullptr, nullptr, nullptr, 1, false, false, false, 0};

std::string text(const char *format, ...)
{
    char buffer[1000];
    va_list values;
    va_start(values, format);
    vsnprintf(buffer, sizeof buffer, format, values);
    va_end(values);
    return buffer;
}

std::string text(ts_uint3 v)
{
    return text("(%u, %u, %u)", v.x, v.y, v.z);
}

ts_uint3 place(uint32_t number, ts_uint3 extent)
{
    return {number % extent.x, number / extent.x % extent.y, number / extent.x / extent.y};
}

std::string of_thread(uint32_t number)
{
    return "thread " + text(place(number, blockDim));
}

std::string of_block(uint32_t serial)
{
    return "block " + text(place(serial - now.first_block, gridDim));
}

std::string line(ts_site site)
{
    return text("line %u:%u", site >> 12, site & 4095);
}

void fail(const std::string &what)
{
    message = std::string(now.entry->symbol) + ": " + what;
    now.failed = true;
}

[[noreturn]] void stop(const std::string &what)
{
    fail("block " + text(blockIdx) + ", " + of_thread(now.thread) + " " + what);
    ts_fiber_leave(now.thread);
    __builtin_unreachable();
}

std::string element(const ts_object *object, const char *address)
{
    long offset = (long)(address - object->low);
    long item = (long)object->item, whole = offset / item - (offset % item < 0);
    const char *kind = object->shared ? "the shared array " : "";
    return text("%s%s[%ld]", kind, object->name, whole);
}

/* Numbers that a seed decides (splitmix64). */
uint64_t random_number(uint64_t &state)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* ------------------------------------------------------------------------------ races */

[[noreturn]] void race(const ts_object *object, const char *address, ts_site site, bool write,
                       const char *other_did, const std::string &who, ts_site where, bool block)
{
    stop((write ? "writes " : "reads ") + element(object, address) + " at " + line(site) + ", which "
         + who + " " + other_did + " at " + line(where)
         + (block ? " in the same launch" : " with no barrier between"));
}

void watch_write(const ts_object *object, const char *address, ts_cell &cell, ts_site site,
                 bool write)
{
    if (cell.write_block >= now.first_block && cell.write_block != now.block)
        race(object, address, site, write, "wrote", of_block(cell.write_block), cell.write_site,
             true);
    if (cell.write_interval == now.interval && cell.writer != now.thread)
        race(object, address, site, write, "wrote", of_thread(cell.writer), cell.write_site, false);
}

void watch(const ts_object *object, const char *address, ts_site site, bool write)
{
    ts_cell &cell = object->cells[(address - object->low) / object->item];
    uint16_t thread = (uint16_t)now.thread;
    if (object->gaps && !cell.inside)
        stop((write ? "writes " : "reads ") + element(object, address) + " at " + line(site)
             + ", which is between the elements of the array");
    watch_write(object, address, cell, site, write);
    if (write) {
        uint32_t block = cell.read_block != now.block ? cell.read_block : cell.other_block;
        if (block >= now.first_block)
            race(object, address, site, true, "read", of_block(block), cell.read_site, true);
        if (cell.read_interval == now.interval && cell.reader != thread)
            race(object, address, site, true, "read", of_thread(cell.reader), cell.read_site, false);
        cell.write_block = now.block, cell.write_interval = now.interval;
        cell.writer = thread, cell.write_site = site, cell.written = 1;
        return;
    }
    if (!cell.written && !object->written)
        stop("reads " + element(object, address) + " at " + line(site) + ", which nothing has written");
    if (cell.read_interval == now.interval)
        return;
    if (cell.read_block < now.first_block)
        cell.other_block = 0;
    else if (cell.read_block != now.block)
        cell.other_block = cell.read_block;
    cell.read_block = now.block, cell.read_interval = now.interval;
    cell.reader = thread, cell.read_site = site;
}

size_t cells_of(ptrdiff_t bytes, size_t item)
{
    return ((size_t)bytes / item + 1) * sizeof(ts_cell);
}

/* A NaN for floats of any width, and a number that stands out for integers. */
void poison(char *low, char *high)
{
    memset(low, 0xff, (size_t)(high - low));
}

/* ------------------------------------------------------------------------------ blocks */

void run_thread()
{
    now.entry->run(now.parameters);
    threads[now.thread].state = State::Done;
}

void shuffle(std::vector<uint32_t> &order, uint64_t &state)
{
    for (size_t k = order.size(); k > 1; k--)
        std::swap(order[k - 1], order[random_number(state) % k]);
}

/* All threads stand at one barrier, or all are done. Returns whether the block goes on. */
bool together()
{
    const Thread *first = nullptr, *gone = nullptr;
    for (const Thread &thread : threads) {
        if (thread.state == State::Done) {
            gone = &thread;
            continue;
        }
        if (first && first->barrier != thread.barrier) {
            fail("block " + text(blockIdx) + ": " + of_thread((uint32_t)(first - &threads[0]))
                 + text(" waits at barrier %d (", first->barrier) + line(first->site) + "), "
                 + of_thread((uint32_t)(&thread - &threads[0]))
                 + text(" at barrier %d (", thread.barrier) + line(thread.site) + ")");
            return false;
        }
        first = first ? first : &thread;
    }
    if (first && gone)
        fail("block " + text(blockIdx) + ": " + of_thread((uint32_t)(first - &threads[0]))
             + text(" waits at barrier %d (", first->barrier) + line(first->site) + "), "
             + of_thread((uint32_t)(gone - &threads[0])) + " has ended");
    return first && !gone;
}

void run_block(uint64_t &random)
{
    std::vector<uint32_t> order(now.threads);
    for (uint32_t k = 0; k < now.threads; k++)
        order[k] = k;
    threads.assign(now.threads, {State::Ready, -1, 0});
    for (uint32_t k = 0; k < now.threads; k++)
        ts_fiber_start(k, run_thread);
    do {
        now.interval++;
        shuffle(order, random);
        for (uint32_t k : order) {
            now.thread = k, threadIdx = place(k, blockDim);
            ts_fiber_run(k);
            if (now.failed)
                return;
        }
        ts_count_flush();
    } while (together());
}

bool fits(const uint32_t grid[3], const uint32_t block[3])
{
    uint64_t count = (uint64_t)block[0] * block[1] * block[2];
    if (!count || count > 1024 || block[2] > 64)
        fail("a block has 1 to 1024 threads, not " + text({block[0], block[1], block[2]}));
    else if (count > now.entry->most_threads)
        fail(text("its launch bounds are %u threads, not ", now.entry->most_threads)
             + text({block[0], block[1], block[2]}));
    else if (!grid[0] || !grid[1] || !grid[2] || grid[0] > INT32_MAX || grid[1] > 65535
             || grid[2] > 65535)
        fail("a grid has 1 to 2147483647, 65535 and 65535 blocks, not "
             + text({grid[0], grid[1], grid[2]}));
    return !now.failed;
}

} // namespace

/* ------------------------------------------------------------------------------ for device text */

void ts_emulator_enter(ts_object *shared)
{
    if (shared->block == now.block)
        return;
    shared->block = now.block;
    poison(shared->low, shared->high);
    memset((void *)shared->cells, 0,
           sizeof(ts_cell) * (size_t)(shared->high - shared->low) / shared->item);
}

const ts_object *ts_emulator_find(const void *address)
{
    auto above = memory.upper_bound((const char *)address);
    if (above == memory.begin())
        return &nowhere;
    const ts_object &object = std::prev(above)->second;
    return (const char *)address < object.high ? &object : &nowhere;
}

void ts_emulator_access(const ts_object *object, const char *address, uint32_t bytes, ts_site site,
                        bool write)
{
    if (address < object->low || (size_t)(object->high - object->low) < bytes
        || address > object->high - bytes) {
        const char *does = write ? "writes " : "reads ";
        if (object == &nowhere)
            stop(does + std::string("through a pointer into no array, at ") + line(site));
        stop(does + element(object, address) + " at " + line(site)
             + text(", which has %zu elements", (size_t)(object->high - object->low) / object->item));
    }
    if (settings.watched && object->cells)
        watch(object, address, site, write);
    if (settings.counted)
        ts_count_access(object, (uint64_t)(address - object->low), bytes, site, write, now.thread);
}

void ts_emulator_barrier(int number, ts_site site)
{
    if ((unsigned)number >= MOST_BARRIERS)
        stop(text("waits at barrier %d: there are %d", number, MOST_BARRIERS));
    if (settings.off[number])
        return;
    threads[now.thread] = {State::Waits, number, site};
    ts_fiber_leave(now.thread);
}

/* ------------------------------------------------------------------------------ for the compiler */

/* What code that is compiled with -fsanitize calls; `at` begins with the place in the text. */
struct Checked {
    const char *file;
    uint32_t line, column;
};

[[noreturn]] static void arithmetic(const Checked *at, const char *what)
{
    stop(what + text(" at line %u:%u", at->line, at->column));
}

extern "C" {
void __ubsan_handle_out_of_bounds(Checked *at, uintptr_t index)
{
    arithmetic(at, text("takes element %ld of an array of its own that has less,",
                        (long)(intptr_t)index).c_str());
}
void __ubsan_handle_add_overflow(Checked *at) { arithmetic(at, "adds up to more than fits"); }
void __ubsan_handle_sub_overflow(Checked *at) { arithmetic(at, "subtracts to more than fits"); }
void __ubsan_handle_mul_overflow(Checked *at) { arithmetic(at, "multiplies to more than fits"); }
void __ubsan_handle_negate_overflow(Checked *at) { arithmetic(at, "negates what has no negative"); }
void __ubsan_handle_shift_out_of_bounds(Checked *at) { arithmetic(at, "shifts too far"); }
void __ubsan_handle_divrem_overflow(Checked *at) { arithmetic(at, "divides by 0, or the least by -1,"); }
}

/* ------------------------------------------------------------------------------ for hosts */

extern "C" {

/* watched: races and reads of what is not written are found. counted: `ts_emulator_counts` tells. */
void ts_emulator_set(uint64_t seed, int watched, int counted)
{
    settings.seed = seed, settings.watched = watched, settings.counted = counted;
}

/* Threads pass a barrier that is off. number: -1 for all. */
void ts_emulator_switch(int number, int off)
{
    for (int k = 0; k < MOST_BARRIERS; k++)
        if (number == k || number < 0)
            settings.off[k] = off;
}

/* A piece of global memory that pointers may be followed into. item: the bytes of what is watched
   as one. written: whether what it holds now may be read. */
void ts_emulator_memory(void *low, size_t bytes, unsigned item, int written, const char *name)
{
    void *watched = mmap(nullptr, cells_of((ptrdiff_t)bytes, item), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *first = (char *)low;
    names.push_back(name);
    ts_object piece = {names.back().c_str(), first, first + bytes,
                       watched == MAP_FAILED ? nullptr : (ts_cell *)watched, item, false,
                       written != 0, false, 0};
    latest = &memory.insert_or_assign(first, piece).first->second;
}

/* The elements of an array in the piece of memory that was told of last, by their offsets in bytes:
   once this was called, what lies between them is out of bounds. */
void ts_emulator_elements(const int64_t *offsets, size_t count)
{
    ts_object &piece = *latest;
    piece.gaps = piece.cells != nullptr;
    for (size_t k = 0; k < count && piece.cells; k++)
        piece.cells[offsets[k] / piece.item].inside = 1;
}

/* As ts_abi.h has it: memory of the device for one call. */
void *ts_emulator_reserve(const struct ts_device *, size_t bytes)
{
    void *piece = nullptr;
    if (posix_memalign(&piece, 256, bytes ? bytes : 1))
        return nullptr;
    reserved.push_back(piece);
    poison((char *)piece, (char *)piece + bytes);
    ts_emulator_memory(piece, bytes, 1, false, "the workspace");
    return piece;
}

/* As ts_abi.h has it. */
bool ts_emulator_is_zero(const struct ts_device *, const void *element)
{
    return *(const int32_t *)element == 0;
}

void ts_emulator_forget(void)
{
    for (void *piece : reserved)
        free(piece);
    reserved.clear();
    for (const auto &[first, object] : memory)
        if (object.cells)
            munmap(object.cells, cells_of(object.high - object.low, object.item));
    memory.clear();
    names.clear();
    message.clear();
    ts_count_forget();
}

const char *ts_emulator_error(void)
{
    return message.c_str();
}

/* As ts_abi.h has it: a status, 0 where all went well. */
int ts_emulator_launch(const struct ts_device *, const char *symbol, const uint32_t grid[3],
                       const uint32_t block[3], void **parameters)
{
    static const ts_entry none = {"the emulator", nullptr, 0};
    now.entry = &none, now.failed = false;
    for (const ts_entry *entry = ts_emulator_entries; entry->symbol; entry++)
        if (!strcmp(entry->symbol, symbol))
            now.entry = entry;
    if (now.entry == &none)
        fail(std::string("there is no kernel ") + symbol);
    else if (fits(grid, block)) {
        gridDim = {grid[0], grid[1], grid[2]}, blockDim = {block[0], block[1], block[2]};
        now.parameters = parameters, now.threads = block[0] * block[1] * block[2];
        now.first_block = now.block + 1;
        if (!ts_fibers(now.threads))
            fail("there is no memory for its threads' stacks");
        ts_count_launch(now.entry->symbol);
        uint64_t random = settings.seed;
        uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
        for (uint64_t k = 0; k < blocks && !now.failed; k++) {
            now.block++;
            blockIdx = {(uint32_t)(k % grid[0]), (uint32_t)(k / grid[0] % grid[1]),
                        (uint32_t)(k / grid[0] / grid[1])};
            run_block(random);
        }
    }
    return now.failed ? NOT_LAUNCHED : 0;
}
}
