// The parse of a text that grows, shrinks and branches.
//
// After any sequence of operations, tokens() equals parse() (parse.h) of the present bytes, and appending a byte does
// not parse the bytes before it again. The current phrase keeps the nearest candidate that agrees with the text so far.
// When the next byte of the text differs, the candidates further back are tried in turn. So each candidate is examined
// once, and the last one that agrees is the nearest of the longest.
//   text so far   a b c d - a b x _ a b      min_length 2: the phrase at 9 copies from 5, the nearest "ab"
//   append "c"    a b c d - a b x _ a b c    "abx" at 5 no longer agrees, so the phrase now copies from 0
// A decided token is examined again only if truncate() removes bytes that were needed to decide it.
//
// Costs. append: O(depth) amortized per byte; O(number of occurrences) with unlimited depth. truncate: O(bytes
// removed), plus O(depth + length) to match the phrase that the cut splits. Copying: O(1), and then O(log n) memory for
// each byte that the copy or the original appends. Everything is exact and deterministic. One object may be used by one
// thread at a time; copies may be used by different threads.
//
// Tried and dropped: an array of all candidates that agree, filtered by each byte (benchmarks/LOG.md).
#pragma once

#include <array>
#include <cassert>
#include <utility>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/lz77/history.h"
#include "fastcompress/lz77/params.h"
#include "fastcompress/lz77/parse.h"
#include "fastcompress/lz77/persistent_array.h"

namespace fastcompress::lz77 {

class IncrementalParser {
  public:
    // Requires params that pass check().
    explicit IncrementalParser(const Params& params) : params_(params), history_(params.min_length, params.window) {}
    IncrementalParser(const IncrementalParser&) = default;
    IncrementalParser& operator=(const IncrementalParser&) = default;
    // A moved-from parser is empty.
    IncrementalParser(IncrementalParser&& other) noexcept
        : params_(other.params_),
          history_(std::move(other.history_)),
          stable_(std::move(other.stable_)),
          first_(std::exchange(other.first_, {})),
          second_(std::exchange(other.second_, {})) {}
    IncrementalParser& operator=(IncrementalParser&& other) noexcept {
        params_ = other.params_;
        history_ = std::move(other.history_);
        stable_ = std::move(other.stable_);
        first_ = std::exchange(other.first_, {});
        second_ = std::exchange(other.second_, {});
        return *this;
    }

    // Requires that num_bytes() and the bytes together are at most kMaxTextBytes.
    void append(Bytes bytes);
    void append(uint8_t byte) {
        assert(history_.size() < kMaxTextBytes);
        history_.push(byte);
        // One byte rarely decides anything.
        if (first_.state == Phrase::State::kPending && first_.begin + size_t{params_.min_length} > history_.size())
            return;
        if (first_.state == Phrase::State::kOpen && first_.length + 1 < params_.max_length &&
            history_[first_.source + first_.length] == byte) {
            ++first_.length;
            return;
        }
        advance_or_truncate(history_.size() - 1);
    }
    // Removes all but the first num_bytes bytes. Does nothing if there are not more.
    void truncate(size_t num_bytes);

    const Params& params() const { return params_; }
    size_t num_bytes() const { return history_.size(); }
    // The number of leading tokens that no appended byte can change (FORMAT.md, "stable").
    size_t num_stable() const { return stable_.size(); }
    // Returns all tokens: the stable ones, and the parse of the remaining bytes if the text ended here.
    TokenColumns tokens() const;
    std::vector<Token> unstable_tokens() const;
    Token stable_token(size_t i) const { return stable_[i].token; }
    // Returns for each n in [0, num_bytes()] how many tokens are stable after the first n bytes. O(num_bytes).
    std::vector<uint32_t> stable_counts() const;
    // The position where the first token that is not stable begins.
    size_t stable_bytes() const { return first_.begin; }

    // For greedy parses only. is_legal() returns whether a token may come next (FORMAT.md, "legal"). push_token()
    // appends the bytes of a legal token and returns true; otherwise it does nothing. Both: O(depth (min_length +
    // length)).
    bool is_legal(const Token& token) const;
    bool push_token(const Token& token);
    struct Lengths {  // [shortest, longest]; empty if shortest > longest
        uint32_t shortest = 1;
        uint32_t longest = 0;
        bool is_empty() const { return shortest > longest; }
    };
    // Returns the lengths of legal matches of a distance. If the longest is kUnlimited, there is no limit.
    Lengths legal_lengths(uint32_t distance) const;
    // Returns the distances of legal matches, ascending. O(window depth min_length), less for ordinary text.
    std::vector<uint32_t> legal_distances() const;
    // Returns for each byte whether it may come next as a literal.
    std::array<bool, 256> legal_literals() const;

  private:
    // The match at one position, as far as it is known.
    struct Phrase {
        enum class State : uint8_t { kPending, kOpen, kSettled };
        uint32_t begin = 0;
        uint32_t length = 0;  // length of the match so far; if settled, 0 means no match
        State state = State::kPending;
        uint32_t source = 0;    // the nearest candidate that agrees so far
        uint32_t num_left = 0;  // number of candidates further back that may still be examined
        void start(size_t position) {
            begin = static_cast<uint32_t>(position);
            length = 0;
            state = State::kPending;
        }
        Token match() const { return Token::match(begin - source, length); }
    };
    struct Decided {
        Token token;
        uint32_t num_bytes;  // length of the text at which this token and all before it were decided
    };

    void advance();
    void advance_or_truncate(size_t num_bytes);
    void extend(Phrase& phrase) const;
    bool find_source(Phrase& phrase, uint32_t from, size_t length) const;
    uint32_t settled_at(const Phrase& phrase) const;
    void decide(const Token& token, uint32_t num_bytes);
    Token literal_at(size_t position) const { return Token::literal(history_[position]); }

    // legality.cc
    class Continuation;
    std::array<bool, 256> continuing_bytes() const;
    bool may_begin(const Continuation& text, const std::array<bool, 256>& continuing) const;
    bool is_legal_literal(uint8_t byte, const std::array<bool, 256>& continuing) const;
    Lengths legal_lengths(uint32_t distance, const std::array<bool, 256>& continuing) const;

    Params params_;
    History history_;
    ForkableVector<Decided> stable_;
    Phrase first_;   // the phrase at the first token that is not decided
    Phrase second_;  // in a lazy parse, the phrase one byte further on
};

}  // namespace fastcompress::lz77
