#include "fastcompress/bpe/train/pretoken_counts.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>

#include "fastcompress/common/prefetch.h"
#include "fastcompress/common/rollback.h"

namespace fastcompress::bpe {
namespace {

// Bytes 0 to 7 of a key and bytes 8 to 14 are adjacent in memory, which entry() relies on.
static_assert(offsetof(ShortKey, low) == 0 && offsetof(ShortKey, high) == 8);

}  // namespace

PretokenCounts& PretokenCounts::operator=(PretokenCounts&& other) noexcept {
    short_slots_ = std::move(other.short_slots_);
    num_short_ = std::exchange(other.num_short_, 0);
    long_entries_ = std::move(other.long_entries_);
    long_bytes_ = std::move(other.long_bytes_);
    long_slots_ = std::move(other.long_slots_);
    other.long_entries_.clear();
    other.long_slots_.clear();
    return *this;
}

void PretokenCounts::add_text(Bytes text, pretokenizer::Pattern pattern) {
    if (short_slots_.size() == 0) grow_short();
    struct Pending {
        ShortKey key;
        uint64_t hash;
    };
    std::array<Pending, 64> pending;
    size_t num_pending = 0;
    // The numbers of short and of long pretokens that have been added, each from the beginning of the text.
    size_t num_short_added = 0;
    size_t num_long_added = 0;
    Rollback rollback([&] { subtract_first(text, pattern, num_short_added, num_long_added); });
    const auto add_pending = [&] {
        for (size_t i = 0; i < num_pending; ++i, ++num_short_added) add_short(pending[i].key, pending[i].hash, 1);
        num_pending = 0;
    };
    // 16 bytes can be read from any byte before this one on.
    const uint8_t* const wide_end = text.data() + (text.size() < 16 ? 0 : text.size() - 15);
    pretokenizer::for_each_pretoken(pattern, text, [&](Bytes pretoken) {
        if (pretoken.size() > ShortKey::kMaxBytes) {
            add_long(pretoken, 1);
            ++num_long_added;
            return;
        }
        const ShortKey key = pretoken.data() < wide_end ? ShortKey::of_readable(pretoken.data(), pretoken.size())
                                                        : ShortKey::of(pretoken);
        const uint64_t hash = key.hash();
        prefetch(&short_slots_[hash & (short_slots_.size() - 1)]);
        pending[num_pending++] = {key, hash};
        if (num_pending == pending.size()) add_pending();
    });
    add_pending();
    rollback.release();
}

void PretokenCounts::subtract_text(Bytes text, pretokenizer::Pattern pattern) {
    subtract_first(text, pattern, SIZE_MAX, SIZE_MAX);
}

// Subtracts the first num_short short and the first num_long long pretokens of a text.
void PretokenCounts::subtract_first(Bytes text, pretokenizer::Pattern pattern, size_t num_short, size_t num_long) {
    pretokenizer::for_each_pretoken(pattern, text, [&](Bytes pretoken) {
        size_t& num_left = pretoken.size() > ShortKey::kMaxBytes ? num_long : num_short;
        if (num_left == 0) return;
        --num_left;
        subtract(pretoken, 1);
    });
    drop_empty_long();
}

void PretokenCounts::add(Bytes pretoken, uint64_t count) {
    assert(!pretoken.empty() && count >= 1);
    if (pretoken.size() > ShortKey::kMaxBytes) return add_long(pretoken, count);
    if (short_slots_.size() == 0) grow_short();
    const ShortKey key = ShortKey::of(pretoken);
    add_short(key, key.hash(), count);
}

void PretokenCounts::add(const PretokenCounts& other) {
    size_t num_added = 0;
    Rollback rollback([&] {
        other.for_each([&](const Entry& entry) {
            if (num_added == 0) return;
            --num_added;
            subtract(entry.pretoken, entry.count);
        });
        drop_empty_long();
    });
    other.for_each([&](const Entry& entry) {
        add(entry.pretoken, entry.count);
        ++num_added;
    });
    rollback.release();
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
    size_t i = find_short(key, hash);
    if (short_slots_[i].key.high != 0) {
        short_slots_[i].count += count;
        return;
    }
    if (num_short_ >= short_slots_.size() / 4 * 3) {
        grow_short();
        i = find_short(key, hash);
    }
    short_slots_[i] = {key, count};
    ++num_short_;
}

// Returns the slot of a key, or the empty slot where it belongs.
size_t PretokenCounts::find_short(ShortKey key, uint64_t hash) const {
    const size_t mask = short_slots_.size() - 1;
    size_t i = hash & mask;
    while (short_slots_[i].key.high != 0 && !(short_slots_[i].key == key)) i = (i + 1) & mask;
    return i;
}

void PretokenCounts::add_long(Bytes pretoken, uint64_t count) {
    if (long_entries_.size() * 2 >= long_slots_.size()) grow_long();

    const uint64_t hash = hash_bytes(pretoken);
    const size_t i = find_long(pretoken, hash);
    if (long_slots_[i] != 0) {
        long_entries_[long_slots_[i] - 1].count += count;
        return;
    }
    if (long_entries_.size() == long_entries_.capacity()) {
        long_entries_.reserve(std::max<size_t>(16, 2 * long_entries_.size()));
    }
    long_bytes_.append(pretoken);
    long_entries_.push_back({hash, long_bytes_.size() - pretoken.size(), pretoken.size(), count});
    long_slots_[i] = static_cast<uint32_t>(long_entries_.size());
}

// Returns the slot of a long pretoken, or the empty slot where it belongs.
size_t PretokenCounts::find_long(Bytes pretoken, uint64_t hash) const {
    const size_t mask = long_slots_.size() - 1;
    size_t i = hash & mask;
    for (; long_slots_[i] != 0; i = (i + 1) & mask) {
        const LongEntry& found = long_entries_[long_slots_[i] - 1];
        if (found.hash == hash && found.length == pretoken.size() &&
            std::memcmp(long_bytes_.data() + found.begin, pretoken.data(), pretoken.size()) == 0) {
            break;
        }
    }
    return i;
}

void PretokenCounts::grow_short() {
    HugeArray<ShortSlot> larger(std::max(kFirstSlots, short_slots_.size() * 2));
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
    long_slots_ = std::vector<uint32_t>(std::max<size_t>(64, long_slots_.size() * 2));
    index_long();
}

// Adds all long entries to long_slots_, which must be empty.
void PretokenCounts::index_long() {
    const size_t mask = long_slots_.size() - 1;
    for (size_t e = 0; e < long_entries_.size(); ++e) {
        size_t i = long_entries_[e].hash & mask;
        while (long_slots_[i] != 0) i = (i + 1) & mask;
        long_slots_[i] = static_cast<uint32_t>(e + 1);
    }
}

// Subtracts what was added before. An entry with count 0 is removed: a short one at once, a long one by
// drop_empty_long().
void PretokenCounts::subtract(Bytes pretoken, uint64_t count) {
    if (pretoken.size() <= ShortKey::kMaxBytes) {
        const ShortKey key = ShortKey::of(pretoken);
        const size_t i = find_short(key, key.hash());
        assert(short_slots_[i].key.high != 0 && short_slots_[i].count >= count);
        short_slots_[i].count -= count;
        if (short_slots_[i].count == 0) erase_short(i);
        return;
    }
    LongEntry& found = long_entries_[long_slots_[find_long(pretoken, hash_bytes(pretoken))] - 1];
    assert(found.count >= count);
    found.count -= count;
}

// Removes an entry. Moves following entries that would no longer be found into the gap.
void PretokenCounts::erase_short(size_t slot) {
    const size_t mask = short_slots_.size() - 1;
    size_t gap = slot;
    for (size_t i = (gap + 1) & mask; short_slots_[i].key.high != 0; i = (i + 1) & mask) {
        const size_t home = short_slots_[i].key.hash() & mask;
        if (((i - home) & mask) < ((i - gap) & mask)) continue;
        short_slots_[gap] = short_slots_[i];
        gap = i;
    }
    short_slots_[gap] = {};
    --num_short_;
}

void PretokenCounts::drop_empty_long() {
    if (std::ranges::none_of(long_entries_, [](const LongEntry& entry) { return entry.count == 0; })) return;
    size_t num_kept = 0;
    size_t end = 0;
    for (const LongEntry& entry : long_entries_) {
        if (entry.count == 0) continue;
        std::memmove(long_bytes_.data() + end, long_bytes_.data() + entry.begin, entry.length);
        long_entries_[num_kept++] = {entry.hash, end, entry.length, entry.count};
        end += entry.length;
    }
    long_entries_.resize(num_kept);
    long_bytes_.shrink(end);
    std::ranges::fill(long_slots_, 0);
    index_long();
}

}  // namespace fastcompress::bpe
