// Encoding a whole text: added tokens are cut out, the rest is normalized and encoded. The order of events is that of
// `tokenizers`: added tokens that are not `normalized`, normalization of each stretch between them, the other added
// tokens, a space before each stretch that has none (where the vocabulary wants one), pretokens, merges.
#pragma once

#include <optional>
#include <vector>

#include "fastcompress/bpe/encode/encoder.h"
#include "fastcompress/bpe/vocabulary/added_tokens.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

// Immutable; the vocabulary must outlive it.
class TextEncoder {
  public:
    explicit TextEncoder(const Vocabulary& vocabulary);

    // Whether a text in which no special token is allowed is one ordinary stretch, for Encoder::encode as it is.
    bool is_plain() const { return is_plain_; }
    // Longer texts may grow, when normalized, past what an Encoder takes.
    size_t max_text_bytes() const;

    // What becomes of each of vocabulary.added_tokens(): allowed[i] != 0 allows the special token i; empty: none.
    std::vector<Treatment> treatments(std::span<const uint8_t> allowed) const;

    // The treatments under which the special token i is sought if wanted[i] != 0, and nothing else is.
    std::vector<Treatment> seeking(std::span<const uint8_t> wanted) const;
    // Where in a text the first token occurs that is sought.
    struct Occurrence {
        size_t position;  // in the text; for a token found in the normalized text only, there
        uint32_t index;   // of the token
    };
    std::optional<Occurrence> find(Bytes text, std::span<const Treatment> treatments) const;
    // Whether any special token occurs in a text.
    bool has_special(Bytes text) const { return seeks_special_ && find(text, only_special_).has_value(); }

    // Calls on_text(Bytes) for every stretch of ordinary text, as it is to be cut into pretokens (the bytes are valid
    // during the call), and on_token(TokenId) for every added token.
    template <class OnText, class OnToken>
    void for_each_segment(Bytes text, std::span<const Treatment> treatments, const OnText& on_text,
                          const OnToken& on_token) const;

    // Appends the ids of a text to `out`. The vocabulary has a named pattern.
    void encode(Bytes text, std::span<const Treatment> treatments, Encoder& encoder, TokenBuffer& out) const;

  private:
    const Vocabulary& vocabulary_;
    bool is_plain_;
    bool seeks_special_;                      // whether there are special tokens
    std::vector<Treatment> without_special_;  // what becomes of each added token if no special one is allowed
    std::vector<Treatment> only_special_;     // special tokens are searched for, others are not
    AddedTokenMatcher raw_;
    AddedTokenMatcher normalized_;
};

template <class OnText, class OnToken>
void TextEncoder::for_each_segment(Bytes text, std::span<const Treatment> treatments, const OnText& on_text,
                                   const OnToken& on_token) const {
    const auto& tokens = vocabulary_.added_tokens();
    const auto visit_token = [&](uint32_t index) { on_token(tokens[index].id); };
    std::vector<uint8_t> spaced;
    const auto visit_text = [&](Bytes stretch) {
        if (!vocabulary_.prefix_space() || stretch[0] == ' ') return on_text(stretch);
        spaced.assign(1, ' ');
        spaced.insert(spaced.end(), stretch.begin(), stretch.end());
        on_text(Bytes(spaced));
    };
    std::vector<uint8_t> normal;
    raw_.cut(
        text, treatments,
        [&](Bytes stretch) {
            const Bytes normalized = vocabulary_.normalize(stretch, normal) ? Bytes(normal) : stretch;
            normalized_.cut(normalized, treatments, visit_text, visit_token);
        },
        visit_token);
}

}  // namespace fastcompress::bpe
