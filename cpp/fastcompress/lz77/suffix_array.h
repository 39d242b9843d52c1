// Suffix arrays in linear time.
#pragma once

#include <cstdint>
#include <vector>

#include "fastcompress/common/bytes.h"

namespace fastcompress::lz77 {

// The positions of a text of fewer than 2^31 bytes, sorted by the suffixes that begin there (a suffix sorts before
// those it is a prefix of). O(n) time; 8 to 12 bytes a byte of text while it runs. By induced sorting (Nong, Zhang and
// Chan, 2009).
std::vector<int32_t> suffix_array(Bytes text);

// lcp[r]: how long the suffixes of ranks r - 1 and r are equal; lcp[0] is 0. `ranks` is the inverse of the suffix
// array. O(n) (Kasai et al., 2001).
std::vector<int32_t> lcp_array(Bytes text, const std::vector<int32_t>& suffixes, const std::vector<int32_t>& ranks);

}  // namespace fastcompress::lz77
