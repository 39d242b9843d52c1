// Compressed files (.fcz): a header, independently coded blocks, and an end. FORMAT.md defines every byte.
//
// Blocks are encoded and decoded on several threads. The output depends neither on the number of threads nor on the
// pieces in which input arrives. The checksum of a block covers its fields and bytes, its position and the header of
// the file; the end has a checksum over all blocks. So any byte that is changed, removed, moved, repeated or added is
// detected.
//
//   const auto file = compress(bytes, {});                                   // method lz, level 8
//   const auto content = decompress(*file, /*max_output=*/bytes.size());     // equal to bytes
#pragma once

#include "fastcompress/archive/archive_reader.h"
#include "fastcompress/archive/archive_writer.h"

namespace fastcompress::archive {

// Compresses bytes in memory. Overrides settings.content_bytes. kInvalidArgument as for ArchiveWriter::make().
Result<std::vector<uint8_t>> compress(Bytes bytes, WriterSettings settings);
// Decompresses a file in memory. kMalformed as for ArchiveReader.
Result<std::vector<uint8_t>> decompress(Bytes archive, uint64_t max_output, size_t num_threads = 0);

}  // namespace fastcompress::archive
