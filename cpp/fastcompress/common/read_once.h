// Reads memory that another thread may be writing.
//
// The cores read arrays that belong to a Python program, another thread of which can change them at any time. Code that
// checks a value and then uses it must load it only once: a compiler might otherwise load it again for the use, and get
// another value. Loads are not ordered; any value that the memory has held is acceptable.
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
