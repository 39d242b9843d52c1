// One-shot parses (FORMAT.md). Nothing here depends on more than the text and the settings.
#pragma once

#include "fastcompress/common/bytes.h"
#include "fastcompress/lz77/params.h"

namespace fastcompress::lz77 {

struct Match {
    uint32_t length = 0;  // 0: there is none
    uint32_t distance = 0;
};

// The parse of a text of at most kMaxTextBytes; params are valid (check()).
//
// With a depth K, occurrences are sorted by their first min_length bytes (occurrence_lists.h): O(n + K l) for tokens of
// l bytes in all, each compared to at most K others. Without, a suffix array finds every match exactly: O(n log n)
// whatever the text (exact_matcher.h). Memory beside the tokens, for each byte of the text or, if that is less, of the
// window: at most 14 bytes (windows above 64 KiB: 26); exact, for each byte of the text or of nine windows: at most 40.
TokenColumns parse(Bytes text, const Params& params);

// The rules of FORMAT.md over any way to find matches: find(i) gives the match at i, and is called with i ascending,
// each at most once; emit(token) takes the tokens from `begin` on until one ends at or after `end`. Returns where that
// is.
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
