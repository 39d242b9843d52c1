#include "fastcompress/bpe/train/pretoken_counts.h"
#include "fastcompress/common/prefetch.h"

#include <algorithm>
#include <array>

namespace fastcompress::bpe {
namespace {

// bytes 0 to 7 of the key and 8 to 14 follow each other in memory, which entry() relies on
static_assert(offsetof(ShortKey, low) == 0 && offsetof(ShortKey, high) == 8);

}  // namespace

void PretokenCounts::add_text(Bytes text, pretokenizer::Pattern pattern) {
    struct Pending {
        ShortKey key;
        uint64_t hash;
    };
    std::array<Pending, 64> pending;
    size_t num_pending = 0;
    const auto add_pending = [&] {
        for (size_t i = 0; i < num_pending; ++i) add_short(pending[i].key, pending[i].hash, 1);
        num_pending = 0;
    };
    // Up to here 16 bytes can be read from any byte on.
    const uint8_t* const wide_end = text.data() + (text.size() < 16 ? 0 : text.size() - 15);
    pretokenizer::for_each_pretoken(pattern, text, [&](Bytes pretoken) {
        if (pretoken.size() > ShortKey::kMaxBytes) return add_long(pretoken, 1);
        const ShortKey key = pretoken.data() < wide_end ? ShortKey::of_readable(pretoken.data(), pretoken.size())
                                                        : ShortKey::of(pretoken);
        const uint64_t hash = key.hash();
        prefetch(&short_slots_[hash & (short_slots_.size() - 1)]);
        pending[num_pending++] = {key, hash};
        if (num_pending == pending.size()) add_pending();
    });
    add_pending();
}

void PretokenCounts::add(Bytes pretoken, uint64_t count) {
    if (pretoken.size() > ShortKey::kMaxBytes) return add_long(pretoken, count);
    const ShortKey key = ShortKey::of(pretoken);
    add_short(key, key.hash(), count);
}

void PretokenCounts::add(const PretokenCounts& other) {
    other.for_each([this](const Entry& entry) { add(entry.pretoken, entry.count); });
}

size_t PretokenCounts::memory_bytes() const {
    return short_slots_.size() * sizeof(ShortSlot) + long_entries_.capacity() * sizeof(LongEntry) +
           long_bytes_.capacity() + long_slots_.capacity() * sizeof(uint32_t);
}

std::vector<PretokenCounts::Entry> PretokenCounts::sorted() const {
    std::vector<Entry> entries;
    entries.reserve(size());
    for_each([&](const Entry& entry) { entries.push_back(entry); });
    std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
        return as_chars(a.pretoken) < as_chars(b.pretoken);  // char_traits<char> compares as unsigned char
    });
    return entries;
}

void PretokenCounts::add_short(ShortKey key, uint64_t hash, uint64_t count) {
    const size_t mask = short_slots_.size() - 1;
    size_t i = hash & mask;
    for (; short_slots_[i].key.high != 0; i = (i + 1) & mask) {
        if (short_slots_[i].key == key) {
            short_slots_[i].count += count;
            return;
        }
    }
    short_slots_[i] = {key, count};
    if (++num_short_ > short_slots_.size() / 4 * 3) grow_short();
}

void PretokenCounts::add_long(Bytes pretoken, uint64_t count) {
    if (long_entries_.size() * 2 >= long_slots_.size()) grow_long();

    const uint64_t hash = hash_bytes(pretoken);
    const size_t mask = long_slots_.size() - 1;
    size_t i = hash & mask;
    for (; long_slots_[i] != 0; i = (i + 1) & mask) {
        LongEntry& found = long_entries_[long_slots_[i] - 1];
        if (found.hash == hash && found.length == pretoken.size() &&
            std::memcmp(long_bytes_.data() + found.begin, pretoken.data(), pretoken.size()) == 0) {
            found.count += count;
            return;
        }
    }
    long_entries_.push_back({hash, long_bytes_.size(), pretoken.size(), count});
    long_bytes_.append(pretoken);
    long_slots_[i] = static_cast<uint32_t>(long_entries_.size());
}

void PretokenCounts::grow_short() {
    HugeArray<ShortSlot> larger(short_slots_.size() * 2);
    const size_t mask = larger.size() - 1;
    for (size_t s = 0; s < short_slots_.size(); ++s) {
        if (short_slots_[s].key.high == 0) continue;
        size_t i = short_slots_[s].key.hash() & mask;
        while (larger[i].key.high != 0) i = (i + 1) & mask;
        larger[i] = short_slots_[s];
    }
    short_slots_ = std::move(larger);
}

void PretokenCounts::grow_long() {
    long_slots_.assign(std::max<size_t>(64, long_slots_.size() * 2), 0);
    const size_t mask = long_slots_.size() - 1;
    for (size_t e = 0; e < long_entries_.size(); ++e) {
        size_t i = long_entries_[e].hash & mask;
        while (long_slots_[i] != 0) i = (i + 1) & mask;
        long_slots_[i] = static_cast<uint32_t>(e + 1);
    }
}

}  // namespace fastcompress::bpe
