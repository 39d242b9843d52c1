// The pretokens of a text by a pattern's scanner alone, one after the other: what PretokenFinder, however it goes about
// it, must find.
#pragma once

#include <vector>

#include "fastcompress/pretokenizer/pretoken_finder.h"

namespace fastcompress::testing {

// The offset at which each pretoken ends.
inline std::vector<size_t> scan_plainly(pretokenizer::Pattern pattern, Bytes text) {
    const pretokenizer::Method method = pretokenizer::method_of(pattern);
    if (text.empty()) return {};
    if (method.scanner == nullptr) return {text.size()};
    pretokenizer::ClassBitmaps bitmaps(text, method.family);
    const pretokenizer::Text reader(text, bitmaps);
    std::vector<size_t> ends;
    for (size_t end = 0; end < text.size(); ends.push_back(end)) {
        bitmaps.move_to(end);
        end = method.scanner(reader, end);
    }
    return ends;
}

}  // namespace fastcompress::testing
