#include "fastcompress/archive/cm_codec.h"

#include <algorithm>
#include <bit>

#include "fastcompress/context_mixer/context_mixer.h"

namespace fastcompress::archive {
namespace {

using context_mixer::ContextMixer;
using context_mixer::MixerParams;

// A byte takes up to 18 slots of 16 bytes, so a table with 256 bytes per byte of the block is rarely full, and a small
// block needs only a small table.
constexpr unsigned kLog2HistoriesOfByte = 8;
constexpr unsigned kLog2LeastTable = 16;
constexpr unsigned kLog2GreatestMatch = 20;
constexpr unsigned kLog2LeastMatch = 10;
// The mixer reserves memory for the worst case before it encodes, so it is given small pieces.
constexpr size_t kPieceBytes = size_t{1} << 16;

MixerParams params_of(size_t block_bytes, unsigned level) {
    const auto log2_block = static_cast<unsigned>(std::bit_width(block_bytes));
    MixerParams params;
    params.log2_table_bytes = std::clamp(log2_block + kLog2HistoriesOfByte, kLog2LeastTable, 17 + level);
    params.log2_match_entries = std::clamp(log2_block, kLog2LeastMatch, kLog2GreatestMatch);
    return params;
}

}  // namespace

std::vector<uint8_t> cm_encode(Bytes block, unsigned level) {
    arithmetic::RangeEncoder encoder;
    ContextMixer mixer(params_of(block.size(), level));
    for (Bytes rest = block; !rest.empty();) {
        const Bytes piece = rest.first(std::min(rest.size(), kPieceBytes));
        mixer.encode(piece, encoder);
        rest = rest.subspan(piece.size());
    }
    return encoder.finish();
}

Status cm_decode(Bytes coded, unsigned level, std::span<uint8_t> out) {
    arithmetic::RangeDecoder decoder(coded);
    ContextMixer mixer(params_of(out.size(), level));
    if (Status status = mixer.decode(decoder, out); !status.ok()) return status;
    if (!decoder.is_finished_by(coded))
        return malformed("its code is not the one that an encoder writes, or bytes follow it");
    return {};
}

}  // namespace fastcompress::archive
