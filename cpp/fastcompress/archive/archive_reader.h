// Reading an .fcz archive that comes in pieces.
#pragma once

#include <optional>
#include <vector>

#include "fastcompress/archive/header.h"
#include "fastcompress/archive/records.h"

namespace fastcompress::archive {

// Reads an archive that comes in pieces. Once it has returned an error, every later call returns the same error.
class ArchiveReader {
  public:
    // max_output: the greatest number of bytes that may come out in all. num_threads: 0 for one per core; above 1024 means
    // 1024.
    explicit ArchiveReader(uint64_t max_output, size_t num_threads = 0);

    // Takes bytes of an archive and returns the bytes of its content that have been decoded and verified, if any.
    // Malformed: it is no archive, damaged, of another version, of a method or model that is not here, or has more than
    // max_output bytes. On std::bad_alloc the reader is as before. O(bytes + what comes out), and no more memory than that
    // and a block per thread.
    Result<std::vector<uint8_t>> append(Bytes bytes);
    // Malformed: the archive does not end here, or append() has failed.
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
        uint64_t seed;  // of the bytes' checksum: it stands for all else that the checksum is of
    };
    // What reading changes, apart from the bytes that wait; restored if it runs out of memory.
    struct State {
        std::optional<Header> header;
        bool has_ended = false;
        size_t num_read = 0;  // of waiting_
        Progress progress;
    };
    Status read(std::vector<uint8_t>& out);
    Status begin();
    // nullopt: the record is not complete yet.
    std::optional<Result<size_t>> read_block(Bytes record);
    Status read_end(Bytes record);
    Status decode_pending(std::vector<uint8_t>& out);
    Status decode_block(const Block& block, uint64_t index, std::span<uint8_t> out) const;

    uint64_t max_output_;
    size_t num_threads_;
    std::vector<uint8_t> waiting_;
    std::vector<Block> pending_;  // read, not decoded; may be left over from one append() to the next
    const BlockCoder* coder_ = nullptr;
    State state_;
    Status failed_;
};

}  // namespace fastcompress::archive
