// Greedy parses with a codebook, fast: several places of one text at once, joined exactly.
//
// A walk in the trie waits for memory at every byte. So a text is cut into segments, and a thread walks several of
// them side by side, without branches: one step of each in turn. Where a segment begins is a guess, since a token may
// reach across it. But once two greedy parses have a token's end in common they are the same from there on, and on
// texts they soon do. So the parse of the first segment, which is right, is followed into the second until it meets
// the one made there; where it never does (a run of equal bytes) it is simply continued. The result is the plain
// greedy parse in any case. Threads split a long text in the same way.
#pragma once

#include <span>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/equal_info/trie_table.h"

namespace fastcompress::equal_info {

// Appends the nodes of the greedy parse of a text to `ids`; on std::bad_alloc these are as before. The result is the same
// for every number of threads. O(text); a thread takes a share of at least 64 KiB.
void encode(const TrieTable& table, Bytes text, size_t num_threads, std::vector<uint32_t>& ids);

// The same where no token may reach across certain places: `ends` ascend strictly from above 0, and the last one is
// the text's size (there is none for an empty text).
void encode_within(const TrieTable& table, Bytes text, std::span<const uint64_t> ends, size_t num_threads,
                   std::vector<uint32_t>& ids);

}  // namespace fastcompress::equal_info
