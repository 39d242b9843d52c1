// Compiling a function for a better instruction set than the build asks for, to be called where the machine has it.
#pragma once

#include <cstdlib>
#include <string_view>

#if defined(__GNUC__)
// What such a function calls is compiled for it only if it ends up inside it. (A lambda takes the second one, after its
// parameters.)
#define FASTCOMPRESS_INLINED __attribute__((always_inline)) inline
#define FASTCOMPRESS_INLINED_LAMBDA __attribute__((always_inline))
#if defined(__x86_64__)
#define FASTCOMPRESS_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
// With permutations of bytes: processors since 2019 (Ice Lake) and 2022 (Zen 4), which do not slow down for it.
#define FASTCOMPRESS_AVX512_NAMES "avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
#define FASTCOMPRESS_AVX512 __attribute__((target(FASTCOMPRESS_AVX512_NAMES)))
#endif
#else
#define FASTCOMPRESS_INLINED inline
#define FASTCOMPRESS_INLINED_LAMBDA
#endif

namespace fastcompress {

#if defined(FASTCOMPRESS_AVX2)
// The environment variable FASTCOMPRESS_VECTORS, read once a process: "avx2" or "none" keep better instructions from being
// used, for tests and bug reports.
enum class VectorLimit { kNone, kAvx2, kAll };
inline VectorLimit vector_limit() {
    static const VectorLimit limit = [] {
        const char* const name = std::getenv("FASTCOMPRESS_VECTORS");
        const std::string_view wanted = name ? name : "";
        return wanted == "none" ? VectorLimit::kNone : wanted == "avx2" ? VectorLimit::kAvx2 : VectorLimit::kAll;
    }();
    return limit;
}

// Whether functions marked FASTCOMPRESS_AVX2 may be called, and FASTCOMPRESS_AVX512.
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
