#include "fastcompress/lz77/incremental_parser.h"

#include <algorithm>

namespace fastcompress::lz77 {

void IncrementalParser::append(Bytes bytes) {
    for (const uint8_t byte : bytes) history_.push(byte);
    advance();
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
    advance();
}

TokenColumns IncrementalParser::tokens() const {
    TokenColumns tokens;
    for (size_t i = 0; i < stable_.size(); ++i) tokens.push(stable_[i].token);
    for (const Token& token : unstable_tokens()) tokens.push(token);
    return tokens;
}

// The phrases under way are what they are if no byte comes, by the rules; after them there is a byte at most, or there are fewer
// bytes than a match needs.
std::vector<Token> IncrementalParser::unstable_tokens() const {
    std::vector<Token> tokens;
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

// Decides what can be decided.
void IncrementalParser::advance() {
    for (;;) {
        extend(first_);
        if (first_.state != Phrase::State::kSettled) return;
        uint32_t num_bytes = settled_at(first_);
        if (params_.rule == ParseRule::kLazy && first_.length > 0 && first_.length < params_.max_length) {
            if (second_.begin != first_.begin + 1) second_.start(first_.begin + 1);
            extend(second_);
            if (second_.length > first_.length) {
                // Known as soon as it is longer by one.
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

// How long the text had to be for a phrase to be settled.
uint32_t IncrementalParser::settled_at(const Phrase& phrase) const {
    if (phrase.length == 0) return phrase.begin + params_.min_length;
    return phrase.begin + phrase.length + (phrase.length < params_.max_length ? 1 : 0);
}

// Follows a phrase up to the end of the text.
void IncrementalParser::extend(Phrase& phrase) const {
    using enum Phrase::State;
    if (phrase.state == kPending) {
        if (phrase.begin + size_t{params_.min_length} > history_.size()) return;
        find_sources(phrase);
        phrase.length = phrase.sources.empty() ? 0 : params_.min_length;
        phrase.state = phrase.length > 0 && phrase.length < params_.max_length ? kOpen : kSettled;
    }
    while (phrase.state == kOpen && phrase.begin + phrase.length < history_.size()) {
        if (const uint8_t* const bytes = history_.flat(); bytes != nullptr && phrase.sources.size() == 1) {
            const size_t done = phrase.length;
            const size_t most = std::min(history_.size() - phrase.begin, size_t{params_.max_length}) - done;
            const uint8_t* const here = bytes + phrase.begin + done;
            const size_t more = common_prefix(bytes + phrase.sources[0] + done, here, most);
            phrase.length += static_cast<uint32_t>(more);
            if (more < most || phrase.length == params_.max_length) phrase.state = kSettled;
            continue;
        }
        const uint8_t byte = history_[phrase.begin + phrase.length];
        size_t num_left = 0;
        for (const uint32_t source : phrase.sources) {
            // In place: what goes on moves forward. If nothing does, nothing has been overwritten.
            if (history_[source + phrase.length] == byte) phrase.sources[num_left++] = source;
        }
        if (num_left == 0) {
            phrase.state = kSettled;
            return;
        }
        phrase.sources.resize(num_left);
        if (++phrase.length == params_.max_length) phrase.state = kSettled;
    }
}

// The candidates at a place, nearest first.
void IncrementalParser::find_sources(Phrase& phrase) const {
    phrase.sources.clear();
    uint32_t num_left = params_.depth;
    for (uint32_t source = history_.before(phrase.begin); source != History::kNone; source = history_.before(source)) {
        if (phrase.begin - source > params_.window) return;
        if (!history_.equal_grams(source, phrase.begin)) continue;
        phrase.sources.push_back(source);
        if (--num_left == 0) return;
    }
}

}  // namespace fastcompress::lz77
