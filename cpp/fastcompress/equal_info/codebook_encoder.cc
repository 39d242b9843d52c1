#include "fastcompress/equal_info/codebook_encoder.h"

#include <algorithm>
#include <cassert>

#include "fastcompress/common/parallel.h"
#include "fastcompress/equal_info/greedy_parse.h"

namespace fastcompress::equal_info {
namespace {

// All nodes are strings, so the trie itself says everything, and no walk goes too far.
class ClosedStrings {
  public:
    explicit ClosedStrings(const TrieTable& table) : table_(table) {}
    const TrieTable& table() const { return table_; }
    uint32_t longest(const uint8_t*& next, const uint8_t* end) const { return table_.longest(next, end); }
    size_t length(uint32_t id) const { return table_.length(id); }
    uint32_t id_of_slot(uint32_t slot) const { return table_.node_of_slot(slot); }
    size_t excess_of_slot(uint32_t) const { return 0; }

  private:
    const TrieTable& table_;
};

}  // namespace

void encode(const TrieTable& table, Bytes text, size_t num_threads, std::vector<uint32_t>& ids) {
    assert(table.num_slots() > 0);
    parse_greedily(ClosedStrings(table), text, num_threads, ids);
}

void encode_within(const TrieTable& table, Bytes text, std::span<const uint64_t> ends, size_t num_threads,
                   std::vector<uint32_t>& ids) {
    assert(table.num_slots() > 0 && (ends.empty() ? text.empty() : ends.back() == text.size()));
    const size_t num_parts = std::max<size_t>(1, std::min(num_threads, text.size() / greedy_parse::kMinThreadBytes));
    std::vector<std::vector<uint32_t>> parts(num_parts);
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
    for (const auto& part : parts) size += part.size();
    ids.reserve(size);
    for (const auto& part : parts) ids.insert(ids.end(), part.begin(), part.end());
}

}  // namespace fastcompress::equal_info
