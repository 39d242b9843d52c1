#include "fastcompress/bpe/encode/text_encoder.h"

#include <algorithm>

#include "fastcompress/unicode/nfc.h"

namespace fastcompress::bpe {
namespace {

// The tokens sought in raw texts, or in normalized ones.
AddedTokenMatcher make_matcher(const Vocabulary& vocabulary, bool normalized) {
    std::vector<AddedTokenMatcher::Pattern> patterns;
    const auto& tokens = vocabulary.added_tokens();
    std::vector<uint8_t> normal;
    for (uint32_t i = 0; i < tokens.size(); ++i) {
        const AddedToken& token = tokens[i];
        if ((token.flags & kNeverMatched) || ((token.flags & kNormalized) != 0) != normalized) continue;
        const bool changed = normalized && vocabulary.normalize(as_bytes(token.text), normal);
        patterns.push_back({changed ? std::string(as_chars(Bytes(normal))) : token.text, i, token.flags});
    }
    return AddedTokenMatcher(std::move(patterns));
}

bool is_sought_always(const AddedToken& token) {
    return (token.flags & (kSpecial | kNeverMatched)) == 0;
}

}  // namespace

TextEncoder::TextEncoder(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary), raw_(make_matcher(vocabulary, false)), normalized_(make_matcher(vocabulary, true)) {
    const auto& tokens = vocabulary.added_tokens();
    const bool has_ordinary_tokens = std::ranges::any_of(tokens, is_sought_always);
    is_plain_ = !has_ordinary_tokens && !vocabulary.prefix_space() && vocabulary.normalizer() == Normalizer::kNone;
    // tiktoken, which knows special tokens only, seeks the allowed ones; `tokenizers` seeks all, and takes those that
    // are not allowed for text. They differ in texts where one token overlaps another.
    without_special_.assign(tokens.size(), has_ordinary_tokens ? Treatment::kText : Treatment::kIgnored);
    only_special_.assign(tokens.size(), Treatment::kIgnored);
    for (size_t i = 0; i < tokens.size(); ++i) {
        if (is_sought_always(tokens[i])) without_special_[i] = Treatment::kToken;
        if (tokens[i].flags & kSpecial) only_special_[i] = Treatment::kToken;
    }
    seeks_special_ = std::ranges::count(only_special_, Treatment::kToken) > 0;
}

size_t TextEncoder::max_text_bytes() const {
    if (vocabulary_.normalizer() == Normalizer::kNone) return kMaxTextBytes - 1;
    return (kMaxTextBytes - 1) / unicode::kMaxNfcExpansion;
}

std::vector<Treatment> TextEncoder::treatments(std::span<const uint8_t> allowed) const {
    std::vector<Treatment> treatments = without_special_;
    for (size_t i = 0; i < allowed.size(); ++i) {
        if (allowed[i] != 0) treatments[i] = Treatment::kToken;
    }
    return treatments;
}

std::vector<Treatment> TextEncoder::seeking(std::span<const uint8_t> wanted) const {
    std::vector<Treatment> treatments(wanted.size(), Treatment::kIgnored);
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] != 0) treatments[i] = Treatment::kToken;
    }
    return treatments;
}

std::optional<TextEncoder::Occurrence> TextEncoder::find(Bytes text, std::span<const Treatment> treatments) const {
    const auto find_in = [&](const AddedTokenMatcher& matcher, Bytes bytes) -> std::optional<Occurrence> {
        const AddedTokenMatcher::Match match = matcher.find(bytes, 0, treatments);
        if (match.begin == bytes.size()) return std::nullopt;
        return Occurrence{match.begin, matcher.patterns()[match.pattern].index};
    };
    if (const auto found = find_in(raw_, text)) return found;
    if (normalized_.patterns().empty()) return std::nullopt;
    std::vector<uint8_t> normal;
    return find_in(normalized_, vocabulary_.normalize(text, normal) ? Bytes(normal) : text);
}

void TextEncoder::encode(Bytes text, std::span<const Treatment> treatments, Encoder& encoder, TokenBuffer& out) const {
    out.append_all_or_none([&] {
        for_each_segment(
            text, treatments, [&](Bytes stretch) { encoder.encode(stretch, out); },
            [&](TokenId id) {
                out.append({&id, 1});
            });
    });
}

}  // namespace fastcompress::bpe
