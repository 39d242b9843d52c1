#include "fastcompress/common/hash.h"

#include <chrono>
#include <exception>
#include <random>

namespace fastcompress {

uint64_t draw_hash_seed() {
    // random_device may be a fixed sequence, and may fail where the system has no entropy; the clock does neither.
    uint64_t seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    try {
        std::random_device device;
        seed ^= uint64_t{device()} << 32 | device();
    } catch (const std::exception&) {
    }
    return mix64(seed);
}

}  // namespace fastcompress
