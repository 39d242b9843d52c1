// What the container of archives refuses: every field of the header, of a block and of the end that FORMAT.md rules out,
// under checksums that are right, so that nothing but the rule itself can notice; and that an error is final.
#include <functional>

#include "check.h"
#include "fastcompress/archive/container.h"
#include "fastcompress/archive/lz_codec.h"

namespace fastcompress::archive {
namespace {

using ByteVector = std::vector<uint8_t>;

void store(ByteVector& bytes, size_t at, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<uint8_t>(value >> (8 * i));
}
uint64_t load(Bytes bytes, size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | bytes[at + i];
    return value;
}

ByteVector some_text(size_t size) {
    ByteVector text(size);
    for (size_t i = 0; i < size; ++i)
        text[i] = static_cast<uint8_t>("the cat sat on the mat, "[i % 24] + (i % 577 == 0));
    return text;
}

// An archive in parts that can be changed; join() makes the checksums right again.
struct Parts {
    ByteVector header;
    struct Block {
        uint8_t tag;
        uint32_t raw_size, coded_size;
        ByteVector payload, raw;
    };
    std::vector<Block> blocks;
    uint64_t num_blocks = 0, num_bytes = 0;  // in the end

    ByteVector join() const {
        ByteVector out = header;
        store(out, 64, xxh64(Bytes(out).first(64), 0), 8);
        Progress progress;
        progress.begin(out);
        for (const Block& block : blocks) {
            ByteVector head(kBlockHead);
            head[0] = block.tag;
            store(head, 1, block.raw_size, 4);
            store(head, 5, block.coded_size, 4);
            const uint64_t fields = xxh64(Bytes(head).first(kBlockFields), progress.seed + progress.num_blocks);
            const uint64_t checksum = xxh64(block.raw, xxh64(block.payload, fields));
            store(head, kBlockFields, checksum, 8);
            progress.add_block(block.raw.size(), checksum);
            out.insert(out.end(), head.begin(), head.end());
            out.insert(out.end(), block.payload.begin(), block.payload.end());
        }
        ByteVector end(kEndRecord);
        store(end, 1, num_blocks, 8);
        store(end, 9, num_bytes, 8);
        store(end, kEndFields, xxh64(Bytes(end).first(kEndFields), progress.chain), 8);
        out.insert(out.end(), end.begin(), end.end());
        return out;
    }
};

Parts parts_of(const ByteVector& content, const ByteVector& file) {
    Parts parts{ByteVector(file.begin(), file.begin() + kHeaderBytes), {}, 0, content.size()};
    size_t done = 0;
    for (size_t at = kHeaderBytes; file[at] != kEnd;) {
        Parts::Block block{file[at],
                           static_cast<uint32_t>(load(file, at + 1, 4)),
                           static_cast<uint32_t>(load(file, at + 5, 4)),
                           {},
                           {}};
        const auto payload = file.begin() + static_cast<ptrdiff_t>(at + kBlockHead);
        block.payload.assign(payload, payload + block.coded_size);
        const auto raw = content.begin() + static_cast<ptrdiff_t>(done);
        block.raw.assign(raw, raw + block.raw_size);
        done += block.raw_size;
        at += kBlockHead + block.coded_size;
        parts.blocks.push_back(std::move(block));
    }
    parts.num_blocks = parts.blocks.size();
    return parts;
}

// Why an archive is refused; empty if it is not. Read in one piece and byte by byte, the reason is the same, and final.
std::string refusal(const ByteVector& file, uint64_t max_output = 1 << 20) {
    const auto whole = decompress(file, max_output, 1);
    ArchiveReader reader(max_output, 2);
    Status error;
    size_t next = 0;
    for (; next < file.size() && error.ok(); ++next) {
        auto out = reader.append(Bytes(file).subspan(next, 1));
        if (!out.ok()) error = out.status();
    }
    if (error.ok()) error = reader.finish();
    CHECK_EQ(error.message, whole.ok() ? std::string() : whole.status().message);
    if (!error.ok()) CHECK(error.code == StatusCode::kMalformed);
    if (next < file.size() && !error.ok()) {
        const auto again = reader.append(Bytes(file).subspan(next));
        CHECK(!again.ok() && again.status().message == error.message);
        CHECK(!reader.append({}).ok());
        CHECK_EQ(reader.finish().message, error.message);
    }
    return error.message;
}

const ByteVector kContent = some_text(2 * kMinBlockBytes + 1000);

Parts make_good_parts(Method method) {
    auto writer = ArchiveWriter::make({method, 3, kMinBlockBytes, std::nullopt, 1});
    ByteVector file = writer->append(kContent);
    const auto rest = writer->finish();
    file.insert(file.end(), rest->begin(), rest->end());
    const Parts parts = parts_of(kContent, file);
    CHECK(parts.join() == file);
    CHECK_EQ(refusal(file), "");
    return parts;
}

// An archive of `kContent` that is not refused, made once for each method: the context mixer takes seconds for it.
const Parts& good_parts(Method method = Method::kLz) {
    static const Parts lz = make_good_parts(Method::kLz);
    static const Parts cm = make_good_parts(Method::kCm);
    return method == Method::kLz ? lz : cm;
}

void test_refused(const char* reason, const std::function<void(Parts&)>& change) {
    Parts parts = good_parts();
    change(parts);
    const std::string message = refusal(parts.join());
    CHECK_EQ(message.find(reason) == std::string::npos ? message : reason, reason);
}

void test_headers() {
    const auto with = [](const char* reason, size_t at, uint64_t value, size_t size) {
        test_refused(reason, [&](Parts& parts) { store(parts.header, at, value, size); });
    };
    const char* const setting = "a setting that this build does not know";
    with("not an fcz archive", 7, '\r', 1);
    with("format version 2", 8, 2, 4);
    with("of method 3", 12, 3, 1);
    with("of method 0", 12, 0, 1);
    with(setting, 13, 0, 1);
    with(setting, 13, kMaxLzLevel + 1, 1);
    with(setting, 14, 2, 1);
    with(setting, 15, 1, 1);
    with(setting, 16, kMinBlockBytes - 1, 4);
    with(setting, 16, kMaxBlockBytes + 1, 4);
    with(setting, 20, 1, 4);
    with(setting, 24, 1, 8);  // a size, though the flag says that it is not known
    with("that needs the model 0100", 32, 1, 1);
    ByteVector file = good_parts().join();
    file[64] ^= 1;
    CHECK(refusal(file).find("its header has a wrong checksum") != std::string::npos);
}

void test_sizes_known() {
    Parts parts = good_parts();
    parts.header[14] = 1;
    store(parts.header, 24, kContent.size(), 8);
    CHECK_EQ(refusal(parts.join()), "");
    CHECK_EQ(refusal(parts.join(), kContent.size()), "");
    CHECK(refusal(parts.join(), kContent.size() - 1).find("more than max_output") != std::string::npos);
    store(parts.header, 24, kContent.size() - 1, 8);
    CHECK(refusal(parts.join()).find("block 2 exceeds the size in the header") != std::string::npos);
    store(parts.header, 24, kContent.size() + 1, 8);
    CHECK(refusal(parts.join()).find("its end does not fit the size in the header") != std::string::npos);
}

void test_blocks_and_ends() {
    test_refused("block 0 is of an unknown kind", [](Parts& parts) { parts.blocks[0].tag = 3; });
    test_refused("block 1 is empty or too long", [](Parts& parts) { parts.blocks[1].raw_size = 0; });
    test_refused("block 1 is empty or too long", [](Parts& parts) { parts.blocks[1].raw_size = kMinBlockBytes + 1; });
    test_refused("block 1 follows one that is not full",
                 [](Parts& parts) { std::swap(parts.blocks[0], parts.blocks[2]); });
    test_refused("block 2 is longer coded", [](Parts& parts) { parts.blocks[2].tag = kStored; });
    test_refused("block 0 is longer coded", [](Parts& parts) {  // as long as it is
        Parts::Block& block = parts.blocks[0];
        block.payload.resize(block.raw.size());
        block.coded_size = block.raw_size;
    });
    test_refused("its end does not fit its blocks", [](Parts& parts) { ++parts.num_blocks; });
    test_refused("its end does not fit its blocks", [](Parts& parts) { --parts.num_bytes; });
    test_refused("block 1 has a wrong checksum", [](Parts& parts) { parts.blocks[1].raw[5] ^= 1; });

    // A stored block, though coded it would be shorter, is an encoder's choice.
    Parts parts = good_parts();
    Parts::Block& block = parts.blocks[1];
    block = {kStored, block.raw_size, block.raw_size, block.raw, block.raw};
    CHECK_EQ(refusal(parts.join()), "");
    ByteVector file = parts.join();
    file.push_back(0);
    CHECK(refusal(file).find("bytes after its end") != std::string::npos);
    file.resize(file.size() - 2);
    CHECK(refusal(file).find("ends within block 3 or before its end") != std::string::npos);
    CHECK(refusal(ByteVector(file.begin(), file.begin() + 70)).find("within its header") != std::string::npos);
    CHECK(refusal({}).find("it is empty") != std::string::npos);
}

// A coded block in other words than an encoder's.
void test_one_spelling(Method method) {
    const auto refused = [&](const std::function<void(ByteVector&)>& change) {
        Parts parts = good_parts(method);
        Parts::Block& block = parts.blocks[0];
        change(block.payload);
        block.coded_size = static_cast<uint32_t>(block.payload.size());
        CHECK(refusal(parts.join()).find("block 0 cannot be decoded") != std::string::npos);
    };
    refused([](ByteVector& coded) { coded.push_back(0); });
    refused([](ByteVector& coded) { coded.push_back(7); });
    if (method == Method::kCm) {
        refused([](ByteVector& coded) { coded.back() ^= 1; });
        return;
    }
    // The sizes of four messages follow the first byte. Each of them longer by a zero; each message longer by a zero.
    for (size_t stream = 0; stream < 4; ++stream) {
        const auto end_of_size = [&](const ByteVector& coded) {
            size_t at = 1;
            for (size_t left = stream;; ++at) {
                if (coded[at] >= 0x80) continue;
                if (left-- == 0) return at;
            }
        };
        refused([&](ByteVector& coded) {
            const size_t at = end_of_size(coded);
            coded[at] |= 0x80;
            coded.insert(coded.begin() + static_cast<ptrdiff_t>(at + 1), uint8_t{0});
        });
        refused([&](ByteVector& coded) {
            std::vector<size_t> sizes;
            size_t at = 1;
            for (; sizes.size() < 4; ++at) {
                size_t size = 0;
                for (unsigned shift = 0;; shift += 7, ++at) {
                    size |= size_t{coded[at] & 0x7fu} << shift;
                    if (coded[at] < 0x80) break;
                }
                sizes.push_back(size);
            }
            ByteVector changed = {coded[0]};
            for (size_t k = 0; k < 4; ++k) {
                size_t size = sizes[k] + (k == stream);
                for (; size >= 0x80; size >>= 7) changed.push_back(static_cast<uint8_t>(size | 0x80));
                changed.push_back(static_cast<uint8_t>(size));
            }
            for (size_t k = 0; k < 4; ++k) {
                const auto begin = coded.begin() + static_cast<ptrdiff_t>(at);
                changed.insert(changed.end(), begin, begin + static_cast<ptrdiff_t>(sizes[k]));
                if (k == stream) changed.push_back(0);
                at += sizes[k];
            }
            changed.insert(changed.end(), coded.begin() + static_cast<ptrdiff_t>(at), coded.end());
            coded = changed;
        });
    }
}

void test_writer_settings() {
    for (const size_t num_threads : {size_t{1025}, SIZE_MAX, SIZE_MAX / kMaxBlockBytes, size_t{1} << 48}) {
        const auto writer = ArchiveWriter::make({Method::kLz, 1, kMaxBlockBytes, std::nullopt, num_threads});
        CHECK(!writer.ok() && writer.status().code == StatusCode::kInvalidArgument);
        CHECK(!compress(kContent, {Method::kLz, 1, kMinBlockBytes, std::nullopt, num_threads}).ok());
    }
    const ByteVector file = good_parts().join();
    CHECK(*compress(kContent, {Method::kLz, 3, kMinBlockBytes, std::nullopt, kMaxThreads}) ==
          *compress(kContent, {Method::kLz, 3, kMinBlockBytes, std::nullopt, 1}));
    CHECK(*decompress(file, kContent.size(), SIZE_MAX) == kContent);
    // Announced and not kept: nothing is lost, and what is missing may still come.
    auto writer = ArchiveWriter::make({Method::kLz, 3, kMinBlockBytes, 5, 2});
    ByteVector out = writer->append(as_bytes("abc"));
    CHECK(!writer->finish().ok());
    const ByteVector more = writer->append(as_bytes("de"));
    CHECK(more.empty());
    const auto end = writer->finish();
    CHECK(end.ok());
    out.insert(out.end(), end->begin(), end->end());
    CHECK(as_chars(*decompress(out, 5)) == "abcde");
}

}  // namespace
}  // namespace fastcompress::archive

int main() {
    using namespace fastcompress::archive;
    test_headers();
    test_sizes_known();
    test_blocks_and_ends();
    test_one_spelling(Method::kLz);
    test_one_spelling(Method::kCm);
    test_writer_settings();
    return fastcompress::testing::report();
}
