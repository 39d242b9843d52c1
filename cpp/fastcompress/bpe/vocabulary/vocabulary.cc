#include "fastcompress/bpe/vocabulary/vocabulary.h"

#include <algorithm>
#include <bit>

#include "fastcompress/bpe/encode/encoder.h"

namespace fastcompress::bpe {
namespace {

std::string name_of(TokenId id) {
    return "token " + std::to_string(id);
}

size_t table_size(size_t max_entries) {
    return std::bit_ceil(std::max<size_t>(8, 2 * max_entries));
}

}  // namespace

Result<Vocabulary> Vocabulary::make(VocabularySpec spec) {
    Vocabulary vocabulary;
    vocabulary.spec_ = std::move(spec);
    if (Status status = vocabulary.check_options(); !status.ok()) return status;
    if (Status status = vocabulary.check_added_tokens(); !status.ok()) return status;
    if (Status status = vocabulary.lay_out_tokens(); !status.ok()) return status;
    if (Status status = vocabulary.index_tokens(); !status.ok()) return status;
    if (Status status = vocabulary.index_merges(); !status.ok()) return status;
    vocabulary.index_byte_pairs();
    vocabulary.index_whole_pretokens();
    return vocabulary;
}

VocabularySpec Vocabulary::spec() const {
    VocabularySpec spec = spec_;
    spec.tokens.resize(size());
    for (TokenId id = 0; id < size(); ++id) {
        if (!is_added_[id]) spec.tokens[id] = as_chars(token_bytes(id));
    }
    return spec;
}

// Moves the bytes of all tokens, added ones included, into one arena.
Status Vocabulary::lay_out_tokens() {
    std::vector<std::string>& tokens = spec_.tokens;
    size_t num_ids = tokens.size();
    if (!spec_.added_tokens.empty()) num_ids = std::max(num_ids, size_t{spec_.added_tokens.back().id} + 1);
    if (num_ids > kMaxVocabularySize) {
        return invalid_argument("the vocabulary has " + std::to_string(num_ids) + " ids; it must have at most " +
                                std::to_string(kMaxVocabularySize));
    }
    tokens.resize(num_ids);
    is_added_.assign(num_ids, false);
    for (const AddedToken& added : spec_.added_tokens) {
        if (is_added_[added.id]) continue;  // another text of the same id
        std::string& token = tokens[added.id];
        if (token.empty() == ((added.flags & kSharesId) != 0)) {
            return invalid_argument("special token '" + added.text + "' has the id " + std::to_string(added.id) +
                                    (token.empty() ? ", which no other token has" : ", which another token has"));
        }
        if (!token.empty()) continue;
        token = added.text;
        is_added_[added.id] = true;
    }
    size_t num_bytes = 0;
    size_t num_unused = 0;
    for (const std::string& token : tokens) {
        num_bytes += token.size();
        num_unused += token.empty();
    }
    if (num_bytes > 0xffffffffu) return invalid_argument("the tokens have more than 4 GiB together");
    if (num_unused > kMaxUnusedIds) {
        return invalid_argument(std::to_string(num_unused) + " ids are unused; at most " +
                                std::to_string(kMaxUnusedIds) + " may be");
    }
    arena_.reserve(num_bytes + kReadableBytes);
    offsets_.reserve(num_ids + 1);
    offsets_.push_back(0);
    for (const std::string& token : tokens) {
        arena_.insert(arena_.end(), token.begin(), token.end());
        offsets_.push_back(static_cast<uint32_t>(arena_.size()));
    }
    arena_.resize(arena_.size() + kReadableBytes);
    tokens = {};
    return {};
}

Status Vocabulary::index_tokens() {
    size_t num_short = 0;
    for (TokenId id = 0; id < size(); ++id) num_short += token_bytes(id).size() <= ShortKey::kMaxBytes;
    short_tokens_ = HugeArray<ShortToken>(table_size(num_short));
    token_filter_ = KeyFilter(num_short);
    long_tokens_.assign(table_size(size() - num_short), kNoToken);
    is_whole_long_.assign(size(), all_are_whole());
    byte_tokens_.fill(kNoToken);
    // The slots of the next few tokens are prefetched while one is filled.
    constexpr size_t kAhead = 16;
    for (size_t ahead = 0; ahead < size() + kAhead; ++ahead) {
        if (ahead < size()) {
            const Bytes bytes = token_bytes(static_cast<TokenId>(ahead));
            prefetch_whole_pretoken(ShortKey::of_readable(bytes.data(), bytes.size()));
        }
        if (ahead < kAhead) continue;
        const TokenId id = static_cast<TokenId>(ahead - kAhead);
        if (!is_ordinary(id)) continue;
        const Bytes bytes = token_bytes(id);
        const TokenId earlier = insert_token(id);
        if (earlier == kNoToken) {
            if (bytes.size() == 1) byte_tokens_[bytes[0]] = id;
        } else if (spec_.order == MergeOrder::kRanks || bytes.size() == 1) {
            return invalid_argument(name_of(earlier) + " and " + name_of(id) + " have the same bytes");
        }  // merges can learn the same string twice, from two different pairs
    }
    return replace_missing_bytes();
}

// Returns the earlier token with the same bytes, or kNoToken if there is none.
TokenId Vocabulary::insert_token(TokenId id) {
    const Bytes bytes = token_bytes(id);
    if (bytes.size() <= ShortKey::kMaxBytes) {
        const ShortKey key = ShortKey::of_readable(bytes.data(), bytes.size());
        ShortToken& slot = short_tokens_[find_short_slot(key)];
        if (slot.key.high != 0) return slot.id;
        slot = {key, id, all_are_whole() ? id : kNoToken};
        token_filter_.insert(key);
        return kNoToken;
    }
    TokenId& slot = long_tokens_[find_long_slot(bytes)];
    if (slot != kNoToken) return slot;
    slot = id;
    return kNoToken;
}

Status Vocabulary::index_merges() {
    is_rank_id_ = spec_.order == MergeOrder::kRanks;
    if (is_rank_id_) {
        if (!spec_.merges.empty()) return invalid_argument("a vocabulary ordered by ranks lists no merges");
        for (TokenId id = 0; id < size(); ++id) {
            if (token_bytes(id).size() > kMaxRankTokenBytes) {
                return invalid_argument(name_of(id) + " has " + std::to_string(token_bytes(id).size()) +
                                        " bytes; tokens of a rank file have at most " +
                                        std::to_string(kMaxRankTokenBytes));
            }
        }
        index_rank_pairs();
        return {};
    }
    if (spec_.merges.size() > kMaxVocabularySize)
        return invalid_argument("the vocabulary has " + std::to_string(spec_.merges.size()) +
                                " merges; it must have at most " + std::to_string(kMaxVocabularySize));
    pairs_ = PairTable(spec_.merges.size());
    for (uint32_t rank = 0; rank < spec_.merges.size(); ++rank) {
        const Merge merge = spec_.merges[rank];
        const auto which = [rank] { return "merge " + std::to_string(rank); };
        for (const TokenId id : {merge.left, merge.right, merge.result}) {
            if (id >= size() || is_added_[id] || token_bytes(id).empty()) {
                return invalid_argument(which() + " names " + name_of(id) + ", which is not an ordinary token");
            }
        }
        const Bytes left = token_bytes(merge.left);
        const Bytes right = token_bytes(merge.right);
        const Bytes result = token_bytes(merge.result);
        if (result.size() != left.size() + right.size() || !std::ranges::equal(left, result.first(left.size())) ||
            !std::ranges::equal(right, result.last(right.size()))) {
            return invalid_argument(which() + " does not give the bytes of its result, " + name_of(merge.result));
        }
        if (!pairs_.insert(merge.left, merge.right, rank)) {
            return invalid_argument(which() + " merges the same pair as an earlier one");
        }
    }
    return {};
}

void Vocabulary::index_byte_pairs() {
    byte_pairs_.assign(size_t{1} << 16, kNoRank);
    if (!is_rank_id_) {  // a missing byte merges as the token that stands for it does
        for (size_t pair = 0; pair < byte_pairs_.size(); ++pair) {
            byte_pairs_[pair] = find_rank(byte_tokens_[pair >> 8], byte_tokens_[pair & 0xff]);
        }
        return;
    }
    for (TokenId id = 0; id < size(); ++id) {
        const Bytes bytes = token_bytes(id);
        if (bytes.size() == 2 && !is_added_[id]) byte_pairs_[bytes[0] << 8 | bytes[1]] = id;
    }
}

void Vocabulary::index_whole_pretokens() {
    if (all_are_whole()) return;
    Encoder encoder(*this);
    TokenBuffer ids;
    for (TokenId id = 0; id < size(); ++id) {
        if (!is_ordinary(id)) continue;
        const Bytes bytes = token_bytes(id);
        ids.clear();
        encoder.encode_by_merges(bytes, ids);
        if (ids.size() != 1 || ids.tokens()[0] != id) continue;
        if (bytes.size() > ShortKey::kMaxBytes) {
            is_whole_long_[id] = true;
        } else if (ShortToken& slot = short_tokens_[find_short_slot(ShortKey::of(bytes))]; slot.id == id) {
            slot.whole = id;
        }  // otherwise a lookup finds another token with the same bytes
    }
}

TokenId Vocabulary::token_id(Bytes bytes) const {
    const TokenId id = find_token(bytes);
    if (id != kNoToken) return id;
    const auto added = std::ranges::find(spec_.added_tokens, as_chars(bytes), &AddedToken::text);
    return added != spec_.added_tokens.end() ? added->id : kNoToken;
}

TokenId Vocabulary::find_token(Bytes bytes) const {
    if (bytes.empty()) return kNoToken;
    if (bytes.size() > ShortKey::kMaxBytes) return long_tokens_[find_long_slot(bytes)];
    const ShortToken& slot = short_tokens_[find_short_slot(ShortKey::of(bytes))];
    return slot.key.high != 0 ? slot.id : kNoToken;
}

size_t Vocabulary::find_long_slot(Bytes bytes) const {
    const size_t mask = long_tokens_.size() - 1;
    size_t i = hash_bytes(bytes) & mask;
    for (; long_tokens_[i] != kNoToken; i = (i + 1) & mask) {
        const Bytes found = token_bytes(long_tokens_[i]);
        if (found.size() == bytes.size() && std::memcmp(found.data(), bytes.data(), bytes.size()) == 0) break;
    }
    return i;  // the slot of these bytes, or the free slot where they belong
}

TokenId Vocabulary::whole_pretoken(Bytes pretoken) const {
    if (pretoken.size() <= ShortKey::kMaxBytes) return whole_pretoken(ShortKey::of(pretoken));
    const TokenId id = find_token(pretoken);
    return id != kNoToken && is_whole_long_[id] ? id : kNoToken;
}

}  // namespace fastcompress::bpe
