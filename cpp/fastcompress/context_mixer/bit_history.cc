#include "fastcompress/context_mixer/bit_history.h"

#include <algorithm>

namespace fastcompress::context_mixer {
namespace {

// The largest value of the greater count if the smaller one is 0, 1, 2 ...
constexpr int kCaps[] = {41, 28, 16, 10, 7, 6, 6};
constexpr int kNumCaps = sizeof kCaps / sizeof *kCaps;
// Histories of at most this many bits, of both kinds, remember the last bit.
constexpr int kMaxWithLast = 9;

constexpr bool is_allowed(int zeros, int ones) {
    const int lesser = std::min(zeros, ones);
    return lesser < kNumCaps && std::max(zeros, ones) <= kCaps[lesser];
}
constexpr bool has_last(int zeros, int ones) {
    return zeros > 0 && ones > 0 && zeros + ones <= kMaxWithLast;
}
constexpr int discounted(int n) {
    return n <= 2 ? n : 3 + (n - 3) / 3;
}

constexpr BitHistoryTables make_tables() {
    BitHistoryTables tables{};
    int number[64][64][2] = {};
    for (int total = 0; total < 64; ++total) {
        for (int ones = 0; ones <= total; ++ones) {
            const int zeros = total - ones;
            if (!is_allowed(zeros, ones)) continue;
            for (int last = 0; last < (has_last(zeros, ones) ? 2 : 1); ++last) {
                number[zeros][ones][last] = tables.size;
                if (!has_last(zeros, ones)) number[zeros][ones][1] = tables.size;
                tables.histories[static_cast<size_t>(tables.size++)] = {
                    static_cast<uint8_t>(zeros), static_cast<uint8_t>(ones), static_cast<uint8_t>(last)};
            }
        }
    }
    for (int state = 0; state < tables.size; ++state) {
        const BitHistory from = tables.histories[static_cast<size_t>(state)];
        for (int bit = 0; bit < 2; ++bit) {
            int same = (bit ? from.ones : from.zeros) + 1;
            int other = discounted(bit ? from.zeros : from.ones);
            while (!is_allowed(same, other)) (same >= other ? same : other) -= 1;
            const int zeros = bit ? other : same;
            const int ones = bit ? same : other;
            tables.next[static_cast<size_t>(state)][static_cast<size_t>(bit)] =
                static_cast<uint8_t>(number[zeros][ones][bit]);
        }
    }
    return tables;
}

}  // namespace

constinit const BitHistoryTables kBitHistories = make_tables();
static_assert(make_tables().size <= 256);

}  // namespace fastcompress::context_mixer
