#include "fastcompress/greedy_dictionary/trainer.h"

#include <algorithm>
#include <map>
#include <set>

#include "fastcompress/equal_info/words.h"
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

// The number of tokens of a string without itself in the dictionary, less one.
uint64_t saved_tokens(const Dictionary& dictionary, uint32_t id) {
    const Bytes text = dictionary.string(id);
    const uint8_t* next = text.data();
    const uint8_t* const end = next + text.size();
    dictionary.longest(next, end - 1);
    uint64_t num_more = 0;
    for (; next < end; ++num_more) dictionary.longest(next, end);
    return num_more;
}

// Drops the strings that save least, until `size` are left; of those that save the same the longest, then the first.
Strings without_least(const Dictionary& dictionary, const TokenCounts& counts, size_t size) {
    struct Loss {
        uint64_t tokens;
        uint32_t id;
    };
    std::vector<Loss> losses;
    Strings kept;
    for (uint32_t id = 0; id < dictionary.size(); ++id) {
        if (dictionary.length(id) == 1) {
            kept.push_back(to_string(dictionary.string(id)));
        } else {
            losses.push_back({counts.tokens[id] * saved_tokens(dictionary, id), id});
        }
    }
    std::ranges::sort(losses, [&](const Loss& a, const Loss& b) {
        if (a.tokens != b.tokens) return a.tokens > b.tokens;
        if (dictionary.length(a.id) != dictionary.length(b.id))
            return dictionary.length(a.id) < dictionary.length(b.id);
        return a.id < b.id;
    });
    losses.resize(std::min(losses.size(), size - kept.size()));
    for (const Loss& loss : losses) kept.push_back(to_string(dictionary.string(loss.id)));
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
            const Strings added = best_joined(*dictionary, count(*dictionary, true).pairs, most);
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
            const TokenCounts counts = count(*dictionary, true);
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
            strings = without_least(*all, count(*all, false), settings_.size);
        }
        strings = std::move(best);
        return {};
    }

  private:
    TokenCounts count(const Dictionary& dictionary, bool with_pairs) const {
        return count_tokens(dictionary, texts_, with_pairs, settings_.within_words, settings_.num_threads);
    }

    const TrainerSettings settings_;
    const std::vector<Bytes> texts_;
};

Status check(const TrainerSettings& settings, const Strings& start) {
    if (settings.size < Dictionary::kMinStrings || settings.size > Dictionary::kMaxStrings) {
        return invalid_argument("size is " + std::to_string(settings.size) + "; it must be 256 to 65536");
    }
    for (size_t i = 0; i < start.size(); ++i) {
        if (settings.within_words && !equal_info::words::keeps_to_words(as_bytes(start[i]))) {
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
