// Writing an .fcz archive of content that comes in pieces.
#pragma once

#include <optional>
#include <vector>

#include "fastcompress/archive/header.h"
#include "fastcompress/archive/records.h"

namespace fastcompress::archive {

inline constexpr size_t kMaxThreads = 1024;

// The settings of a new archive. Zeros stand for the method's defaults, and for one thread per core.
struct WriterSettings {
    Method method = Method::kLz;
    unsigned level = 0;
    size_t block_bytes = 0;
    std::optional<uint64_t> content_bytes;  // how long the content will be, if that is known
    size_t num_threads = 0;
};

// Makes an archive of content that comes in pieces. Memory: a block per thread, and what coding it takes.
class ArchiveWriter {
  public:
    // InvalidArgument: an unknown method; a level, block size or number of threads out of range.
    static Result<ArchiveWriter> make(const WriterSettings& settings);

    // Takes bytes of content and returns the bytes of the archive that are complete, if any. On std::bad_alloc the writer
    // is as before.
    std::vector<uint8_t> append(Bytes bytes);
    // Returns the rest of the archive. InvalidArgument: the content did not have content_bytes bytes. Nothing may be
    // called after it has succeeded; on an error or std::bad_alloc the writer is as before.
    Result<std::vector<uint8_t>> finish();

  private:
    ArchiveWriter(const Header& header, const BlockCoder& coder, size_t num_threads);
    std::vector<uint8_t> begin(Progress& progress) const;
    void encode_blocks(Bytes blocks, Progress& progress, std::vector<uint8_t>& out) const;

    Header header_;
    const BlockCoder* coder_;
    size_t num_threads_;
    std::vector<uint8_t> waiting_;  // fewer bytes than a block per thread
    bool has_begun_ = false;
    bool has_finished_ = false;
    Progress progress_;
};

}  // namespace fastcompress::archive
