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
    uint32_t last = 0;  // the largest distance so far
    uint32_t size = 0;
    bool may_begin = false;
};

// All groups, in a hash table. Distances must be visited in ascending order.
class Groups {
  public:
    // `window_end` is the end of the history, which `num_distances` bytes precede.
    Groups(const Gram& gram, const uint8_t* window_end, uint32_t num_distances)
        : gram_(gram),
          window_end_(window_end),
          bits_(std::bit_width(num_distances)),
          slots_(size_t{1} << bits_),
          nearer_(size_t{num_distances} + 1) {}

    // Returns the group of a distance, which is empty if the distance is the first one in it.
    Group& find(uint32_t distance) {
        const uint8_t* const source = window_end_ - distance;
        size_t slot = gram_.hash(source, bits_);
        while (slots_[slot] != 0 && !gram_.equal(window_end_ - groups_[slots_[slot] - 1].nearest, source)) {
            slot = (slot + 1) & (slots_.size() - 1);
        }
        if (slots_[slot] == 0) {
            groups_.push_back({distance});
            slots_[slot] = static_cast<uint32_t>(groups_.size());
        }
        return groups_[slots_[slot] - 1];
    }
    // Adds a distance to its group.
    void add(Group& group, uint32_t distance) {
        nearer_[distance] = std::exchange(group.last, distance);
        ++group.size;
    }
    // The distance in the same group before this one; 0 if it is the first.
    uint32_t nearer(uint32_t distance) const { return nearer_[distance]; }

  private:
    const Gram& gram_;
    const uint8_t* window_end_;
    int bits_;
    std::vector<uint32_t> slots_;  // by hash: the index of a group plus one; 0: empty
    std::vector<Group> groups_;
    std::vector<uint32_t> nearer_;
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
    Groups groups(history_.gram(), window_end, most);
    for (uint32_t distance = first + 1; distance <= most; ++distance) {
        const uint8_t* const source = window_end - distance;
        if (continuing[*source]) continue;  // the same holds for its whole group, which shares the byte
        const Continuation text(history_, distance);
        Group& group = groups.find(distance);
        if (group.size == 0) group.may_begin = may_begin(text, continuing);
        uint32_t num_nearer = group.size;
        groups.add(group, distance);
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
        for (uint32_t other = groups.nearer(distance); other != 0 && !is_hidden; other = groups.nearer(other)) {
            is_hidden = is_as_long(other);
        }
        if (!is_hidden) legal.push_back(distance);
    }
    return legal;
}

}  // namespace fastcompress::lz77
