// A trie over bytes that all single bytes are in, laid out for walking: a double array of 32 bits a slot.
//
// The children of a node are in the slots base + byte, and each slot has the byte it belongs to and the base of its
// own children. No two nodes share a base, so a byte that matches is a child, and nothing else need be checked (Aoe
// 1989 compares the parent instead, which takes another 32 bits). Nodes without children have base 0, and slots 0 to
// 255 stay empty. The first two bytes of a walk are one step, through a table of 65,536 entries.
//
// With 65,535 nodes the slots take some 300 KB and the ids 300 KB, of which little is read often; on an L2 cache of 1
// MB the walk is bound by latency, which is why codebook_encoder.cc and codebook_trainer.cc walk from several
// positions at once.
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

    // Node i is the string of parents[i] (below i, or kRoot) and bytes[i]. At most kMaxNodes nodes, none twice, all 256
    // single bytes among them, no string longer than kMaxLength. O(n) for tries of languages and all others tried; the
    // search for a base has no better bound than the number of slots.
    TrieTable(std::span<const uint32_t> parents, std::span<const uint8_t> bytes);
    TrieTable() = default;

    // A walk under way: the slot of the node it is at, and above it where that node's children are.
    using State = uint64_t;
    // The first step: from `next`, before `end`, which it moves past the bytes taken, 1 or 2. Where two bytes are no
    // string of the trie the walk ends at the first.
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
    // The same where two bytes can be read, and without moving.
    Start start_pair(const uint8_t* next) const {
        const uint64_t pair = pairs_[size_t{next[0]} << 8 | next[1]];
        return {pair & ~kTakesSecond, static_cast<size_t>(pair / kTakesSecond & 1)};
    }
    // Goes on by one byte if the trie has it; else 0.
    State step(State state, uint8_t byte) const {
        const auto slot = static_cast<uint32_t>(state >> 32) + byte;
        const uint32_t entry = slots_[slot];
        return (entry & kLabelMask) == byte ? uint64_t{entry >> kBaseShift} << 32 | slot : 0;
    }
    // One step of several walks side by side, without a branch: on by one byte, or if the trie has it not, a new
    // start at `after`. Returns all ones if the walk goes on, else 0; takes_second is of the start.
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
    static uint32_t slot(State state) { return static_cast<uint32_t>(state); }
    uint32_t node_of_slot(uint32_t slot) const { return nodes_[slot]; }
    uint32_t node(State state) const { return nodes_[slot(state)]; }

    // The longest string of the trie at the beginning of [next, end), which is not empty; moves `next` past it.
    uint32_t longest(const uint8_t*& next, const uint8_t* end) const {
        State state = start(next, end);
        for (; next < end; ++next) {
            const State further = step(state, *next);
            if (further == 0) break;
            state = further;
        }
        return node(state);
    }

    // Of a node's string, in bytes.
    size_t length(uint32_t node) const { return lengths_[node]; }
    size_t num_slots() const { return slots_.size(); }

  private:
    // A slot: the byte in 9 bits, kEmpty if there is none, below the base.
    static constexpr unsigned kBaseShift = 9;
    static constexpr uint32_t kLabelMask = (1u << kBaseShift) - 1;
    static constexpr uint32_t kEmpty = kLabelMask;
    static constexpr uint32_t kRootBase = 256;

    // Beside the state in an entry of the table of pairs: the second byte is taken, too.
    static constexpr uint64_t kTakesSecond = uint64_t{1} << 31;

    State state_of(uint32_t slot) const { return uint64_t{slots_[slot] >> kBaseShift} << 32 | slot; }
    void place(std::span<const uint32_t> parents, std::span<const uint8_t> bytes);
    void fill_pairs();

    std::vector<uint32_t> slots_;
    std::vector<uint32_t> nodes_;  // of each slot
    std::vector<uint8_t> lengths_;
    std::vector<uint64_t> pairs_;
};

}  // namespace fastcompress::equal_info
