// Two ways to use several threads: parallel_parts() splits [0, count) into contiguous parts of similar weight, one per
// thread; WorkShares also lets threads that have finished take over items of the others, where speeds differ.
//
// Threads live for one call. A pool would save the time to start them, but is unsafe with fork: a child process
// inherits the state of the pool but not its threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

namespace fastcompress {

// The number of threads to use if the caller did not choose one. It is determined once: the C library may read a file
// to find out, which takes ten times as long as encoding a few words.
inline size_t default_num_threads() {
    static const size_t count = std::max<size_t>(1, std::thread::hardware_concurrency());
    return count;
}

// Calls body(part, begin, end) for each of min(num_threads, count) contiguous parts of [0, count), part 0 on the
// calling thread. Parts are ranges of equal total weight(i). If parts throw, one of the exceptions is rethrown when
// all are done.
template <class Weight, class Body>
void parallel_parts(size_t count, size_t num_threads, const Weight& weight, const Body& body) {
    const size_t num_parts = std::max<size_t>(1, std::min(num_threads, count));
    if (num_parts == 1) {
        body(size_t{0}, size_t{0}, count);
        return;
    }
    size_t total = 0;
    for (size_t i = 0; i < count; ++i) total += weight(i);
    std::vector<size_t> boundaries(num_parts + 1, count);
    boundaries[0] = 0;
    size_t seen = 0;
    size_t part = 1;
    for (size_t i = 0; i < count && part < num_parts; ++i) {
        seen += weight(i);
        while (part < num_parts && seen >= total / num_parts * part) boundaries[part++] = i + 1;
    }

    std::vector<std::exception_ptr> errors(num_parts);
    const auto run = [&](size_t k) {
        try {
            body(k, boundaries[k], boundaries[k + 1]);
        } catch (...) {
            errors[k] = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(num_parts - 1);
    for (size_t k = 1; k < num_parts; ++k) {
        try {
            threads.emplace_back(run, k);
        } catch (const std::exception&) {
            run(k);  // no thread could be started: the work is done here instead
        }
    }
    run(0);
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
    }
}

// The items [0, count), count < 2^32, in contiguous shares of similar size, one per thread. A thread takes the items of
// its own share from first to last, and after that the last remaining items of the other shares.
//   10 items, 2 threads: thread 0 takes 0 1 2 3 4 and then, if thread 1 is slow, 9 and 8.
class WorkShares {
  public:
    WorkShares(size_t count, size_t num_threads) : shares_(num_threads) {
        for (size_t k = 0; k < num_threads; ++k) {
            shares_[k].left = pack(begin(count, num_threads, k), begin(count, num_threads, k + 1));
        }
    }
    // Returns the first item of a thread's share.
    static size_t begin(size_t count, size_t num_threads, size_t thread) { return count * thread / num_threads; }
    struct Item {
        size_t index;
        bool is_own;
    };
    // Returns the next item for a thread; each item is returned once. nullopt if all are taken. Thread-safe.
    std::optional<Item> next(size_t thread) {
        for (size_t k = 0; k < shares_.size(); ++k) {
            std::atomic<uint64_t>& left = shares_[(thread + k) % shares_.size()].left;
            uint64_t seen = left.load(std::memory_order_relaxed);
            for (;;) {
                const size_t begin = seen >> 32;
                const size_t end = static_cast<uint32_t>(seen);
                if (begin == end) break;
                const uint64_t rest = k == 0 ? pack(begin + 1, end) : pack(begin, end - 1);
                if (left.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
                    return Item{k == 0 ? begin : end - 1, k == 0};
                }
            }
        }
        return std::nullopt;
    }

  private:
    struct alignas(64) Share {
        std::atomic<uint64_t> left = 0;  // the first item not yet taken, and the end of the share
    };
    static uint64_t pack(size_t begin, size_t end) { return uint64_t{begin} << 32 | end; }
    std::vector<Share> shares_;
};

}  // namespace fastcompress
