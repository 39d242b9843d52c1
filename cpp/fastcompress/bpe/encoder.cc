#include "fastcompress/bpe/encoder.h"

#include <algorithm>

namespace fastcompress::bpe {
namespace {

// Below this length scanning for the lowest rank beats the queue (measured: benchmarks/LOG.md, 2026-11-28).
constexpr size_t kMaxScanBytes = 96;

}  // namespace

void Encoder::encode(Bytes text, TokenBuffer& out) {
    pretokenizer::PretokenFinder finder(vocabulary_.pattern(), text);
    while (finder.next()) {
        encode_found(finder, text, out);
        cache_.grow_if_crowded();
    }
}

void Encoder::encode_found(const pretokenizer::PretokenFinder& found, Bytes text, TokenBuffer& out) {
    const std::span<const uint32_t> ends = found.ends();
    batch_.base = text.data() + found.begin();
    batch_.borders[0] = 0;
    for (size_t first = 0; first < ends.size(); first += Batch::kMaxSize) {
        const std::span<const uint32_t> batch_ends =
            ends.subspan(first, std::min(Batch::kMaxSize, ends.size() - first));
        prepare(batch_ends, text.size() - found.begin());
        emit(batch_ends.size(), out);
        batch_.borders[0] = batch_ends.back();
    }
}

// First phase: keys, and asking for the cache lines they may be in, so that the waits for memory overlap instead of
// adding up. `num_bytes` may be read from the base on.
void Encoder::prepare(std::span<const uint32_t> ends, size_t num_bytes) {
    Batch& batch = batch_;
    const size_t count = ends.size();
    // Sixteen bytes are read of each pretoken, which is too many for the last ones of a text: those are copied.
    size_t num_readable = count;
    while (num_readable > 0 && num_bytes - (num_readable > 1 ? ends[num_readable - 2] : batch.borders[0]) < 16) {
        --num_readable;
    }
    uint32_t longest = 0;
    uint32_t begin = batch.borders[0];
    for (size_t i = 0; i < num_readable; ++i) {
        const uint32_t end = ends[i];
        batch.keys[i] = ShortKey::of_readable(batch.base + begin, end - begin);
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
        batch.borders[i + 1] = end;
        longest = std::max(longest, end - begin);
        begin = end;
    }
    for (size_t i = num_readable; i < count; ++i) {
        batch.borders[i + 1] = ends[i];
        const Bytes pretoken = batch.pretoken(i);
        batch.keys[i] = ShortKey::of(pretoken.first(std::min(pretoken.size(), ShortKey::kMaxBytes)));
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
        longest = std::max(longest, static_cast<uint32_t>(pretoken.size()));
    }
    if (longest <= ShortKey::kMaxBytes) return;
    for (size_t i = 0; i < count; ++i) {
        const Bytes pretoken = batch.pretoken(i);
        if (pretoken.size() <= ShortKey::kMaxBytes) continue;
        batch.keys[i] = ShortKey::of_long(pretoken);
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
    }
}

// Second phase: look them up, and copy the ids of those that are known. What is unknown is left out at first.
void Encoder::emit(size_t count, TokenBuffer& out) {
    constexpr size_t kIdsEach = PretokenCache::kMaxInlineIds;
    const Batch& batch = batch_;
    const size_t begin = out.size();
    size_t num_unknown = 0;
    TokenId* tokens = out.reserve(kIdsEach * count);
    TokenId* committed = tokens;
    for (size_t i = 0; i < count; ++i) {
        const PretokenCache::Entry* entry = PretokenCache::find(batch.sets[i], batch.keys[i]);
        if (entry != nullptr && PretokenCache::is_inline(*entry)) [[likely]] {
            tokens += PretokenCache::copy_ids(*entry, tokens);
            continue;
        }
        out.commit(static_cast<size_t>(tokens - committed));
        if (!copy_known(batch.pretoken(i), batch.keys[i], batch.sets[i], out)) {
            vocabulary_.prefetch_whole_pretoken(batch.keys[i]);
            unknown_[num_unknown++] = {static_cast<uint32_t>(i), static_cast<uint32_t>(out.size() - begin)};
        }
        committed = tokens = out.reserve(kIdsEach * (count - i));
    }
    out.commit(static_cast<size_t>(tokens - committed));
    if (num_unknown == 0) return;

    const std::span<const Unknown> unknown = std::span(unknown_).first(num_unknown);
    learn(unknown);
    const std::span<const TokenId> known = out.tokens().subspan(begin);
    kept_.assign(known.begin(), known.end());
    out.truncate(begin + unknown[0].offset);
    for (size_t k = 0; k < unknown.size(); ++k) {
        const uint32_t i = unknown[k].index;
        look_up(batch.pretoken(i), batch.keys[i], batch.sets[i], out);
        const size_t end = k + 1 < unknown.size() ? unknown[k + 1].offset : kept_.size();
        out.append(std::span<const TokenId>(kept_).subspan(unknown[k].offset, end - unknown[k].offset));
    }
}

// Puts unknown pretokens of the batch into the cache, all of them at once: there is more to do while memory is waited
// for.
void Encoder::learn(std::span<const Unknown> unknown) {
    std::array<uint32_t, Batch::kMaxSize> to_merge;
    size_t num_to_merge = 0;
    for (const Unknown& place : unknown) {
        const uint32_t i = place.index;
        const Bytes pretoken = batch_.pretoken(i);
        if (pretoken.size() > MergeLanes::kMaxBytes) continue;
        const TokenId whole = find_whole(pretoken, batch_.keys[i]);
        if (whole == kNoToken) {
            to_merge[num_to_merge++] = i;
        } else {
            cache_.insert(batch_.sets[i], batch_.keys[i], pretoken, {&whole, 1});
        }
    }
    lanes_.merge(
        num_to_merge, [&](size_t k) { return batch_.pretoken(to_merge[k]); },
        [&](size_t k, std::span<const TokenId> ids) {
            const uint32_t i = to_merge[k];
            cache_.insert(batch_.sets[i], batch_.keys[i], batch_.pretoken(i), ids);
        });
}

TokenId Encoder::find_whole(Bytes pretoken, ShortKey key) const {
    return pretoken.size() > ShortKey::kMaxBytes ? vocabulary_.whole_pretoken(pretoken)
                                                 : vocabulary_.whole_pretoken(key);
}

void Encoder::encode_pretoken(Bytes pretoken, TokenBuffer& out) {
    if (pretoken.empty()) return;
    const ShortKey key = pretoken.size() > ShortKey::kMaxBytes ? ShortKey::of_long(pretoken) : ShortKey::of(pretoken);
    look_up(pretoken, key, cache_.prefetch(key), out);
    cache_.grow_if_crowded();
}

void Encoder::look_up(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out) {
    if (!copy_known(pretoken, key, set, out)) encode_unknown(pretoken, key, set, out);
}

bool Encoder::copy_known(Bytes pretoken, ShortKey key, const PretokenCache::Set* set, TokenBuffer& out) const {
    const PretokenCache::Entry* entry = PretokenCache::find(set, key);
    if (entry == nullptr) entry = cache_.find_beside(set, key);
    if (entry == nullptr) return false;
    constexpr size_t kStep = PretokenCache::kMaxInlineIds;
    if (PretokenCache::is_inline(*entry)) {
        out.commit(PretokenCache::copy_ids(*entry, out.reserve(kStep)));
        return true;
    }
    const std::span<const TokenId> ids = cache_.outlined_ids(*entry, pretoken);
    if (ids.empty()) return false;
    // Four at a time, the last ones perhaps too many: cheaper than a call to copy them.
    TokenId* tokens = out.reserve(ids.size() + kStep);
    for (size_t i = 0; i < ids.size(); i += kStep) std::memcpy(tokens + i, ids.data() + i, kStep * sizeof(TokenId));
    out.commit(ids.size());
    return true;
}

void Encoder::encode_unknown(Bytes pretoken, ShortKey key, PretokenCache::Set* set, TokenBuffer& out) {
    const size_t before = out.size();
    const TokenId whole = find_whole(pretoken, key);
    if (whole != kNoToken) {
        out.append({&whole, 1});
    } else {
        encode_by_merges(pretoken, out);
    }
    if (pretoken.size() <= PretokenCache::kMaxBytes) {
        cache_.insert(set, key, pretoken, out.tokens().subspan(before));
    }
}

void Encoder::encode_by_merges(Bytes pretoken, TokenBuffer& out) {
    if (pretoken.size() <= kMaxScanBytes) {
        merge_by_scan(pretoken, out);
    } else {
        long_.merge(pretoken, out);
    }
}

// Merges over a doubly linked list in small arrays. The pair that begins at position i has the key rank * 256 + i, or
// all ones if it does not merge: so the least key is the leftmost pair of lowest rank. O(n * merges), no allocation.
void Encoder::merge_by_scan(Bytes pretoken, TokenBuffer& out) {
    static_assert(kMaxScanBytes <= 256 && kMaxVocabularySize <= size_t{1} << 24);
    constexpr uint32_t kNone = 0xffffffffu;
    TokenId ids[kMaxScanBytes];
    uint8_t previous[kMaxScanBytes];
    uint8_t next[kMaxScanBytes + 1];
    uint32_t keys[kMaxScanBytes];
    const size_t size = pretoken.size();

    const auto set_pair = [&](size_t i, uint32_t rank) {
        keys[i] = rank == kNoRank ? kNone : rank << 8 | static_cast<uint32_t>(i);
    };
    for (size_t i = 0; i < size; ++i) {
        ids[i] = vocabulary_.byte_token(pretoken[i]);
        previous[i] = static_cast<uint8_t>(i - 1);
        next[i] = static_cast<uint8_t>(i + 1);
    }
    for (size_t i = 0; i + 1 < size; ++i) set_pair(i, vocabulary_.find_byte_rank(pretoken[i], pretoken[i + 1]));
    keys[size - 1] = kNone;
    for (;;) {
        uint32_t least = kNone;
        for (size_t i = 0; i + 1 < size; ++i) {
            least = std::min(least, keys[i]);
#if defined(__GNUC__)
            asm("" : "+r"(least));  // stay scalar: vector loads would wait for the keys just stored one by one
#endif
        }
        if (least == kNone) break;
        const size_t i = least & 0xff;
        const size_t merged = next[i];
        const size_t after = next[merged];
        ids[i] = vocabulary_.merge_result(least >> 8);
        next[i] = static_cast<uint8_t>(after);
        keys[merged] = kNone;
        keys[i] = kNone;

        if (after < size) {
            previous[after] = static_cast<uint8_t>(i);
            set_pair(i, vocabulary_.find_rank(ids[i], ids[after]));
        }
        if (i > 0) set_pair(previous[i], vocabulary_.find_rank(ids[previous[i]], ids[i]));
    }
    TokenId* tokens = out.reserve(size);
    size_t count = 0;
    for (size_t i = 0; i < size; i = next[i]) tokens[count++] = ids[i];
    out.commit(count);
}

}  // namespace fastcompress::bpe
