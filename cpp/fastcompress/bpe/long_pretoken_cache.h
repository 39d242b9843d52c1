// What rarer pretokens encode to, as far as it was seen lately: those of more than 15 bytes or of more than four ids.
//
// An open-addressing table of hashes over one arena of bytes and one of ids, which grow as needed. When one of them is
// full the whole cache is forgotten, so its memory is bounded (36 MiB) and there is nothing to evict one by one. Bytes
// are compared, so hashes may collide.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "fastcompress/bpe/token_buffer.h"
#include "fastcompress/common/bytes.h"
#include "fastcompress/common/hash.h"

namespace fastcompress::bpe {

class LongPretokenCache {
  public:
    // Longer ones are seldom seen again, and would crowd out many others.
    static constexpr size_t kMaxBytes = 256;

    // The ids of a pretoken, if it is there; else empty.
    std::span<const TokenId> find(Bytes pretoken, uint64_t hash) const {
        for (size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
            const Slot& slot = slots_[i];
            if (slot.num_ids == 0) return {};
            if (slot.hash == hash && slot.num_bytes == pretoken.size() &&
                std::memcmp(bytes_.data() + slot.first_byte, pretoken.data(), pretoken.size()) == 0) {
                return std::span(ids_).subspan(slot.first_id, slot.num_ids);
            }
        }
    }
    // Remembers the ids of a pretoken of at most kMaxBytes bytes that is not there.
    void insert(Bytes pretoken, uint64_t hash, std::span<const TokenId> ids) {
        if (count_ == kMaxCount || bytes_.size() + pretoken.size() > kMaxArenaBytes ||
            ids_.size() + ids.size() > kMaxArenaIds) {
            clear();
        } else if (2 * count_ >= slots_.size()) {
            grow();
        }
        put({hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(ids_.size()),
             static_cast<uint16_t>(pretoken.size()), static_cast<uint16_t>(ids.size())});
        bytes_.insert(bytes_.end(), pretoken.begin(), pretoken.end());
        ids_.insert(ids_.end(), ids.begin(), ids.end());
        ++count_;
    }

  private:
    static constexpr size_t kFewestSlots = size_t{1} << 8;
    static constexpr size_t kMaxCount = size_t{1} << 18;
    static constexpr size_t kMaxArenaBytes = size_t{1} << 23;
    static constexpr size_t kMaxArenaIds = size_t{1} << 22;
    struct Slot {
        uint64_t hash;
        uint32_t first_byte;
        uint32_t first_id;
        uint16_t num_bytes;
        uint16_t num_ids;  // 0: free
    };

    void put(const Slot& slot) {
        size_t i = slot.hash & (slots_.size() - 1);
        while (slots_[i].num_ids != 0) i = (i + 1) & (slots_.size() - 1);
        slots_[i] = slot;
    }
    void grow() {
        const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
        for (const Slot& slot : old) {
            if (slot.num_ids != 0) put(slot);
        }
    }
    void clear() {
        slots_.assign(kFewestSlots, Slot{});
        bytes_.clear();
        ids_.clear();
        count_ = 0;
    }

    std::vector<Slot> slots_ = std::vector<Slot>(kFewestSlots);  // a power of two, at most half full
    std::vector<uint8_t> bytes_;
    std::vector<TokenId> ids_;
    size_t count_ = 0;
};

}  // namespace fastcompress::bpe
