// Compiles functions for a better instruction set than the build targets, and tells whether the machine has it.
//
// The idiom: write the scalar fallback, mark variants FASTCOMPRESS_AVX2 or FASTCOMPRESS_AVX512, and choose in one
// function that does enough work per call to repay two predictable branches:
//
//   uint64_t sum(...) {
//   #if defined(FASTCOMPRESS_AVX2)
//       if (has_avx512()) return sum_avx512(...);
//       if (has_avx2()) return sum_avx2(...);
//   #endif
//       return sum_scalar(...);
//   }
//
// There is one exception, class_kernels.h: a table of function pointers, filled once. Use a table where several small
// kernels are chosen together, each called for 64 bytes, and tests compare every set that the machine can run.
#pragma once

#include <cstdlib>
#include <string_view>

#if defined(__GNUC__)
// A function called by such a function is compiled for the same instruction set only if it is inlined into it. (Lambdas
// take the second macro, after their parameters.)
#define FASTCOMPRESS_INLINED __attribute__((always_inline)) inline
#define FASTCOMPRESS_INLINED_LAMBDA __attribute__((always_inline))
#if defined(__x86_64__)
#define FASTCOMPRESS_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
// Includes permutations of bytes, which processors from Ice Lake (2019) and Zen 4 (2022) on have. Their clock does not
// drop under AVX-512.
#define FASTCOMPRESS_AVX512_NAMES "avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
#define FASTCOMPRESS_AVX512 __attribute__((target(FASTCOMPRESS_AVX512_NAMES)))
#endif
#else
#define FASTCOMPRESS_INLINED inline
#define FASTCOMPRESS_INLINED_LAMBDA
#endif

namespace fastcompress {

#if defined(FASTCOMPRESS_AVX2)
// The environment variable FASTCOMPRESS_VECTORS, read once per process: "avx2" or "none" disables better instructions,
// for tests and bug reports.
enum class VectorLimit { kNone, kAvx2, kAll };
inline VectorLimit vector_limit() {
    static const VectorLimit limit = [] {
        const char* const name = std::getenv("FASTCOMPRESS_VECTORS");
        const std::string_view wanted = name ? name : "";
        return wanted == "none" ? VectorLimit::kNone : wanted == "avx2" ? VectorLimit::kAvx2 : VectorLimit::kAll;
    }();
    return limit;
}

// These return whether functions marked FASTCOMPRESS_AVX2, or FASTCOMPRESS_AVX512, may be called.
inline bool has_avx2() {
    static const bool has = (__builtin_cpu_init(), vector_limit() >= VectorLimit::kAvx2) &&
                            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                            __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    return has;
}
inline bool has_avx512() {
    static const bool has = has_avx2() && vector_limit() >= VectorLimit::kAll && __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                            __builtin_cpu_supports("avx512vbmi2");
    return has;
}
#endif

}  // namespace fastcompress
