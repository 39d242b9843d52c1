// The smallest test harness that says what failed: CHECK and CHECK_EQ print the place and go on; main returns report().
#pragma once

#include <cstdint>
#include <cstdio>
#include <random>
#include <sstream>
#include <string>
#include <string_view>

namespace fastcompress::testing {

inline int num_checks = 0;
inline int num_failures = 0;

// Allocates nothing: a CHECK within a step for which memory runs out (failing_allocator.h) must not fail in its place.
// With a std::string that happened, before the condition was evaluated or after it, as the compiler chose.
inline void check(bool passed, const char* file, int line, const char* what) {
    ++num_checks;
    if (passed) return;
    ++num_failures;
    std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

inline void check(bool passed, const char* file, int line, const std::string& what) {
    check(passed, file, line, what.c_str());
}

template <class A, class B>
void check_equal(const A& a, const B& b, const char* file, int line, const char* what) {
    std::ostringstream message;
    message << what << ": " << a << " != " << b;
    check(a == b, file, line, message.str());
}

// The argument `threads` asks a program for what several threads share, and for nothing else: ThreadSanitizer has nothing
// to find in the rest, which it slows down ten times.
inline bool wants_threads_alone(int argc, char** argv) {
    return argc > 1 && std::string_view(argv[1]) == "threads";
}

inline int report() {
    std::printf("%d checks, %d failed\n", num_checks, num_failures);
    return num_failures == 0 && num_checks > 0 ? 0 : 1;
}

// Random bytes that are often text: letters of a small alphabet, spaces, digits, multi-byte characters, and raw bytes.
inline std::string random_text(std::mt19937& random, size_t max_pieces) {
    static const char* const kPieces[] = {"a",
                                          "b",
                                          "ab",
                                          "A",
                                          " ",
                                          "  ",
                                          "\n",
                                          "\r\n",
                                          "\t",
                                          "1",
                                          "23",
                                          "'s",
                                          "'LL",
                                          "!",
                                          "--",
                                          "\xc3\xa9",
                                          "\xe4\xb8\xad",
                                          "\xf0\x9f\x98\x80",
                                          "\xcc\x81",
                                          "\xc5\xbf",
                                          "\xe2\x80\xa8",
                                          "\xff",
                                          "\xc3",
                                          "\xe4\xb8",
                                          "\xed\xa0\x80",
                                          "\xf5",
                                          "/",
                                          "\xe3\x81\x8b",
                                          "\xe3\x83\xbb",
                                          "\xe3\x82\x97",
                                          "\x01",
                                          "\xe2\x82\xac",
                                          "\xc2\x85",
                                          "\x1c"};
    std::string text;
    const size_t num_pieces = random() % (max_pieces + 1);
    for (size_t i = 0; i < num_pieces; ++i) text += kPieces[random() % (sizeof kPieces / sizeof *kPieces)];
    return text;
}

}  // namespace fastcompress::testing

#define CHECK(condition) ::fastcompress::testing::check((condition), __FILE__, __LINE__, #condition)
#define CHECK_EQ(a, b) ::fastcompress::testing::check_equal((a), (b), __FILE__, __LINE__, #a " == " #b)
