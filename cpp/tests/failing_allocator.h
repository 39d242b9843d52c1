// An allocator that fails on demand, and a walk through every allocation of a session: how the tests show that functions
// leave everything as it was when memory runs out. Include it in one source file of a program; cpp/tests/CMakeLists.txt
// has the linker send the program's calls of malloc and its kind here.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "check.h"

namespace fastcompress::testing {

#ifndef __has_feature
#define __has_feature(feature) 0  // GCC has the other macro
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

enum class FailureMode {
    kOne,    // one allocation fails
    kOnward  // that one and all later ones fail
};

// Which allocations fail, counted over all threads.
class FailingAllocator {
  public:
    static void arm(uint64_t index, FailureMode mode) {
        num_left_ = static_cast<int64_t>(index);
        mode_ = mode;
        has_failed_ = false;
        is_armed_ = true;
    }
    // Returns whether an allocation has failed since arm().
    static bool disarm() {
        is_armed_ = false;
        return has_failed_;
    }
    static bool fails() {
        if (!is_armed_) return false;
        const int64_t left = num_left_.fetch_sub(1);
        if (left > 0 || (left < 0 && mode_ == FailureMode::kOne)) return false;
        has_failed_ = true;
        return true;
    }

  private:
    static inline std::atomic<bool> is_armed_ = false;
    static inline std::atomic<int64_t> num_left_ = 0;
    static inline std::atomic<FailureMode> mode_ = FailureMode::kOne;
    static inline std::atomic<bool> has_failed_ = false;
};

// Runs the steps of a session on new objects, once for each of its allocations with that one failing. A step that throws
// std::bad_alloc must leave what `observe` sees as it was before the step; run again, it must succeed, and the whole
// session must end as it does without failures. From `num_dense` allocations on, only some of them are tried, and fewer
// under sanitizers, where each takes ten times as long.
template <class Object>
struct Session {
    using Observation = std::decay_t<decltype(std::declval<Object&>().observe())>;
    const char* name;
    std::function<Object()> make;
    std::vector<std::function<void(Object&)>> steps;
    uint64_t num_dense = 48;

    void walk() const {
        std::vector<Observation> states;
        {
            Object object = make();
            states.push_back(object.observe());
            for (const auto& step : steps) {
                step(object);
                states.push_back(object.observe());
            }
        }
        const uint64_t dense = kIsSanitized ? num_dense / 4 : num_dense;
        uint64_t num_walked = 0;
        for (const FailureMode mode : {FailureMode::kOne, FailureMode::kOnward}) {
            for (uint64_t index = 0; run(index, mode, states); index += index < dense ? 1 : 1 + index / 6) ++num_walked;
        }
        check(num_walked > 0, __FILE__, __LINE__, std::string(name) + ": no allocation failed");
    }

  private:
    // Returns whether an allocation failed.
    bool run(uint64_t index, FailureMode mode, const std::vector<Observation>& states) const {
        const std::string where = std::string(name) + ", allocation " + std::to_string(index) +
                                  (mode == FailureMode::kOne ? "" : " and all later ones") + ": ";
        Object object = make();
        bool has_failed = false;
        bool is_armed = true;
        FailingAllocator::arm(index, mode);
        for (size_t i = 0; i < steps.size(); ++i) {
            bool ran_out = false;
            try {
                steps[i](object);
            } catch (const std::bad_alloc&) {
                ran_out = true;
            } catch (const std::exception& error) {
                FailingAllocator::disarm();
                check(false, __FILE__, __LINE__, where + "step " + std::to_string(i) + " threw " + error.what());
                return true;
            }
            if (!ran_out) continue;
            has_failed = FailingAllocator::disarm();
            is_armed = false;
            check(has_failed, __FILE__, __LINE__, where + "bad_alloc without a failure");
            check(object.observe() == states[i], __FILE__, __LINE__,
                  where + "step " + std::to_string(i) + " left something changed");
            steps[i](object);
        }
        if (is_armed) has_failed = FailingAllocator::disarm();
        check(object.observe() == states.back(), __FILE__, __LINE__, where + "another result");
        return has_failed;
    }
};

// What a function that changes nothing returns, as an object for a Session.
struct Outcome {
    std::vector<uint8_t> bytes;
    const std::vector<uint8_t>& observe() const { return bytes; }
};

// A session of one step that computes bytes.
inline void walk_outcome(const char* name, const std::function<std::vector<uint8_t>()>& compute,
                         uint64_t num_dense = 48) {
    Session<Outcome>{name, [] { return Outcome{}; }, {[&](Outcome& out) { out.bytes = compute(); }}, num_dense}.walk();
}

// The bytes of numbers, for outcomes.
template <class Numbers>
std::vector<uint8_t> bytes_of_numbers(const Numbers& numbers) {
    std::vector<uint8_t> bytes;
    for (const auto number : numbers) {
        for (size_t i = 0; i < sizeof number; ++i)
            bytes.push_back(static_cast<uint8_t>(static_cast<uint64_t>(number) >> (8 * i)));
    }
    return bytes;
}

// Text of words that come again, some of them long, and of other characters.
inline std::string wordy_text(unsigned seed, size_t num_words) {
    std::mt19937 random(seed);
    std::string text;
    for (size_t i = 0; i < num_words; ++i) {
        const auto word = random() % 40 * (random() % 40) / 8;
        for (unsigned k = 0; k < 1 + word % 7; ++k) text += static_cast<char>('a' + word * (k + 3) % 26);
        if (random() % 50 == 0) text += std::string(16 + random() % 30, static_cast<char>('a' + random() % 26));
        if (random() % 30 == 0) text += "\xc3\xa9\xe4\xb8\xad";
        text += random() % 12 == 0 ? ".\n" : " ";
    }
    return text;
}

}  // namespace fastcompress::testing

extern "C" {
void* __real_malloc(size_t size);
void* __real_calloc(size_t count, size_t size);
void* __real_realloc(void* memory, size_t size);
int __real_posix_memalign(void** memory, size_t alignment, size_t size);
void* __real_mmap(void* address, size_t size, int protection, int flags, int file, off_t offset);

void* __wrap_malloc(size_t size) {
    return fastcompress::testing::FailingAllocator::fails() ? nullptr : __real_malloc(size);
}
void* __wrap_calloc(size_t count, size_t size) {
    return fastcompress::testing::FailingAllocator::fails() ? nullptr : __real_calloc(count, size);
}
void* __wrap_realloc(void* memory, size_t size) {
    return fastcompress::testing::FailingAllocator::fails() ? nullptr : __real_realloc(memory, size);
}
int __wrap_posix_memalign(void** memory, size_t alignment, size_t size) {
    return fastcompress::testing::FailingAllocator::fails() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}
void* __wrap_mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
    return fastcompress::testing::FailingAllocator::fails()
               ? MAP_FAILED
               : __real_mmap(address, size, protection, flags, file, offset);
}
}

// The other forms of operator new and delete call these. Not inlined, so that compilers see a pair of new and delete.
[[gnu::noinline]] void* operator new(size_t size) {
    void* const memory =
        fastcompress::testing::FailingAllocator::fails() ? nullptr : __real_malloc(size > 0 ? size : 1);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return fastcompress::testing::FailingAllocator::fails() ? nullptr : __real_malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
    void* memory = nullptr;
    const auto bytes = std::max(static_cast<size_t>(alignment), sizeof(void*));
    if (fastcompress::testing::FailingAllocator::fails() || __real_posix_memalign(&memory, bytes, size) != 0) {
        throw std::bad_alloc();
    }
    return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
    std::free(memory);
}
