// Greedy parses with a codebook: over a whole text, as fast as greedy_parse.h has it, or within pieces of it.
#pragma once

#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/equal_info/trie_table.h"

namespace fastcompress::equal_info {

// Appends the nodes of the greedy parse of a text to `ids`; on std::bad_alloc these are as before. The result is the
// same for every number of threads. O(text); a thread takes a share of at least 64 KiB.
void encode(const TrieTable& table, Bytes text, size_t num_threads, std::vector<uint32_t>& ids);

// The same where no token may cross a boundary: `ends` ascend strictly from above 0, and the last one is the size of
// the text (an empty text has none).
void encode_within(const TrieTable& table, Bytes text, std::span<const uint64_t> ends, size_t num_threads,
                   std::vector<uint32_t>& ids);

}  // namespace fastcompress::equal_info
