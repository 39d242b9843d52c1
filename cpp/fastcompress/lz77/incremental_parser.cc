#include "fastcompress/lz77/incremental_parser.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "fastcompress/common/rollback.h"

namespace fastcompress::lz77 {

void IncrementalParser::append(Bytes bytes) {
    assert(bytes.size() <= kMaxTextBytes - history_.size());
    const size_t num_bytes = history_.size();
    Rollback rollback([&] { history_.truncate(num_bytes); });
    for (const uint8_t byte : bytes) history_.push(byte);
    rollback.release();
    advance_or_truncate(num_bytes);
}

// Decides all tokens that can be decided. If an allocation fails, restores the state at `num_bytes` bytes; removing the
// bytes appended since then needs no memory.
void IncrementalParser::advance_or_truncate(size_t num_bytes) {
    const Phrase first = first_;
    const Phrase second = second_;
    const size_t num_stable = stable_.size();
    Rollback rollback([&] {
        first_ = first;
        second_ = second;
        stable_.truncate(num_stable);
        history_.truncate(num_bytes);
    });
    advance();
    rollback.release();
}

void IncrementalParser::truncate(size_t num_bytes) {
    if (num_bytes >= history_.size()) return;
    history_.truncate(num_bytes);
    size_t begin = first_.begin;
    while (stable_.size() > 0 && stable_.back().num_bytes > num_bytes) {
        begin -= stable_.back().token.length;
        stable_.pop_back();
    }
    first_.start(begin);
    second_.start(begin + 1);
    // The remaining bytes decide no more tokens than those that are left, so this allocates nothing.
    [[maybe_unused]] const size_t num_stable = stable_.size();
    advance();
    assert(stable_.size() == num_stable);
}

TokenColumns IncrementalParser::tokens() const {
    TokenColumns tokens;
    for (size_t i = 0; i < stable_.size(); ++i) tokens.push(stable_[i].token);
    for (const Token& token : unstable_tokens()) tokens.push(token);
    return tokens;
}

std::vector<uint32_t> IncrementalParser::stable_counts() const {
    std::vector<uint32_t> counts(history_.size() + 1);
    for (size_t i = 0; i < stable_.size(); ++i) ++counts[stable_[i].num_bytes];
    std::partial_sum(counts.begin(), counts.end(), counts.begin());
    return counts;
}

// If the text ends here, the current phrase is final, by the rules of FORMAT.md. What follows it is at most one byte,
// or too short for a match.
std::vector<Token> IncrementalParser::unstable_tokens() const {
    std::vector<Token> tokens;
    tokens.reserve(std::min<size_t>(history_.size() - first_.begin, params_.min_length));
    size_t i = first_.begin;
    Phrase phrase = first_;
    while (i < history_.size()) {
        if (phrase.length == 0) {
            tokens.push_back(literal_at(i));
            ++i;
        } else {
            tokens.push_back(phrase.match());
            i += phrase.length;
        }
        phrase.start(i);
        extend(phrase);
    }
    return tokens;
}

// Decides all tokens that can be decided.
void IncrementalParser::advance() {
    for (;;) {
        extend(first_);
        if (first_.state != Phrase::State::kSettled) return;
        uint32_t num_bytes = settled_at(first_);
        if (params_.rule == ParseRule::kLazy && first_.length > 0 && first_.length < params_.max_length) {
            if (second_.begin != first_.begin + 1) second_.start(first_.begin + 1);
            extend(second_);
            if (second_.length > first_.length) {
                // This is known as soon as the second match is longer by one.
                decide(literal_at(first_.begin), std::max(num_bytes, second_.begin + first_.length + 1));
                std::swap(first_, second_);
                second_.start(first_.begin + 1);
                continue;
            }
            if (second_.state != Phrase::State::kSettled) return;
            num_bytes = std::max(num_bytes, settled_at(second_));
        }
        if (first_.length == 0) {
            decide(literal_at(first_.begin), num_bytes);
            first_.start(first_.begin + 1);
        } else {
            decide(first_.match(), num_bytes);
            first_.start(first_.begin + first_.length);
        }
    }
}

void IncrementalParser::decide(const Token& token, uint32_t num_bytes) {
    if (stable_.size() > 0) num_bytes = std::max(num_bytes, stable_.back().num_bytes);
    stable_.push_back({token, num_bytes});
}

// Returns the length of the text at which a phrase was settled.
uint32_t IncrementalParser::settled_at(const Phrase& phrase) const {
    if (phrase.length == 0) return phrase.begin + params_.min_length;
    return phrase.begin + phrase.length + (phrase.length < params_.max_length ? 1 : 0);
}

// Extends a phrase up to the end of the text.
void IncrementalParser::extend(Phrase& phrase) const {
    using enum Phrase::State;
    if (phrase.state == kPending) {
        if (phrase.begin + size_t{params_.min_length} > history_.size()) return;
        phrase.num_left = params_.depth;
        phrase.state = find_source(phrase, phrase.begin, params_.min_length) ? kOpen : kSettled;
    }
    while (phrase.state == kOpen) {
        if (phrase.length == params_.max_length) phrase.state = kSettled;
        const size_t end = phrase.begin + size_t{phrase.length};
        if (phrase.state == kSettled || end == history_.size()) return;
        const uint8_t* const bytes = history_.flat();
        if (bytes != nullptr && end + 1 < history_.size()) {  // compares more than one byte at a time
            const size_t most = std::min<size_t>(history_.size() - end, params_.max_length - phrase.length);
            const size_t more = common_prefix(bytes + phrase.source + phrase.length, bytes + end, most);
            phrase.length += static_cast<uint32_t>(more);
            if (more == most) continue;
        } else if (history_[phrase.source + phrase.length] == history_[end]) {
            ++phrase.length;
            continue;
        }
        if (!find_source(phrase, phrase.source, size_t{phrase.length} + 1)) phrase.state = kSettled;
    }
}

// Makes the nearest candidate before `from` that agrees for `length` bytes the source. Returns false if there is none.
bool IncrementalParser::find_source(Phrase& phrase, uint32_t from, size_t length) const {
    const size_t lowest = phrase.begin > params_.window ? phrase.begin - params_.window : 0;
    const uint32_t source = history_.find_before(from, phrase.begin, length, lowest, &phrase.num_left);
    if (source == History::kNone) return false;
    phrase.source = source;
    phrase.length = static_cast<uint32_t>(length);
    return true;
}

}  // namespace fastcompress::lz77
