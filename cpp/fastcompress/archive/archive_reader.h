// Reads a compressed file (.fcz) that arrives in pieces.
#pragma once

#include <optional>
#include <vector>

#include "fastcompress/archive/header.h"
#include "fastcompress/archive/records.h"

namespace fastcompress::archive {

// Decompresses a file that arrives in pieces. After an error, every later call returns the same error.
class ArchiveReader {
  public:
    // max_output: the largest number of bytes that may be decompressed in all. num_threads: 0 for one per core; more
    // than 1024 means 1024.
    explicit ArchiveReader(uint64_t max_output, size_t num_threads = 0);

    // Takes bytes of the file, and returns the bytes of its content that have been decoded and verified by then, if
    // any. kMalformed if it is not an .fcz file, is damaged, has another version, needs a method or model that is not
    // available, or has more than max_output bytes of content. On std::bad_alloc the reader is as before. Takes time
    // and memory in proportion to the bytes taken and returned, and memory for one block per thread.
    Result<std::vector<uint8_t>> append(Bytes bytes);
    // kMalformed if the file is not complete, or append() has failed.
    Status finish() const;
    // The header, once it has been read.
    const std::optional<Header>& header() const { return state_.header; }

  private:
    struct Block {
        size_t coded_begin;  // in waiting_
        size_t coded_bytes;
        size_t num_bytes;
        bool is_stored;
        uint64_t checksum;
        uint64_t seed;  // seed of the checksum of the content, which covers everything else
    };
    // Everything that reading changes, except the waiting bytes. It is restored if memory runs out.
    struct State {
        std::optional<Header> header;
        bool has_ended = false;
        size_t num_read = 0;  // bytes of waiting_ that have been read
        Progress progress;
    };
    Status read(std::vector<uint8_t>& out);
    Status begin();
    // Reads the head of a block. nullopt if the record is not complete yet.
    std::optional<Result<size_t>> read_block(Bytes record);
    Status read_end(Bytes record);
    Status decode_pending(std::vector<uint8_t>& out);
    Status decode_block(const Block& block, uint64_t index, std::span<uint8_t> out) const;

    uint64_t max_output_;
    size_t num_threads_;
    std::vector<uint8_t> waiting_;
    std::vector<Block> pending_;  // blocks read but not yet decoded, perhaps by an earlier append()
    const BlockCoder* coder_ = nullptr;
    State state_;
    Status failed_;
};

}  // namespace fastcompress::archive
