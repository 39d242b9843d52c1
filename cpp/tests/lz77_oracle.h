// The parse by its definition (cpp/fastcompress/lz77/FORMAT.md): every position is compared with every other.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fastcompress/lz77/params.h"
#include "fastcompress/lz77/parse.h"

namespace fastcompress::testing {

inline lz77::Match match_plainly(const std::string& x, size_t i, const lz77::Params& params) {
    const size_t m = params.min_length;
    lz77::Match best;
    uint32_t num_left = params.depth;
    for (size_t j = i; j-- > 0 && i + m <= x.size() && i - j <= params.window && num_left > 0;) {
        if (x.compare(j, m, x, i, m) != 0) continue;
        --num_left;
        const size_t most = std::min<size_t>(params.max_length, x.size() - i);
        uint32_t length = 0;
        while (length < most && x[j + length] == x[i + length]) ++length;
        if (length > best.length) best = {length, static_cast<uint32_t>(i - j)};
    }
    return best;
}

inline std::vector<lz77::Token> parse_plainly(const std::string& x, const lz77::Params& params) {
    std::vector<lz77::Token> tokens;
    for (size_t i = 0; i < x.size();) {
        const lz77::Match match = match_plainly(x, i, params);
        const bool defers = params.rule == lz77::ParseRule::kLazy && match.length < params.max_length &&
                            match_plainly(x, i + 1, params).length > match.length;
        if (match.length == 0 || defers) {
            tokens.push_back(lz77::Token::literal(static_cast<uint8_t>(x[i++])));
        } else {
            tokens.push_back(lz77::Token::match(match.distance, match.length));
            i += match.length;
        }
    }
    return tokens;
}

inline std::vector<lz77::Token> to_vector(const lz77::TokenColumns& columns) {
    std::vector<lz77::Token> tokens;
    for (size_t i = 0; i < columns.size(); ++i) tokens.push_back(columns[i]);
    return tokens;
}

// Settings in which every cap binds.
inline std::vector<lz77::Params> small_settings(bool with_lazy) {
    std::vector<lz77::Params> all;
    for (const uint32_t min_length : {1u, 2u, 3u}) {
        for (const uint32_t window : {4u, lz77::kUnlimited}) {
            for (const uint32_t max_length : {3u, lz77::kUnlimited}) {
                for (const uint32_t depth : {1u, 2u, lz77::kUnlimited}) {
                    all.push_back({window, min_length, max_length, depth, lz77::ParseRule::kGreedy});
                    if (with_lazy) all.push_back({window, min_length, max_length, depth, lz77::ParseRule::kLazy});
                }
            }
        }
    }
    return all;
}

}  // namespace fastcompress::testing
