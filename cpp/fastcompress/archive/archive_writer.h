// Writes a compressed file (.fcz) from content that arrives in pieces.
#pragma once

#include <optional>
#include <vector>

#include "fastcompress/archive/header.h"
#include "fastcompress/archive/records.h"

namespace fastcompress::archive {

inline constexpr size_t kMaxThreads = 1024;

// The settings of a compressed file. Zeros select the defaults of the method, and one thread per core.
struct WriterSettings {
    Method method = Method::kLz;
    unsigned level = 0;
    size_t block_bytes = 0;
    std::optional<uint64_t> content_bytes;  // the size of the content, if it is known
    size_t num_threads = 0;
};

// Compresses content that arrives in pieces. Memory: one block per thread, and what encoding it takes.
class ArchiveWriter {
  public:
    // kInvalidArgument for an unknown method, or a level, block size or number of threads out of range.
    static Result<ArchiveWriter> make(const WriterSettings& settings);

    // Takes bytes of content, and returns the bytes of the file that are complete by then, if any. On std::bad_alloc
    // the writer is as before.
    std::vector<uint8_t> append(Bytes bytes);
    // Returns the rest of the file. kInvalidArgument if the content did not have content_bytes bytes. On an error or
    // std::bad_alloc the writer is as before; after success, nothing may be called.
    Result<std::vector<uint8_t>> finish();

  private:
    ArchiveWriter(const Header& header, const BlockCoder& coder, size_t num_threads);
    std::vector<uint8_t> begin(Progress& progress) const;
    void encode_blocks(Bytes blocks, Progress& progress, std::vector<uint8_t>& out) const;

    Header header_;
    const BlockCoder* coder_;
    size_t num_threads_;
    std::vector<uint8_t> waiting_;  // content not yet encoded: less than one block per thread
    bool has_begun_ = false;
    bool has_finished_ = false;
    Progress progress_;
};

}  // namespace fastcompress::archive
