#include "fastcompress/arithmetic/codebook_trainer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <queue>

#include "fastcompress/common/huge_array.h"
#include "fastcompress/common/parallel.h"

namespace fastcompress::arithmetic {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 16;
constexpr size_t kNumLanes = 8;
constexpr size_t kMaxThreads = 8;  // each has a table of 64 MiB
constexpr size_t kGrowthSampleBytes = size_t{1} << 24;
// Values are sums over so many bytes of text at most: with at most 3 + 2 L |T[x] - T[x + 1]| for each token of L bytes, they
// fit 32 bits.
constexpr size_t kMaxSampleBytes = size_t{1} << 27;

// A part of a document, parsed alone: that costs less than a token a block.
struct Block {
    Bytes text;
    std::vector<uint64_t> ends;  // in the block, the last one its size; or empty
};

std::vector<Block> blocks_of(std::span<const Document> documents) {
    std::vector<Block> blocks;
    for (const Document& document : documents) {
        for (size_t begin = 0; begin < document.text.size(); begin += kBlockBytes) {
            const size_t size = std::min(kBlockBytes, document.text.size() - begin);
            Block block = {document.text.subspan(begin, size), {}};
            for (auto end = std::ranges::upper_bound(document.ends, uint64_t{begin}); end != document.ends.end();
                 ++end) {
                block.ends.push_back(std::min<uint64_t>(*end - begin, size));
                if (block.ends.back() == size) break;
            }
            blocks.push_back(std::move(block));
        }
    }
    return blocks;
}

// The strings while they change: a node comes after its parent, otherwise in the order they were added.
class Strings {
  public:
    Strings() {
        for (int byte = 0; byte < 256; ++byte) add(TrieTable::kRoot, static_cast<uint8_t>(byte));
    }
    explicit Strings(const std::vector<Codebook::Node>& nodes) {
        std::array<uint32_t, Codebook::kMaxLength + 1> last;
        for (uint32_t i = 0; i < nodes.size(); ++i) {
            add(nodes[i].length == 1 ? TrieTable::kRoot : last[nodes[i].length - 1u], nodes[i].byte);
            last[nodes[i].length] = i;
        }
    }
    void add(uint32_t parent, uint8_t byte) {
        const bool is_single = parent == TrieTable::kRoot;
        if (!is_single) ++num_children[parent];
        parents.push_back(parent);
        bytes.push_back(byte);
        lengths.push_back(static_cast<uint8_t>(is_single ? 1 : lengths[parent] + 1));
        num_children.push_back(0);
    }
    size_t size() const { return parents.size(); }

    // Without those marked; what extends one that is marked is marked, too.
    Strings without(const std::vector<bool>& dropped) const {
        Strings kept{std::vector<Codebook::Node>()};
        std::vector<uint32_t> new_id(size());
        for (uint32_t i = 0; i < size(); ++i) {
            if (dropped[i]) continue;
            new_id[i] = static_cast<uint32_t>(kept.size());
            kept.add(parents[i] == TrieTable::kRoot ? TrieTable::kRoot : new_id[parents[i]], bytes[i]);
        }
        return kept;
    }
    std::vector<Codebook::Node> in_preorder() const;

    std::vector<uint32_t> parents;
    std::vector<uint8_t> bytes;
    std::vector<uint8_t> lengths;
    std::vector<uint16_t> num_children;
};

std::vector<Codebook::Node> Strings::in_preorder() const {
    // Children by parent, the last byte first, so that a stack gives the first one first.
    std::vector<uint32_t> order(size());
    for (uint32_t i = 0; i < size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
        return parents[a] != parents[b] ? parents[a] < parents[b] : bytes[a] > bytes[b];
    });
    std::vector<uint32_t> begin(size() + 1);
    size_t at = 0;
    for (uint32_t parent = 0; parent < size(); ++parent) {
        begin[parent] = static_cast<uint32_t>(at);
        while (at < size() && parents[order[at]] == parent) ++at;
    }
    begin[size()] = static_cast<uint32_t>(at);
    std::vector<Codebook::Node> nodes;
    nodes.reserve(size());
    std::vector<uint32_t> stack(order.begin() + static_cast<ptrdiff_t>(at), order.end());
    while (!stack.empty()) {
        const uint32_t node = stack.back();
        stack.pop_back();
        nodes.push_back({lengths[node], bytes[node]});
        stack.insert(stack.end(), order.begin() + begin[node], order.begin() + begin[node + 1]);
    }
    return nodes;
}

// What a parse of the corpus says. Sums modulo 2^32, hence the same whoever adds what to them when.
struct Tally {
    explicit Tally(size_t num_strings) : gains(num_strings * 256), losses(num_strings) {}
    void add(const Tally& other) {
        num_bytes += other.num_bytes;
        num_tokens += other.num_tokens;
        for (size_t i = 0; i < losses.size(); ++i) losses[i] += other.losses[i];
        for (size_t i = 0; i < gains.size(); ++i) gains[i] += other.gains[i];
    }
    int32_t gain(size_t node, size_t byte) const { return static_cast<int32_t>(gains[node * 256 + byte]); }
    uint64_t num_bytes = 0;
    uint64_t num_tokens = 0;
    HugeArray<uint32_t> gains;     // at 256 i + b: of adding string i extended by byte b
    std::vector<uint32_t> losses;  // of dropping a string
};

// The longest string at each position of a text.
class LongestStrings {
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
    // Several walks side by side, as in codebook_encoder.cc; one that ends takes the next position. Returns up to where.
    size_t walk_in_lanes(Bytes text);

    const TrieTable& table_;
    std::vector<uint32_t> nodes_;
};

size_t LongestStrings::walk_in_lanes(Bytes text) {
    constexpr size_t kReadAhead = Codebook::kMaxLength + 2;
    if (text.size() < kReadAhead + kNumLanes) return 0;
    const size_t end = text.size() - kReadAhead;
    std::array<size_t, kNumLanes> begins;
    std::array<size_t, kNumLanes> nexts;
    std::array<TrieTable::State, kNumLanes> states;
    for (size_t k = 0; k < kNumLanes; ++k) {
        const TrieTable::Start start = table_.start_pair(text.data() + k);
        begins[k] = k;
        nexts[k] = k + 1 + start.takes_second;
        states[k] = start.state;
    }
    size_t position = kNumLanes;
    while (position < end) {
        for (size_t k = 0; k < kNumLanes; ++k) {
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
    for (size_t k = 0; k < kNumLanes; ++k) {
        for (; const TrieTable::State further = table_.step(states[k], text[nexts[k]]); ++nexts[k]) states[k] = further;
        nodes_[begins[k]] = TrieTable::slot(states[k]);
    }
    for (size_t i = 0; i < position; ++i) nodes_[i] = table_.node_of_slot(nodes_[i]);
    return position;
}

class BlockParser {
  public:
    // twice_length: of a token, in bytes, as far as is known.
    BlockParser(const TrieTable& table, uint32_t twice_length)
        : table_(table), twice_length_(twice_length), longest_(table), to_end_(kBlockBytes + 1) {}

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
    // Of a token's going on from here by one byte, in fifths.
    uint32_t value(size_t position) const { return 3 + twice_length_ * (to_end_[position] - to_end_[position + 1]); }
    const TrieTable& table_;
    const uint32_t twice_length_;
    LongestStrings longest_;
    std::vector<uint32_t> to_end_;  // T
};

std::unique_ptr<Tally> parse_corpus(const Strings& strings, std::span<const Block> blocks, size_t stride,
                                    uint32_t twice_length, size_t num_threads) {
    const TrieTable table(strings.parents, strings.bytes);
    const size_t num_blocks = (blocks.size() + stride - 1) / stride;
    const size_t num_parts = std::max<size_t>(1, std::min({num_threads, kMaxThreads, num_blocks}));
    std::vector<std::unique_ptr<Tally>> tallies(num_parts);
    std::atomic<size_t> next_block = 0;
    parallel_parts(
        num_parts, num_parts, [](size_t) { return size_t{1}; },
        [&](size_t, size_t first, size_t last) {
            for (size_t part = first; part < last; ++part) {
                tallies[part] = std::make_unique<Tally>(strings.size());
                BlockParser parser(table, twice_length);
                for (size_t i; (i = next_block.fetch_add(1)) < num_blocks;)
                    parser.parse(blocks[i * stride], *tallies[part]);
            }
        });
    for (size_t part = 1; part < num_parts; ++part) tallies[0]->add(*tallies[part]);
    return std::move(tallies[0]);
}

struct Extension {
    int32_t gain;
    uint32_t node;
    uint8_t byte;
    bool operator<(const Extension& other) const {  // the best first
        if (gain != other.gain) return gain > other.gain;
        return node != other.node ? node < other.node : byte < other.byte;
    }
};

// The kinds of bytes that words, numbers, white space and symbols are made of.
enum class Kind : uint8_t { kLetter, kDigit, kWhite, kSymbol };
Kind kind_of(uint8_t byte) {
    if (byte >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')) return Kind::kLetter;
    if (byte >= '0' && byte <= '9') return Kind::kDigit;
    return byte == ' ' || (byte >= 0x09 && byte <= 0x0d) ? Kind::kWhite : Kind::kSymbol;
}

bool stays_in_word(const Strings& strings, uint32_t node, uint8_t byte) {
    if (strings.lengths[node] == 1 && strings.bytes[node] == ' ') return true;
    return kind_of(strings.bytes[node]) == kind_of(byte);
}

// The `most` best extensions, the best first.
std::vector<Extension> best_extensions(const Strings& strings, const Tally& tally, size_t most, bool within_words) {
    std::vector<Extension> found;
    for (uint32_t node = 0; node < strings.size(); ++node) {
        if (strings.lengths[node] == Codebook::kMaxLength) continue;
        for (uint32_t byte = 0; byte < 256; ++byte) {
            const int32_t gain = tally.gain(node, byte);
            if (gain <= 0) continue;
            if (within_words && !stays_in_word(strings, node, static_cast<uint8_t>(byte))) continue;
            found.push_back({gain, node, static_cast<uint8_t>(byte)});
        }
    }
    if (found.size() > most) {
        std::nth_element(found.begin(), found.begin() + static_cast<ptrdiff_t>(most), found.end());
        found.resize(most);
    }
    std::ranges::sort(found, std::less<Extension>());
    return found;
}

// The strings that nothing extends, the least valuable first.
class Leaves {
  public:
    Leaves(const Strings& strings, const Tally& tally)
        : strings_(strings), num_children_(strings.num_children), dropped_(strings.size()) {
        for (const uint32_t loss : tally.losses) losses_.push_back(static_cast<int32_t>(loss));
        for (uint32_t i = 0; i < strings.size(); ++i) push(i);
    }
    // Of a string that will have an extension: not to be dropped.
    void protect(uint32_t node) { ++num_children_[node]; }
    bool is_dropped(uint32_t node) const { return dropped_[node]; }
    // Of dropping the next one; none if there is none.
    std::optional<int64_t> least_loss() {
        while (!heap_.empty() && num_children_[heap_.top().second] > 0) heap_.pop();
        if (heap_.empty()) return std::nullopt;
        return heap_.top().first;
    }
    // After least_loss(). The string one byte shorter takes over what this one was used for.
    void drop() {
        const uint32_t node = heap_.top().second;
        heap_.pop();
        dropped_[node] = true;
        const uint32_t parent = strings_.parents[node];
        losses_[parent] += losses_[node];
        --num_children_[parent];
        push(parent);
    }
    const std::vector<bool>& dropped() const { return dropped_; }

  private:
    using Entry = std::pair<int64_t, uint32_t>;
    void push(uint32_t node) {
        if (num_children_[node] == 0 && strings_.lengths[node] > 1) heap_.emplace(losses_[node], node);
    }
    const Strings& strings_;
    std::vector<int64_t> losses_;
    std::vector<uint16_t> num_children_;
    std::vector<bool> dropped_;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> heap_;
};

// At most `most` exchanges of strings for extensions that gain more.
Strings exchange(const Strings& strings, const Tally& tally, size_t most, bool within_words) {
    Leaves leaves(strings, tally);
    std::vector<Extension> added;
    for (const Extension& extension : best_extensions(strings, tally, most, within_words)) {
        if (leaves.is_dropped(extension.node)) continue;
        leaves.protect(extension.node);
        const auto loss = leaves.least_loss();
        if (!loss || *loss >= extension.gain) break;
        leaves.drop();
        added.push_back(extension);
    }
    Strings all = strings;
    std::vector<bool> dropped = leaves.dropped();
    for (const Extension& extension : added) all.add(extension.node, extension.byte);
    dropped.resize(all.size());
    return all.without(dropped);
}

// Extends single bytes, then what they became, by bytes in ascending order.
void fill(Strings& strings, size_t size, bool within_words) {
    if (strings.size() == size) return;
    std::vector<bool> is_there(size * 256);
    for (size_t i = 0; i < strings.size(); ++i) {
        if (strings.lengths[i] > 1) is_there[strings.parents[i] * size_t{256} + strings.bytes[i]] = true;
    }
    for (uint32_t node = 0; strings.size() < size; ++node) {
        for (uint32_t byte = 0; byte < 256 && strings.size() < size; ++byte) {
            if (is_there[size_t{node} * 256 + byte]) continue;
            if (within_words && !stays_in_word(strings, node, static_cast<uint8_t>(byte))) continue;
            strings.add(node, static_cast<uint8_t>(byte));
        }
    }
}

// The corpus, and how long its tokens were the last time.
class Corpus {
  public:
    Corpus(std::span<const Document> documents, size_t num_threads)
        : blocks_(blocks_of(documents)), num_threads_(num_threads) {
        for (const Block& block : blocks_) num_bytes_ += block.text.size();
    }
    // A parse of at most so many bytes, or not much more.
    std::unique_ptr<Tally> parse(const Strings& strings, size_t most_bytes) {
        const size_t stride = std::max<size_t>(1, (num_bytes_ + most_bytes - 1) / most_bytes);
        auto tally = parse_corpus(strings, blocks_, stride, twice_length_, num_threads_);
        if (tally->num_tokens > 0) twice_length_ = static_cast<uint32_t>(2 * tally->num_bytes / tally->num_tokens);
        return tally;
    }

  private:
    std::vector<Block> blocks_;
    size_t num_bytes_ = 0;
    size_t num_threads_;
    uint32_t twice_length_ = 2;
};

}  // namespace

Result<std::vector<Codebook::Node>> train_codebook(std::span<const Document> documents, const TrainerSettings& settings,
                                                   const std::vector<Codebook::Node>& start) {
    if (settings.bits < Codebook::kMinBits || settings.bits > Codebook::kMaxBits) {
        return invalid_argument("a codebook has 9 to 16 bits, not " + std::to_string(settings.bits));
    }
    const size_t size = Codebook::num_strings(settings.bits);
    if (!start.empty() && start.size() != size) {
        return invalid_argument("a codebook to start from has as many bits as the one to be trained");
    }
    Corpus corpus(documents, settings.num_threads);
    Strings strings = start.empty() ? Strings() : Strings(start);
    while (strings.size() < size) {
        const auto tally = corpus.parse(strings, kGrowthSampleBytes);
        const size_t most = std::min(size, strings.size() * 2) - strings.size();
        const auto extensions = best_extensions(strings, *tally, most, settings.within_words);
        if (extensions.empty()) break;
        for (const Extension& extension : extensions) strings.add(extension.node, extension.byte);
    }
    fill(strings, size, settings.within_words);

    Strings best = strings;
    uint64_t fewest = UINT64_MAX;
    for (uint32_t round = 0; round <= settings.rounds; ++round) {
        const auto tally = corpus.parse(strings, kMaxSampleBytes);
        if (tally->num_tokens < fewest) {
            fewest = tally->num_tokens;
            best = strings;
        }
        if (round == settings.rounds) break;
        const size_t most = size / 4 * (settings.rounds - round) / settings.rounds;
        strings = exchange(strings, *tally, most, settings.within_words);
    }
    return best.in_preorder();
}

}  // namespace fastcompress::arithmetic
