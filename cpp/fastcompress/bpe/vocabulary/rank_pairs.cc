// Finds the pairs that merge into each token of a vocabulary that lists no merges: every way to split a token into two
// tokens is a pair that merges into it.
//
// Looking up both parts of every split in tables of several megabytes would take most of the time of loading (cl100k:
// 543,000 splits). But the prefixes of a token that are tokens form a chain: the longest one, the longest prefix of
// that one, and so on. The same holds for suffixes. So only the longest prefix and the longest suffix of each token are
// looked up; two walks along small arrays find the rest. A bitmap that fits into the cache answers nearly all lookups
// that fail.
//   "abc" with the tokens a, b, c, ab, bc: prefixes ab, a; suffixes bc, c; pairs (ab, c) and (a, bc)
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {
namespace {

// A token that is a proper prefix or suffix of another; size 0 if there is none.
struct Part {
    uint32_t id_and_size = 0;

    Part() = default;
    Part(TokenId id, size_t size) : id_and_size(id << 11 | static_cast<uint32_t>(size)) {}
    TokenId id() const { return id_and_size >> 11; }
    size_t size() const { return id_and_size & 0x7ff; }
};
static_assert(kMaxVocabularySize == size_t{1} << 21 && kMaxRankTokenBytes < 1 << 11);

// Returns, by id, the longest proper prefix (kFront) or suffix of each token that is itself a token. Requires that
// every token is a whole pretoken.
template <bool kFront>
std::vector<Part> find_longest_parts(const Vocabulary& vocabulary) {
    struct Candidate {
        size_t size;
        ShortKey key;  // for a size up to kMaxBytes
    };
    const auto part_of = [](Bytes token, size_t size) { return kFront ? token.first(size) : token.last(size); };
    // Returns the longest part of fewer than `size` bytes that may be a token.
    const auto next_candidate = [&](Bytes token, size_t size) -> Candidate {
        while (size > 1) {
            --size;
            const ShortKey key = ShortKey::of_readable(part_of(token, size).data(), size);
            if (size > ShortKey::kMaxBytes || vocabulary.may_be_whole_pretoken(key)) return {size, key};
        }
        return {0, {}};
    };
    const auto longest_part = [&](Bytes token, Candidate candidate) -> Part {
        for (; candidate.size > 0; candidate = next_candidate(token, candidate.size)) {
            const TokenId part = candidate.size > ShortKey::kMaxBytes
                                     ? vocabulary.whole_pretoken(part_of(token, candidate.size))
                                     : vocabulary.whole_pretoken(candidate.key);
            if (part != kNoToken) return Part(part, candidate.size);
        }
        return Part();
    };
    // The slots of the next few tokens are prefetched while one is looked up.
    constexpr size_t kAhead = 16;
    std::array<Candidate, kAhead> candidates;
    std::vector<Part> parts(vocabulary.size());
    for (size_t ahead = 0; ahead < parts.size() + kAhead; ++ahead) {
        Candidate& candidate = candidates[ahead % kAhead];
        if (ahead >= kAhead) {
            const TokenId id = static_cast<TokenId>(ahead - kAhead);
            if (vocabulary.is_ordinary(id)) parts[id] = longest_part(vocabulary.token_bytes(id), candidate);
        }
        if (ahead < parts.size()) {
            const Bytes token = vocabulary.token_bytes(static_cast<TokenId>(ahead));
            candidate = next_candidate(token, token.size());
            vocabulary.prefetch_whole_pretoken(candidate.key);
        }
    }
    return parts;
}

}  // namespace

// O(bytes of tokens * length of a token) at worst, and O(bytes of tokens) for real vocabularies.
void Vocabulary::index_rank_pairs() {
    const std::vector<Part> prefixes = find_longest_parts<true>(*this);
    const std::vector<Part> suffixes = find_longest_parts<false>(*this);

    std::vector<Merge> found;
    found.reserve(3 * size());  // real vocabularies have 2.2 to 2.4 pairs per token
    std::array<TokenId, kMaxRankTokenBytes + 1> suffix_of_size;
    for (TokenId id = 0; id < size(); ++id) {
        const size_t num_bytes = token_bytes(id).size();
        std::fill_n(suffix_of_size.begin(), num_bytes, kNoToken);
        for (Part part = suffixes[id]; part.size() > 0; part = suffixes[part.id()]) {
            suffix_of_size[part.size()] = part.id();
        }
        for (Part part = prefixes[id]; part.size() > 0; part = prefixes[part.id()]) {
            const TokenId right = suffix_of_size[num_bytes - part.size()];
            if (right != kNoToken) found.push_back({part.id(), right, id});
        }
    }

    pairs_ = PairTable(found.size());
    constexpr size_t kAhead = 16;
    for (size_t i = 0; i < found.size(); ++i) {
        if (i + kAhead < found.size()) {
            pairs_.prefetch(pairs_.locate(found[i + kAhead].left, found[i + kAhead].right));
        }
        pairs_.insert(found[i].left, found[i].right, found[i].result);
    }
}

}  // namespace fastcompress::bpe
