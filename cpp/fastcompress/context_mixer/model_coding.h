// The loops over bytes, each compiled for several kinds of processor: the same results from all.
#pragma once

#include <optional>
#include <span>

#include "fastcompress/arithmetic/range_coder.h"
#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"

namespace fastcompress::context_mixer {

inline constexpr uint32_t kMinLog2TableBytes = 12;
inline constexpr uint32_t kMaxLog2TableBytes = 30;
inline constexpr uint32_t kMinLog2MatchEntries = 10;
inline constexpr uint32_t kMaxLog2MatchEntries = 24;
// After so many bytes the decoder is asked whether its message can still be one.
inline constexpr size_t kBytesBetweenChecks = 4096;

class ByteModel;
struct Place;

// The model learns, if it is not frozen.
void encode_bytes(ByteModel& model, Place& place, Bytes data, arithmetic::RangeEncoder& encoder);
Status decode_bytes(ByteModel& model, Place& place, arithmetic::RangeDecoder& decoder, std::span<uint8_t> out);
// Not if frozen. At the model's own place.
void learn_bytes(ByteModel& model, Bytes data);

// Where a document is after these bytes. O(n), windows included.
Place place_after(const ByteModel& model, Bytes context);
// ContextMixer::distribution().
void next_byte(const ByteModel& model, const Place& place, unsigned precision, std::span<uint32_t, 256> frequencies);

}  // namespace fastcompress::context_mixer
