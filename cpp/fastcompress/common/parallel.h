// One way to use several threads: split [0, count) into contiguous parts of similar weight and run them at once.
//
// Threads live for one call. A pool would save starting them and cost a fork hazard (a child process inherits the
// pool's state but not its threads), so there is none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>

#include <thread>
#include <vector>

namespace fastcompress {

// The number of threads to use when the caller did not say. Asked once: the C library may read a file to find out,
// which takes ten times as long as encoding a few words.
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
    std::vector<size_t> borders(num_parts + 1, count);
    borders[0] = 0;
    size_t seen = 0;
    size_t part = 1;
    for (size_t i = 0; i < count && part < num_parts; ++i) {
        seen += weight(i);
        while (part < num_parts && seen >= total / num_parts * part) borders[part++] = i + 1;
    }

    std::vector<std::exception_ptr> errors(num_parts);
    const auto run = [&](size_t k) {
        try {
            body(k, borders[k], borders[k + 1]);
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
            run(k);  // no thread to be had: the work is done here instead
        }
    }
    run(0);
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
    }
}

}  // namespace fastcompress
