// Bytes from nowhere as an archive, whole and in pieces, and as a coded block; then the same bytes there and back.
#include <algorithm>
#include <cstdlib>

#include "fastcompress/archive/container.h"
#include "fastcompress/archive/lz_codec.h"
#include "fastcompress/common/xxh64.h"

namespace fastcompress::archive {
namespace {

constexpr size_t kMostBytes = size_t{1} << 17;

void expect(bool holds) {
    if (!holds) std::abort();
}

// The checksum of the header made right, so that what is behind it is reached.
void test_archive(Bytes bytes) {
    std::vector<uint8_t> archive(bytes.begin(), bytes.end());
    if (archive.size() >= kHeaderBytes) {
        const uint64_t checksum = xxh64(Bytes(archive).first(kHeaderBytes - 8), 0);
        for (size_t i = 0; i < 8; ++i) archive[kHeaderBytes - 8 + i] = static_cast<uint8_t>(checksum >> (8 * i));
    }
    const auto whole = decompress(archive, kMostBytes, 1);
    expect(!whole.ok() || (*whole).size() <= kMostBytes);
    ArchiveReader reader(kMostBytes, 1);
    std::vector<uint8_t> pieces;
    bool failed = false;
    for (size_t i = 0; i < archive.size() && !failed; ++i) {
        auto out = reader.append(Bytes(archive).subspan(i, 1));
        failed = !out.ok();
        if (!failed) pieces.insert(pieces.end(), out->begin(), out->end());
    }
    failed = failed || !reader.finish().ok();
    expect(failed == !whole.ok());
    expect(failed || pieces == *whole);
}

void test_block(Bytes coded) {
    std::vector<uint8_t> out(coded.size() * 3);
    (void)lz_decode(coded, out);
}

void test_round_trip(Bytes bytes, unsigned level) {
    const auto archive = compress(bytes, {Method::kLz, level, kMinBlockBytes, std::nullopt, 1});
    expect(archive.ok());
    const auto out = decompress(*archive, bytes.size(), 1);
    expect(out.ok() && std::ranges::equal(*out, bytes));
    std::vector<uint8_t> block(bytes.size());
    if (!bytes.empty()) expect(lz_decode(lz_encode(bytes, level), block).ok() && std::ranges::equal(block, bytes));
}

}  // namespace
}  // namespace fastcompress::archive

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace fastcompress::archive;
    if (size < 1 || size > 4096) return 0;
    const fastcompress::Bytes bytes(data + 1, size - 1);
    test_archive(bytes);
    test_block(bytes);
    test_round_trip(bytes, 1 + data[0] % kMaxLzLevel);
    return 0;
}
