// Counts of the tokens and of pairs of adjacent tokens in the greedy parse of a corpus, and what each string saves.
#pragma once

#include <bit>
#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/greedy_dictionary/dictionary.h"

namespace fastcompress::greedy_dictionary {

// How often each key was added, in a table with open addressing. Keys are below 2^64 - 1.
class PairCounts {
  public:
    struct Entry {
        uint64_t key;
        uint64_t count;
    };
    void add(uint64_t key, uint64_t count) {
        if (2 * (size_ + 1) > entries_.size()) grow();
        Entry& entry = find(key);
        size_ += entry.key == kFree;
        entry.key = key;
        entry.count += count;
    }
    void add(const PairCounts& other) {
        for (const Entry& entry : other.entries_) {
            if (entry.key != kFree) add(entry.key, entry.count);
        }
    }
    // Calls body(key, count) for each key, in no particular order.
    template <class Body>
    void for_each(const Body& body) const {
        for (const Entry& entry : entries_) {
            if (entry.key != kFree) body(entry.key, entry.count);
        }
    }

  private:
    static constexpr uint64_t kFree = UINT64_MAX;
    static constexpr size_t kFirstEntries = size_t{1} << 12;

    Entry& find(uint64_t key) {
        size_t at = (key * 0x9e3779b97f4a7c15u) >> shift_;
        while (entries_[at].key != kFree && entries_[at].key != key) at = (at + 1) % entries_.size();
        return entries_[at];
    }
    void grow() {
        std::vector<Entry> larger(entries_.empty() ? kFirstEntries : 2 * entries_.size(), Entry{kFree, 0});
        larger.swap(entries_);
        shift_ = 64u - static_cast<unsigned>(std::countr_zero(entries_.size()));
        for (const Entry& entry : larger) {
            if (entry.key != kFree) find(entry.key) = entry;
        }
    }

    std::vector<Entry> entries_;
    size_t size_ = 0;
    unsigned shift_ = 0;
};

struct TokenCounts {
    uint64_t num_tokens = 0;
    PairCounts pairs;  // of each first id << 32 | second id
};

// Counts the tokens of the texts, each parsed alone, and the pairs that may be joined to one string: one that has at
// most Dictionary::kMaxLength bytes and, if `within_words`, keeps to words. O(bytes).
TokenCounts count_tokens(const Dictionary& dictionary, std::span<const Bytes> texts, bool within_words,
                         size_t num_threads);

// Returns how many tokens each string saves, to first order: wherever the parse takes it, the tokens that the rest of
// the text would cost from the end of its longest prefix that is a string, less those that it costs from its own end.
// Below zero if the parse would be better without it; 0 for single bytes. A text counts for at most kMostSavedInText, so
// that a name that one text repeats does not displace strings that other texts need. Texts are parsed alone, and have
// less than 2^32 bytes. O(bytes * depth of a walk).
inline constexpr int64_t kMostSavedInText = 12;
std::vector<int64_t> saved_tokens(const Dictionary& dictionary, std::span<const Bytes> texts, size_t num_threads);

}  // namespace fastcompress::greedy_dictionary
