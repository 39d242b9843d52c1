// A trie over bytes that contains all single bytes, laid out for walking: a double array of 32 bits per slot.
//
// The children of a node are in the slots base + byte. Each slot stores its byte and the base of its own children. No
// two nodes share a base, so a slot whose byte matches is a child, and nothing else needs to be checked (Aoe 1989
// compares the parent instead, which takes another 32 bits). Nodes without children have base 0, and slots 0 to 255
// stay empty. The first two bytes of a walk are one step, through a table of 65,536 entries.
//
// With 65,535 nodes the slots take about 300 KB and the ids 300 KB, of which little is read often. In an L2 cache of 1
// MB the walk is bound by latency, which is why codebook_encoder.cc and string_values.cc walk from several positions at
// once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"

namespace fastcompress::equal_info {

class TrieTable {
  public:
    static constexpr uint32_t kRoot = UINT32_MAX;  // the parent of single bytes
    static constexpr size_t kMaxNodes = size_t{1} << 18;
    static constexpr size_t kMaxLength = 255;

    // Node i is the string of parents[i] (below i, or kRoot) followed by bytes[i]. Requires at most kMaxNodes nodes,
    // none twice, all 256 single bytes among them, and no string longer than kMaxLength. O(n) for all tries that were
    // tried; the search for a base has no better bound than the number of slots.
    TrieTable(std::span<const uint32_t> parents, std::span<const uint8_t> bytes);
    TrieTable() = default;

    // A walk under way: the lower 32 bits are the slot of its node, the upper 32 bits the base of that node's children.
    using State = uint64_t;
    // Takes the first step from `next` < `end`, and moves `next` past the one or two bytes taken: two if they are a
    // string of the trie, else one.
    State start(const uint8_t*& next, const uint8_t* end) const {
        if (end - next < 2) return state_of(kRootBase + *next++);
        const Start pair = start_pair(next);
        next += 1 + pair.takes_second;
        return pair.state;
    }
    struct Start {
        State state;
        size_t takes_second;  // 0 or 1
    };
    // The same without moving. Requires that two bytes can be read.
    Start start_pair(const uint8_t* next) const {
        const uint64_t pair = pairs_[size_t{next[0]} << 8 | next[1]];
        return {pair & ~kTakesSecond, static_cast<size_t>(pair / kTakesSecond & 1)};
    }
    // Returns the state one byte further if the trie has that string, else 0.
    State step(State state, uint8_t byte) const {
        const auto slot = static_cast<uint32_t>(state >> 32) + byte;
        const uint32_t entry = slots_[slot];
        return (entry & kLabelMask) == byte ? uint64_t{entry >> kBaseShift} << 32 | slot : 0;
    }
    // One step without a branch, for several walks side by side: moves one byte further if the trie has that string,
    // else starts again at `after`. Returns all ones if the walk continues, else 0; takes_second belongs to the new
    // start.
    uint64_t step_or_start(State& state, uint8_t byte, const uint8_t* after, size_t& takes_second) const {
        const auto slot = static_cast<uint32_t>(state >> 32) + byte;
        const uint32_t entry = slots_[slot];
        const uint64_t goes_on = uint64_t{0} - uint64_t{(entry & kLabelMask) == byte};
        const uint64_t next = uint64_t{entry >> kBaseShift} << 32 | slot;
        const Start fresh = start_pair(after);
        state = fresh.state ^ ((fresh.state ^ next) & goes_on);
        takes_second = fresh.takes_second;
        return goes_on;
    }
    // The state of a walk that has reached a slot with a node.
    State state_of(uint32_t slot) const { return uint64_t{slots_[slot] >> kBaseShift} << 32 | slot; }
    static uint32_t slot(State state) { return static_cast<uint32_t>(state); }
    uint32_t node_of_slot(uint32_t slot) const { return nodes_[slot]; }
    uint32_t node(State state) const { return nodes_[slot(state)]; }

    // Returns the longest string of the trie that the non-empty range [next, end) begins with; moves `next` past it.
    uint32_t longest(const uint8_t*& next, const uint8_t* end) const {
        State state = start(next, end);
        for (; next < end; ++next) {
            const State further = step(state, *next);
            if (further == 0) break;
            state = further;
        }
        return node(state);
    }

    // The length of a node's string in bytes.
    size_t length(uint32_t node) const { return lengths_[node]; }
    size_t num_slots() const { return slots_.size(); }

  private:
    // A slot: its byte in the lower 9 bits, or kEmpty, and above them the base.
    static constexpr unsigned kBaseShift = 9;
    static constexpr uint32_t kLabelMask = (1u << kBaseShift) - 1;
    static constexpr uint32_t kEmpty = kLabelMask;
    static constexpr uint32_t kRootBase = 256;

    // A flag beside the state in an entry of the table of pairs: the second byte is taken, too.
    static constexpr uint64_t kTakesSecond = uint64_t{1} << 31;

    void place(std::span<const uint32_t> parents, std::span<const uint8_t> bytes);
    void fill_pairs();

    std::vector<uint32_t> slots_;
    std::vector<uint32_t> nodes_;  // the node of each slot
    std::vector<uint8_t> lengths_;
    std::vector<uint64_t> pairs_;
};

}  // namespace fastcompress::equal_info
