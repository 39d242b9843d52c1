// The interface between the container and a compression method, which encodes and decodes blocks independently.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fastcompress/common/bytes.h"
#include "fastcompress/common/status.h"

namespace fastcompress::archive {

// The number of a method never changes its meaning.
enum class Method : uint8_t { kLz = 1, kCm = 2 };

// The SHA-256 of a model that is not stored in the file; all zero if there is none.
using ModelHash = std::array<uint8_t, 32>;

// Stateless, so one coder can be used by several threads at once.
class BlockCoder {
  public:
    virtual ~BlockCoder() = default;

    // Returns the coded block, which may have any length: the container stores a block uncompressed if coding does not
    // make it shorter. Deterministic.
    virtual std::vector<uint8_t> encode(Bytes block, unsigned level) const = 0;
    // Decodes a block of out.size() bytes that was encoded at `level`. kMalformed if it is invalid. For any input it
    // takes O(coded + out) time, and memory for the models only. The container verifies the result.
    virtual Status decode(Bytes coded, unsigned level, std::span<uint8_t> out) const = 0;

    virtual std::string_view name() const = 0;
    // Levels go from 1 to max_level().
    virtual unsigned max_level() const = 0;
    virtual unsigned default_level() const = 0;
    virtual size_t default_block_bytes(unsigned level) const = 0;
    // The hash of a model that both sides must have; zero if the method needs none.
    virtual ModelHash model_hash() const { return {}; }
};

// Returns the coder of a method, or null if this build has none for that number.
const BlockCoder* block_coder(Method method);

}  // namespace fastcompress::archive
