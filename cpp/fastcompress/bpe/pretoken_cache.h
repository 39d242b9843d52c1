// What pretokens encode to, as far as it was seen lately: bounded, two entries a set, 64 bytes a set (one cache line).
//
// Text repeats itself: of the pretokens of 20 MB of English 97 % were seen before. A pretoken of up to 15 bytes is its
// own key (ShortKey), so that comparing is exact and needs no other memory; a longer one has a hash for a key, and its
// bytes are compared too. An entry holds up to four ids. More of them, and the bytes of long pretokens, lie in an
// arena; when that is full everything in it is forgotten at once, by counting the generations.
//
// An entry whose set is full goes to the set beside, where it takes a little longer to find; if that is full too, it
// pushes the older of its own set out. So the first pretokens of a text, which tend to be its most frequent ones, stay
// where they are found at once. The table grows with what it is given, from 128 KiB for a call on a short text to
// 32 MiB, and not beyond; of the arena's 32 MiB what is not used is never touched (where there is mmap). Hostile text
// can at worst make every look-up miss.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "fastcompress/bpe/short_key.h"
#include "fastcompress/bpe/token_buffer.h"
#include "fastcompress/common/bytes.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/common/prefetch.h"

namespace fastcompress::bpe {

class PretokenCache {
  public:
    static constexpr size_t kMaxInlineIds = 4;
    // Longer ones are seldom seen again, and would crowd out many others.
    static constexpr size_t kMaxBytes = 256;

    struct Entry {
        ShortKey key;
        // Up to kMaxInlineIds ids, each below 2^24, and their number in the most significant byte of the first; or
        // kOutlined there, where the record begins in the arena, its generation, and the number of ids.
        uint32_t ids[4];
    };
    struct alignas(64) Set {
        Entry entries[2];
    };

    // The set that holds the key if any does; its memory is asked for.
    Set* prefetch(ShortKey key) const {
        const uint64_t mixed = (key.low ^ std::rotl(key.high, 29)) * 0x9e3779b97f4a7c15u;
        Set* set = &sets_[(mixed ^ key.high * 0xd6e8feb86659fd93u) >> shift_];
        fastcompress::prefetch(set);
        return set;
    }
    // The entry of the key in its set, or nullptr. Which of the two it is nobody can predict, so it is selected without
    // a branch.
    static const Entry* find(const Set* set, ShortKey key) {
        const bool is_second = set->entries[1].key == key;
        const Entry* entry = &set->entries[is_second];
        return entry->key == key ? entry : nullptr;
    }
    // The same in the set beside, where entries go whose own set is full. For those whom find() left with nothing.
    const Entry* find_beside(const Set* set, ShortKey key) const { return find(beside(set), key); }
    // Whether the ids stand in the entry itself.
    static bool is_inline(const Entry& entry) { return entry.ids[0] < kOutlined; }
    // Writes kMaxInlineIds ids, of which the first few are the entry's; returns how many. Only if is_inline.
    static size_t copy_ids(const Entry& entry, TokenId* out) {
        const uint32_t first = entry.ids[0];
        std::memcpy(out, entry.ids, sizeof entry.ids);
        out[0] = first & 0xffffffu;
        return first >> 24;
    }
    // The ids of an entry that is not inline, and readable for kMaxInlineIds more; empty if they are forgotten, or if
    // it is another long pretoken's.
    std::span<const TokenId> outlined_ids(const Entry& entry, Bytes pretoken) const {
        if (entry.ids[2] != generation_) return {};
        const uint32_t* record = &arena_[entry.ids[1]];
        if (pretoken.size() > ShortKey::kMaxBytes) {
            if (record[0] != pretoken.size() || !equal_bytes(record + 1, pretoken)) return {};
            record += 1 + words_for(pretoken.size());
        }
        return {record, entry.ids[3]};
    }

    // Notes that the ids of a short pretoken which copy_ids() cannot give will be inserted. False if that is noted
    // already.
    bool expect(Set* set, ShortKey key) {
        const Entry* known = find(set, key);
        if (known == nullptr) known = find_beside(set, key);
        if (known != nullptr && known->ids[0] == kExpected) return false;
        put(*set, {key, {kExpected, 0, generation_ + 1, 0}});  // of another generation: as good as forgotten
        return true;
    }
    // Remembers the ids, each below 2^24, of a pretoken of at most kMaxBytes bytes that find() or outlined_ids() did
    // not know.
    void insert(Set* set, ShortKey key, Bytes pretoken, std::span<const TokenId> ids) {
        Entry entry{key, {}};
        const bool is_long = pretoken.size() > ShortKey::kMaxBytes;
        if (ids.size() <= kMaxInlineIds && !is_long) {
            for (size_t i = 0; i < ids.size(); ++i) entry.ids[i] = ids[i];
            entry.ids[0] |= static_cast<uint32_t>(ids.size()) << 24;
        } else {
            entry.ids[0] = kOutlined;
            entry.ids[1] = add_record(is_long ? pretoken : Bytes(), ids);
            entry.ids[2] = generation_;
            entry.ids[3] = static_cast<uint32_t>(ids.size());
        }
        put(*set, entry);
    }
    // Makes room if much was inserted, or for so many entries. Sets that prefetch() gave are not valid afterwards.
    void grow_if_crowded() {
        if (num_inserted_ >= sets_.size() / 2 && sets_.size() < kMostSets) grow(std::min(4 * sets_.size(), kMostSets));
    }
    void make_room_for(size_t num_entries) {
        const size_t wanted = std::min(std::bit_ceil(num_entries), kMostSets);
        if (wanted > sets_.size()) grow(wanted);
    }

  private:
    static constexpr size_t kFewestSets = size_t{1} << 11;
    static constexpr size_t kMostSets = size_t{1} << 19;
    static constexpr uint32_t kOutlined = 0xff000000u;
    static constexpr uint32_t kExpected = kOutlined | 1;
    static constexpr size_t kMaxArenaWords = size_t{1} << 23;  // 32 MiB

    void grow(size_t num_sets) {
        const HugeArray<Set> old = std::exchange(sets_, HugeArray<Set>(num_sets));
        shift_ = 64 - std::countr_zero(num_sets);
        for (size_t i = 0; i < old.size(); ++i) {
            for (const Entry* entry : {&old[i].entries[1], &old[i].entries[0]}) {
                if (entry->key.high != 0) push(*prefetch(entry->key), *entry);
            }
        }
    }
    Set* beside(const Set* set) const { return &sets_[static_cast<size_t>(set - &sets_[0]) ^ 1]; }
    // In place of what the key stood for, if that is forgotten, expected, or another pretoken with this hash.
    void put(Set& set, const Entry& entry) {
        for (Set* place : {&set, beside(&set)}) {
            for (Entry& known : place->entries) {
                if (known.key == entry.key) {
                    known = entry;
                    return;
                }
            }
        }
        push(set, entry);
        ++num_inserted_;
    }
    void push(Set& set, const Entry& entry) {
        for (Set* place : {&set, beside(&set)}) {
            for (Entry& other : place->entries) {
                if (other.key.high == 0) {
                    other = entry;
                    return;
                }
            }
        }
        set.entries[1] = set.entries[0];
        set.entries[0] = entry;
    }
    static size_t words_for(size_t num_bytes) { return (num_bytes + 3) / 4; }
    // Of at least eight bytes: eight at a time, the last ones perhaps twice.
    static bool equal_bytes(const uint32_t* record, Bytes bytes) {
        const auto* copy = reinterpret_cast<const uint8_t*>(record);
        const auto differ = [&](size_t i) {
            uint64_t a;
            uint64_t b;
            std::memcpy(&a, copy + i, 8);
            std::memcpy(&b, bytes.data() + i, 8);
            return a != b;
        };
        for (size_t i = 0; i + 8 < bytes.size(); i += 8) {
            if (differ(i)) return false;
        }
        return !differ(bytes.size() - 8);
    }
    // A record: the number of bytes and the bytes, if there are any, padded to words; then the ids.
    uint32_t add_record(Bytes bytes, std::span<const TokenId> ids) {
        const size_t num_words = (bytes.empty() ? 0 : 1 + words_for(bytes.size())) + ids.size();
        // All of it at once: memory that is never touched costs nothing, growing would copy.
        if (arena_.size() == 0) arena_ = HugeArray<uint32_t>(kMaxArenaWords);
        if (arena_used_ + num_words + kMaxInlineIds > kMaxArenaWords) {
            arena_used_ = 0;
            ++generation_;
        }
        const size_t begin = arena_used_;
        arena_used_ += num_words;  // and kMaxInlineIds more may be read
        uint32_t* out = &arena_[begin];
        if (!bytes.empty()) {
            *out++ = static_cast<uint32_t>(bytes.size());
            std::memcpy(out, bytes.data(), bytes.size());
            out += words_for(bytes.size());
        }
        std::copy(ids.begin(), ids.end(), out);
        return static_cast<uint32_t>(begin);
    }

    HugeArray<Set> sets_{kFewestSets};
    int shift_ = 64 - std::countr_zero(kFewestSets);
    size_t num_inserted_ = 0;
    HugeArray<uint32_t> arena_{0};
    size_t arena_used_ = 0;
    uint32_t generation_ = 0;
};

}  // namespace fastcompress::bpe
