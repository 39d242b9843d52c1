// Prefetching: brings memory into the cache before it is needed.
#pragma once

namespace fastcompress {

// Prefetches the cache line of an address, which need not be valid. Does nothing if the compiler has no such built-in.
//
// Always inlined, as every function that only prefetches must be: gcc 12 assumes that such a function has no effects
// and removes calls that it has not inlined by then.
[[gnu::always_inline]] inline void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

}  // namespace fastcompress
