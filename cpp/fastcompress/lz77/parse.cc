#include "fastcompress/lz77/parse.h"

#include "fastcompress/lz77/exact_matcher.h"
#include "fastcompress/lz77/occurrence_lists.h"
#include "fastcompress/lz77/window_parse.h"

namespace fastcompress::lz77 {
namespace {

template <class Emit>
FASTCOMPRESS_INLINED void parse_by_lists_here(Bytes text, const Params& params, const Emit& emit) {
    OccurrenceLists lists(text, params);
    const auto find = [&](size_t position) FASTCOMPRESS_INLINED_LAMBDA { return lists.find(position); };
    parse_range(text, params, 0, text.size(), find, emit);
}

#if defined(FASTCOMPRESS_AVX2)
template <class Emit>
FASTCOMPRESS_AVX2 void parse_by_lists_with_bmi(Bytes text, const Params& params, const Emit& emit) {
    parse_by_lists_here(text, params, emit);
}
#endif

template <class Emit>
void parse_by_lists(Bytes text, const Params& params, const Emit& emit) {
#if defined(FASTCOMPRESS_AVX2)
    if (has_avx2()) return parse_by_lists_with_bmi(text, params, emit);
#endif
    parse_by_lists_here(text, params, emit);
}

// If the window is limited, parses blocks of several windows, so that memory does not grow with the text. A block that
// cuts off its first match is doubled; otherwise the next block begins at the first token that the end of this one
// might change.
template <class Emit>
void parse_exactly(Bytes text, const Params& params, const Emit& emit) {
    constexpr size_t kSmallBlock = size_t{1} << 16;
    const size_t wanted = std::max(kSmallBlock, size_t{8} * params.window);
    size_t block = wanted < text.size() / 2 ? wanted : text.size();
    for (size_t begin = 0; begin < text.size();) {
        const size_t first = begin > params.window ? begin - params.window : 0;
        const size_t end = std::min(text.size(), begin + block);
        ExactMatcher matcher(text, params, first, end);
        size_t cut_off = end;  // where the first match begins that might continue past the end of the block
        const auto find = [&](size_t position) -> Match {
            if (position >= end) return {};
            const Match match = matcher.find(position);
            const bool touches_end = position + std::max(match.length, params.min_length) >= end;
            if (touches_end && end < text.size() && match.length < params.max_length) {
                cut_off = std::min(cut_off, position);
            }
            return match;
        };
        size_t done = begin;
        parse_range(text, params, begin, end, find, [&](const Token& token) {
            // In a lazy parse, the match at the next position matters as well.
            if (done + (params.rule == ParseRule::kLazy) >= cut_off && end < text.size()) {
                cut_off = std::min(cut_off, done);
                return;
            }
            emit(token);
            done += token.length;
        });
        block = done == begin ? 2 * block : block;
        begin = done;
    }
}

}  // namespace

TokenColumns parse(Bytes text, const Params& params) {
    TokenColumns tokens;
    tokens.reserve(text.size() / 4);  // unused memory is never touched
    const auto emit = [&](const Token& token) { tokens.push(token); };
    if (params.depth == kUnlimited) {
        parse_exactly(text, params, emit);
    } else if (is_window_parse(params)) {
        parse_in_window(text, params, tokens);
    } else {
        parse_by_lists(text, params, emit);
    }
    return tokens;
}

}  // namespace fastcompress::lz77
