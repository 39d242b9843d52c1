// What short pretokens encode to, as far as it was seen lately: bounded, two entries a set, 64 bytes a set (one cache
// line).
//
// Text repeats itself: of the pretokens of 20 MB of English 97 % were seen before. A pretoken of up to 15 bytes is its
// own key (ShortKey), so that comparing is exact and needs no other memory. An entry holds up to four ids; what has
// more is left to the other cache.
//
// The newer entry of a set stands first; a new one pushes the older out. The table grows with what it is given, from
// 256 KiB for a call on a short text to 16 MiB, and not beyond: hostile text can at worst make every look-up miss.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "fastcompress/bpe/short_key.h"
#include "fastcompress/common/huge_array.h"

namespace fastcompress::bpe {

class PretokenCache {
  public:
    static constexpr size_t kMaxIds = 4;

    struct Entry {
        ShortKey key;
        uint32_t ids[kMaxIds];  // below 2^24; the count stands in the most significant byte of the first
    };

    struct alignas(64) Set {
        Entry entries[2];
    };

    // The set that holds the key if any does; its memory is asked for.
    Set* prefetch(ShortKey key) const {
        const uint64_t mixed = (key.low ^ std::rotl(key.high, 29)) * 0x9e3779b97f4a7c15u;
        Set* set = &sets_[(mixed ^ key.high * 0xd6e8feb86659fd93u) >> shift_];
#if defined(__GNUC__)
        __builtin_prefetch(set);
#endif
        return set;
    }
    // The entry of the key in its set, or nullptr.
    static const Entry* find(const Set* set, ShortKey key) {
        // Which of the two is not predictable: selected without a branch.
        const bool is_second = ((set->entries[1].key.low ^ key.low) | (set->entries[1].key.high ^ key.high)) == 0;
        const Entry* entry = &set->entries[is_second];
        return ((entry->key.low ^ key.low) | (entry->key.high ^ key.high)) == 0 ? entry : nullptr;
    }
    // Writes kMaxIds ids, of which the first few are the entry's; returns how many.
    static size_t copy_ids(const Entry& entry, uint32_t* out) {
        const uint32_t first = entry.ids[0];
        std::memcpy(out, entry.ids, sizeof entry.ids);
        out[0] = first & 0xffffffu;
        return first >> 24;
    }
    // Remembers up to kMaxIds ids, each below 2^24, for a key that is not in its set.
    void insert(Set* set, ShortKey key, std::span<const uint32_t> ids) {
        Entry entry{key, {}};
        for (size_t i = 0; i < ids.size(); ++i) entry.ids[i] = ids[i];
        entry.ids[0] |= static_cast<uint32_t>(ids.size()) << 24;
        push(*set, entry);
        ++num_inserted_;
    }
    // Makes room if much was inserted. Sets that prefetch() gave are not valid afterwards.
    void grow_if_crowded() {
        if (num_inserted_ < sets_.size() || sets_.size() == kMostSets) return;
        const HugeArray<Set> old = std::exchange(sets_, HugeArray<Set>(4 * sets_.size()));
        shift_ -= 2;
        for (size_t i = 0; i < old.size(); ++i) {
            for (const Entry* entry : {&old[i].entries[1], &old[i].entries[0]}) {
                if (entry->key.high != 0) push(*prefetch(entry->key), *entry);
            }
        }
        num_inserted_ = 0;
    }

  private:
    static constexpr size_t kFewestSets = size_t{1} << 12;
    static constexpr size_t kMostSets = size_t{1} << 18;  // kFewestSets times a power of four

    static void push(Set& set, const Entry& entry) {
        set.entries[1] = set.entries[0];
        set.entries[0] = entry;
    }

    HugeArray<Set> sets_{kFewestSets};
    int shift_ = 64 - std::countr_zero(kFewestSets);
    size_t num_inserted_ = 0;  // since the table last grew
};

}  // namespace fastcompress::bpe
