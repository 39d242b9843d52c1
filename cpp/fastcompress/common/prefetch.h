// Asking for memory before it is needed.
#pragma once

namespace fastcompress {

// Has the cache line of the address fetched, if the compiler knows how to say so. Any address will do.
//
// Inlined always, as the functions that do nothing but call it must be: gcc 12 takes such a one for a function without
// effects, and drops the calls that it has not inlined by then.
[[gnu::always_inline]] inline void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

}  // namespace fastcompress
