#include "fastcompress/bpe/trainer.h"

#include <algorithm>

#include <unordered_map>

#include "fastcompress/common/parallel.h"

namespace fastcompress::bpe {

void PretokenCounts::add_text(Bytes text, pretokenizer::Pattern pattern) {
    pretokenizer::for_each_pretoken(pattern, text, [this](Bytes pretoken) { add(pretoken, 1); });
}

void PretokenCounts::add(Bytes pretoken, int64_t count) {
    if (entries_.size() * 2 >= slots_.size()) grow();

    const uint64_t hash = hash_bytes(pretoken);
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    for (; slots_[i] != 0; i = (i + 1) & mask) {
        Entry& entry = entries_[slots_[i] - 1];
        if (entry.hash == hash && entry.length == pretoken.size() &&
            std::memcmp(arena_.data() + entry.begin, pretoken.data(), pretoken.size()) == 0) {
            entry.count += count;
            return;
        }
    }
    entries_.push_back({hash, arena_.size(), pretoken.size(), count});
    arena_.insert(arena_.end(), pretoken.begin(), pretoken.end());
    slots_[i] = static_cast<uint32_t>(entries_.size());
}

void PretokenCounts::add(const PretokenCounts& other) {
    for (size_t i = 0; i < other.size(); ++i) add(other.pretoken(i), other.count(i));
}

void PretokenCounts::grow() {
    slots_.assign(std::max<size_t>(1024, slots_.size() * 2), 0);
    const size_t mask = slots_.size() - 1;
    for (size_t e = 0; e < entries_.size(); ++e) {
        size_t i = entries_[e].hash & mask;
        while (slots_[i] != 0) i = (i + 1) & mask;
        slots_[i] = static_cast<uint32_t>(e + 1);
    }
}

PretokenCounts count_pretokens(std::span<const Bytes> texts, pretokenizer::Pattern pattern, size_t num_threads) {
    std::vector<PretokenCounts> parts(std::max<size_t>(1, std::min(num_threads, texts.size())));
    const auto weight = [&](size_t i) { return texts[i].size() + 1; };
    parallel_parts(texts.size(), num_threads, weight, [&](size_t part, size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) parts[part].add_text(texts[i], pattern);
    });
    for (size_t part = 1; part < parts.size(); ++part) parts[0].add(parts[part]);
    return std::move(parts[0]);
}

namespace {

using Pair = uint64_t;  // left << 32 | right, so that pairs compare as (left, right)

Pair make_pair(TokenId left, TokenId right) {
    return uint64_t{left} << 32 | right;
}

struct PairHash {
    size_t operator()(Pair pair) const { return mix64(pair); }
};

struct PairState {
    int64_t count = 0;
    std::vector<uint32_t> words;  // each word it was ever seen in, once
};

struct Candidate {
    int64_t count;
    Pair pair;
    bool operator<(const Candidate& other) const {  // the greatest is merged first
        return count != other.count ? count < other.count : pair > other.pair;
    }
};

class MergeLoop {
  public:
    explicit MergeLoop(const PretokenCounts& counts) {
        words_.reserve(counts.size());
        for (size_t i = 0; i < counts.size(); ++i) {
            const Bytes pretoken = counts.pretoken(i);
            if (pretoken.size() < 2) continue;
            const auto word = static_cast<uint32_t>(words_.size());
            words_.push_back({symbols_.size(), pretoken.size(), counts.count(i)});
            symbols_.insert(symbols_.end(), pretoken.begin(), pretoken.end());
            for (size_t k = 0; k + 1 < pretoken.size(); ++k)
                adjust(pretoken[k], pretoken[k + 1], word, counts.count(i));
        }
        for (const auto& [pair, state] : pairs_) heap_.push_back({state.count, pair});
        std::make_heap(heap_.begin(), heap_.end());
        fresh_.clear();
    }

    // The pair that occurs most often, or kNoPair when none occurs.
    static constexpr Pair kNoPair = ~Pair{0};
    Pair most_frequent() {
        while (!heap_.empty()) {
            const Candidate top = heap_.front();
            const int64_t count = pairs_.at(top.pair).count;
            if (count == top.count && count > 0) return top.pair;
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.pop_back();
            if (count > 0) push({count, top.pair});
        }
        return kNoPair;
    }

    void merge(Pair pair, TokenId result) {
        const auto left = static_cast<TokenId>(pair >> 32);
        const auto right = static_cast<TokenId>(pair);
        const std::vector<uint32_t> words = std::move(pairs_.at(pair).words);
        for (const uint32_t word : words) merge_in_word(word, left, right, result);
        for (const Pair made : fresh_) push({pairs_.at(made).count, made});
        fresh_.clear();
    }

  private:
    struct Word {
        size_t begin;
        size_t length;
        int64_t count;
    };

    // Replaces each (left, right) by result from left to right, in place, as if one at a time: the counts of the pairs
    // around an occurrence are those of the word as it stands at that moment.
    void merge_in_word(uint32_t index, TokenId left, TokenId right, TokenId result) {
        Word& word = words_[index];
        TokenId* symbols = symbols_.data() + word.begin;
        size_t kept = 0;
        for (size_t i = 0; i < word.length; ++i) {
            if (symbols[i] != left || i + 1 == word.length || symbols[i + 1] != right) {
                symbols[kept++] = symbols[i];
                continue;
            }
            adjust(left, right, index, -word.count);
            if (kept > 0) {
                adjust(symbols[kept - 1], left, index, -word.count);
                adjust(symbols[kept - 1], result, index, word.count);
            }
            if (i + 2 < word.length) {
                adjust(right, symbols[i + 2], index, -word.count);
                adjust(result, symbols[i + 2], index, word.count);
            }
            symbols[kept++] = result;
            ++i;
        }
        word.length = kept;
    }

    void adjust(TokenId left, TokenId right, uint32_t word, int64_t delta) {
        const auto [found, is_new] = pairs_.try_emplace(make_pair(left, right));
        PairState& state = found->second;
        if (is_new) fresh_.push_back(found->first);
        state.count += delta;
        if (delta > 0 && (state.words.empty() || state.words.back() != word)) state.words.push_back(word);
    }

    void push(Candidate candidate) {
        heap_.push_back(candidate);
        std::push_heap(heap_.begin(), heap_.end());
    }

    std::vector<TokenId> symbols_;
    std::vector<Word> words_;
    std::unordered_map<Pair, PairState, PairHash> pairs_;
    std::vector<Candidate> heap_;
    std::vector<Pair> fresh_;  // pairs first seen during the present merge
};

}  // namespace

std::vector<Merge> train_merges(const PretokenCounts& counts, size_t num_merges,
                                const std::function<void(size_t)>& progress) {
    constexpr size_t kProgressEvery = 256;
    MergeLoop loop(counts);
    std::vector<Merge> merges;
    while (merges.size() < num_merges) {
        const Pair pair = loop.most_frequent();
        if (pair == MergeLoop::kNoPair) break;
        const auto result = static_cast<TokenId>(256 + merges.size());
        merges.push_back({static_cast<TokenId>(pair >> 32), static_cast<TokenId>(pair), result});
        loop.merge(pair, result);
        if (merges.size() % kProgressEvery == 0) progress(merges.size());
    }
    return merges;
}

std::vector<std::string> tokens_of_merges(std::span<const Merge> merges) {
    std::vector<std::string> tokens;
    tokens.reserve(256 + merges.size());
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const Merge& merge : merges) {
        std::string token = tokens[merge.left];
        token += tokens[merge.right];
        tokens.push_back(std::move(token));
    }
    return tokens;
}

}  // namespace fastcompress::bpe
