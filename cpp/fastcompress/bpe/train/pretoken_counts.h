// The number of occurrences of each distinct pretoken, which is all that BPE learns from.
//
// Tables can be added: counting the parts of a corpus separately and adding the tables gives the same counts as
// counting all of it. Nearly all pretokens have up to 15 bytes. For these, the table stores the bytes themselves
// (ShortKey), so that counting one is a single memory access, and they are looked up in batches whose slots were
// prefetched (as in the encoder), so that these accesses overlap.
#pragma once

#include <vector>

#include "fastcompress/bpe/vocabulary/short_key.h"
#include "fastcompress/common/growing_array.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/pretokenizer/pretokenizer.h"

namespace fastcompress::bpe {

class PretokenCounts {
  public:
    struct Entry {
        Bytes pretoken;  // valid until the table changes
        uint64_t count;
    };

    PretokenCounts() = default;
    // A moved-from table is empty.
    PretokenCounts(PretokenCounts&& other) noexcept { *this = std::move(other); }
    PretokenCounts& operator=(PretokenCounts&& other) noexcept;

    // On std::bad_alloc, add_text() and add() add nothing.
    //
    // Adds the pretokens of a text. O(text).
    void add_text(Bytes text, pretokenizer::Pattern pattern);
    // Adds a pretoken `count` times. Requires count >= 1 and a pretoken that is not empty.
    void add(Bytes pretoken, uint64_t count);
    // Adds all entries of another table.
    void add(const PretokenCounts& other);
    // Subtracts a text that add_text() has added; the order does not matter. Allocates nothing, and keeps the memory.
    // O(text), plus O(table) if the text has long pretokens that occur nowhere else.
    void subtract_text(Bytes text, pretokenizer::Pattern pattern);

    size_t size() const { return num_short_ + long_entries_.size(); }  // distinct pretokens
    size_t memory_bytes() const;
    // Removes everything and frees the memory.
    void clear() { *this = PretokenCounts(); }

    // Calls visit(Entry) for each distinct pretoken, in an arbitrary order.
    template <class Visit>
    void for_each(const Visit& visit) const {
        for (uint32_t slot = 0; slot < short_slots_.size(); ++slot) {
            if (short_slots_[slot].key.high != 0) visit(entry(slot));
        }
        for (size_t i = 0; i < long_entries_.size(); ++i) visit(entry(short_slots_.size() + i));
    }
    // Returns all entries, sorted by pretoken; bytes compare as unsigned numbers.
    std::vector<Entry> sorted() const;

  private:
    struct ShortSlot {
        ShortKey key;  // key.high == 0: empty
        uint64_t count;
    };
    struct LongEntry {
        uint64_t hash;
        size_t begin;  // into long_bytes_
        size_t length;
        uint64_t count;
    };
    // Entries are numbered: first the slots of the short table, then the long entries.
    Entry entry(size_t number) const {
        if (number < short_slots_.size()) {
            const ShortSlot& slot = short_slots_[number];
            return {{reinterpret_cast<const uint8_t*>(&slot.key), static_cast<size_t>(slot.key.high >> 56)},
                    slot.count};
        }
        const LongEntry& found = long_entries_[number - short_slots_.size()];
        return {{long_bytes_.data() + found.begin, found.length}, found.count};
    }
    void add_short(ShortKey key, uint64_t hash, uint64_t count);
    void add_long(Bytes pretoken, uint64_t count);
    size_t find_short(ShortKey key, uint64_t hash) const;
    void grow_short();
    void grow_long();
    void index_long();
    size_t find_long(Bytes pretoken, uint64_t hash) const;
    void subtract(Bytes pretoken, uint64_t count);
    void subtract_first(Bytes text, pretokenizer::Pattern pattern, size_t num_short, size_t num_long);
    void erase_short(size_t slot);
    void drop_empty_long();

    HugeArray<ShortSlot> short_slots_;  // open addressing; empty, or a power of two of slots
    size_t num_short_ = 0;
    std::vector<LongEntry> long_entries_;
    GrowingArray<uint8_t> long_bytes_;
    std::vector<uint32_t> long_slots_;  // open addressing: number of the long entry + 1, or 0

    static constexpr size_t kFirstSlots = 1024;
};

}  // namespace fastcompress::bpe
