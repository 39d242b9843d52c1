// Asking for memory before it is needed.
#pragma once

namespace fastcompress {

// Has the cache line of the address fetched, if the compiler knows how to say so. Any address will do.
inline void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

}  // namespace fastcompress
