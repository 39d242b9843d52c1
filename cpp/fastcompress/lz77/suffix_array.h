// Suffix arrays in linear time.
#pragma once

#include <cstdint>
#include <vector>

#include "fastcompress/common/bytes.h"

namespace fastcompress::lz77 {

// Returns the positions of a text of fewer than 2^31 bytes, sorted by the suffixes that begin there. A suffix sorts
// before those that it is a prefix of. Induced sorting (Nong, Zhang and Chan, 2009): O(n) time, and 8 to 12 bytes per
// byte of text.
//   suffix_array("banana") = 5 3 1 0 4 2      a, ana, anana, banana, na, nana
std::vector<int32_t> suffix_array(Bytes text);

// Returns the lengths of common prefixes: element r is for the suffixes of ranks r - 1 and r; element 0 is 0. `ranks`
// is the inverse of the suffix array. O(n) (Kasai et al., 2001).
std::vector<int32_t> lcp_array(Bytes text, const std::vector<int32_t>& suffixes, const std::vector<int32_t>& ranks);

}  // namespace fastcompress::lz77
