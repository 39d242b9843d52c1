// The pretokens of a chunk that the cache does not know: they are merged side by side, then put in where they were left
// out.
#include <algorithm>

#include "fastcompress/bpe/encode/encoder.h"

namespace fastcompress::bpe {

// Completes the chunk. Writes where its texts end, and returns where the next end goes.
uint64_t* Encoder::flush_pending(TokenBuffer& out, uint64_t* ends) {
    if (num_unknown_ == 0) {
        for (const PendingPretoken& pending : pending_) *ends++ = chunk_begin_ + pending.offset;
    } else {
        merge_pending();
        ends = emit_pending(out, ends);
    }
    cache_.grow_if_crowded();
    pending_.clear();
    num_unknown_ = 0;
    chunk_begin_ = out.size();
    return ends;
}

// Puts the ids of pending pretokens among the known ids of the chunk.
uint64_t* Encoder::emit_pending(TokenBuffer& out, uint64_t* ends) {
    const auto is_pretoken = [](const PendingPretoken& pending) { return !pending.is_end(); };
    const size_t first = std::ranges::find_if(pending_, is_pretoken)->offset;
    known_.clear();
    known_.append(out.tokens().subspan(chunk_begin_ + first));
    const TokenId* next = known_.reserve(kManyIds) - known_.size();
    out.truncate(chunk_begin_ + first);
    size_t done = first;  // of the known ids
    for (const PendingPretoken& pending : pending_) {
        if (pending.offset > done) {
            out.append_wide<kManyIds>({next, pending.offset - done});
            next += pending.offset - done;
            done = pending.offset;
        }
        if (pending.is_end()) {
            *ends++ = pending.offset < first ? chunk_begin_ + pending.offset : out.size();
        } else if (pending.num_merged > 0) {
            out.append_wide<kFewIds>(merged_.tokens().subspan(pending.merged, pending.num_merged));
        } else {
            look_up(pending.pretoken, pending.key, pending.set, out);
        }
    }
    out.append_wide<kManyIds>({next, known_.size() - (done - first)});
    return ends;
}

// Finds the ids of the pending pretokens that lanes can merge, all of them at once: the more there are, the better the
// waits for memory overlap. Of several equal ones in the chunk only the first is merged; the cache notes it as expected.
void Encoder::merge_pending() {
    to_merge_.clear();
    to_merge_wide_.clear();
    merged_.clear();
    for (PendingPretoken& pending : pending_) {
        if (pending.is_end() || pending.pretoken.size() > kMaxWideLaneBytes) continue;
        if (!cache_.expect(pending.set, pending.key)) continue;
        (pending.pretoken.size() <= kMaxLaneBytes ? to_merge_ : to_merge_wide_).push_back(&pending);
    }
    const auto merge = [&](auto& lanes, std::vector<PendingPretoken*>& to_merge) {
        // Short tokens were found before (emit_misses).
        std::erase_if(to_merge, [&](PendingPretoken* pending) {
            if (pending->pretoken.size() <= ShortKey::kMaxBytes) return false;
            const TokenId whole = vocabulary_.whole_pretoken(pending->pretoken);
            if (whole != kNoToken) remember(*pending, {&whole, 1});
            return whole != kNoToken;
        });
        lanes.merge(
            to_merge.size(), [&](size_t i) { return to_merge[i]->pretoken; },
            [&](size_t i, std::span<const TokenId> ids, std::span<const uint8_t>) { remember(*to_merge[i], ids); });
    };
    merge(lanes_, to_merge_);
    merge(wide_lanes_, to_merge_wide_);
    merged_.reserve(kFewIds);  // which may be read past the last ones
}

void Encoder::remember(PendingPretoken& pending, std::span<const TokenId> ids) {
    cache_.insert(pending.set, pending.key, pending.pretoken, ids);
    pending.merged = static_cast<uint32_t>(merged_.size());
    pending.num_merged = static_cast<uint32_t>(ids.size());
    merged_.append(ids);
}

}  // namespace fastcompress::bpe
