// Unicode normalization form C (Unicode Standard Annex 15) with the data of Unicode 9.0 (text_tables.h): canonical
// decomposition, canonical ordering of combining characters, canonical composition.
//   e, acute (U+0301)               ->  é (U+00E9)
//   q, acute (230), dot below (220) ->  q, dot below, acute: ordered by combining class; nothing composes
// A byte outside of every well-formed UTF-8 sequence stays as it is, and nothing composes across it.
#pragma once

#include <vector>

#include "fastcompress/common/bytes.h"

namespace fastcompress::unicode {

// The form C of a text has at most this many times the bytes of the text.
inline constexpr size_t kMaxNfcExpansion = 3;

// Replaces `out` with the form C of the text and returns true. If the text is already in form C, leaves `out` alone and
// returns false; that takes one scan and no memory. O(n), or O(n log n) in runs of combining characters.
bool normalize_nfc(Bytes text, std::vector<uint8_t>& out);

}  // namespace fastcompress::unicode
