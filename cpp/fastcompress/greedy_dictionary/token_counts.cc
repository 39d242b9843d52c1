#include "fastcompress/greedy_dictionary/token_counts.h"

#include <algorithm>

#include "fastcompress/common/parallel.h"
#include "fastcompress/equal_info/words.h"

namespace fastcompress::greedy_dictionary {
namespace {

namespace words = equal_info::words;

// What decides whether two strings that keep to words do so when joined.
class Joints {
  public:
    explicit Joints(const Dictionary& dictionary) : dictionary_(dictionary) {
        for (uint32_t id = 0; id < dictionary.size(); ++id) {
            const Bytes text = dictionary.string(id);
            last_.push_back(words::kind_of(text.back()));
            is_space_.push_back(text.size() == 1 && text[0] == ' ');
            is_after_space_.push_back(text[0] == ' ' && last_.back() != words::Kind::kWhite);
        }
    }
    bool keep_to_words(uint32_t first, uint32_t second) const {
        return !is_after_space_[second] && (is_space_[first] || last_[first] == last_[second]);
    }
    bool fit(uint32_t first, uint32_t second) const {
        return dictionary_.length(first) + dictionary_.length(second) <= Dictionary::kMaxLength;
    }

  private:
    const Dictionary& dictionary_;
    std::vector<words::Kind> last_;
    std::vector<uint8_t> is_space_;        // a single space, which anything may follow
    std::vector<uint8_t> is_after_space_;  // a space and other bytes, before which nothing may stand
};

}  // namespace

TokenCounts count_tokens(const Dictionary& dictionary, std::span<const Bytes> texts, bool with_pairs, bool within_words,
                         size_t num_threads) {
    const Joints joints(dictionary);
    const size_t num_parts = std::max<size_t>(1, std::min(num_threads, texts.size()));
    std::vector<TokenCounts> parts(num_parts);
    const auto weight = [&](size_t i) { return texts[i].size() + 1; };
    parallel_parts(texts.size(), num_parts, weight, [&](size_t part, size_t begin, size_t end) {
        TokenCounts& counts = parts[part];
        counts.tokens.resize(dictionary.size());
        std::vector<uint32_t> ids;
        for (size_t t = begin; t < end; ++t) {
            ids.clear();
            dictionary.encode(texts[t], 1, ids);
            counts.num_tokens += ids.size();
            for (const uint32_t id : ids) ++counts.tokens[id];
            for (size_t i = 1; with_pairs && i < ids.size(); ++i) {
                const uint32_t first = ids[i - 1];
                const uint32_t second = ids[i];
                if (!joints.fit(first, second)) continue;
                if (within_words && !joints.keep_to_words(first, second)) continue;
                counts.pairs.add(uint64_t{first} << 32 | second, 1);
            }
        }
    });
    parts[0].tokens.resize(dictionary.size());
    for (size_t part = 1; part < num_parts; ++part) {
        if (!parts[part].tokens.empty()) parts[0].add(parts[part]);
    }
    return std::move(parts[0]);
}

}  // namespace fastcompress::greedy_dictionary
