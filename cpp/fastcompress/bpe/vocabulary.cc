#include "fastcompress/bpe/vocabulary.h"

#include <algorithm>
#include <bit>

#include "fastcompress/bpe/encoder.h"

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
    if (auto error = vocabulary.check_options()) return *error;
    if (auto error = vocabulary.check_added_tokens()) return *error;
    if (auto error = vocabulary.lay_out_tokens()) return *error;
    if (auto error = vocabulary.index_spellings()) return *error;
    if (auto error = vocabulary.index_merges()) return *error;
    vocabulary.index_byte_pairs();
    vocabulary.index_whole_pretokens();
    vocabulary.index_short_pretokens();
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

// Moves the tokens' bytes, special ones too, into one arena.
std::optional<Status> Vocabulary::lay_out_tokens() {
    std::vector<std::string>& tokens = spec_.tokens;
    size_t num_ids = tokens.size();
    if (!spec_.added_tokens.empty()) num_ids = std::max(num_ids, size_t{spec_.added_tokens.back().id} + 1);
    if (num_ids > kMaxVocabularySize) {
        return invalid_argument("a vocabulary has at most " + std::to_string(kMaxVocabularySize) + " ids, not " +
                                std::to_string(num_ids));
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
    if (num_bytes > 0xffffffffu) return invalid_argument("the tokens spell over 4 GiB together");
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
    return std::nullopt;
}

std::optional<Status> Vocabulary::index_spellings() {
    spellings_.assign(table_size(size()), kNoToken);
    spellings_mask_ = spellings_.size() - 1;
    byte_tokens_.fill(kNoToken);
    for (TokenId id = 0; id < size(); ++id) {
        const Bytes bytes = token_bytes(id);
        if (is_added_[id] || bytes.empty()) continue;
        size_t i = hash_bytes(bytes) & spellings_mask_;
        while (spellings_[i] != kNoToken && !std::ranges::equal(token_bytes(spellings_[i]), bytes)) {
            i = (i + 1) & spellings_mask_;
        }
        if (spellings_[i] == kNoToken) {
            spellings_[i] = id;
            if (bytes.size() == 1) byte_tokens_[bytes[0]] = id;
        } else if (spec_.order == MergeOrder::kRanks || bytes.size() == 1) {
            return invalid_argument(name_of(spellings_[i]) + " and " + name_of(id) + " have the same bytes");
        }  // merges may learn a string twice, from two different pairs
    }
    return replace_missing_bytes();
}

std::optional<Status> Vocabulary::index_merges() {
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
        return std::nullopt;
    }
    if (spec_.merges.size() > kMaxVocabularySize) return invalid_argument("a vocabulary has too many merges");
    pairs_ = PairTable(spec_.merges.size());
    for (uint32_t rank = 0; rank < spec_.merges.size(); ++rank) {
        const Merge merge = spec_.merges[rank];
        const std::string which = "merge " + std::to_string(rank);
        for (const TokenId id : {merge.left, merge.right, merge.result}) {
            if (id >= size() || is_added_[id] || token_bytes(id).empty()) {
                return invalid_argument(which + " names " + name_of(id) + ", which is no ordinary token");
            }
        }
        const Bytes left = token_bytes(merge.left);
        const Bytes right = token_bytes(merge.right);
        const Bytes result = token_bytes(merge.result);
        if (result.size() != left.size() + right.size() || !std::ranges::equal(left, result.first(left.size())) ||
            !std::ranges::equal(right, result.last(right.size()))) {
            return invalid_argument(which + " does not spell its result, " + name_of(merge.result));
        }
        if (!pairs_.insert(merge.left, merge.right, rank)) {
            return invalid_argument(which + " merges the same pair as an earlier one");
        }
    }
    return std::nullopt;
}

// Every way to cut a token into two tokens is a pair that merges into it.
void Vocabulary::index_rank_pairs() {
    std::vector<Merge> found;
    for (const TokenId id : spellings_) {
        if (id == kNoToken) continue;
        const Bytes bytes = token_bytes(id);
        for (size_t cut = 1; cut < bytes.size(); ++cut) {
            const TokenId left = find_spelling(bytes.first(cut));
            if (left == kNoToken) continue;
            const TokenId right = find_spelling(bytes.subspan(cut));
            if (right != kNoToken) found.push_back({left, right, id});
        }
    }
    pairs_ = PairTable(found.size());
    for (const Merge& merge : found) pairs_.insert(merge.left, merge.right, merge.result);
}

void Vocabulary::index_byte_pairs() {
    byte_pairs_.resize(size_t{1} << 16);
    for (size_t pair = 0; pair < byte_pairs_.size(); ++pair) {
        byte_pairs_[pair] = pairs_.find(byte_tokens_[pair >> 8], byte_tokens_[pair & 0xff]);
    }
}

void Vocabulary::index_whole_pretokens() {
    const bool all_are = spec_.order == MergeOrder::kRanks || spec_.ignore_merges;
    is_whole_.assign(size(), all_are);
    if (all_are) return;
    Encoder encoder(*this);
    TokenBuffer ids;
    for (const TokenId id : spellings_) {
        if (id == kNoToken) continue;
        ids.clear();
        encoder.encode_by_merges(token_bytes(id), ids);
        is_whole_[id] = ids.size() == 1 && ids.tokens()[0] == id;
    }
}

TokenId Vocabulary::token_id(Bytes bytes) const {
    const TokenId id = find_spelling(bytes);
    if (id != kNoToken) return id;
    const auto added = std::ranges::find(spec_.added_tokens, as_chars(bytes), &AddedToken::text);
    return added != spec_.added_tokens.end() ? added->id : kNoToken;
}

TokenId Vocabulary::find_spelling(Bytes bytes) const {
    for (size_t i = hash_bytes(bytes) & spellings_mask_; spellings_[i] != kNoToken; i = (i + 1) & spellings_mask_) {
        const Bytes found = token_bytes(spellings_[i]);
        if (found.size() == bytes.size() && std::memcmp(found.data(), bytes.data(), bytes.size()) == 0) {
            return spellings_[i];
        }
    }
    return kNoToken;
}

// Pretokens of up to 15 bytes are looked up by their key, which is one access to memory instead of three.
void Vocabulary::index_short_pretokens() {
    size_t count = 0;
    for (TokenId id = 0; id < size(); ++id) count += token_bytes(id).size() <= ShortKey::kMaxBytes;
    short_pretokens_ = HugeArray<ShortPretoken>(table_size(count));
    for (const TokenId id : spellings_) {
        if (id == kNoToken || !is_whole_[id] || token_bytes(id).size() > ShortKey::kMaxBytes) continue;
        const ShortKey key = ShortKey::of(token_bytes(id));
        size_t i = key.hash() & (short_pretokens_.size() - 1);
        while (short_pretokens_[i].key.high != 0) i = (i + 1) & (short_pretokens_.size() - 1);
        short_pretokens_[i] = {key, id};
    }
}

TokenId Vocabulary::whole_pretoken(ShortKey key) const {
    const size_t mask = short_pretokens_.size() - 1;
    for (size_t i = key.hash() & mask; short_pretokens_[i].key.high != 0; i = (i + 1) & mask) {
        if (short_pretokens_[i].key == key) return short_pretokens_[i].id;
    }
    return kNoToken;
}

TokenId Vocabulary::whole_pretoken(Bytes pretoken) const {
    const TokenId id = find_spelling(pretoken);
    return id != kNoToken && is_whole_[id] ? id : kNoToken;
}

}  // namespace fastcompress::bpe
