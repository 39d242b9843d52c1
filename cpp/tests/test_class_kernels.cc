// The kernels of every instruction set that this machine has, against the plain ones (class_kernels.h), on random bytes
// of every script that has code of its own.
#include <algorithm>

#include "check.h"
#include "fastcompress/pretokenizer/char_blocks.h"
#include "fastcompress/pretokenizer/class_kernels.h"

namespace fastcompress::pretokenizer {
namespace {

constexpr size_t kWords = 3;
constexpr size_t kBytes = 64 * kWords;

std::vector<uint8_t> random_bytes(std::mt19937& random) {
    static const char* const kSome[] = {"a",
                                        "Z",
                                        "'",
                                        " ",
                                        "\n",
                                        "\t",
                                        "7",
                                        "/",
                                        "\xc3\xa9",
                                        "\xd0\x9f",
                                        "\xd1\x8f",
                                        "\xe4\xb8\xad",
                                        "\xea\xb0\x80",
                                        "\xe3\x81\x82",
                                        "\xe3\x83\xbb",
                                        "\xe0\xb8\x81",
                                        "\xf0\x9f\x98\x80",
                                        "\xe2\x80\x99"};
    std::vector<uint8_t> bytes;
    const bool is_any = random() % 4 == 0;
    while (bytes.size() < kBytes + 2) {
        const std::string some = is_any || random() % 8 == 0 ? std::string(1, static_cast<char>(random()))
                                                             : kSome[random() % std::size(kSome)];
        bytes.insert(bytes.end(), some.begin(), some.end());
    }
    bytes.resize(kBytes + 2);  // as many as may be read
    return bytes;
}

std::vector<uint64_t> classify(const ClassKernels& kernels, const uint8_t* bytes, bool with_cases) {
    std::vector<uint64_t> words(10 * kWords);
    const auto row = [&](size_t i) { return &words[i * kWords]; };
    AsciiRows rows = {row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7), nullptr, nullptr};
    if (with_cases) {
        rows.upper = row(8);
        rows.lower = row(9);
    }
    kernels.classify_ascii(bytes, kWords, rows);
    return words;
}

std::vector<uint64_t> match(const ClassKernels& kernels, const uint8_t* bytes, uint32_t code_point, RunFamily family) {
    const uint8_t two[] = {static_cast<uint8_t>(0xc0 | code_point >> 6)};
    const uint8_t three[] = {static_cast<uint8_t>(0xe0 | code_point >> 12),
                             static_cast<uint8_t>(0x80 | (code_point >> 6 & 63))};
    const CharBlock& block = char_block(family, code_point / 64);
    BlockMasks masks;
    kernels.match_block(bytes, code_point < 0x800 ? two : three, code_point < 0x800 ? 2 : 3, block.sets, masks);
    std::vector<uint64_t> found = {masks.all};
    found.insert(found.end(), masks.in_set, masks.in_set + block.sets.size);
    return found;
}

std::vector<uint32_t> list(const ClassKernels& kernels, const uint64_t* words, size_t begin, size_t end) {
    std::vector<uint32_t> listed(kBytes + 64);
    listed.resize(kernels.list_bits(words, begin, end, listed.data()));
    return listed;
}

void test_all_agree() {
    const std::vector<NamedClassKernels> all = class_kernels_for_this_machine();
    CHECK(!all.empty());
    const ClassKernels& plain = all.back().kernels;
    std::mt19937 random(1);
    for (const NamedClassKernels& named : all) {
        const ClassKernels& kernels = named.kernels;
        for (int round = 0; round < 2000; ++round) {
            const std::vector<uint8_t> bytes = random_bytes(random);
            for (const bool with_cases : {false, true}) {
                CHECK(classify(kernels, bytes.data(), with_cases) == classify(plain, bytes.data(), with_cases));
            }
            const auto first = static_cast<uint8_t>(random());
            const auto last = static_cast<uint8_t>(first + random() % (256u - first));
            CHECK(kernels.find_range(bytes.data(), first, last) == plain.find_range(bytes.data(), first, last));
            CHECK(kernels.find_east_asian(bytes.data()) == plain.find_east_asian(bytes.data()));
            for (const uint32_t code_point : {0xe9u, 0x41fu, 0x44fu, 0xe01u, 0x2019u, 0x30fbu,
                                              uint32_t{0x80} + static_cast<uint32_t>(random()) % 0xf000}) {
                for (const RunFamily family : {RunFamily::kBasic, RunFamily::kCases, RunFamily::kScripts}) {
                    CHECK(match(kernels, bytes.data(), code_point, family) ==
                          match(plain, bytes.data(), code_point, family));
                }
            }
            uint64_t words[kWords + 1] = {};
            for (size_t word = 0; word < kWords; ++word) {
                words[word] = (uint64_t{random()} << 32 | random()) & (random() % 2 == 0 ? ~uint64_t{0} : random());
            }
            const size_t begin = random() % (kBytes + 1);
            const size_t end = begin + random() % (kBytes + 1 - begin);
            CHECK(list(kernels, words, begin, end) == list(plain, words, begin, end));
        }
    }
}

// Han, Hangul and kana in every place, and nothing that is no letter: the ranges are written down by hand.
void test_east_asian_letters() {
    for (const NamedClassKernels& named : class_kernels_for_this_machine()) {
        size_t num_found = 0;
        for (uint32_t code_point = 0x800; code_point < 0x10000; ++code_point) {
            std::vector<uint8_t> bytes(66, ' ');
            const size_t offset = code_point % 64;
            bytes[offset] = static_cast<uint8_t>(0xe0 | code_point >> 12);
            bytes[offset + 1] = static_cast<uint8_t>(0x80 | (code_point >> 6 & 63));
            bytes[offset + 2] = static_cast<uint8_t>(0x80 | (code_point & 63));
            const uint64_t found = named.kernels.find_east_asian(bytes.data());
            CHECK(found == 0 || found == uint64_t{1} << offset);
            if (found == 0) continue;
            CHECK(unicode::class_of(code_point) & kLetter);
            ++num_found;
        }
        CHECK(num_found > 30000);
    }
}

}  // namespace
}  // namespace fastcompress::pretokenizer

int main() {
    fastcompress::pretokenizer::test_all_agree();
    fastcompress::pretokenizer::test_east_asian_letters();
    return fastcompress::testing::report();
}
