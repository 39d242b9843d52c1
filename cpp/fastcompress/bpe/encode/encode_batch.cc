// Looking up pretokens in the cache, a batch at a time: first the keys, then the ids that are found at once, then the
// rest. What neither the cache nor the vocabulary knows is left to finish_chunk.cc.
#include <algorithm>

#include "fastcompress/bpe/encode/encoder.h"

namespace fastcompress::bpe {

void Encoder::encode_found(const pretokenizer::PretokenFinder& found, Bytes text) {
    const std::span<const uint32_t> ends = found.ends();
    batch_.base = text.data() + found.begin();
    batch_.first_begin = 0;
    for (size_t first = 0; first < ends.size(); first += Batch::kMaxSize) {
        batch_.ends = ends.subspan(first, std::min(Batch::kMaxSize, ends.size() - first));
        prepare_batch(text.size() - found.begin());
        switch (cache_.id_bits()) {
            case 16: emit_hits<16>(); break;
            case 18: emit_hits<18>(); break;
            default: emit_hits<32>();
        }
        batch_.first_begin = batch_.ends.back();
    }
}

// First phase: computes keys and prefetches the cache lines they may be in, so that the waits for memory overlap instead
// of adding up. `num_bytes` may be read from the base on.
void Encoder::prepare_batch(size_t num_bytes) {
    Batch& batch = batch_;
    const std::span<const uint32_t> ends = batch.ends;
    // Sixteen bytes are read per pretoken, which is too many for the last ones of a text: those are copied.
    size_t num_readable = ends.size();
    while (num_readable > 0 && num_bytes - batch.begin(num_readable - 1) < 16) --num_readable;
    uint32_t sizes = prepare_readable(num_readable);  // the bitwise or of all sizes
    for (size_t i = num_readable; i < ends.size(); ++i) {
        const Bytes pretoken = batch.pretoken(i);
        batch.keys[i] = ShortKey::of(pretoken.first(std::min(pretoken.size(), ShortKey::kMaxBytes)));
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
        sizes |= static_cast<uint32_t>(pretoken.size());
    }
    static_assert(std::has_single_bit(ShortKey::kMaxBytes + 1));
    if (sizes > ShortKey::kMaxBytes) prepare_long_pretokens();
}

// Prepares the first `count` pretokens, each followed by enough text for 16 bytes to be read, and returns the bitwise or
// of their sizes. A function of its own, since this loop takes an eighth of the time and needs all registers.
[[gnu::noinline]] uint32_t Encoder::prepare_readable(size_t count) {
    const PretokenCache::Finder finder = cache_.finder();
    const uint8_t* const base = batch_.base;
    const uint32_t* const ends = batch_.ends.data();
    ShortKey* keys = batch_.keys.data();
    PretokenCache::Set** sets = batch_.sets.data();
    uint32_t sizes = 0;
    uint32_t begin = batch_.first_begin;
    for (size_t i = 0; i < count; ++i) {
        const uint32_t end = ends[i];
        const ShortKey key = ShortKey::of_readable(base + begin, end - begin);
        keys[i] = key;
        sets[i] = finder.prefetch(key);
        sizes |= end - begin;
        begin = end;
    }
    return sizes;
}

// Gives pretokens that are no ShortKey a hash for a key. Which ones are long cannot be predicted, so they are listed
// without a branch.
void Encoder::prepare_long_pretokens() {
    Batch& batch = batch_;
    std::array<uint16_t, Batch::kMaxSize + 1> long_ones;
    size_t num_long = 0;
    uint32_t begin = batch.first_begin;
    for (size_t i = 0; i < batch.ends.size(); ++i) {
        long_ones[num_long] = static_cast<uint16_t>(i);
        num_long += batch.ends[i] - begin > ShortKey::kMaxBytes;
        begin = batch.ends[i];
    }
    for (size_t k = 0; k < num_long; ++k) {
        const size_t i = long_ones[k];
        batch.keys[i] = ShortKey::of_long(batch.pretoken(i));
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
    }
}

// Second phase: copies the ids that are in an entry of the pretoken's own set.
template <int kIdBits>
void Encoder::emit_hits() {
    Batch& batch = batch_;
    const size_t count = batch.ends.size();
    TokenId* const begin = found_.reserve(PretokenCache::kMaxInlineIds * count);
    const TokenId* const origin = begin - found_.size();
    TokenId* tokens = begin;
    size_t num_misses = 0;
    for (size_t i = 0; i < count; ++i) {
        const size_t num_ids = PretokenCache::copy_first_ids<kIdBits>(batch.sets[i], batch.keys[i], tokens);
        tokens += num_ids;
        if (num_ids - 1 < PackedIds::kNumFirst<kIdBits>) [[likely]]
            continue;
        if (num_ids > 0) {
            PretokenCache::copy_all_ids<kIdBits>(batch.sets[i], batch.keys[i], tokens - num_ids);
            continue;
        }
        cache_.prefetch_beside(batch.sets[i]);
        batch.misses[num_misses++] = {static_cast<uint32_t>(i), static_cast<uint32_t>(tokens - origin), nullptr, false};
    }
    found_.commit(static_cast<size_t>(tokens - begin));
    if (num_misses == 0) return;
    const std::span<Batch::Miss> misses(batch.misses.data(), num_misses);
    find_misses(misses);
    resolve_misses(misses);
}

// Looks further for each miss: in the set beside its own, or whether it may be a token; prefetches what comes next.
void Encoder::find_misses(std::span<Batch::Miss> misses) {
    Batch& batch = batch_;
    for (Batch::Miss& miss : misses) {
        miss.entry = cache_.find(batch.sets[miss.index], batch.keys[miss.index]);
        if (miss.entry != nullptr) {
            cache_.prefetch_ids(*miss.entry);
        } else {
            miss.may_be_token = vocabulary_.may_be_whole_pretoken(batch.keys[miss.index]);
            if (miss.may_be_token) vocabulary_.prefetch_whole_pretoken(batch.keys[miss.index]);
        }
    }
}

// Third phase: lists what is to be inserted for each miss: ids, where the cache or the vocabulary knows them.
void Encoder::resolve_misses(std::span<Batch::Miss> misses) {
    Batch& batch = batch_;
    size_t num_new = 0;
    for (const Batch::Miss miss : misses) {  // a copy, since the first of `misses` are used again
        size_t first = inserted_.size();
        const Bytes pretoken = batch.pretoken(miss.index);
        const ShortKey key = batch.keys[miss.index];
        uint32_t num_ids = Insertion::kUnknown;
        if (miss.entry != nullptr && cache_.append_ids(*miss.entry, pretoken, inserted_)) {
            num_ids = static_cast<uint32_t>(inserted_.size() - first);
        } else if (miss.may_be_token) {
            const TokenId whole = vocabulary_.whole_pretoken(key);
            if (whole != kNoToken) {
                inserted_.append({&whole, 1});
                misses[num_new++] = {miss.index, whole, nullptr, true};
                num_ids = 1;
            }
        }
        if (num_ids == Insertion::kUnknown) {
            first = unknown_.size();
            unknown_.push_back({pretoken, key, batch.sets[miss.index], insertions_.size()});
        }
        insertions_.push_back({miss.offset, num_ids, static_cast<uint32_t>(first)});
    }
    // Not earlier: inserting moves entries, and `misses` points to some.
    for (size_t k = 0; k < num_new; ++k) {
        cache_.insert(batch.sets[misses[k].index], batch.keys[misses[k].index], {}, {&misses[k].offset, 1});
    }
}

}  // namespace fastcompress::bpe
