#include "fastcompress/bpe/encoder.h"

#include <algorithm>
#include <utility>

namespace fastcompress::bpe {

// The tokens themselves are the pretokens to expect: with them in the cache, the first text finds most of what it meets.
// (Half of the distinct pretokens of 5 MB of English are tokens, and 94 of a hundred that occur.)
void Encoder::fill_cache_with_tokens() {
    if (std::exchange(has_tokens_in_cache_, true)) return;
    struct Seed {
        ShortKey key;
        PretokenCache::Set* set;
    };
    constexpr size_t kAhead = 16;
    std::array<Seed, kAhead> seeds;
    cache_.make_room_for(8 * vocabulary_.size());
    size_t num_seeds = 0;
    const auto insert = [&](size_t i) {
        const Seed& seed = seeds[i % kAhead];
        const TokenId whole = vocabulary_.whole_pretoken(seed.key);
        if (whole != kNoToken) cache_.insert(seed.set, seed.key, {}, {&whole, 1});
    };
    for (TokenId id = 0; id < vocabulary_.size(); ++id) {
        const Bytes bytes = vocabulary_.token_bytes(id);
        if (bytes.empty() || bytes.size() > ShortKey::kMaxBytes || !vocabulary_.is_ordinary(id)) continue;
        if (num_seeds >= kAhead) insert(num_seeds - kAhead);
        const ShortKey key = ShortKey::of_readable(bytes.data(), bytes.size());
        vocabulary_.prefetch_whole_pretoken(key);
        seeds[num_seeds++ % kAhead] = {key, cache_.prefetch(key)};
    }
    for (size_t i = num_seeds - std::min(num_seeds, kAhead); i < num_seeds; ++i) insert(i);
}

void Encoder::encode(Bytes text, TokenBuffer& out) {
    uint64_t end;
    encode(std::span(&text, 1), out, &end);
}

void Encoder::encode(std::span<const Bytes> texts, TokenBuffer& out, uint64_t* ends) {
    // So much is settled at once: enough for the unknown pretokens of it to keep all lanes busy, and little enough for its
    // ids to stay in the cache.
    constexpr size_t kUnitBytes = size_t{1} << 16;
    // Less text than this takes less time than to fill the cache.
    constexpr size_t kManyBytes = size_t{1} << 19;
    if (!has_tokens_in_cache_) {
        for (const Bytes text : texts) num_bytes_seen_ += text.size();
        if (num_bytes_seen_ >= kManyBytes) fill_cache_with_tokens();
    }
    places_.clear();
    num_unknown_ = 0;
    unit_begin_ = out.size();
    size_t num_bytes = 0;
    for (const Bytes text : texts) {
        pretokenizer::PretokenFinder finder(vocabulary_.pattern(), text);
        while (finder.next()) {
            encode_found(finder, text, out);
            num_bytes += finder.end() - finder.begin();
            if (num_bytes >= kUnitBytes) {
                ends = settle(out, ends);
                num_bytes = 0;
            }
        }
        places_.push_back({.offset = out.size() - unit_begin_});
    }
    settle(out, ends);
}

void Encoder::encode_found(const pretokenizer::PretokenFinder& found, Bytes text, TokenBuffer& out) {
    const std::span<const uint32_t> ends = found.ends();
    batch_.base = text.data() + found.begin();
    batch_.borders[0] = 0;
    for (size_t first = 0; first < ends.size(); first += Batch::kMaxSize) {
        const std::span<const uint32_t> batch_ends =
            ends.subspan(first, std::min(Batch::kMaxSize, ends.size() - first));
        prepare(batch_ends, text.size() - found.begin());
        emit_known(batch_ends.size(), out);
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
void Encoder::emit_known(size_t count, TokenBuffer& out) {
    constexpr size_t kIdsEach = PretokenCache::kMaxInlineIds;
    const Batch& batch = batch_;
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
            leave_out(batch.pretoken(i), batch.keys[i], batch.sets[i], out.size() - unit_begin_);
        }
        committed = tokens = out.reserve(kIdsEach * (count - i));
    }
    out.commit(static_cast<size_t>(tokens - committed));
}

// Only the first of several occurrences in a unit is to be learned.
void Encoder::leave_out(Bytes pretoken, ShortKey key, PretokenCache::Set* set, size_t offset) {
    const bool is_first = pretoken.size() > ShortKey::kMaxBytes || cache_.expect(set, key);
    if (is_first) vocabulary_.prefetch_whole_pretoken(key);
    places_.push_back({pretoken, key, set, offset, is_first});
    ++num_unknown_;
}

// Third phase: the ids of unknown pretokens are put in where they were left out of the unit. Writes where its texts end,
// and returns where the next end goes.
uint64_t* Encoder::settle(TokenBuffer& out, uint64_t* ends) {
    if (num_unknown_ == 0) {
        for (const Place& place : places_) *ends++ = unit_begin_ + place.offset;
    } else {
        learn();
        const size_t first = std::ranges::find_if(places_, [](const Place& place) { return !place.is_end(); })->offset;
        const std::span<const TokenId> known = out.tokens().subspan(unit_begin_ + first);
        kept_.assign(known.begin(), known.end());
        out.truncate(unit_begin_ + first);
        size_t done = first;  // of the known ids
        for (const Place& place : places_) {
            if (place.offset > done) {
                out.append(std::span<const TokenId>(kept_).subspan(done - first, place.offset - done));
                done = place.offset;
            }
            if (place.is_end()) {
                *ends++ = place.offset < first ? unit_begin_ + place.offset : out.size();
            } else if (place.num_learned > 0) {
                out.append(std::span<const TokenId>(learned_).subspan(place.learned, place.num_learned));
            } else {
                look_up(place.pretoken, place.key, place.set, out);
            }
        }
        out.append(std::span<const TokenId>(kept_).subspan(done - first));
        cache_.grow_if_crowded();
    }
    places_.clear();
    num_unknown_ = 0;
    unit_begin_ = out.size();
    return ends;
}

// Finds the ids of the unknown pretokens, all of them at once: there is more to do while memory is waited for.
void Encoder::learn() {
    to_merge_.clear();
    learned_.clear();
    const auto remember = [&](Place& place, std::span<const TokenId> ids) {
        cache_.insert(place.set, place.key, place.pretoken, ids);
        place.learned = static_cast<uint32_t>(learned_.size());
        place.num_learned = static_cast<uint32_t>(ids.size());
        learned_.insert(learned_.end(), ids.begin(), ids.end());
    };
    for (Place& place : places_) {
        if (!place.is_first || place.pretoken.size() > kMaxLaneBytes) continue;
        const TokenId whole = find_whole(place.pretoken, place.key);
        if (whole == kNoToken) {
            to_merge_.push_back(&place);
        } else {
            remember(place, {&whole, 1});
        }
    }
    lanes_.merge(
        to_merge_.size(), [&](size_t i) { return to_merge_[i]->pretoken; },
        [&](size_t i, std::span<const TokenId> ids, std::span<const uint8_t>) { remember(*to_merge_[i], ids); });
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
    if (pretoken.size() > kMaxLaneBytes) return long_.merge(pretoken, out);
    lanes_.merge(
        1, [&](size_t) { return pretoken; },
        [&](size_t, std::span<const TokenId> ids, std::span<const uint8_t>) { out.append(ids); });
}

}  // namespace fastcompress::bpe
