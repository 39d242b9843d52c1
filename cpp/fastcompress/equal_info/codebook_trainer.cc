#include "fastcompress/equal_info/codebook_trainer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <queue>

#include "fastcompress/common/words.h"

namespace fastcompress::equal_info {
namespace {

constexpr size_t kGrowthSampleBytes = size_t{1} << 24;
// The part of a string's value, out of kShares, that is for saved tokens: in the first and in the last round.
constexpr uint32_t kFirstSaving = 4;
constexpr uint32_t kLastSaving = 16;

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

    // Removes the marked strings. Extensions of a marked string are marked, too.
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

struct Extension {
    int32_t gain;
    uint32_t node;
    uint8_t byte;
    bool operator<(const Extension& other) const {  // best first
        if (gain != other.gain) return gain > other.gain;
        return node != other.node ? node < other.node : byte < other.byte;
    }
};

bool stays_in_word(const Strings& strings, uint32_t node, uint8_t byte) {
    return words::may_follow(strings.bytes[node], strings.lengths[node] == 1, byte);
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
    // Keeps a string that will have an extension from being dropped.
    void protect(uint32_t node) { ++num_children_[node]; }
    bool is_dropped(uint32_t node) const { return dropped_[node]; }
    // Returns the loss of dropping the next string, or nothing if none is left.
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

}  // namespace

Result<std::vector<Codebook::Node>> train_codebook(std::span<const Document> documents, const TrainerSettings& settings,
                                                   const std::vector<Codebook::Node>& start) {
    if (settings.bits < Codebook::kMinBits || settings.bits > Codebook::kMaxBits) {
        return invalid_argument("bits is " + std::to_string(settings.bits) + "; it must be 9 to 16");
    }
    const size_t size = Codebook::num_strings(settings.bits);
    if (!start.empty() && start.size() != size) {
        return invalid_argument("the codebook to start from must have as many bits as the one to train");
    }
    TrainingCorpus corpus(documents, settings.num_threads);
    Strings strings = start.empty() ? Strings() : Strings(start);
    while (strings.size() < size) {
        const auto tally = corpus.parse(strings.parents, strings.bytes, kGrowthSampleBytes, kFirstSaving);
        const size_t most = std::min(size, strings.size() * 2) - strings.size();
        const auto extensions = best_extensions(strings, *tally, most, settings.within_words);
        if (extensions.empty()) break;
        for (const Extension& extension : extensions) strings.add(extension.node, extension.byte);
    }
    fill(strings, size, settings.within_words);

    Strings best = strings;
    uint64_t fewest = UINT64_MAX;
    for (uint32_t round = 0; round <= settings.num_rounds; ++round) {
        const uint32_t saving = kFirstSaving + (kLastSaving - kFirstSaving) * round / std::max(1u, settings.num_rounds);
        const auto tally = corpus.parse(strings.parents, strings.bytes, TrainingCorpus::kMaxSampleBytes, saving);
        if (tally->num_tokens < fewest) {
            fewest = tally->num_tokens;
            best = strings;
        }
        if (round == settings.num_rounds) break;
        const size_t most = size / 4 * (settings.num_rounds - round) / settings.num_rounds;
        strings = exchange(strings, *tally, most, settings.within_words);
    }
    return best.in_preorder();
}

}  // namespace fastcompress::equal_info
