#include "fastcompress/context_mixer/logistic.h"

namespace fastcompress::context_mixer {
namespace {

constexpr LogisticTables make_logistic_tables() {
    LogisticTables tables{};
    // exp(-x / 256) in units of 2^-40, each value from the one before by a factor of 1 - kStep / 2^40, rounded down.
    constexpr uint64_t kUnit = uint64_t{1} << 40;
    constexpr uint64_t kStep = 4286589600;  // 2^40 (1 - exp(-1 / 256)), rounded
    uint64_t exponential = kUnit;
    for (int x = 0; x <= kMaxSum; ++x) {
        const uint64_t below = (kUnit << 16) / (kUnit + exponential);  // 2^16 / (1 + exp(-x / 256)), rounded down
        const uint64_t p = std::min<uint64_t>(below, 65535);
        tables.squash[static_cast<size_t>(kMaxSum + x)] = static_cast<uint16_t>(p);
        tables.squash[static_cast<size_t>(kMaxSum - x)] = static_cast<uint16_t>(std::max<uint64_t>(65536 - p, 1));
        // exponential * kStep < 2^73 does not fit 64 bits, so it is computed in halves.
        const uint64_t high = (exponential >> 20) * kStep;
        const uint64_t low = (exponential & 0xfffff) * kStep;
        exponential -= (high + (low >> 20)) >> 20;
    }
    int x = -kMaxLogit;
    for (int p = 0; p < 4096; ++p) {
        while (x < kMaxLogit && tables.squash[static_cast<size_t>(x + kMaxSum)] < 16 * p) ++x;
        tables.stretch[static_cast<size_t>(p)] = static_cast<int16_t>(x);
    }
    return tables;
}

}  // namespace

constinit const LogisticTables kLogistic = make_logistic_tables();

}  // namespace fastcompress::context_mixer
