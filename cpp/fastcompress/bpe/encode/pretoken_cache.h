// Remembers the ids of recent pretokens: bounded, two entries per set, 64 bytes per set (one cache line).
//
// Text repeats itself: of the pretokens of 20 MB of English 97 % were seen before. A pretoken of up to 15 bytes is its
// own key (ShortKey), so that comparing is exact and needs no other memory; a longer one has a hash for a key, and its
// bytes are compared too. An entry holds four to eight ids (packed_ids.h). Longer lists of ids, and the bytes of
// long pretokens, are in an arena; when that is full everything in it is forgotten at once, by counting the generations.
//
// An entry whose set is full goes to the set beside, where it takes a little longer to find; if that is full too, it
// pushes the older of its own set out. So the first pretokens of a text, which tend to be its most frequent ones, stay
// where they are found at once.
//
// The table grows with its entries, from 128 KiB for a call on a short text to 32 MiB at most; what is not used of it, and
// of the 32 MiB of the arena, is never touched. That matters: the system clears what is touched first, and in a first pass
// over 10 MB this took a quarter to a half of the time while the table began with 16 MiB and grew at half an entry per
// set. At a whole entry per set a warm pass was 8 % slower, since more entries are beside their sets. Hostile text can at
// worst make every lookup miss.
//
// If memory for growing or for the arena is refused, std::bad_alloc is thrown before anything has changed.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "fastcompress/bpe/encode/packed_ids.h"
#include "fastcompress/bpe/vocabulary/short_key.h"
#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/common/bytes.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/common/prefetch.h"

namespace fastcompress::bpe {

class PretokenCache {
  public:
    static constexpr size_t kMaxInlineIds = PackedIds::kMax;
    // Longer ones are seldom seen again, and would crowd out many others.
    static constexpr size_t kMaxBytes = 256;
    static constexpr int kCountBits = 4;
    static_assert(kMaxInlineIds < size_t{1} << kCountBits);

    // Ids are below num_ids.
    explicit PretokenCache(size_t num_ids) : id_bits_(PackedIds::bits_for(num_ids)) {}
    int id_bits() const { return id_bits_; }

    // The upper four bits of key.high say how many ids are packed in `ids`. If none are, its words are where their record
    // begins in the arena, the arena's generation then, their number, and whether they are only expected.
    struct Entry {
        ShortKey key;
        PackedIds ids;
        bool is(ShortKey other) const { return ((key.high ^ other.high) << kCountBits | (key.low ^ other.low)) == 0; }
        bool is_empty() const { return key.high == 0; }
        ShortKey pretoken_key() const { return {key.low, key.high << kCountBits >> kCountBits}; }
        size_t num_inline() const { return key.high >> (64 - kCountBits); }
    };
    struct alignas(64) Set {
        Entry entries[2];
    };

    // Finds sets; valid until the cache grows.
    struct Finder {
        uint8_t* sets;
        int shift;
        // Prefetches and returns the set that holds the key if any does.
        Set* prefetch(ShortKey key) const {
            const uint64_t hash = (key.low ^ std::rotl(key.high, 29)) * 0x9e3779b97f4a7c15u;
            auto* const set = reinterpret_cast<Set*>(sets + (hash >> shift & ~(sizeof(Set) - 1)));
            fastcompress::prefetch(set);
            return set;
        }
    };
    Finder finder() const {
        return {reinterpret_cast<uint8_t*>(&sets_[0]), 64 - std::countr_zero(num_sets_ * sizeof(Set))};
    }
    Set* prefetch(ShortKey key) const { return finder().prefetch(key); }
    // The quick look-up: returns how many ids of the key stand in an entry of its set, and writes the first kNumFirst of
    // them. 0: it may be known all the same, see find(). Which of the entries it is nobody can predict, so there is no
    // branch: the second one if the first eight bytes are its. And the count is what the comparison leaves over.
    template <int kIdBits>
    FASTCOMPRESS_INLINED static size_t copy_first_ids(const Set* set, ShortKey key, TokenId* out) {
        const Entry& entry = likely_entry(set, key);
        const uint64_t difference = entry.key.high ^ key.high;
        entry.ids.unpack_first<kIdBits>(out);
        const bool is_same = (difference << kCountBits | (entry.key.low ^ key.low)) == 0;
        return is_same ? difference >> (64 - kCountBits) : 0;
    }
    // Writes all of them, and up to kMaxInlineIds in all, if there are any.
    template <int kIdBits>
    FASTCOMPRESS_INLINED static void copy_all_ids(const Set* set, ShortKey key, TokenId* out) {
        likely_entry(set, key).ids.unpack<kIdBits>(out);
    }
    // The entry of the key, in its set or the one beside it, where entries go whose own set is full; or nullptr.
    const Entry* find(const Set* set, ShortKey key) const {
        const Entry& likely = likely_entry(set, key);
        if (likely.is(key)) return &likely;
        const Set* const other = beside(set);
        for (const Entry* entry : {&set->entries[0], &other->entries[0], &other->entries[1]}) {
            if (entry->is(key)) return entry;
        }
        return nullptr;
    }
    // Asks for the rest of the memory that find() may read.
    [[gnu::always_inline]] void prefetch_beside(const Set* set) const { fastcompress::prefetch(beside(set)); }
    // Appends the ids of a pretoken; false if they are forgotten, only expected, or if they are another long pretoken's.
    bool append_ids(const Entry& entry, Bytes pretoken, TokenBuffer& out) const {
        if (entry.num_inline() > 0) [[unlikely]] {
            entry.ids.unpack(id_bits_, out.reserve(kMaxInlineIds));
            out.commit(entry.num_inline());
            return true;
        }
        if (!is_in_arena(entry)) return false;
        const uint32_t* record = &arena_[entry.ids.words[0]];
        if (pretoken.size() > ShortKey::kMaxBytes) {
            if (record[0] != pretoken.size() || !equal_bytes(record + 1, pretoken)) return false;
            record += 1 + words_for(pretoken.size());
        }
        out.append_wide<kReadable>({record, entry.ids.words[2]});
        return true;
    }
    // Asks for the memory that append_ids() reads.
    [[gnu::always_inline]] void prefetch_ids(const Entry& entry) const {
        if (entry.num_inline() == 0 && is_in_arena(entry)) {
            const uint32_t* record = &arena_[entry.ids.words[0]];
            fastcompress::prefetch(record);
            fastcompress::prefetch(record + kWordsOfLine);  // most records of long pretokens take two cache lines
        }
    }

    // Notes that the ids of a pretoken of at most kMaxBytes bytes, not known so far, will be inserted. False if that is
    // noted already.
    bool expect(Set* set, ShortKey key) {
        const Entry* known = find(set, key);
        if (known != nullptr && known->num_inline() == 0 && known->ids.words[3] != 0) return false;
        put(*set, {key, {{0, 0, 0, 1}}});
        return true;
    }
    // Remembers the ids of a pretoken of at most kMaxBytes bytes, not known so far.
    void insert(Set* set, ShortKey key, Bytes pretoken, std::span<const TokenId> ids) {
        Entry entry{key, {}};
        const bool is_long = pretoken.size() > ShortKey::kMaxBytes;
        if (!is_long && ids.size() * static_cast<size_t>(id_bits_) <= 128) {
            entry.key.high |= uint64_t{ids.size()} << (64 - kCountBits);
            entry.ids = PackedIds::pack(ids, id_bits_);
        } else {
            entry.ids.words[0] = add_record(is_long ? pretoken : Bytes(), ids);
            entry.ids.words[1] = generation_;
            entry.ids.words[2] = static_cast<uint32_t>(ids.size());
        }
        put(*set, entry);
    }
    // Enlarges the table if it is crowded, or for a number of entries. Sets from prefetch() are invalid afterwards.
    void grow_if_crowded() {
        if (num_inserted_ >= num_sets_ / 4 * 3 && num_sets_ < kMostSets) grow(2 * num_sets_);
    }
    void make_room_for(size_t num_entries) {
        const size_t wanted = std::min(std::bit_ceil(num_entries), kMostSets);
        if (wanted > num_sets_) grow(wanted);
    }

  private:
    static const Entry& likely_entry(const Set* set, ShortKey key) {
        return set->entries[set->entries[1].key.low == key.low];
    }
    bool is_in_arena(const Entry& entry) const {  // which holds no ids itself
        return entry.ids.words[1] == generation_ && entry.ids.words[3] == 0;
    }

    static constexpr size_t kFewestSets = size_t{1} << 11;
    static constexpr size_t kFewSets = size_t{1} << 13;  // what there is room for before the large table is made
    static constexpr size_t kMostSets = size_t{1} << 19;
    static constexpr size_t kWordsOfLine = 16;
    static constexpr size_t kReadable = 8;                     // words of the arena past what is asked for
    static constexpr size_t kMaxArenaWords = size_t{1} << 23;  // 32 MiB

    // In place, from the end: what two sets side by side held goes to the `factor` times as many sets that begin `factor`
    // times as far from the beginning.
    void grow(size_t num_sets) {
        if (num_sets > sets_.size()) {
            const HugeArray<Set> few = std::exchange(sets_, HugeArray<Set>(kMostSets));
            std::memcpy(&sets_[0], &few[0], num_sets_ * sizeof(Set));
        }
        const size_t old_num_sets = std::exchange(num_sets_, num_sets);
        const size_t factor = num_sets / old_num_sets;
        for (size_t i = old_num_sets; i > 0;) {
            i -= 2;
            const Set pair[2] = {sets_[i], sets_[i + 1]};
            for (size_t k = i * factor; k < std::min((i + 2) * factor, old_num_sets); ++k) sets_[k] = Set{};
            for (const Set& set : pair) {
                for (const Entry* entry : {&set.entries[1], &set.entries[0]}) {
                    if (!entry->is_empty()) push(*prefetch(entry->pretoken_key()), *entry);
                }
            }
        }
    }
    Set* beside(const Set* set) const { return &sets_[static_cast<size_t>(set - &sets_[0]) ^ 1]; }
    // In place of what the key stood for, if that is forgotten, expected, or another pretoken with this hash.
    void put(Set& set, const Entry& entry) {
        for (Set* place : {&set, beside(&set)}) {
            for (Entry& known : place->entries) {
                if (known.is(entry.pretoken_key())) {
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
                if (other.is_empty()) {
                    other = entry;
                    return;
                }
            }
        }
        set.entries[1] = set.entries[0];
        set.entries[0] = entry;
    }
    static size_t words_for(size_t num_bytes) { return (num_bytes + 3) / 4; }
    // Of at least 16 bytes. Nearly all have at most 32, which are compared without a loop.
    static bool equal_bytes(const uint32_t* record, Bytes bytes) {
        const auto* copy = reinterpret_cast<const uint8_t*>(record);
        const auto differences = [&](size_t i) {
            uint64_t a[2];
            uint64_t b[2];
            std::memcpy(a, copy + i, 16);
            std::memcpy(b, bytes.data() + i, 16);
            return (a[0] ^ b[0]) | (a[1] ^ b[1]);
        };
        if ((differences(0) | differences(bytes.size() - 16)) != 0) return false;
        for (size_t i = 16; i + 16 < bytes.size(); i += 16) {
            if (differences(i) != 0) return false;
        }
        return true;
    }
    // A record: the number of bytes and the bytes, if there are any, padded to words; then the ids.
    uint32_t add_record(Bytes bytes, std::span<const TokenId> ids) {
        const size_t num_words = (bytes.empty() ? 0 : 1 + words_for(bytes.size())) + ids.size();
        // All of it at once: memory that is never touched costs nothing, growing would copy.
        if (arena_.size() == 0) arena_ = HugeArray<uint32_t>(kMaxArenaWords);
        if (arena_used_ + num_words + kReadable > kMaxArenaWords) {
            arena_used_ = 0;
            ++generation_;
        }
        const size_t begin = arena_used_;
        arena_used_ += num_words;  // and kReadable more may be read
        uint32_t* out = &arena_[begin];
        if (!bytes.empty()) {
            *out++ = static_cast<uint32_t>(bytes.size());
            std::memcpy(out, bytes.data(), bytes.size());
            out += words_for(bytes.size());
        }
        std::copy(ids.begin(), ids.end(), out);
        return static_cast<uint32_t>(begin);
    }

    int id_bits_;
    HugeArray<Set> sets_{kFewSets};
    size_t num_sets_ = kFewestSets;
    size_t num_inserted_ = 0;
    HugeArray<uint32_t> arena_{0};
    size_t arena_used_ = 0;
    uint32_t generation_ = 0;
};

}  // namespace fastcompress::bpe
