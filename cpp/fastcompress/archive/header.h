// The header of a compressed file (FORMAT.md, "Header").
#pragma once

#include <optional>
#include <vector>

#include "fastcompress/archive/block_coder.h"

namespace fastcompress::archive {

inline constexpr size_t kMinBlockBytes = size_t{1} << 16;
inline constexpr size_t kMaxBlockBytes = size_t{1} << 26;
inline constexpr size_t kHeaderBytes = 72;

// The fields of a header.
struct Header {
    Method method = Method::kLz;
    unsigned level = 0;
    size_t block_bytes = 0;  // the size of each block except the last, which may be shorter
    std::optional<uint64_t> content_bytes;
    ModelHash model_hash{};

    bool operator==(const Header&) const = default;
};

// Parses the header at the front of a file. kMalformed if it is not an .fcz file, is damaged, has another version, or
// uses a method or setting that this build does not know.
Result<Header> read_header(Bytes archive);

// Returns the kHeaderBytes bytes of a header.
std::vector<uint8_t> header_bytes(const Header& header);

// Returns whether bytes could be the beginning of a compressed file. True for no bytes.
bool may_begin_archive(Bytes bytes);

}  // namespace fastcompress::archive
