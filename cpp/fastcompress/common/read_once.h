// Reading memory that another thread may be writing.
//
// The cores read arrays that belong to a Python program, in which another thread can change them at any time. A kernel
// that checks a value and then uses it must load it only once: a compiler may otherwise load it again for the use and
// find another value. Nothing is ordered; any value that the memory has held is a right one.
//
//   const uint32_t id = read_once(ids[i]);
//   if (id >= size) return changed();
//   use(table[id]);
#pragma once

#include <type_traits>

namespace fastcompress {

// Loads a value exactly once.
template <class T>
T read_once(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    return *static_cast<const volatile T*>(&value);
}

}  // namespace fastcompress
