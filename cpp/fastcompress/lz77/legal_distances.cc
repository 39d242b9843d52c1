// Finds all legal distances at once. Distances are visited nearest first and grouped by the min_length bytes at their
// source: may_begin() has the same result for all of a group, and the number of nearer candidates is the size of the
// group so far.
#include <algorithm>
#include <bit>
#include <utility>

#include "fastcompress/lz77/continuation.h"

namespace fastcompress::lz77 {
namespace {

// The distances visited so far whose sources begin with the same min_length bytes.
struct Group {
    uint32_t nearest;
    uint32_t last;  // the last distance; `nearer` links each distance to the one before it
    uint32_t size;
    bool may_begin;
};

}  // namespace

std::vector<uint32_t> IncrementalParser::legal_distances() const {
    const size_t end = history_.size();
    const auto most = static_cast<uint32_t>(std::min<size_t>(end, params_.window));
    const uint32_t min_length = params_.min_length;
    const std::array<bool, 256> continuing = continuing_bytes();
    std::vector<uint32_t> legal;
    // Matches of a distance below min_length copy bytes that they have written, so these are checked one by one.
    const uint32_t first = std::min(most, min_length - 1);
    for (uint32_t distance = 1; distance <= first; ++distance) {
        if (!legal_lengths(distance, continuing).is_empty()) legal.push_back(distance);
    }
    std::vector<uint8_t> window(most);
    history_.copy(end - most, most, window.data());
    const uint8_t* const window_end = window.data() + most;
    const int bits = std::bit_width(most);
    std::vector<uint32_t> slots(size_t{1} << bits);  // by hash: the index of a group plus one; 0: empty
    std::vector<Group> groups;
    std::vector<uint32_t> nearer(size_t{most} + 1);
    const Gram& gram = history_.gram();
    for (uint32_t distance = first + 1; distance <= most; ++distance) {
        const uint8_t* const source = window_end - distance;
        if (continuing[*source]) continue;  // the same holds for its whole group, which shares the byte
        size_t slot = gram.hash(source, bits);
        while (slots[slot] != 0 && !gram.equal(window_end - groups[slots[slot] - 1].nearest, source)) {
            slot = (slot + 1) & (slots.size() - 1);
        }
        const Continuation text(history_, distance);
        if (slots[slot] == 0) {
            groups.push_back({distance, 0, 0, may_begin(text, continuing)});
            slots[slot] = static_cast<uint32_t>(groups.size());
        }
        Group& group = groups[slots[slot] - 1];
        nearer[distance] = std::exchange(group.last, distance);
        uint32_t num_nearer = group.size++;
        if (!group.may_begin) continue;
        // Whether a nearer candidate has the maximal length, or agrees forever.
        const auto is_as_long = [&](uint32_t other) {
            const size_t limit = std::min<size_t>(params_.max_length, size_t{distance} + other);
            // The last byte is compared first: it differs most often.
            return text[end - other + limit - 1] == text[end + limit - 1] &&
                   text.agreement(end - other, end, limit) == limit;
        };
        bool is_hidden = false;
        for (uint32_t other = 1; other <= first && !is_hidden; ++other) {
            if (window_end[-static_cast<std::ptrdiff_t>(other)] != *source) continue;
            if (text.agreement(end - other, end, min_length) < min_length) continue;
            ++num_nearer;
            is_hidden = is_as_long(other);
        }
        is_hidden |= num_nearer >= params_.depth;
        for (uint32_t other = nearer[distance]; other != 0 && !is_hidden; other = nearer[other]) {
            is_hidden = is_as_long(other);
        }
        if (!is_hidden) legal.push_back(distance);
    }
    return legal;
}

}  // namespace fastcompress::lz77
