#include "fastcompress/equal_info/codebook_encoder.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>

#include "fastcompress/common/parallel.h"
#include "fastcompress/common/rollback.h"

namespace fastcompress::equal_info {
namespace {

using Ids = std::vector<uint32_t>;

constexpr size_t kNumLanes = 8;
constexpr size_t kSegmentBytes = 8192;
constexpr size_t kMinSegmentBytes = 512;
constexpr size_t kStepsBetweenLooks = 64;
constexpr size_t kMinThreadBytes = size_t{1} << 16;

// Appends the tokens from `begin` on until one ends at or after `end`; returns that position.
size_t walk(const TrieTable& table, Bytes text, size_t begin, size_t end, Ids& ids) {
    const uint8_t* const data = text.data();
    const uint8_t* next = data + begin;
    while (next < data + end) ids.push_back(table.longest(next, data + text.size()));
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
size_t join(const TrieTable& table, Bytes text, size_t position, const Guess& guess, Ids& ids) {
    size_t guessed = guess.begin;
    size_t i = 0;
    while (guessed != position) {
        if (guessed > position) {
            position = walk(table, text, position, position + 1, ids);
        } else if (i < guess.ids.size()) {
            guessed += table.length(guess.ids[i++]);
        } else {
            return position;
        }
    }
    ids.insert(ids.end(), guess.ids.begin() + static_cast<ptrdiff_t>(i), guess.ids.end());
    return guess.end;
}

// Walks kNumLanes segments of `segment` bytes from `begin` on, each until a token ends at or after its end.
class Lanes {
  public:
    Lanes(const TrieTable& table, Bytes text) : table_(table), text_(text) {
        for (Ids& ids : ids_) ids.resize(2 * kSegmentBytes + 2 * kStepsBetweenLooks);
    }
    static size_t most_bytes_read(size_t segment) {
        // A lane moves by one or two bytes per step, and all continue until the slowest has ended a token at its end.
        const size_t most_steps = segment + TrieTable::kMaxLength + kStepsBetweenLooks;
        return (kNumLanes - 1) * segment + 2 * most_steps + 4;
    }
    // Appends the tokens from `begin` on until one ends at or after the last segment's end; returns that position.
    size_t run(size_t begin, size_t segment, Ids& ids);

  private:
    void walk_all(size_t begin, size_t segment);
    void look(size_t begin, size_t segment);
    size_t token_begin(size_t lane) const { return static_cast<size_t>(next_[lane] - text_.data()) - taken(lane); }
    size_t taken(size_t lane) const { return table_.length(table_.node(states_[lane])); }

    const TrieTable& table_;
    const Bytes text_;
    std::array<Ids, kNumLanes> ids_;
    std::array<TrieTable::State, kNumLanes> states_;
    std::array<const uint8_t*, kNumLanes> next_;
    std::array<size_t, kNumLanes> counts_;
    // When a lane was first seen at or after its end: its number of tokens, and where the last of them ended.
    std::array<size_t, kNumLanes> end_counts_;
    std::array<size_t, kNumLanes> end_positions_;
    size_t num_done_ = 0;
};

void Lanes::walk_all(size_t begin, size_t segment) {
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
    while (num_done_ < kNumLanes) {
        for (size_t i = 0; i < kStepsBetweenLooks; ++i) {
            for (size_t k = 0; k < kNumLanes; ++k) {
                *out[k] = TrieTable::slot(states[k]);
                size_t takes_second;
                const uint64_t goes_on = table_.step_or_start(states[k], *next[k], next[k], takes_second);
                next[k] += 1 + (takes_second & ~goes_on);
                out[k] += 1 + goes_on;
            }
        }
        next_ = next;
        states_ = states;
        for (size_t k = 0; k < kNumLanes; ++k) counts_[k] = static_cast<size_t>(out[k] - ids_[k].data());
        look(begin, segment);
    }
    for (size_t k = 0; k < kNumLanes; ++k) {
        for (size_t i = 0; i < end_counts_[k]; ++i) ids_[k][i] = table_.node_of_slot(ids_[k][i]);
    }
}

void Lanes::look(size_t begin, size_t segment) {
    for (size_t k = 0; k < kNumLanes; ++k) {
        if (end_positions_[k] > 0) continue;
        const size_t position = token_begin(k);
        if (position < begin + (k + 1) * segment) continue;
        end_positions_[k] = position;
        end_counts_[k] = counts_[k];
        ++num_done_;
    }
}

size_t Lanes::run(size_t begin, size_t segment, Ids& ids) {
    walk_all(begin, segment);
    size_t position = begin;
    for (size_t k = 0; k < kNumLanes; ++k) {
        const Guess guess = {begin + k * segment, {ids_[k].data(), end_counts_[k]}, end_positions_[k]};
        position = join(table_, text_, position, guess, ids);
    }
    return position;
}

// Appends the tokens from `begin` on until one ends at or after `end`; returns that position.
size_t walk_in_lanes(const TrieTable& table, Bytes text, size_t begin, size_t end, Ids& ids) {
    std::optional<Lanes> lanes;
    size_t position = begin;
    while (position < end) {
        const size_t segment = std::min((end - position) / kNumLanes, kSegmentBytes);
        if (segment < kMinSegmentBytes || Lanes::most_bytes_read(segment) > text.size() - position) break;
        if (!lanes) lanes.emplace(table, text);
        position = lanes->run(position, segment, ids);
    }
    return walk(table, text, position, end, ids);
}

}  // namespace

void encode(const TrieTable& table, Bytes text, size_t num_threads, std::vector<uint32_t>& ids) {
    assert(table.num_slots() > 0);
    Rollback rollback([&ids, size = ids.size()] { ids.resize(size); });
    const size_t num_parts = std::max<size_t>(1, std::min(num_threads, text.size() / kMinThreadBytes));
    if (num_parts == 1) {
        walk_in_lanes(table, text, 0, text.size(), ids);
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
                part.reached = walk_in_lanes(table, text, part.begin, part.end, part.ids);
            }
        });
    size_t position = 0;
    for (const Part& part : parts) position = join(table, text, position, {part.begin, part.ids, part.reached}, ids);
    walk(table, text, position, text.size(), ids);
    rollback.release();
}

void encode_within(const TrieTable& table, Bytes text, std::span<const uint64_t> ends, size_t num_threads,
                   std::vector<uint32_t>& ids) {
    assert(table.num_slots() > 0 && (ends.empty() ? text.empty() : ends.back() == text.size()));
    const size_t num_parts = std::max<size_t>(1, std::min(num_threads, text.size() / kMinThreadBytes));
    std::vector<Ids> parts(num_parts);
    const auto begin_of = [&](size_t i) { return i == 0 ? 0 : static_cast<size_t>(ends[i - 1]); };
    const auto weight = [&](size_t i) { return static_cast<size_t>(ends[i]) - begin_of(i); };
    parallel_parts(ends.size(), num_parts, weight, [&](size_t part, size_t first, size_t last) {
        const uint8_t* next = text.data() + (first == 0 ? 0 : ends[first - 1]);
        for (size_t i = first; i < last; ++i) {
            const uint8_t* const end = text.data() + ends[i];
            while (next < end) parts[part].push_back(table.longest(next, end));
        }
    });
    size_t size = ids.size();
    for (const Ids& part : parts) size += part.size();
    ids.reserve(size);
    for (const Ids& part : parts) ids.insert(ids.end(), part.begin(), part.end());
}

}  // namespace fastcompress::equal_info
