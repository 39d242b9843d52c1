// The cache of pretokens: what goes in comes out, whatever else it holds, and growing loses nothing.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "fastcompress/bpe/encode/pretoken_cache.h"

namespace fastcompress::bpe {
namespace {

std::string name(size_t i, size_t num_bytes) {
    std::string text = std::to_string(i);
    text.resize(num_bytes, 'x');
    return text;
}

ShortKey key_of(const std::string& text) {
    return text.size() > ShortKey::kMaxBytes ? ShortKey::of_long(as_bytes(text)) : ShortKey::of(as_bytes(text));
}

std::vector<TokenId> ids_of(size_t i, size_t count, size_t num_ids) {
    std::vector<TokenId> ids(count);
    for (size_t k = 0; k < count; ++k) ids[k] = static_cast<TokenId>((i * 31 + k * 0x9e3779b1u) % num_ids);
    return ids;
}

// Pretokens of 6 to 45 bytes that are 1 to 12 ids, some of them twice.
void test_growing_loses_nothing(size_t num_ids) {
    const auto text_of = [](size_t i) { return name(i, 6 + i % 40); };
    const auto ids = [&](size_t i) { return ids_of(i, 1 + i % 12, num_ids); };
    PretokenCache cache(num_ids);
    size_t num_lost = 0;
    const auto check = [&](size_t i) {
        const std::string text = text_of(i);
        const PretokenCache::Entry* entry = cache.find(cache.prefetch(key_of(text)), key_of(text));
        TokenBuffer out;
        if (entry == nullptr || !cache.append_ids(*entry, as_bytes(text), out)) {
            ++num_lost;
            return;
        }
        const std::vector<TokenId> expected = ids(i);
        CHECK(std::ranges::equal(out.tokens(), expected));
    };
    constexpr size_t kMost = 120'000;
    for (size_t i = 0; i < kMost; ++i) {
        const std::string text = text_of(i);
        cache.insert(cache.prefetch(key_of(text)), key_of(text), as_bytes(text), ids(i));
        if (i == 50) {
            for (size_t k = 0; k <= i; ++k) check(k);
            CHECK(num_lost == 0);
            cache.make_room_for(1'000);  // has it already
        }
        if (i == 1'000) cache.make_room_for(size_t{1} << 14);
        cache.grow_if_crowded();
    }
    for (size_t i = 0; i < kMost; ++i) check(i);
    CHECK(num_lost < kMost / 25);  // sets that were full: at most three entries for four sets before the table grows
    cache.make_room_for(size_t{1} << 30);
    const size_t num_lost_before = std::exchange(num_lost, 0);
    for (size_t i = 0; i < kMost; ++i) check(i);
    CHECK(num_lost == num_lost_before);
}

// A key of bytes alone is the key of the same bytes before others, and differs from those of other sizes.
void test_short_keys() {
    const std::string text(
        "\0\xff\x80"
        "0123456789abcdefghijklmnopqrs",
        32);
    for (size_t begin = 0; begin < 14; ++begin) {
        for (size_t size = 1; size <= ShortKey::kMaxBytes; ++size) {
            const std::string alone = text.substr(begin, size);
            const std::string copy = alone + std::string(16, 'z');
            CHECK(key_of(alone) == ShortKey::of_readable(as_bytes(copy).data(), size));
            CHECK(!(key_of(alone) == ShortKey::of_readable(as_bytes(copy).data(), size % ShortKey::kMaxBytes + 1)));
        }
    }
}

}  // namespace
}  // namespace fastcompress::bpe

int main() {
    fastcompress::bpe::test_short_keys();
    fastcompress::bpe::test_growing_loses_nothing(size_t{1} << 16);  // ids of 16 bits in an entry
    fastcompress::bpe::test_growing_loses_nothing(size_t{1} << 18);  // of 18
    fastcompress::bpe::test_growing_loses_nothing(size_t{1} << 21);  // of 32
    return fastcompress::testing::report();
}
