// Parses for windows of at most 64 KiB and a limited depth, the usual settings: parse.h calls this for them.
#pragma once

#include "fastcompress/common/bytes.h"
#include "fastcompress/lz77/params.h"

namespace fastcompress::lz77 {

// Tells whether parse_in_window() takes these settings.
bool is_window_parse(const Params& params);

// Appends the parse of the text to `out`. Requires is_window_parse(params) and a text of at most kMaxTextBytes.
//
// O(n + K l) for tokens of l bytes in all, each compared with at most K others. Takes about 700 KiB beside the tokens,
// of which each phase uses less than half.
void parse_in_window(Bytes text, const Params& params, TokenColumns& out);

}  // namespace fastcompress::lz77
