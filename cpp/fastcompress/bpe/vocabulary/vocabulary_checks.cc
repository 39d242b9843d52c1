// The checks of Vocabulary::make on added tokens and options.
#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "fastcompress/bpe/vocabulary/vocabulary.h"
#include "fastcompress/unicode/nfc.h"
#include "fastcompress/unicode/utf8.h"

namespace fastcompress::bpe {
namespace {

bool is_valid_utf8(std::string_view text) {
    const Bytes bytes = as_bytes(text);
    for (size_t i = 0; i < bytes.size();) {
        const unicode::DecodedCodePoint decoded = unicode::decode_utf8(bytes.data(), i, bytes.size());
        if (decoded.value == unicode::kInvalidCodePoint) return false;
        i += decoded.length;
    }
    return true;
}

// False for C0, C1 and F5 to FF, which no well-formed UTF-8 contains.
bool occurs_in_utf8(size_t byte) {
    return byte != 0xc0 && byte != 0xc1 && byte < 0xf5;
}

}  // namespace

bool Vocabulary::normalize(Bytes text, std::vector<uint8_t>& out) const {
    return spec_.normalizer == Normalizer::kNfc && unicode::normalize_nfc(text, out);
}

Status Vocabulary::check_options() const {
    if (spec_.ignore_merges && spec_.order == MergeOrder::kRanks) {
        return invalid_argument("a vocabulary ordered by ranks has no merges to ignore");
    }
    if (spec_.prefix_space && !spec_.custom_pattern.empty()) {
        return invalid_argument("prefix_space is set; with a custom pattern, the pattern must add the space");
    }
    for (const std::string* text : {&spec_.custom_pattern, &spec_.metadata}) {
        if (!is_valid_utf8(*text)) return invalid_argument("a custom pattern and metadata must be UTF-8");
    }
    return {};
}

Status Vocabulary::check_added_tokens() {
    std::vector<AddedToken>& tokens = spec_.added_tokens;
    std::ranges::stable_sort(tokens, {}, &AddedToken::id);
    std::unordered_set<std::string_view> texts;
    for (const AddedToken& token : tokens) {
        const std::string which = "special token " + std::to_string(token.id);
        if (token.id >= kMaxVocabularySize)
            return invalid_argument(which + " has an id that is too large; ids must be below " +
                                    std::to_string(kMaxVocabularySize));
        if (token.flags & ~kAllAddedTokenFlags) return invalid_argument(which + " has unknown flags");
        if (token.text.empty()) return invalid_argument(which + " has an empty text");
        if (!is_valid_utf8(token.text)) return invalid_argument(which + " has a text that is not UTF-8");
        if (!texts.insert(token.text).second) return invalid_argument(which + " has the text of another one");
    }
    return check_normalized_texts();
}

// Checks that no two tokens that are searched for in normalized text are the same there.
Status Vocabulary::check_normalized_texts() const {
    std::unordered_set<std::string> texts;
    std::vector<uint8_t> normal;
    for (const AddedToken& token : spec_.added_tokens) {
        if (!(token.flags & kNormalized) || (token.flags & kNeverMatched)) continue;
        const bool changed = normalize(as_bytes(token.text), normal);
        if (!texts.insert(changed ? std::string(as_chars(Bytes(normal))) : token.text).second) {
            return invalid_argument("special token " + std::to_string(token.id) +
                                    " has, normalized, the text of another one");
        }
    }
    return {};
}

// Assigns the token of U+FFFD to the bytes without a token, if that is allowed.
Status Vocabulary::replace_missing_bytes() {
    const TokenId replacement = find_token(as_bytes("\xef\xbf\xbd"));
    for (size_t byte = 0; byte < 256; ++byte) {
        if (byte_tokens_[byte] != kNoToken) continue;
        if (spec_.order == MergeOrder::kRanks || occurs_in_utf8(byte) || replacement == kNoToken) {
            return invalid_argument("no token is the single byte " + std::to_string(byte) +
                                    "; a vocabulary needs all 256 to encode every text");
        }
        has_all_bytes_ = false;
        byte_tokens_[byte] = replacement;
    }
    return {};
}

}  // namespace fastcompress::bpe
