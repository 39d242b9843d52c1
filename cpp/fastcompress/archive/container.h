// The .fcz archive: a header, blocks that are coded each alone, an end. FORMAT.md defines every byte.
//
// Blocks are coded and decoded on several threads. The bytes that come out depend neither on the number of threads nor on
// the pieces in which bytes go in. All of a block's fields and bytes, its position and its archive's header are under its
// checksum, and the end under another, so whatever is changed, left out, moved, repeated or added is noticed.
#pragma once

#include "fastcompress/archive/archive_reader.h"
#include "fastcompress/archive/archive_writer.h"

namespace fastcompress::archive {

// The archive of bytes that are all in memory. Overrides settings.content_bytes. InvalidArgument as ArchiveWriter::make.
Result<std::vector<uint8_t>> compress(Bytes bytes, WriterSettings settings);
// The content of an archive that is all in memory. Malformed as ArchiveReader.
Result<std::vector<uint8_t>> decompress(Bytes archive, uint64_t max_output, size_t num_threads = 0);

}  // namespace fastcompress::archive
