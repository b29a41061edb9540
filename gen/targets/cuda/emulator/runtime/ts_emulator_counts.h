/* What the memory instructions of warps ask for.

   The n-th passes of a warp's 32 threads through one place of the text, since the last barrier, are
   one instruction. Its addresses are gathered while the threads run one after another, and counted
   at the barrier. */
#ifndef TS_EMULATOR_COUNTS_H
#define TS_EMULATOR_COUNTS_H

#include "ts_emulator.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <vector>

extern "C" {

/* Of all instructions at one place of the text that access one array. */
struct ts_count {
    const char *launch, *array;
    uint64_t instructions; /* of warps */
    uint64_t idle;         /* lanes of these that do nothing */
    uint64_t asked;        /* global memory: sectors of 32 bytes that the lanes' bytes lie in */
    uint64_t needed;       /* ... that their bytes would fill if they lay side by side */
    uint64_t passes;       /* shared memory: in which the banks serve it */
    uint64_t conflicts;    /* ... beyond one, or two where elements have 8 bytes */
    ts_site site;
    uint32_t bytes, shared, write;
};
}

namespace
{

const int WARP = 32, SECTOR = 32, BANKS = 32, BANK = 4;

struct Instruction {
    uint32_t lanes = 0; /* as bits */
    uint64_t offsets[WARP];
};

struct Place {
    ts_count count;
    std::vector<uint32_t> passed;                /* by thread, since the last barrier */
    std::vector<std::vector<Instruction>> warps; /* since the last barrier */
};

struct Key {
    const char *launch;
    const ts_object *object;
    uint64_t place;
    bool operator==(const Key &other) const
    {
        return launch == other.launch && object == other.object && place == other.place;
    }
};

struct Hash {
    size_t operator()(const Key &key) const
    {
        return ((size_t)key.launch * 31 + (size_t)key.object) * 31 + key.place;
    }
};

std::unordered_map<Key, Place *, Hash> known;
std::deque<Place> places; /* in the order in which they were met */
std::vector<Place *> touched;
const char *launch_counted = nullptr;

void count_sectors(ts_count &count, const std::vector<uint64_t> &offsets)
{
    std::vector<uint64_t> sectors;
    for (uint64_t offset : offsets) /* in order; elements lie where their size goes into */
        sectors.push_back(offset / SECTOR);
    count.asked += (uint64_t)(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
    count.needed += (offsets.size() * count.bytes + SECTOR - 1) / SECTOR;
}

/* How many passes serve these lanes: the most words that one bank has to give. */
uint64_t most_words(const std::vector<uint64_t> &offsets, uint32_t bytes)
{
    std::vector<uint64_t> words;
    uint64_t banks[BANKS] = {}, most = 0;
    for (uint64_t offset : offsets)
        for (uint64_t k = offset / BANK; k <= (offset + bytes - 1) / BANK; k++)
            words.push_back(k);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    for (uint64_t word : words)
        most = std::max(most, ++banks[word % BANKS]);
    return most;
}

/* Lanes are served together as far as their elements fill the banks once: 16 of 8 bytes. */
void count_banks(ts_count &count, const Instruction &instruction)
{
    int together = std::min(WARP, BANKS * BANK / (int)count.bytes);
    for (int first = 0; first < WARP; first += together) {
        std::vector<uint64_t> offsets;
        for (int lane = first; lane < first + together; lane++)
            if (instruction.lanes >> lane & 1)
                offsets.push_back(instruction.offsets[lane]);
        if (offsets.empty())
            continue;
        uint64_t passes = most_words(offsets, count.bytes);
        count.passes += passes;
        count.conflicts += passes - 1;
    }
}

void count_instruction(ts_count &count, const Instruction &instruction)
{
    std::vector<uint64_t> offsets;
    for (int lane = 0; lane < WARP; lane++)
        if (instruction.lanes >> lane & 1)
            offsets.push_back(instruction.offsets[lane]);
    count.instructions++;
    count.idle += WARP - offsets.size();
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    if (count.shared)
        count_banks(count, instruction);
    else
        count_sectors(count, offsets);
}

Place *place_of(const ts_object *object, uint32_t bytes, ts_site site, bool write)
{
    Place *&place = known[{launch_counted, object, (uint64_t)site << 1 | write}];
    if (!place) {
        places.emplace_back();
        place = &places.back();
        place->count = {launch_counted, object->name, 0,     0,     0, 0, 0, 0, site,
                        bytes,          object->shared, write};
    }
    return place;
}

void ts_count_launch(const char *symbol)
{
    launch_counted = symbol;
}

void ts_count_access(const ts_object *object, uint64_t offset, uint32_t bytes, ts_site site,
                     bool write, uint32_t thread)
{
    Place *place = place_of(object, bytes, site, write);
    if (place->passed.empty()) {
        place->passed.resize(1024);
        place->warps.resize(1024 / WARP);
        touched.push_back(place);
    }
    std::vector<Instruction> &warp = place->warps[thread / WARP];
    uint32_t turn = place->passed[thread]++;
    if (warp.size() <= turn)
        warp.resize(turn + 1);
    warp[turn].lanes |= 1u << thread % WARP;
    warp[turn].offsets[thread % WARP] = offset;
}

/* A barrier, or the block's end. */
void ts_count_flush()
{
    for (Place *place : touched) {
        for (const std::vector<Instruction> &warp : place->warps)
            for (const Instruction &instruction : warp)
                count_instruction(place->count, instruction);
        place->warps.clear();
        place->passed.clear();
    }
    touched.clear();
}

void ts_count_forget()
{
    known.clear();
    places.clear();
    touched.clear();
}

} // namespace

/* Writes the first `room` of the counts, and returns how many there are. */
extern "C" size_t ts_emulator_counts(ts_count *counts, size_t room)
{
    for (size_t k = 0; k < room && k < places.size(); k++)
        counts[k] = places[k].count;
    return places.size();
}

#endif
