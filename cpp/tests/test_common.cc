// SHA-256 against FIPS 180-4's examples, UTF-8 both ways against every code point and random ones, two-byte strings, byte
// readers, threads.
#include <atomic>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "fastcompress/common/bytes.h"
#include "fastcompress/common/large_blocks.h"
#include "fastcompress/common/parallel.h"
#include "fastcompress/common/sha256.h"
#include "fastcompress/unicode/utf8.h"
#include "fastcompress/unicode/utf8_encode.h"

namespace fastcompress {
namespace {

std::string hex(const Sha256Digest& digest) {
    std::string text;
    for (const uint8_t byte : digest) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

void test_sha256() {
    CHECK_EQ(hex(sha256(as_bytes(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_EQ(hex(sha256(as_bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_EQ(hex(sha256(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK_EQ(hex(sha256(as_bytes(std::string(1000000, 'a')))),
             "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    // Lengths around the padding's boundaries hash without reading past the end (the sanitizer build checks that).
    for (size_t size = 50; size < 130; ++size) CHECK(sha256(as_bytes(std::string(size, 'x'))) != Sha256Digest{});
    std::string text;
    for (size_t size = 0; size < 300; ++size) {
        Sha256 portable(true);
        portable.update(as_bytes(text));
        CHECK(portable.finish() == sha256(as_bytes(text)));
        text += static_cast<char>(size * size + 7);
    }
}

std::string utf8_of(uint32_t c) {
    const auto byte = [](uint32_t value) { return static_cast<char>(value); };
    if (c < 0x80) return {byte(c)};
    if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & 63))};
    if (c < 0x10000) return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
    return {byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
}

unicode::DecodedCodePoint decode(const std::string& text) {
    return unicode::decode_utf8(as_bytes(text).data(), 0, text.size());
}

void test_utf8() {
    for (uint32_t c = 0; c < 0x110000; ++c) {
        const std::string text = utf8_of(c);
        const unicode::DecodedCodePoint decoded = decode(text);
        const bool is_surrogate = c >= 0xd800 && c < 0xe000;
        if (decoded.value != (is_surrogate ? unicode::kInvalidCodePoint : c) ||
            decoded.length != (is_surrogate ? 1 : text.size())) {
            CHECK_EQ(decoded.value, c);
        }
        for (size_t cut = 1; cut < text.size(); ++cut) {  // truncated
            if (decode(text.substr(0, cut)).value != unicode::kInvalidCodePoint) CHECK_EQ(cut, text.size());
        }
    }
    CHECK_EQ(decode("\xc0\x80").value, unicode::kInvalidCodePoint);          // overlong NUL
    CHECK_EQ(decode("\xe0\x80\x80").value, unicode::kInvalidCodePoint);      // overlong
    CHECK_EQ(decode("\xf0\x80\x80\x80").value, unicode::kInvalidCodePoint);  // overlong
    CHECK_EQ(decode("\xf4\x90\x80\x80").value, unicode::kInvalidCodePoint);  // past U+10FFFF
    for (int lead = 0xf5; lead <= 0xff; ++lead) {
        CHECK_EQ(decode(std::string(1, static_cast<char>(lead)) + "\x80\x80\x80").length, 1u);
    }
}

// The UTF-8 of one character, surrogates replaced.
std::string clean_utf8(uint32_t c) {
    return utf8_of(c >= 0xd800 && c <= 0xdfff ? 0xfffd : c);
}

template <class Char>
void check_encoding(const std::vector<Char>& chars, const std::string& expected) {
    const size_t most_bytes = sizeof(Char) == 1 ? 2 : sizeof(Char) == 2 ? 3 : 4;
    std::vector<uint8_t> out(most_bytes * chars.size() + 16);  // allocated to the byte
    const size_t size = unicode::encode_utf8(chars.data(), chars.size(), out.data());
    CHECK_EQ(as_chars(Bytes(out).first(size)), expected);
}

// Texts of every length up to some vectors' worth, of characters of every length, at random.
template <class Char>
void test_utf8_encoding() {
    std::mt19937 engine(5);
    const auto random = [&](uint32_t limit) { return static_cast<uint32_t>(engine() % limit); };
    const uint32_t kLimits[] = {0x80, 0x100, 0x800, 0x10000, 0x110000};
    for (int round = 0; round < 20000; ++round) {
        std::vector<Char> chars(random(200));
        const uint32_t rare = random(6);
        uint32_t limit = 0x80;
        std::string expected;
        for (size_t i = 0; i < chars.size(); ++i) {
            if (random(8) <= rare) limit = kLimits[random(5)];
            uint32_t code_point = random(limit);
            if (random(64) < rare) code_point = 0xd800 + random(0x800);
            chars[i] = static_cast<Char>(code_point);
            const uint32_t before = i > 0 ? chars[i - 1] : 0;
            const uint32_t here = chars[i];
            expected += clean_utf8(here);
            if (here < 0xdc00 || here > 0xdfff || before < 0xd800 || before >= 0xdc00) continue;
            expected.resize(expected.size() - 6);  // a pair
            expected += clean_utf8(0x10000 + ((before - 0xd800) << 10) + (here - 0xdc00));
        }
        check_encoding(chars, expected);
    }
    std::vector<Char> all;
    std::string expected;
    for (uint32_t code_point = 0; code_point < 0x110000 && code_point <= std::numeric_limits<Char>::max();
         ++code_point) {
        if (code_point == 0xd800) code_point = 0xe000;  // so many surrogates would make pairs
        all.push_back(static_cast<Char>(code_point));
        expected += clean_utf8(code_point);
    }
    check_encoding(all, expected);
}

void test_reader() {
    ByteWriter writer;
    writer.u32(0x01020304);
    writer.string(as_bytes("abc"));
    writer.u8(9);
    const std::vector<uint8_t> bytes = writer.take();
    ByteReader reader{Bytes(bytes)};
    CHECK_EQ(reader.u32(), 0x01020304u);
    CHECK_EQ(as_chars(reader.string()), "abc");
    CHECK_EQ(reader.u8(), 9);
    CHECK(reader.ok() && reader.remaining() == 0);
    CHECK_EQ(reader.u32(), 0u);
    CHECK(!reader.ok());
    ByteReader huge_length{Bytes(bytes).subspan(0, 4)};
    CHECK(huge_length.string().empty() && !huge_length.ok());
}

void test_parallel() {
    for (const size_t count : {0, 1, 2, 3, 10, 1000}) {
        for (const size_t num_threads : {1, 2, 3, 16}) {
            std::vector<std::atomic<int>> visits(count);
            parallel_parts(
                count, num_threads, [](size_t i) { return i % 7; },
                [&](size_t, size_t begin, size_t end) {
                    for (size_t i = begin; i < end; ++i) ++visits[i];
                });
            CHECK(std::ranges::all_of(visits, [](const auto& v) { return v == 1; }));
        }
    }
    bool caught = false;
    try {
        parallel_parts(
            8, 4, [](size_t) { return size_t{1}; },
            [](size_t part, size_t, size_t) {
                if (part == 2) throw std::runtime_error("part 2");
            });
    } catch (const std::runtime_error&) {
        caught = true;
    }
    CHECK(caught);
}

void test_work_shares() {
    for (const size_t count : {0, 1, 5, 1000}) {
        for (const size_t num_threads : {1, 2, 3, 16}) {
            // Each item goes to one thread; what is a thread's own comes in order, what is not from the end of a share.
            std::vector<std::atomic<int>> visits(count);
            WorkShares shares(count, num_threads);
            std::atomic<int> num_wrong = 0;
            parallel_parts(
                num_threads, num_threads, [](size_t) { return size_t{1}; },
                [&](size_t thread, size_t, size_t) {
                    size_t next_own = WorkShares::begin(count, num_threads, thread);
                    while (const auto item = shares.next(thread)) {
                        ++visits[item->index];
                        if (item->is_own) num_wrong += item->index != next_own++;
                    }
                });
            CHECK(std::ranges::all_of(visits, [](const auto& v) { return v == 1; }));
            CHECK_EQ(num_wrong.load(), 0);
        }
    }
    WorkShares shares(10, 2);
    CHECK_EQ(shares.next(0)->index, 0u);
    for (const size_t own : {5, 6, 7, 8, 9}) CHECK_EQ(shares.next(1)->index, own);
    CHECK_EQ(shares.next(1)->index, 4u);  // the last of the other's
    CHECK(!shares.next(1)->is_own);
    CHECK_EQ(shares.next(0)->index, 1u);
    CHECK_EQ(shares.next(0)->index, 2u);
    CHECK(!shares.next(0) && !shares.next(1));
}

void test_large_blocks() {
    // Freed blocks come again, whatever was in them; what is trimmed keeps what it holds.
    constexpr size_t kBytes = 3 * LargeBlocks::kMinBytes;
    std::vector<uint8_t*> blocks;
    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < 2 * LargeBlocks::kNumSpares; ++i) {
            auto* block = static_cast<uint8_t*>(LargeBlocks::allocate(kBytes));
            CHECK(block != nullptr && std::ranges::find(blocks, block) == blocks.end());
            std::fill_n(block, kBytes, static_cast<uint8_t>(i));
            blocks.push_back(block);
        }
        for (size_t i = 0; i < blocks.size(); ++i) {
            constexpr size_t kUsed = LargeBlocks::kHugePage + 5;
            LargeBlocks::trim(blocks[i], kUsed);
            CHECK(std::all_of(blocks[i], blocks[i] + kUsed, [&](uint8_t byte) { return byte == i; }));
            LargeBlocks::free(blocks[i]);
        }
        blocks.clear();
    }
    void* huge = LargeBlocks::allocate(2 * LargeBlocks::kMaxSpareBytes);
    CHECK(huge != nullptr && !LargeBlocks::trim(huge, LargeBlocks::kMaxSpareBytes));
    LargeBlocks::free(huge);
    LargeBlocks::free(std::malloc(10));
    LargeBlocks::free(nullptr);
}

}  // namespace
}  // namespace fastcompress

int main(int argc, char** argv) {
    fastcompress::test_parallel();
    fastcompress::test_work_shares();
    fastcompress::test_large_blocks();
    if (fastcompress::testing::wants_threads_alone(argc, argv)) return fastcompress::testing::report();
    fastcompress::test_sha256();
    fastcompress::test_utf8();
    fastcompress::test_utf8_encoding<uint8_t>();
    fastcompress::test_utf8_encoding<uint16_t>();
    fastcompress::test_utf8_encoding<uint32_t>();
    fastcompress::test_reader();
    return fastcompress::testing::report();
}
