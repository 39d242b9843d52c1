#include "fastcompress/greedy_dictionary/trainer.h"

#include <algorithm>
#include <map>
#include <set>

#include "fastcompress/common/words.h"
#include "fastcompress/greedy_dictionary/dictionary.h"
#include "fastcompress/greedy_dictionary/token_counts.h"

namespace fastcompress::greedy_dictionary {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 16;
constexpr size_t kMaxSampleBytes = size_t{1} << 27;
// The share of the strings that the first round may exchange.
constexpr size_t kFirstShare = 4;

using Strings = std::vector<std::string>;

std::string to_string(Bytes text) {
    return std::string(as_chars(text));
}

// The blocks of the documents that are used. Parsed alone, a block costs less than one token.
std::vector<Bytes> sample(std::span<const Bytes> documents) {
    std::vector<Bytes> blocks;
    size_t num_bytes = 0;
    for (const Bytes text : documents) {
        num_bytes += text.size();
        for (size_t begin = 0; begin < text.size(); begin += kBlockBytes) {
            blocks.push_back(text.subspan(begin, std::min(kBlockBytes, text.size() - begin)));
        }
    }
    const size_t stride = std::max<size_t>(1, (num_bytes + kMaxSampleBytes - 1) / kMaxSampleBytes);
    std::vector<Bytes> used;
    for (size_t i = 0; i < blocks.size(); i += stride) used.push_back(blocks[i]);
    return used;
}

// The `most` strings that join the most frequent pairs, and are not in the dictionary; of equally frequent ones the
// first.
Strings best_joined(const Dictionary& dictionary, const PairCounts& pairs, size_t most) {
    std::map<std::string, uint64_t> joined;
    pairs.for_each([&](uint64_t key, uint64_t count) {
        if (count < 2) return;
        const auto first = static_cast<uint32_t>(key >> 32);
        const auto second = static_cast<uint32_t>(key);
        joined[to_string(dictionary.string(first)) + to_string(dictionary.string(second))] += count;
    });
    for (uint32_t id = 0; id < dictionary.size(); ++id) joined.erase(to_string(dictionary.string(id)));
    std::vector<std::pair<uint64_t, const std::string*>> order;
    for (const auto& [text, count] : joined) order.emplace_back(count, &text);
    std::ranges::stable_sort(order, std::greater<>(), [](const auto& item) { return item.first; });
    Strings best;
    for (size_t i = 0; i < std::min(most, order.size()); ++i) best.push_back(*order[i].second);
    return best;
}

// Drops the strings that save least, until `size` are left; of those that save the same the longest, then the last.
Strings without_least(const Dictionary& dictionary, const std::vector<int64_t>& saved, size_t size) {
    std::vector<uint32_t> longer;
    Strings kept;
    for (uint32_t id = 0; id < dictionary.size(); ++id) {
        if (dictionary.length(id) == 1) {
            kept.push_back(to_string(dictionary.string(id)));
        } else {
            longer.push_back(id);
        }
    }
    std::ranges::sort(longer, [&](uint32_t a, uint32_t b) {
        if (saved[a] != saved[b]) return saved[a] > saved[b];
        if (dictionary.length(a) != dictionary.length(b)) return dictionary.length(a) < dictionary.length(b);
        return a < b;
    });
    longer.resize(std::min(longer.size(), size - kept.size()));
    for (const uint32_t id : longer) kept.push_back(to_string(dictionary.string(id)));
    return kept;
}

class Trainer {
  public:
    Trainer(std::span<const Bytes> documents, const TrainerSettings& settings)
        : settings_(settings), texts_(sample(documents)) {}

    // Adds strings until there are as many as wanted.
    Status grow(Strings& strings) const {
        while (strings.size() < settings_.size) {
            const Result<Dictionary> dictionary = Dictionary::from_strings(strings);
            if (!dictionary.ok()) return dictionary.status();
            const size_t most = std::min(strings.size() / 2, settings_.size - strings.size());
            const Strings added = best_joined(*dictionary, count(*dictionary).pairs, most);
            if (added.empty()) {
                return invalid_data("the text given supports only " + std::to_string(strings.size()) +
                                    " strings, not " + std::to_string(settings_.size) +
                                    "; lower size or train on more text");
            }
            strings.insert(strings.end(), added.begin(), added.end());
        }
        return {};
    }

    // Exchanges strings in rounds; leaves the best set.
    Status exchange(Strings& strings) const {
        Strings best;
        uint64_t fewest = UINT64_MAX;
        for (uint32_t round = 0; round <= settings_.num_rounds; ++round) {
            const Result<Dictionary> dictionary = Dictionary::from_strings(strings);
            if (!dictionary.ok()) return dictionary.status();
            const TokenCounts counts = count(*dictionary);
            if (counts.num_tokens < fewest) {
                fewest = counts.num_tokens;
                best = strings;
            }
            if (round == settings_.num_rounds) break;
            const size_t share = settings_.size / kFirstShare * (settings_.num_rounds - round) / settings_.num_rounds;
            const Strings added =
                best_joined(*dictionary, counts.pairs, std::min(share, Dictionary::kMaxStrings - strings.size()));
            if (added.empty()) break;
            strings.insert(strings.end(), added.begin(), added.end());
            const Result<Dictionary> all = Dictionary::from_strings(strings);
            if (!all.ok()) return all.status();
            strings = without_least(*all, saved_tokens(*all, texts_, settings_.num_threads), settings_.size);
        }
        strings = std::move(best);
        return {};
    }

  private:
    TokenCounts count(const Dictionary& dictionary) const {
        return count_tokens(dictionary, texts_, settings_.within_words, settings_.num_threads);
    }

    const TrainerSettings settings_;
    const std::vector<Bytes> texts_;
};

Status check(const TrainerSettings& settings, const Strings& start) {
    if (settings.size < Dictionary::kMinStrings || settings.size > Dictionary::kMaxStrings) {
        return invalid_argument("size is " + std::to_string(settings.size) + "; it must be 256 to 65536");
    }
    for (size_t i = 0; i < start.size(); ++i) {
        if (settings.within_words && !words::keeps_to_words(as_bytes(start[i]))) {
            return invalid_argument("start[" + std::to_string(i) +
                                    "] does not keep to one word; leave it out, or set within_words to false");
        }
    }
    return {};
}

}  // namespace

Result<Strings> train_dictionary(std::span<const Bytes> documents, const TrainerSettings& settings, Strings start) {
    if (Status status = check(settings, start); !status.ok()) return status;
    std::set<std::string> all(start.begin(), start.end());
    for (int byte = 0; byte < 256; ++byte) all.insert(std::string(1, static_cast<char>(byte)));
    if (all.size() > settings.size) {
        return invalid_argument("start has " + std::to_string(all.size()) +
                                " strings with the single bytes; size must be at least that");
    }
    Strings strings(all.begin(), all.end());
    const Trainer trainer(documents, settings);
    if (Status status = trainer.grow(strings); !status.ok()) return status;
    if (Status status = trainer.exchange(strings); !status.ok()) return status;
    std::ranges::sort(strings, [](const std::string& a, const std::string& b) {
        return std::ranges::lexicographical_compare(as_bytes(a), as_bytes(b));
    });
    return strings;
}

}  // namespace fastcompress::greedy_dictionary
