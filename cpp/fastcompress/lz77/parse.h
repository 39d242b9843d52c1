// One-shot parses (FORMAT.md). Tokens depend on the text and the settings only.
#pragma once

#include "fastcompress/common/bytes.h"
#include "fastcompress/lz77/params.h"

namespace fastcompress::lz77 {

struct Match {
    uint32_t length = 0;  // 0: no match
    uint32_t distance = 0;
};

// Parses a text. Requires text.size() <= kMaxTextBytes and valid params (check()).
//
// Three ways, by settings, all giving the tokens of FORMAT.md:
//   1. window at most 64 KiB, min_length at most 8, limited depth: window_parse.h, O(n + K l) for tokens of l bytes in
//      all, each compared with at most K others; about 700 KiB beside the tokens.
//   2. other limited depths: occurrences sorted by their first min_length bytes (occurrence_lists.h). The same time; at
//      most 26 bytes per byte of the text or of the window, whichever is less.
//   3. unlimited depth: a suffix array finds every match exactly (exact_matcher.h), in O(n log n) for any text; at most
//      40 bytes per byte of the text or of nine windows, whichever is less.
TokenColumns parse(Bytes text, const Params& params);

// Applies the rules of FORMAT.md to any way of finding matches. find(i) returns the match at i; it is called with i
// ascending, at most once for each. emit(token) takes the tokens from `begin` on until one ends at or after `end`.
// Returns where that token ends.
template <class Find, class Emit>
size_t parse_range(Bytes text, const Params& params, size_t begin, size_t end, const Find& find, const Emit& emit) {
    const bool is_lazy = params.rule == ParseRule::kLazy;
    size_t i = begin;
    bool is_known = false;
    Match known;
    while (i < end) {
        const Match match = is_known ? known : find(i);
        is_known = false;
        if (match.length == 0) {
            emit(Token::literal(text[i++]));
            continue;
        }
        if (is_lazy && match.length < params.max_length && i + 1 < text.size()) {
            known = find(i + 1);
            if (known.length > match.length) {
                is_known = true;
                emit(Token::literal(text[i++]));
                continue;
            }
        }
        emit(Token::match(match.distance, match.length));
        i += match.length;
    }
    return i;
}

}  // namespace fastcompress::lz77
