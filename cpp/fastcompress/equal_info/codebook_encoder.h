// Fast greedy parses with a codebook: several places of one text are parsed at once, and joined exactly.
//
// A walk in the trie waits for memory at every byte. So a text is cut into segments, and each thread walks several of
// them side by side without branches, one step of each in turn. The start of a segment is a guess, since a token may
// reach across it. But once two greedy parses end a token at the same place, they agree from there on, which in texts
// happens soon. So the parse of the first segment, which is right, is followed into the second until it meets the parse
// made there. If they never meet (in a run of equal bytes, say), the right parse is simply continued. In any case the
// result is the plain greedy parse. Threads split a long text in the same way.
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
