// The loops over bytes, each compiled for several instruction sets, with the same results from all.
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
// Number of bytes after which the decoder is asked again whether an encoder can have written the code.
inline constexpr size_t kBytesBetweenChecks = 4096;

class ByteModel;
struct DocumentState;

// Encodes or decodes bytes; the model learns if it is not frozen.
void encode_bytes(ByteModel& model, DocumentState& document, Bytes data, arithmetic::RangeEncoder& encoder);
Status decode_bytes(ByteModel& model, DocumentState& document, arithmetic::RangeDecoder& decoder,
                    std::span<uint8_t> out);
// Learns from the next bytes of the model's own document. Requires a model that is not frozen.
void learn_bytes(ByteModel& model, Bytes data);

// Returns the state of a document after these bytes. O(n).
DocumentState state_after(const ByteModel& model, Bytes context);
// Implements ContextMixer::distribution().
void next_byte(const ByteModel& model, const DocumentState& document, unsigned precision,
               std::span<uint32_t, 256> frequencies);

}  // namespace fastcompress::context_mixer
