// The .fcz archive: a header, blocks that are coded each alone, an end. FORMAT.md defines every byte.
//
// Blocks are coded and decoded on several threads; which bytes come out does not depend on how many, nor on the pieces
// in which bytes go in. All of a block's fields and bytes, its place and its archive are under its checksum, and the
// end under another, so whatever is changed, left out, moved, repeated or added is noticed.
#pragma once

#include <optional>
#include <vector>

#include "fastcompress/archive/block_coder.h"

namespace fastcompress::archive {

inline constexpr size_t kMinBlockBytes = size_t{1} << 16;
inline constexpr size_t kMaxBlockBytes = size_t{1} << 26;
inline constexpr size_t kHeaderBytes = 72;

// What stands in the header.
struct Header {
    Method method = Method::kLz;
    unsigned level = 0;
    size_t block_bytes = 0;  // of each block but the last, which may have fewer
    std::optional<uint64_t> content_bytes;
    ModelHash model_hash{};

    bool operator==(const Header&) const = default;
};

// The settings of a new archive; zeros stand for the method's defaults, and for one thread a core.
struct WriterSettings {
    Method method = Method::kLz;
    unsigned level = 0;
    size_t block_bytes = 0;
    std::optional<uint64_t> content_bytes;  // how long it will be, if that is known
    size_t num_threads = 0;
};

// Makes an archive of bytes that come in pieces. Memory: a block a thread, and what coding it takes.
class ArchiveWriter {
  public:
    // InvalidArgument: an unknown method, a level or block size out of range.
    static Result<ArchiveWriter> make(const WriterSettings& settings);

    // Takes bytes and returns those of the archive that are done, some or none.
    std::vector<uint8_t> append(Bytes bytes);
    // The rest of the archive. InvalidArgument: there were not content_bytes bytes. Called once, last.
    Result<std::vector<uint8_t>> finish();

  private:
    ArchiveWriter(const Header& header, const BlockCoder& coder, size_t num_threads);
    void encode_blocks(Bytes blocks, std::vector<uint8_t>& out);

    Header header_;
    const BlockCoder* coder_;
    size_t num_threads_;
    std::vector<uint8_t> waiting_;  // fewer bytes than a block a thread
    bool has_begun_ = false;
    uint64_t seed_ = 0;
    uint64_t num_blocks_ = 0;
    uint64_t num_bytes_ = 0;
    uint64_t chain_ = 0;  // of the blocks' checksums
};

// Reads an archive that comes in pieces. Once it has returned an error it is of no more use.
class ArchiveReader {
  public:
    // max_output: bytes that may come out in all. num_threads 0: one a core.
    explicit ArchiveReader(uint64_t max_output, size_t num_threads = 0);

    // Takes bytes of an archive and returns, of the content, bytes that are decoded and verified, some or none.
    // Malformed: it is no archive, damaged, of another version, of a method or model that is not here, or has more than
    // max_output bytes. O(bytes + what comes out), and no more memory than that and a block a thread.
    Result<std::vector<uint8_t>> append(Bytes bytes);
    // Malformed: the archive does not end here.
    Status finish() const;
    // Once it has been read.
    const std::optional<Header>& header() const { return header_; }

  private:
    struct Block {
        size_t coded_begin;  // in waiting_
        size_t coded_bytes;
        size_t num_bytes;
        bool is_stored;
        uint64_t checksum;
        uint64_t seed;  // of the bytes' checksum: it stands for all else that the checksum is of
    };
    Status read(std::vector<uint8_t>& out);
    // nullopt: the record is not complete yet.
    std::optional<Result<size_t>> read_block(Bytes record);
    Status read_end(Bytes record);
    Status decode_pending(std::vector<uint8_t>& out);

    uint64_t max_output_;
    size_t num_threads_;
    std::vector<uint8_t> waiting_;
    size_t num_read_ = 0;         // of waiting_
    std::vector<Block> pending_;  // read, not decoded
    std::optional<Header> header_;
    const BlockCoder* coder_ = nullptr;
    bool has_ended_ = false;
    uint64_t seed_ = 0;
    uint64_t num_blocks_ = 0;
    uint64_t num_bytes_ = 0;
    uint64_t chain_ = 0;
};

// The header at the front of an archive. Malformed, as ArchiveReader.
Result<Header> read_header(Bytes archive);

// In one go.
Result<std::vector<uint8_t>> compress(Bytes bytes, WriterSettings settings);
Result<std::vector<uint8_t>> decompress(Bytes archive, uint64_t max_output, size_t num_threads = 0);

}  // namespace fastcompress::archive
