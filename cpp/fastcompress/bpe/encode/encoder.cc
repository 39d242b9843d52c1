#include "fastcompress/bpe/encode/encoder.h"

#include <algorithm>
#include <utility>

namespace fastcompress::bpe {
namespace {

// How many ids are copied at a time: of what lies between two pretokens whose ids are elsewhere, and of one pretoken.
constexpr size_t kManyIds = 16;
constexpr size_t kFewIds = 8;

}  // namespace

// The first tokens of a vocabulary are the most frequent ones: to put them in side by side costs less than to find one
// after the other as text comes.
void Encoder::prepare_for_much() {
    constexpr size_t kUsualEntries = size_t{1} << 17;
    constexpr TokenId kNumSeeds = 1 << 15;
    constexpr size_t kAhead = 16;
    if (std::exchange(is_prepared_, true)) return;
    cache_.make_room_for(kUsualEntries);
    struct Seed {
        ShortKey key;
        PretokenCache::Set* set;
    };
    std::array<Seed, kAhead> seeds;
    size_t num_seeds = 0;
    const auto insert = [&](size_t i) {
        const Seed& seed = seeds[i % kAhead];
        const TokenId whole = vocabulary_.whole_pretoken(seed.key);
        if (whole != kNoToken) cache_.insert(seed.set, seed.key, {}, {&whole, 1});
    };
    for (TokenId id = 0; id < std::min<size_t>(kNumSeeds, vocabulary_.size()); ++id) {
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
    // So much text has enough pretokens for the cache to be made large at once instead of by and by.
    constexpr size_t kManyBytes = size_t{1} << 19;
    if (!is_prepared_) {
        for (const Bytes text : texts) num_bytes_seen_ += text.size();
        if (num_bytes_seen_ >= kManyBytes) prepare_for_much();
    }
    places_.clear();
    num_unknown_ = 0;
    unit_begin_ = out.size();
    size_t num_bytes = 0;
    const auto add_to_unit = [&](size_t count) {
        num_bytes += count;
        if (num_bytes < kUnitBytes) return;
        ends = settle(out, ends);
        num_bytes = 0;
    };
    for (const Bytes text : texts) {
        pretokenizer::PretokenFinder finder(vocabulary_.pattern(), text);
        while (finder.next()) {
            encode_found(finder, text, out);
            add_to_unit(finder.end() - finder.begin());
        }
        places_.push_back({.offset = out.size() - unit_begin_});
        add_to_unit(sizeof(Place));  // so that units of short texts, or empty ones, end, too
    }
    settle(out, ends);
}

void Encoder::encode_found(const pretokenizer::PretokenFinder& found, Bytes text, TokenBuffer& out) {
    const std::span<const uint32_t> ends = found.ends();
    batch_.base = text.data() + found.begin();
    batch_.first_begin = 0;
    for (size_t first = 0; first < ends.size(); first += Batch::kMaxSize) {
        batch_.ends = ends.subspan(first, std::min(Batch::kMaxSize, ends.size() - first));
        prepare(text.size() - found.begin());
        switch (cache_.id_bits()) {
            case 16: emit_inline<16>(out); break;
            case 18: emit_inline<18>(out); break;
            default: emit_inline<32>(out);
        }
        batch_.first_begin = batch_.ends.back();
    }
}

// First phase: keys, and asking for the cache lines they may be in, so that the waits for memory overlap instead of
// adding up. `num_bytes` may be read from the base on.
void Encoder::prepare(size_t num_bytes) {
    Batch& batch = batch_;
    const std::span<const uint32_t> ends = batch.ends;
    // Sixteen bytes are read of each pretoken, which is too many for the last ones of a text: those are copied.
    size_t num_readable = ends.size();
    while (num_readable > 0 && num_bytes - batch.begin(num_readable - 1) < 16) --num_readable;
    uint32_t sizes = prepare_readable(num_readable);  // all of them, bit by bit
    for (size_t i = num_readable; i < ends.size(); ++i) {
        const Bytes pretoken = batch.pretoken(i);
        batch.keys[i] = ShortKey::of(pretoken.first(std::min(pretoken.size(), ShortKey::kMaxBytes)));
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
        sizes |= static_cast<uint32_t>(pretoken.size());
    }
    static_assert(std::has_single_bit(ShortKey::kMaxBytes + 1));
    if (sizes <= ShortKey::kMaxBytes) return;
    // Which ones are long nobody can predict, so they are listed without a branch.
    std::array<uint16_t, Batch::kMaxSize + 1> long_ones;
    size_t num_long = 0;
    uint32_t begin = batch.first_begin;
    for (size_t i = 0; i < ends.size(); ++i) {
        long_ones[num_long] = static_cast<uint16_t>(i);
        num_long += ends[i] - begin > ShortKey::kMaxBytes;
        begin = ends[i];
    }
    for (size_t k = 0; k < num_long; ++k) {
        const size_t i = long_ones[k];
        batch.keys[i] = ShortKey::of_long(batch.pretoken(i));
        batch.sets[i] = cache_.prefetch(batch.keys[i]);
    }
}

// The first `count` of them, each with 16 bytes to be read. Returns their sizes, all bits of them in one. Apart, since
// this loop takes an eighth of the time, and wants all registers.
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

// Second phase: copy the ids that stand in the cache's entries themselves.
template <int kIdBits>
void Encoder::emit_inline(TokenBuffer& out) {
    Batch& batch = batch_;
    const size_t count = batch.ends.size();
    TokenId* const begin = out.reserve(PretokenCache::kMaxInlineIds * count);
    TokenId* tokens = begin;
    size_t num_others = 0;
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
        batch.others[num_others++] = {static_cast<uint32_t>(i), static_cast<uint32_t>(tokens - begin), nullptr, false};
    }
    const auto num_ids = static_cast<size_t>(tokens - begin);
    if (num_others > 0) return put_in_others(num_others, num_ids, out);
    out.commit(num_ids);
}

// Puts in what the cache knows elsewhere, in its arena or beside a set, among `num_inline` ids that stand behind the end
// of `out`. What is unknown is left out of the unit at first.
void Encoder::put_in_others(size_t num_others, size_t num_inline, TokenBuffer& out) {
    Batch& batch = batch_;
    const std::span<Batch::Other> others(batch.others.data(), num_others);
    for (Batch::Other& other : others) {
        other.entry = cache_.find(batch.sets[other.index], batch.keys[other.index]);
        if (other.entry != nullptr) {
            cache_.prefetch_ids(*other.entry);
        } else {
            other.may_be_token = vocabulary_.may_be_whole_pretoken(batch.keys[other.index]);
            if (other.may_be_token) vocabulary_.prefetch_whole_pretoken(batch.keys[other.index]);
        }
    }
    std::array<TokenId, Batch::kMaxSize * PretokenCache::kMaxInlineIds + kManyIds> rest;
    size_t done = others.front().offset;  // of the inline ids
    std::memcpy(rest.data(), out.reserve(num_inline) + done, (num_inline - done) * sizeof(TokenId));
    const TokenId* next = rest.data();
    out.commit(done);
    size_t num_new = 0;
    for (const Batch::Other& other : others) {
        out.append_wide<kManyIds>({next, other.offset - done});
        next += other.offset - done;
        done = other.offset;
        const Bytes pretoken = batch.pretoken(other.index);
        if (other.may_be_token) {
            const TokenId whole = vocabulary_.whole_pretoken(batch.keys[other.index]);
            if (whole != kNoToken) {
                out.append({&whole, 1});
                others[num_new++] = {other.index, whole, nullptr, true};
                continue;
            }
        }
        if (other.entry == nullptr || !cache_.append_ids(*other.entry, pretoken, out)) {
            places_.push_back({pretoken, batch.keys[other.index], batch.sets[other.index], out.size() - unit_begin_});
            ++num_unknown_;
        }
    }
    out.append_wide<kManyIds>({next, num_inline - done});
    // Not before: entries move, and `others` points to some.
    for (size_t k = 0; k < num_new; ++k) {
        cache_.insert(batch.sets[others[k].index], batch.keys[others[k].index], {}, {&others[k].offset, 1});
    }
}

// Third phase: the ids of unknown pretokens are put in where they were left out of the unit. Writes where its texts end,
// and returns where the next end goes.
uint64_t* Encoder::settle(TokenBuffer& out, uint64_t* ends) {
    if (num_unknown_ == 0) {
        for (const Place& place : places_) *ends++ = unit_begin_ + place.offset;
    } else {
        learn();
        const size_t first = std::ranges::find_if(places_, [](const Place& place) { return !place.is_end(); })->offset;
        known_.clear();
        known_.append(out.tokens().subspan(unit_begin_ + first));
        const TokenId* next = known_.reserve(kManyIds) - known_.size();
        out.truncate(unit_begin_ + first);
        size_t done = first;  // of the known ids
        for (const Place& place : places_) {
            if (place.offset > done) {
                out.append_wide<kManyIds>({next, place.offset - done});
                next += place.offset - done;
                done = place.offset;
            }
            if (place.is_end()) {
                *ends++ = place.offset < first ? unit_begin_ + place.offset : out.size();
            } else if (place.num_learned > 0) {
                out.append_wide<kFewIds>(learned_.tokens().subspan(place.learned, place.num_learned));
            } else {
                look_up(place.pretoken, place.key, place.set, out);
            }
        }
        out.append_wide<kManyIds>({next, known_.size() - (done - first)});
    }
    cache_.grow_if_crowded();
    places_.clear();
    num_unknown_ = 0;
    unit_begin_ = out.size();
    return ends;
}

// Finds the ids of the unknown pretokens that lanes can merge, all of them at once: there is more to do while memory is
// waited for. If one occurs several times in the unit, the first one is learned.
void Encoder::learn() {
    first_.clear();
    for (Place& place : places_) {
        if (place.is_end() || place.pretoken.size() > kMaxWideLaneBytes) continue;
        if (!cache_.expect(place.set, place.key)) continue;
        first_.push_back(&place);
    }
    learned_.clear();
    const auto remember = [&](Place& place, std::span<const TokenId> ids) {
        cache_.insert(place.set, place.key, place.pretoken, ids);
        place.learned = static_cast<uint32_t>(learned_.size());
        place.num_learned = static_cast<uint32_t>(ids.size());
        learned_.append(ids);
    };
    to_merge_.clear();
    to_merge_wide_.clear();
    for (Place* place : first_) {
        const TokenId whole =
            place->pretoken.size() > ShortKey::kMaxBytes ? vocabulary_.whole_pretoken(place->pretoken) : kNoToken;
        if (whole != kNoToken) {
            remember(*place, {&whole, 1});
        } else {
            (place->pretoken.size() <= kMaxLaneBytes ? to_merge_ : to_merge_wide_).push_back(place);
        }
    }
    const auto merge = [&](auto& lanes, const std::vector<Place*>& places) {
        lanes.merge(
            places.size(), [&](size_t i) { return places[i]->pretoken; },
            [&](size_t i, std::span<const TokenId> ids, std::span<const uint8_t>) { remember(*places[i], ids); });
    };
    merge(lanes_, to_merge_);
    merge(wide_lanes_, to_merge_wide_);
    learned_.reserve(kFewIds);  // which may be read beyond the last ones
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
    const PretokenCache::Entry* entry = cache_.find(set, key);
    return entry != nullptr && cache_.append_ids(*entry, pretoken, out);
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
    const auto merge = [&](auto& lanes) {
        lanes.merge(
            1, [&](size_t) { return pretoken; },
            [&](size_t, std::span<const TokenId> ids, std::span<const uint8_t>) { out.append(ids); });
    };
    if (pretoken.size() <= kMaxLaneBytes) return merge(lanes_);
    if (pretoken.size() <= kMaxWideLaneBytes) return merge(wide_lanes_);
    long_.merge(pretoken, out);
}

}  // namespace fastcompress::bpe
