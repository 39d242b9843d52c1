// Decides which tokens may follow a history (FORMAT.md, "Legal tokens").
#include <algorithm>

#include "fastcompress/common/rollback.h"
#include "fastcompress/lz77/continuation.h"

namespace fastcompress::lz77 {

// Returns the bytes that would extend the open match: those that follow a candidate of the full length of the match.
std::array<bool, 256> IncrementalParser::continuing_bytes() const {
    std::array<bool, 256> continuing = {};
    if (first_.state != Phrase::State::kOpen) return continuing;
    continuing[history_[first_.source + first_.length]] = true;
    Phrase phrase = first_;
    while (find_source(phrase, phrase.source, first_.length)) {
        continuing[history_[phrase.source + first_.length]] = true;
    }
    return continuing;
}

// Whether all tokens so far remain the same if the text continues like this: the open match ends, and no match begins
// at a literal that was too close to the end to begin one.
bool IncrementalParser::may_begin(const Continuation& text, const std::array<bool, 256>& continuing) const {
    const size_t end = history_.size();
    if (first_.state == Phrase::State::kOpen) return !continuing[text[end]];
    for (size_t position = first_.begin; position < end; ++position) {
        if (position + params_.min_length > text.size()) return true;
        if (text.has_occurrence(position, params_)) return false;
    }
    return true;
}

bool IncrementalParser::is_legal_literal(uint8_t byte, const std::array<bool, 256>& continuing) const {
    const Continuation text(history_, byte);
    if (!may_begin(text, continuing)) return false;
    return params_.min_length > 1 || !text.has_occurrence(history_.size(), params_);
}

std::array<bool, 256> IncrementalParser::legal_literals() const {
    const std::array<bool, 256> continuing = continuing_bytes();
    std::array<bool, 256> legal;
    for (size_t byte = 0; byte < 256; ++byte) {
        legal[byte] = history_.size() < kMaxTextBytes && is_legal_literal(static_cast<uint8_t>(byte), continuing);
    }
    return legal;
}

bool IncrementalParser::is_legal(const Token& token) const {
    if (token.kind == TokenKind::kLiteral) {
        if (token.value > 255 || token.length != 1 || history_.size() >= kMaxTextBytes) return false;
        return is_legal_literal(static_cast<uint8_t>(token.value), continuing_bytes());
    }
    if (token.length > kMaxTextBytes - history_.size()) return false;
    const Lengths lengths = legal_lengths(token.value);
    return token.length >= lengths.shortest && token.length <= lengths.longest;
}

bool IncrementalParser::push_token(const Token& token) {
    if (!is_legal(token)) return false;
    if (token.kind == TokenKind::kLiteral) {
        append(static_cast<uint8_t>(token.value));
        return true;
    }
    const size_t num_bytes = history_.size();
    Rollback rollback([&] { history_.truncate(num_bytes); });
    for (uint32_t i = 0; i < token.length; ++i) history_.push(history_[history_.size() - token.value]);
    rollback.release();
    advance_or_truncate(num_bytes);
    return true;
}

IncrementalParser::Lengths IncrementalParser::legal_lengths(uint32_t distance) const {
    return legal_lengths(distance, continuing_bytes());
}

IncrementalParser::Lengths IncrementalParser::legal_lengths(uint32_t distance,
                                                            const std::array<bool, 256>& continuing) const {
    const size_t end = history_.size();
    if (distance == 0 || distance > std::min<size_t>(end, params_.window)) return {};
    const Continuation text(history_, distance);
    if (!may_begin(text, continuing)) return {};
    const size_t source = end - distance;
    uint32_t num_left = params_.depth;
    size_t longest_nearer = 0;
    bool is_candidate = false;
    text.for_each_occurrence(end, params_, [&](size_t other) {
        if (other == source) {
            is_candidate = true;
            return false;
        }
        // Two texts of periods p and q that agree for p + q bytes agree forever (Fine and Wilf, 1965).
        const size_t both_periods = size_t{distance} + (end - other);
        const size_t most = std::min<size_t>(params_.max_length, both_periods);
        const size_t length = text.agreement(other, end, most);
        longest_nearer = std::max(longest_nearer, length == both_periods ? size_t{kUnlimited} : length);
        return longest_nearer < params_.max_length && --num_left > 0;
    });
    if (!is_candidate) return {};
    const size_t shortest = std::max<size_t>(params_.min_length, longest_nearer + 1);
    if (shortest > params_.max_length) return {};
    return {static_cast<uint32_t>(shortest), params_.max_length};
}

}  // namespace fastcompress::lz77
