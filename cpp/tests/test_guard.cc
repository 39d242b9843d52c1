// The guards of common/exclusive.h under 2 and 16 threads; run under ThreadSanitizer, too.
#include <thread>
#include <vector>

#include "check.h"
#include "fastcompress/common/exclusive.h"

namespace fastcompress {
namespace {

// Two plain numbers that a call changes one after the other: a race is a difference between them, and what
// ThreadSanitizer reports.
struct Pair {
    uint64_t first = 0;
    uint64_t second = 0;
};

template <class Work>
void run(size_t num_threads, const Work& work) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < num_threads; ++i) threads.emplace_back([&work, i] { work(i); });
    for (std::thread& thread : threads) thread.join();
}

void check_readers_and_writers(size_t num_threads) {
    constexpr uint64_t kCalls = 20000;
    UseCount uses;
    Pair pair;
    std::atomic<uint64_t> num_writes{0};
    std::atomic<uint64_t> num_torn{0};
    run(num_threads, [&](size_t thread) {
        for (uint64_t call = 0; call < kCalls; ++call) {
            if ((call + thread) % 3 == 0) {
                const WriteTurn turn(uses);
                if (!turn.is_granted()) continue;
                ++pair.first;
                ++pair.second;
                ++num_writes;
            } else {
                const ReadTurn turn(uses);
                if (turn.is_granted() && pair.first != pair.second) ++num_torn;
            }
        }
    });
    CHECK_EQ(num_torn.load(), 0u);
    CHECK_EQ(pair.first, num_writes.load());
    CHECK_EQ(pair.second, num_writes.load());
    CHECK(num_writes.load() > 0);
    CHECK(uses.try_write());  // everybody has given it back
}

void check_turns_one_by_one() {
    UseCount uses;
    {
        const ReadTurn first(uses);
        const ReadTurn second(uses);
        CHECK(first.is_granted() && second.is_granted());
        CHECK(!WriteTurn(uses).is_granted());
        CHECK(ReadTurn(uses).is_granted());  // the refused writer took nothing
    }
    {
        const WriteTurn first(uses);
        CHECK(first.is_granted());
        CHECK(!WriteTurn(uses).is_granted());  // from inside, too: it is refused and does not wait
        CHECK(!ReadTurn(uses).is_granted());
    }
    CHECK(WriteTurn(uses).is_granted());
}

void check_waiting(size_t num_threads) {
    constexpr uint64_t kCalls = 5000;
    TurnTaker taker;
    Pair pair;
    std::atomic<uint64_t> num_not_mine{0};
    run(num_threads, [&](size_t) {
        for (uint64_t call = 0; call < kCalls; ++call) {
            if (taker.is_mine()) ++num_not_mine;
            const std::lock_guard<TurnTaker> lock(taker);
            if (!taker.is_mine()) ++num_not_mine;
            ++pair.first;
            ++pair.second;
        }
    });
    CHECK_EQ(num_not_mine.load(), 0u);
    CHECK_EQ(pair.first, num_threads * kCalls);
    CHECK_EQ(pair.second, num_threads * kCalls);
}

}  // namespace
}  // namespace fastcompress

int main() {
    fastcompress::check_turns_one_by_one();
    for (const size_t num_threads : {2, 16}) {
        fastcompress::check_readers_and_writers(num_threads);
        fastcompress::check_waiting(num_threads);
    }
    return fastcompress::testing::report();
}
