// Unicode normalization form C, by the data of Unicode 9.0 (text_tables.h): canonical decomposition, canonical
// ordering of combining characters, canonical composition (Unicode Standard Annex 15).
//
// A byte that belongs to no well-formed UTF-8 sequence stays, and nothing composes across it.
#pragma once

#include <vector>

#include "fastcompress/common/bytes.h"

namespace fastcompress::unicode {

// A text in form C has at most so many times the bytes of the text.
inline constexpr size_t kMaxNfcExpansion = 3;

// Replaces `out` by the form C of the text and returns true, or returns false and leaves `out` alone if the text is in
// form C already. Such texts, ASCII above all, cost a scan and no memory. O(n log n) in runs of combining characters, else O(n).
bool normalize_nfc(Bytes text, std::vector<uint8_t>& out);

}  // namespace fastcompress::unicode
