// Fast greedy parses by a set of strings: several places of one text are parsed at once, and joined exactly.
//
// A walk in the trie waits for memory at every byte. So a text is cut into segments, and each thread walks several of
// them side by side without branches, one step of each in turn. The start of a segment is a guess, since a token may
// reach across it. But once two greedy parses end a token at the same place, they agree from there on, which in texts
// happens soon. So the parse of the first segment, which is right, is followed into the second until it meets the parse
// made there. If they never meet (in a run of equal bytes, say), the right parse is simply continued. In any case the
// result is the plain greedy parse. Threads split a long text in the same way.
//
// The trie may have nodes that are not strings of the set. A walk that ends at such a node has gone too far by some
// bytes, its excess, and the next walk begins that much earlier.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <optional>
#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/parallel.h"
#include "fastcompress/common/rollback.h"
#include "fastcompress/equal_info/trie_table.h"

namespace fastcompress::equal_info {

// A set of strings that holds all single bytes, as a trie and what each slot of it stands for.
template <class Strings>
concept GreedyStrings = requires(const Strings strings, const uint8_t*& next, const uint8_t* end, uint32_t number) {
    { strings.table() } -> std::same_as<const TrieTable&>;
    // The longest string that [next, end) begins with; moves `next` past it.
    { strings.longest(next, end) } -> std::same_as<uint32_t>;
    // The length of an id's string.
    { strings.length(number) } -> std::same_as<size_t>;
    // Of a slot: the id of the longest string that its node's string begins with, and how many bytes shorter that is.
    { strings.id_of_slot(number) } -> std::same_as<uint32_t>;
    { strings.excess_of_slot(number) } -> std::same_as<size_t>;
};

namespace greedy_parse {

using Ids = std::vector<uint32_t>;

inline constexpr size_t kNumLanes = 8;
inline constexpr size_t kSegmentBytes = 8192;
inline constexpr size_t kMinSegmentBytes = 512;
inline constexpr size_t kStepsBetweenLooks = 64;
inline constexpr size_t kMinThreadBytes = size_t{1} << 16;

// Appends the tokens from `begin` on until one ends at or after `end`; returns that position.
template <GreedyStrings Strings>
size_t walk(const Strings& strings, Bytes text, size_t begin, size_t end, Ids& ids) {
    const uint8_t* const data = text.data();
    const uint8_t* next = data + begin;
    while (next < data + end) ids.push_back(strings.longest(next, data + text.size()));
    return static_cast<size_t>(next - data);
}

// A parse that begins at a guess, where the right parse may not begin a token.
struct Guess {
    size_t begin;
    std::span<const uint32_t> ids;
    size_t end;
};

// The right tokens so far end at `position`. Appends the guess's tokens from where the two parses meet; if they never
// meet, no more tokens than it takes to know that. Returns where the right tokens end now: as a rule at guess.end.
template <GreedyStrings Strings>
size_t join(const Strings& strings, Bytes text, size_t position, const Guess& guess, Ids& ids) {
    size_t guessed = guess.begin;
    size_t i = 0;
    while (guessed != position) {
        if (guessed > position) {
            position = walk(strings, text, position, position + 1, ids);
        } else if (i < guess.ids.size()) {
            guessed += strings.length(guess.ids[i++]);
        } else {
            return position;
        }
    }
    ids.insert(ids.end(), guess.ids.begin() + static_cast<ptrdiff_t>(i), guess.ids.end());
    return guess.end;
}

// Walks kNumLanes segments of `segment` bytes from `begin` on, each until a token ends at or after its end, or the steps
// run out.
template <GreedyStrings Strings>
class Lanes {
  public:
    Lanes(const Strings& strings, Bytes text) : strings_(strings), table_(strings.table()), text_(text) {
        for (Ids& ids : ids_) ids.resize(2 * kSegmentBytes + 2 * kStepsBetweenLooks);
    }
    static size_t most_bytes_read(size_t segment) {
        return (kNumLanes - 1) * segment + 2 * most_steps(segment) + 4;  // a lane moves by at most two bytes per step
    }
    // Appends the tokens from `begin` on until one ends at or after the last segment's end; returns that position.
    size_t run(size_t begin, size_t segment, Ids& ids);

  private:
    // All lanes continue until the slowest has ended a token at its end. Without excess a step moves by at least one
    // byte, so that these are enough; with much excess a lane may end earlier.
    static size_t most_steps(size_t segment) { return segment + TrieTable::kMaxLength + kStepsBetweenLooks; }
    void walk_all(size_t begin, size_t segment);
    void look(size_t begin, size_t segment);
    void end(size_t lane);
    size_t token_begin(size_t lane) const { return static_cast<size_t>(next_[lane] - text_.data()) - taken(lane); }
    size_t taken(size_t lane) const { return table_.length(table_.node(states_[lane])); }

    const Strings& strings_;
    const TrieTable& table_;
    const Bytes text_;
    std::array<Ids, kNumLanes> ids_;
    std::array<TrieTable::State, kNumLanes> states_;
    std::array<const uint8_t*, kNumLanes> next_;
    std::array<size_t, kNumLanes> counts_;
    // When a lane was first seen at or after its end, or the steps had run out: its number of tokens, and where the
    // last of them ended.
    std::array<size_t, kNumLanes> end_counts_;
    std::array<size_t, kNumLanes> end_positions_;
    size_t num_done_ = 0;
};

template <GreedyStrings Strings>
void Lanes<Strings>::walk_all(size_t begin, size_t segment) {
    num_done_ = 0;
    end_positions_.fill(0);
    counts_.fill(0);
    std::array<uint32_t*, kNumLanes> out;
    for (size_t k = 0; k < kNumLanes; ++k) {
        next_[k] = text_.data() + begin + k * segment;
        const TrieTable::Start start = table_.start_pair(next_[k]);
        states_[k] = start.state;
        next_[k] += 1 + start.takes_second;
        out[k] = ids_[k].data();
    }
    // Locals, so that the compiler knows that nothing else writes to them.
    auto next = next_;
    auto states = states_;
    for (size_t steps_left = most_steps(segment); num_done_ < kNumLanes && steps_left >= kStepsBetweenLooks;
         steps_left -= kStepsBetweenLooks) {
        for (size_t i = 0; i < kStepsBetweenLooks; ++i) {
#pragma GCC unroll 8
            for (size_t k = 0; k < kNumLanes; ++k) {
                const uint32_t slot = TrieTable::slot(states[k]);
                *out[k] = slot;
                const size_t excess = strings_.excess_of_slot(slot);
                size_t takes_second;
                const uint64_t goes_on = table_.step_or_start(states[k], *next[k], next[k] - excess, takes_second);
                next[k] += static_cast<ptrdiff_t>(1 + ((takes_second - excess) & ~goes_on));  // perhaps back
                out[k] += static_cast<ptrdiff_t>(1 + goes_on);
            }
        }
        next_ = next;
        states_ = states;
        for (size_t k = 0; k < kNumLanes; ++k) counts_[k] = static_cast<size_t>(out[k] - ids_[k].data());
        look(begin, segment);
    }
    for (size_t k = 0; k < kNumLanes; ++k) {
        if (end_positions_[k] == 0) end(k);
        for (size_t i = 0; i < end_counts_[k]; ++i) ids_[k][i] = strings_.id_of_slot(ids_[k][i]);
    }
}

template <GreedyStrings Strings>
void Lanes<Strings>::look(size_t begin, size_t segment) {
    for (size_t k = 0; k < kNumLanes; ++k) {
        if (end_positions_[k] == 0 && token_begin(k) >= begin + (k + 1) * segment) end(k);
    }
}

template <GreedyStrings Strings>
void Lanes<Strings>::end(size_t lane) {
    end_positions_[lane] = token_begin(lane);
    end_counts_[lane] = counts_[lane];
    ++num_done_;
}

template <GreedyStrings Strings>
size_t Lanes<Strings>::run(size_t begin, size_t segment, Ids& ids) {
    walk_all(begin, segment);
    size_t position = begin;
    for (size_t k = 0; k < kNumLanes; ++k) {
        const Guess guess = {begin + k * segment, {ids_[k].data(), end_counts_[k]}, end_positions_[k]};
        position = join(strings_, text_, position, guess, ids);
    }
    return position;
}

// Appends the tokens from `begin` on until one ends at or after `end`; returns that position.
template <GreedyStrings Strings>
size_t walk_in_lanes(const Strings& strings, Bytes text, size_t begin, size_t end, Ids& ids) {
    std::optional<Lanes<Strings>> lanes;
    size_t position = begin;
    while (position < end) {
        const size_t segment = std::min((end - position) / kNumLanes, kSegmentBytes);
        if (segment < kMinSegmentBytes || Lanes<Strings>::most_bytes_read(segment) > text.size() - position) break;
        if (!lanes) lanes.emplace(strings, text);
        position = lanes->run(position, segment, ids);
    }
    return walk(strings, text, position, end, ids);
}

}  // namespace greedy_parse

// Appends the ids of the greedy parse of a text to `ids`; on std::bad_alloc these are as before. The result is the same
// for every number of threads. O(text) if the excess of few walks is above zero, else O(text * kMaxLength); a thread
// takes a share of at least 64 KiB.
template <GreedyStrings Strings>
void parse_greedily(const Strings& strings, Bytes text, size_t num_threads, std::vector<uint32_t>& ids) {
    using namespace greedy_parse;
    Rollback rollback([&ids, size = ids.size()] { ids.resize(size); });
    const size_t num_parts = std::max<size_t>(1, std::min(num_threads, text.size() / kMinThreadBytes));
    if (num_parts == 1) {
        walk_in_lanes(strings, text, 0, text.size(), ids);
        rollback.release();
        return;
    }
    struct Part {
        size_t begin;
        size_t end;
        size_t reached;
        Ids ids;
    };
    std::vector<Part> parts(num_parts);
    parallel_parts(
        num_parts, num_parts, [](size_t) { return size_t{1}; },
        [&](size_t, size_t first, size_t last) {
            for (size_t k = first; k < last; ++k) {
                Part& part = parts[k];
                part.begin = text.size() / num_parts * k;
                part.end = k + 1 == num_parts ? text.size() : text.size() / num_parts * (k + 1);
                part.reached = walk_in_lanes(strings, text, part.begin, part.end, part.ids);
            }
        });
    size_t position = 0;
    for (const Part& part : parts) position = join(strings, text, position, {part.begin, part.ids, part.reached}, ids);
    walk(strings, text, position, text.size(), ids);
    rollback.release();
}

}  // namespace fastcompress::equal_info
