// What a method is to the container: how one block is coded, alone, and decoded.
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

// Numbers of methods never change their meaning.
enum class Method : uint8_t { kLz = 1, kCm = 2 };

// The SHA-256 of a model that is not in the archive; all zero: there is none.
using ModelHash = std::array<uint8_t, 32>;

// Stateless: blocks are coded on several threads at once by one coder.
class BlockCoder {
  public:
    virtual ~BlockCoder() = default;

    // The block as coded, in any length; the container stores a block as it is where that is no shorter. Deterministic.
    virtual std::vector<uint8_t> encode(Bytes block, unsigned level) const = 0;
    // Writes the out.size() bytes of a block coded at `level`, or says what is wrong with it. For any bytes: O(coded +
    // out), no memory but the models'. The container checks what comes out.
    virtual Status decode(Bytes coded, unsigned level, std::span<uint8_t> out) const = 0;

    virtual std::string_view name() const = 0;
    // Levels go from 1 to max_level().
    virtual unsigned max_level() const = 0;
    virtual unsigned default_level() const = 0;
    virtual size_t default_block_bytes(unsigned level) const = 0;
    // Of a model that both sides must have; zero if the method needs none.
    virtual ModelHash model_hash() const { return {}; }
};

// Null for a number that is none, or of a method that this build has no coder for.
const BlockCoder* block_coder(Method method);

}  // namespace fastcompress::archive
