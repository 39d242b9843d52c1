#include "fastcompress/equal_info/string_values.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "fastcompress/common/parallel.h"

namespace fastcompress::equal_info {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 16;
constexpr size_t kNumStringLanes = 8;
constexpr size_t kMaxThreads = 8;  // each thread has a table of 64 MiB

}  // namespace

TrainingCorpus::TrainingCorpus(std::span<const Document> documents, size_t num_threads) : num_threads_(num_threads) {
    for (const Document& document : documents) {
        num_bytes_ += document.text.size();
        for (size_t begin = 0; begin < document.text.size(); begin += kBlockBytes) {
            const size_t size = std::min(kBlockBytes, document.text.size() - begin);
            Block block = {document.text.subspan(begin, size), {}};
            for (auto end = std::ranges::upper_bound(document.ends, uint64_t{begin}); end != document.ends.end();
                 ++end) {
                block.ends.push_back(std::min<uint64_t>(*end - begin, size));
                if (block.ends.back() == size) break;
            }
            blocks_.push_back(std::move(block));
        }
    }
}

// The longest string at each position of a block.
class TrainingCorpus::LongestStrings {
  public:
    explicit LongestStrings(const TrieTable& table) : table_(table), nodes_(kBlockBytes) {}
    uint32_t operator[](size_t position) const { return nodes_[position]; }

    void find(const Block& block) {
        size_t begin = 0;
        if (block.ends.empty()) begin = walk_in_lanes(block.text);
        if (block.ends.empty()) walk(block.text, begin, block.text.size());
        for (const uint64_t end : block.ends) {
            walk(block.text, begin, end);
            begin = end;
        }
    }

  private:
    void walk(Bytes text, size_t begin, size_t end) {
        for (; begin < end; ++begin) {
            const uint8_t* next = text.data() + begin;
            nodes_[begin] = table_.longest(next, text.data() + end);
        }
    }
    // Several walks side by side, as in codebook_encoder.cc; one that ends takes the next position. Returns the end
    // of the positions done.
    size_t walk_in_lanes(Bytes text);

    const TrieTable& table_;
    std::vector<uint32_t> nodes_;
};

size_t TrainingCorpus::LongestStrings::walk_in_lanes(Bytes text) {
    constexpr size_t kReadAhead = TrieTable::kMaxLength + 2;
    if (text.size() < kReadAhead + kNumStringLanes) return 0;
    const size_t end = text.size() - kReadAhead;
    std::array<size_t, kNumStringLanes> begins;
    std::array<size_t, kNumStringLanes> nexts;
    std::array<TrieTable::State, kNumStringLanes> states;
    for (size_t k = 0; k < kNumStringLanes; ++k) {
        const TrieTable::Start start = table_.start_pair(text.data() + k);
        begins[k] = k;
        nexts[k] = k + 1 + start.takes_second;
        states[k] = start.state;
    }
    size_t position = kNumStringLanes;
    while (position < end) {
        for (size_t k = 0; k < kNumStringLanes; ++k) {
            nodes_[begins[k]] = TrieTable::slot(states[k]);
            size_t takes_second;
            const uint64_t goes_on =
                table_.step_or_start(states[k], text[nexts[k]], text.data() + position, takes_second);
            const size_t after = position + takes_second;
            nexts[k] = (after ^ ((after ^ nexts[k]) & goes_on)) + 1;
            begins[k] = position ^ ((position ^ begins[k]) & goes_on);
            position += 1 + goes_on;
        }
    }
    for (size_t k = 0; k < kNumStringLanes; ++k) {
        for (; const TrieTable::State further = table_.step(states[k], text[nexts[k]]); ++nexts[k]) states[k] = further;
        nodes_[begins[k]] = TrieTable::slot(states[k]);
    }
    for (size_t i = 0; i < position; ++i) nodes_[i] = table_.node_of_slot(nodes_[i]);
    return position;
}

class TrainingCorpus::BlockParser {
  public:
    // A byte is worth `byte_value`, a token `token_value`.
    BlockParser(const TrieTable& table, uint32_t byte_value, uint32_t token_value)
        : table_(table),
          byte_value_(byte_value),
          token_value_(token_value),
          longest_(table),
          to_end_(kBlockBytes + 1) {}

    void parse(const Block& block, Tally& tally) {
        const size_t size = block.text.size();
        longest_.find(block);
        to_end_[size] = 0;
        for (size_t i = size; i-- > 0;) to_end_[i] = 1 + to_end_[i + table_.length(longest_[i])];
        tally.num_bytes += size;
        tally.num_tokens += to_end_[0];
        size_t end = 0;
        size_t piece = 0;
        for (;;) {
            const uint32_t node = longest_[end];
            end += table_.length(node);
            tally.losses[node] += value(end - 1);
            if (end == size) return;
            if (!block.ends.empty()) {
                while (block.ends[piece] < end) ++piece;
                if (block.ends[piece] == end) continue;
            }
            tally.gains[size_t{node} * 256 + block.text[end]] += value(end);
        }
    }

  private:
    // The value of extending the token that ends here by one byte.
    uint32_t value(size_t position) const {
        return byte_value_ + token_value_ * (to_end_[position] - to_end_[position + 1]);
    }
    const TrieTable& table_;
    const uint32_t byte_value_;
    const uint32_t token_value_;
    LongestStrings longest_;
    std::vector<uint32_t> to_end_;  // T
};

std::unique_ptr<Tally> TrainingCorpus::parse(std::span<const uint32_t> parents, std::span<const uint8_t> bytes,
                                             size_t most_bytes, uint32_t saving) {
    const TrieTable table(parents, bytes);
    const size_t stride = std::max<size_t>(1, (num_bytes_ + most_bytes - 1) / most_bytes);
    const size_t num_blocks = (blocks_.size() + stride - 1) / stride;
    const size_t num_parts = std::max<size_t>(1, std::min({num_threads_, kMaxThreads, num_blocks}));
    std::vector<std::unique_ptr<Tally>> tallies(num_parts);
    std::atomic<size_t> next_block = 0;
    const auto parse_some = [&](size_t, size_t first, size_t last) {
        for (size_t part = first; part < last; ++part) {
            tallies[part] = std::make_unique<Tally>(parents.size());
            BlockParser parser(table, kShares - saving, saving * twice_length_ / 2);
            for (size_t i; (i = next_block.fetch_add(1)) < num_blocks;)
                parser.parse(blocks_[i * stride], *tallies[part]);
        }
    };
    parallel_parts(
        num_parts, num_parts, [](size_t) { return size_t{1}; }, parse_some);
    for (size_t part = 1; part < num_parts; ++part) tallies[0]->add(*tallies[part]);
    const Tally& all = *tallies[0];
    if (all.num_tokens > 0) twice_length_ = static_cast<uint32_t>(2 * all.num_bytes / all.num_tokens);
    return std::move(tallies[0]);
}

}  // namespace fastcompress::equal_info
