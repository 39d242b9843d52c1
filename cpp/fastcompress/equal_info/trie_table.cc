#include "fastcompress/equal_info/trie_table.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace fastcompress::equal_info {
namespace {

// The nodes by parent: those of parent p, or of the root at p = number of nodes, are order[begin[p] .. begin[p + 1]).
struct Families {
    std::vector<uint32_t> begin;
    std::vector<uint32_t> order;

    explicit Families(std::span<const uint32_t> parents) : begin(parents.size() + 2), order(parents.size()) {
        const auto family = [&](uint32_t parent) { return std::min<size_t>(parent, parents.size()); };
        for (const uint32_t parent : parents) ++begin[family(parent) + 1];
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
        for (size_t i = 0; i < parents.size(); ++i) order[next[family(parents[i])]++] = static_cast<uint32_t>(i);
    }
    std::span<const uint32_t> of(size_t parent) const {
        return {order.data() + begin[parent], begin[parent + 1] - begin[parent]};
    }
};

// The slots and bases that are taken, 64 per word.
class Occupancy {
  public:
    // Finds an unused base from which all the bytes fall on free slots. The search begins at most kBacklog
    // words before the place where the last one ended: holes further back did not fit families of this size, and rarely
    // fit the next one.
    uint32_t find(std::span<const uint8_t> bytes) {
        for (size_t word = first_word_;; ++word) {
            grow(word);
            uint64_t taken = bases_[word];
            for (const uint8_t byte : bytes) {
                const size_t bit = byte % 64;
                const size_t at = word + byte / 64;
                taken |= slots_[at] >> bit | (bit == 0 ? 0 : slots_[at + 1] << (64 - bit));
            }
            if (~taken == 0) continue;
            first_word_ = std::max(first_word_, word - std::min(word, kBacklog));
            return static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_one(taken)));
        }
    }
    // Called before smaller families, which fit where larger ones did not.
    void start_over() { first_word_ = kFirstWord; }
    void take(uint32_t base, std::span<const uint8_t> bytes) {
        grow(base / 64);
        bases_[base / 64] |= uint64_t{1} << base % 64;
        for (const uint8_t byte : bytes) slots_[(base + byte) / 64] |= uint64_t{1} << (base + byte) % 64;
    }
    size_t num_slots() const { return slots_.size() * 64; }

  private:
    static constexpr size_t kFirstWord = 4;
    static constexpr size_t kBacklog = 16;

    void grow(size_t word) {
        if (slots_.size() < word + 6) {
            slots_.resize(word + 6);
            bases_.resize(word + 6);
        }
    }
    std::vector<uint64_t> slots_;
    std::vector<uint64_t> bases_;
    size_t first_word_ = kFirstWord;
};

}  // namespace

TrieTable::TrieTable(std::span<const uint32_t> parents, std::span<const uint8_t> bytes) {
    lengths_.resize(parents.size());
    for (size_t i = 0; i < parents.size(); ++i) {
        lengths_[i] = static_cast<uint8_t>(parents[i] == kRoot ? 1 : lengths_[parents[i]] + 1);
    }
    place(parents, bytes);
    fill_pairs();
}

// Places the largest families first, which leaves the holes to the many families of one member.
void TrieTable::place(std::span<const uint32_t> parents, std::span<const uint8_t> bytes) {
    const Families families(parents);
    std::vector<uint32_t> base_of(parents.size());
    std::vector<uint32_t> by_size[257];
    for (uint32_t i = 0; i < parents.size(); ++i) by_size[families.of(i).size()].push_back(i);

    Occupancy occupancy;
    std::vector<uint8_t> labels(256);
    std::iota(labels.begin(), labels.end(), uint8_t{0});
    occupancy.take(kRootBase, labels);
    for (size_t size = 256; size > 0; --size) {
        labels.resize(size);
        occupancy.start_over();
        for (const uint32_t node : by_size[size]) {
            const auto children = families.of(node);
            for (size_t k = 0; k < size; ++k) labels[k] = bytes[children[k]];
            base_of[node] = occupancy.find(labels);
            occupancy.take(base_of[node], labels);
        }
    }
    slots_.assign(occupancy.num_slots() + 256, kEmpty);
    nodes_.assign(slots_.size(), 0);
    for (uint32_t i = 0; i < parents.size(); ++i) {
        const uint32_t slot = (parents[i] == kRoot ? kRootBase : base_of[parents[i]]) + bytes[i];
        slots_[slot] = base_of[i] << kBaseShift | bytes[i];
        nodes_[slot] = i;
    }
}

void TrieTable::fill_pairs() {
    pairs_.resize(65536);
    for (uint32_t first = 0; first < 256; ++first) {
        const uint32_t slot = kRootBase + first;
        const uint32_t base = slots_[slot] >> kBaseShift;
        for (uint32_t second = 0; second < 256; ++second) {
            const bool has_both = (slots_[base + second] & kLabelMask) == second;
            pairs_[first << 8 | second] = has_both ? state_of(base + second) | kTakesSecond : slot;
        }
    }
}

}  // namespace fastcompress::equal_info
