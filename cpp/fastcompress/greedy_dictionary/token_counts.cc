#include "fastcompress/greedy_dictionary/token_counts.h"

#include <algorithm>
#include <utility>

#include "fastcompress/common/parallel.h"
#include "fastcompress/common/words.h"

namespace fastcompress::greedy_dictionary {
namespace {

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

// The lengths of the tokens that strings are parsed to begin with if they are not there themselves.
std::vector<uint8_t> shorter_lengths(const Dictionary& dictionary) {
    std::vector<uint8_t> lengths;
    for (uint32_t id = 0; id < dictionary.size(); ++id) {
        const uint32_t parent = dictionary.nodes()[dictionary.node_of(id)].parent;
        lengths.push_back(parent == Dictionary::kNone ? 0 : dictionary.lengths()[dictionary.nodes()[parent].match]);
    }
    return lengths;
}

// Splits the texts among threads; calls body(part, text).
template <class Body>
void for_each_text(std::span<const Bytes> texts, size_t num_threads, const Body& body) {
    const auto weight = [&](size_t i) { return texts[i].size() + 1; };
    parallel_parts(texts.size(), num_threads, weight, [&](size_t part, size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) body(part, texts[i]);
    });
}

size_t num_parts_of(std::span<const Bytes> texts, size_t num_threads) {
    return std::max<size_t>(1, std::min(num_threads, texts.size()));
}

}  // namespace

TokenCounts count_tokens(const Dictionary& dictionary, std::span<const Bytes> texts, bool within_words,
                         size_t num_threads) {
    const Joints joints(dictionary);
    std::vector<TokenCounts> parts(num_parts_of(texts, num_threads));
    for_each_text(texts, parts.size(), [&](size_t part, Bytes text) {
        std::vector<uint32_t> ids;
        dictionary.encode(text, 1, ids);
        parts[part].num_tokens += ids.size();
        for (size_t i = 1; i < ids.size(); ++i) {
            const uint32_t first = ids[i - 1];
            const uint32_t second = ids[i];
            if (!joints.fit(first, second)) continue;
            if (within_words && !joints.keep_to_words(first, second)) continue;
            parts[part].pairs.add(uint64_t{first} << 32 | second, 1);
        }
    });
    for (size_t part = 1; part < parts.size(); ++part) {
        parts[0].num_tokens += parts[part].num_tokens;
        parts[0].pairs.add(parts[part].pairs);
    }
    return std::move(parts[0]);
}

std::vector<int64_t> saved_tokens(const Dictionary& dictionary, std::span<const Bytes> texts, size_t num_threads) {
    const std::vector<uint8_t> shorter = shorter_lengths(dictionary);
    struct Part {
        std::vector<int64_t> saved;
        std::vector<int64_t> here;  // in the present text
    };
    std::vector<Part> parts(num_parts_of(texts, num_threads));
    for (Part& part : parts) {
        part.saved.resize(dictionary.size());
        part.here.resize(dictionary.size());
    }
    for_each_text(texts, parts.size(), [&](size_t k, Bytes text) {
        auto& [saved, here] = parts[k];
        std::vector<uint32_t> longest(text.size());
        std::vector<uint32_t> to_end(text.size() + 1);  // [x]: tokens from x to the end
        for (size_t x = text.size(); x-- > 0;) {
            const uint8_t* next = text.data() + x;
            longest[x] = dictionary.longest(next, text.data() + text.size());
            to_end[x] = 1 + to_end[static_cast<size_t>(next - text.data())];
        }
        for (size_t x = 0; x < text.size(); x += dictionary.length(longest[x])) {
            const uint32_t id = longest[x];
            if (shorter[id] == 0) continue;
            here[id] += int64_t{to_end[x + shorter[id]]} - int64_t{to_end[x + dictionary.length(id)]};
        }
        for (size_t x = 0; x < text.size(); x += dictionary.length(longest[x])) {
            const uint32_t id = longest[x];
            saved[id] += std::min(std::exchange(here[id], 0), kMostSavedInText);
        }
    });
    for (size_t k = 1; k < parts.size(); ++k) {
        for (size_t id = 0; id < dictionary.size(); ++id) parts[0].saved[id] += parts[k].saved[id];
    }
    return std::move(parts[0].saved);
}

}  // namespace fastcompress::greedy_dictionary
