// The layout of the records after the header (FORMAT.md), shared by the writer and the reader.
#pragma once

#include <string>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"
#include "fastcompress/common/xxh64.h"

namespace fastcompress::archive {

enum Tag : uint8_t { kEnd = 0, kStored = 1, kCoded = 2 };
inline constexpr size_t kBlockFields = 9;  // tag, raw size, coded size; then their checksum
inline constexpr size_t kBlockHead = kBlockFields + 8;
inline constexpr size_t kEndFields = 17;  // tag, number of blocks, content size; then their checksum
inline constexpr size_t kEndRecord = kEndFields + 8;

inline void put_u64(ByteWriter& out, uint64_t value) {
    out.u32(static_cast<uint32_t>(value));
    out.u32(static_cast<uint32_t>(value >> 32));
}
inline uint64_t get_u64(ByteReader& in) {
    const uint64_t low = in.u32();
    return low | uint64_t{in.u32()} << 32;
}

// How far a file has been written or read: everything that its next record depends on.
struct Progress {
    uint64_t seed = 0;  // the hash of the header, which all checksums depend on
    uint64_t num_blocks = 0;
    uint64_t num_bytes = 0;  // bytes of content
    uint64_t chain = 0;      // the hash of the blocks' checksums

    void begin(Bytes header) { chain = seed = xxh64(header, 1); }
    void add_block(size_t block_bytes, uint64_t checksum) {
        uint8_t bytes[8];
        for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(checksum >> (8 * i));
        chain = xxh64(bytes, chain);
        ++num_blocks;
        num_bytes += block_bytes;
    }
};

inline Status damaged(const std::string& what) {
    return malformed("fcz archive: " + what + "; it is damaged: copy it again");
}

}  // namespace fastcompress::archive
