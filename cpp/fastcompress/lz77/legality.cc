// Which tokens may follow a history (FORMAT.md, "Legal tokens").
//
// A question about a token is one about the text that it would make: the history, and after it bytes that are known as far as they
// matter. Such a text is a Continuation.
#include <algorithm>

#include "fastcompress/lz77/incremental_parser.h"

namespace fastcompress::lz77 {

// The history and after it a byte, or what a match of some distance copies, without end.
class IncrementalParser::Continuation {
  public:
    Continuation(const History& history, uint8_t byte) : history_(history), byte_(byte) {}
    Continuation(const History& history, uint32_t distance) : history_(history), distance_(distance) {}

    uint8_t operator[](size_t position) const {
        const size_t size = history_.size();
        if (position < size) return history_[position];
        return distance_ == 0 ? byte_ : history_[size - distance_ + (position - size) % distance_];
    }
    size_t size() const { return distance_ == 0 ? history_.size() + 1 : ~size_t{0}; }
    // How far the text from a source on agrees with that from a position on, at most `most`.
    size_t agreement(size_t source, size_t position, size_t most) const {
        size_t length = 0;
        while (length < most && (*this)[source + length] == (*this)[position + length]) ++length;
        return length;
    }
    // Calls visit(source) for the occurrences at a position within the window, nearest first, until it returns false. The position is at most
    // the end of the history.
    template <class Visit>
    void for_each_occurrence(size_t position, const Params& params, const Visit& visit) const {
        const uint32_t min_length = params.min_length;
        const size_t lowest = position > params.window ? position - params.window : 0;
        // Those that reach past the end of the history no chain knows.
        const size_t size = history_.size();
        const size_t in_chains = size < min_length ? 0 : size - min_length + 1;
        for (size_t source = position; source-- > std::max(in_chains, lowest);) {
            if (agreement(source, position, min_length) == min_length && !visit(source)) return;
        }
        std::array<uint8_t, kMaxMinLength> gram;
        for (uint32_t i = 0; i < min_length; ++i) gram[i] = (*this)[position + i];
        uint32_t source = history_.last_with(gram.data());
        while (source != History::kNone && source >= position) source = history_.before(source);
        for (; source != History::kNone && source >= lowest; source = history_.before(source)) {
            if (agreement(source, position, min_length) == min_length && !visit(source)) return;
        }
    }
    bool has_occurrence(size_t position, const Params& params) const {
        bool found = false;
        for_each_occurrence(position, params, [&](size_t) {
            found = true;
            return false;
        });
        return found;
    }

  private:
    const History& history_;
    uint8_t byte_ = 0;
    uint32_t distance_ = 0;  // 0: one byte
};

// The bytes that an open match would go on with: those after each candidate that agrees as far as the match goes.
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

// Whether all tokens so far stay what they are if the text goes on so: a match that is open ends, and literals that were too
// near to the end to be a match's beginning are none.
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
    for (uint32_t i = 0; i < token.length; ++i) history_.push(history_[history_.size() - token.value]);
    advance();
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

std::vector<uint32_t> IncrementalParser::legal_distances() const {
    std::vector<uint32_t> distances;
    const std::array<bool, 256> continuing = continuing_bytes();
    const size_t most = std::min<size_t>(history_.size(), params_.window);
    for (size_t distance = 1; distance <= most; ++distance) {
        if (!legal_lengths(static_cast<uint32_t>(distance), continuing).is_empty()) {
            distances.push_back(static_cast<uint32_t>(distance));
        }
    }
    return distances;
}

}  // namespace fastcompress::lz77
