#include "fastcompress/archive/header.h"

#include <algorithm>
#include <string>

#include "fastcompress/archive/records.h"

namespace fastcompress::archive {
namespace {

// Not text (0x89); names the format; and damaged by a transfer that rewrites line ends.
constexpr uint8_t kMagic[8] = {0x89, 'F', 'C', 'F', 'C', 'Z', '\r', '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint8_t kKnowsContentBytes = 1;

}  // namespace

bool may_begin_archive(Bytes bytes) {
    const Bytes first = bytes.first(std::min(bytes.size(), sizeof kMagic));
    return std::equal(first.begin(), first.end(), kMagic);
}

std::vector<uint8_t> header_bytes(const Header& header) {
    ByteWriter out;
    out.raw(kMagic);
    out.u32(kVersion);
    out.u8(static_cast<uint8_t>(header.method));
    out.u8(static_cast<uint8_t>(header.level));
    out.u8(header.content_bytes ? kKnowsContentBytes : 0);
    out.u8(0);
    out.u32(static_cast<uint32_t>(header.block_bytes));
    out.u32(0);
    put_u64(out, header.content_bytes.value_or(0));
    out.raw(header.model_hash);
    put_u64(out, xxh64(out.bytes(), 0));
    return out.take();
}

// Only the magic and the version are examined before the checksum.
Result<Header> read_header(Bytes archive) {
    if (archive.empty() || !may_begin_archive(archive)) {
        return malformed("not an fcz archive (its first eight bytes are not 89 46 43 46 43 5A 0D 0A)");
    }
    if (archive.size() < kHeaderBytes)
        return malformed("fcz archive that ends within its header; copy the whole of it");
    const Bytes bytes = archive.first(kHeaderBytes);
    ByteReader in(bytes.subspan(sizeof kMagic));
    const uint32_t version = in.u32();
    if (version != kVersion) {
        return malformed("fcz archive of format version " + std::to_string(version) + "; this build reads version " +
                         std::to_string(kVersion) + ": update fastcompress");
    }
    ByteReader last(bytes.last(8));
    if (get_u64(last) != xxh64(bytes.first(kHeaderBytes - 8), 0)) return damaged("its header has a wrong checksum");
    Header header;
    header.method = static_cast<Method>(in.u8());
    header.level = in.u8();
    const uint8_t flags = in.u8();
    const uint8_t reserved = in.u8();
    header.block_bytes = in.u32();
    const uint32_t parameter = in.u32();
    const uint64_t content_bytes = get_u64(in);
    std::ranges::copy(in.raw(header.model_hash.size()), header.model_hash.begin());
    const BlockCoder* const coder = block_coder(header.method);
    if (coder == nullptr) {
        return malformed("fcz archive of method " + std::to_string(static_cast<uint8_t>(header.method)) +
                         ", which this build does not have: update fastcompress");
    }
    if (flags == kKnowsContentBytes) header.content_bytes = content_bytes;
    if (flags > kKnowsContentBytes || reserved != 0 || parameter != 0 || (flags == 0 && content_bytes != 0) ||
        header.level < 1 || header.level > coder->max_level() || header.block_bytes < kMinBlockBytes ||
        header.block_bytes > kMaxBlockBytes) {
        return malformed("fcz archive whose header has a setting that this build does not know: update fastcompress");
    }
    return header;
}

}  // namespace fastcompress::archive
