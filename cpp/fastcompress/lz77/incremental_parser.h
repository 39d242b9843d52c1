// The parse of a text that grows, shrinks and branches.
//
// After any sequence of operations tokens() is parse() of the bytes there are (parse.h), which for a byte more costs no
// second look at what came before. The phrase under way keeps the nearest candidate that agrees so far. If that does
// not go on as the text does, those further back are asked in turn: each candidate is looked at once, and whichever
// comes last is the nearest of the longest. A token that is decided is never looked at again, unless bytes are taken
// back that it took to decide.
//
// append: O(depth) amortized a byte; with depth unlimited O(number of occurrences). truncate: O(what is taken back),
// and then at most the one phrase is matched anew that the cut goes through: O(depth + its length). Copying: O(1),
// whatever the history; then O(log n) memory for each byte that either of the two adds. All of it is exact and
// deterministic. One object is used by one thread at a time; copies may be used by different threads.
//
// Tried: keeping all candidates that agree, in an array, and filtering it by each byte (benchmarks/LOG.md).
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
    // Valid params (check()).
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
        // Nearly always nothing is decided by one byte.
        if (first_.state == Phrase::State::kPending && first_.begin + size_t{params_.min_length} > history_.size())
            return;
        if (first_.state == Phrase::State::kOpen && first_.length + 1 < params_.max_length &&
            history_[first_.source + first_.length] == byte) {
            ++first_.length;
            return;
        }
        advance_or_truncate(history_.size() - 1);
    }
    // Does nothing if there are no more bytes than that.
    void truncate(size_t num_bytes);

    const Params& params() const { return params_; }
    size_t num_bytes() const { return history_.size(); }
    // How many tokens no byte that is appended can change (FORMAT.md, "stable").
    size_t num_stable() const { return stable_.size(); }
    // All tokens: stable ones, and what the rest of the bytes would be if there were no more.
    TokenColumns tokens() const;
    std::vector<Token> unstable_tokens() const;
    Token stable_token(size_t i) const { return stable_[i].token; }
    // Where the first token that is not stable begins.
    size_t stable_bytes() const { return first_.begin; }

    // Greedy parses only: whether a token may come next (FORMAT.md, "legal"). O(depth (min_length + its length)), also
    // of push_token, which appends the bytes of a legal token and returns true, or does nothing.
    bool is_legal(const Token& token) const;
    bool push_token(const Token& token);
    struct Lengths {  // [shortest, longest]; none if shortest > longest
        uint32_t shortest = 1;
        uint32_t longest = 0;
        bool is_empty() const { return shortest > longest; }
    };
    // The lengths of legal matches of a distance. A longest one of kUnlimited is any length.
    Lengths legal_lengths(uint32_t distance) const;
    // The distances of legal matches, ascending. O(window depth min_length), and less for ordinary text.
    std::vector<uint32_t> legal_distances() const;
    // For each byte whether it may come next as a literal.
    std::array<bool, 256> legal_literals() const;

  private:
    // The match at one place, as far as it is known.
    struct Phrase {
        enum class State : uint8_t { kPending, kOpen, kSettled };
        uint32_t begin = 0;
        uint32_t length = 0;  // of the match so far; settled at 0: there is none
        State state = State::kPending;
        uint32_t source = 0;    // the nearest candidate that agrees so far
        uint32_t num_left = 0;  // candidates further back
        void start(size_t position) {
            begin = static_cast<uint32_t>(position);
            length = 0;
            state = State::kPending;
        }
        Token match() const { return Token::match(begin - source, length); }
    };
    struct Decided {
        Token token;
        uint32_t num_bytes;  // how long the text had to be for this and all tokens before to be known
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
    Phrase first_;   // where the first token that is not decided begins
    Phrase second_;  // of a lazy parse: one further on
};

}  // namespace fastcompress::lz77
