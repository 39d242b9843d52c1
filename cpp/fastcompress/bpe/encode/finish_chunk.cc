// The end of a chunk: the pretokens that nothing knows yet are merged side by side, then all ids of the chunk are copied to
// the output in their order.
#include <algorithm>

#include "fastcompress/bpe/encode/encoder.h"

namespace fastcompress::bpe {

void Encoder::begin_chunk() {
    found_.clear();
    inserted_.clear();
    insertions_.clear();
    unknown_.clear();
}

// Appends the ids of the chunk to `out` and writes where its texts end. Returns where the next end goes.
uint64_t* Encoder::finish_chunk(TokenBuffer& out, uint64_t* ends) {
    merge_unknown();
    // Which may be read past the last ids.
    const TokenId* next = found_.reserve(kManyIds) - found_.size();
    const TokenId* const inserted = inserted_.reserve(kFewIds) - inserted_.size();
    size_t done = 0;  // of the ids in found_
    for (const Insertion& insertion : insertions_) {
        out.append_wide<kManyIds>({next, insertion.offset - done});
        next += insertion.offset - done;
        done = insertion.offset;
        if (insertion.num_ids < Insertion::kUnknown) {
            out.append_wide<kFewIds>({inserted + insertion.first, insertion.num_ids});
        } else if (insertion.num_ids == Insertion::kTextEnd) {
            *ends++ = out.size();
        } else {
            const Unknown& unknown = unknown_[insertion.first];
            look_up(unknown.pretoken, unknown.key, unknown.set, out);
        }
    }
    out.append_wide<kManyIds>({next, found_.size() - done});
    cache_.grow_if_crowded();
    begin_chunk();
    return ends;
}

// Merges the unknown pretokens that lanes can take, all of them at once: the more there are, the better the waits for
// memory overlap. Of several equal ones only the first is merged, the others find its ids in the cache afterwards; until
// then the cache notes that they are expected.
void Encoder::merge_unknown() {
    for (std::vector<Unknown*>& list : to_merge_) list.clear();
    for (Unknown& unknown : unknown_) {
        const size_t size = unknown.pretoken.size();
        if (size > kMaxLaneBytes || !cache_.expect(unknown.set, unknown.key)) continue;
        // Short tokens were found before (resolve_misses).
        const TokenId whole =
            size > ShortKey::kMaxBytes ? vocabulary_.whole_pretoken(unknown.pretoken) : TokenId{kNoToken};
        if (whole != kNoToken) {
            remember(unknown, {&whole, 1});
        } else {
            to_merge_[(size > kShortLaneBytes) + (size > kMiddleLaneBytes)].push_back(&unknown);
        }
    }
    merge_in(std::get<0>(lanes_), to_merge_[0]);
    merge_in(std::get<1>(lanes_), to_merge_[1]);
    merge_in(std::get<2>(lanes_), to_merge_[2]);
}

template <class Lanes>
void Encoder::merge_in(Lanes& lanes, std::span<Unknown* const> pretokens) {
    lanes.merge(
        pretokens.size(), [&](size_t i) { return pretokens[i]->pretoken; },
        [&](size_t i, std::span<const TokenId> ids, std::span<const uint8_t>) { remember(*pretokens[i], ids); });
}

void Encoder::remember(const Unknown& unknown, std::span<const TokenId> ids) {
    cache_.insert(unknown.set, unknown.key, unknown.pretoken, ids);
    Insertion& insertion = insertions_[unknown.insertion];
    insertion.first = static_cast<uint32_t>(inserted_.size());
    insertion.num_ids = static_cast<uint32_t>(ids.size());
    inserted_.append(ids);
}

}  // namespace fastcompress::bpe
