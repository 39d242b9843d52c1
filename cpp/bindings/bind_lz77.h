// What the bindings of the LZ77 core share.
#pragma once

#include <span>
#include <utility>

#include "bind.h"
#include "fastcompress/lz77/params.h"

namespace fastcompress::bindings {

template <class T>
using Column = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <class T>
std::span<const T> as_span(const Column<T>& column) {
    return {column.data(), static_cast<size_t>(column.size())};
}

inline py::tuple to_arrays(lz77::TokenColumns tokens) {
    return py::make_tuple(to_array(std::move(tokens.kinds)), to_array(std::move(tokens.values)),
                          to_array(std::move(tokens.lengths)));
}

// A ConfigError for a text that is too long to be parsed.
void check_size(size_t num_bytes);

void bind_lz77_alphabets(py::module_& sub);

}  // namespace fastcompress::bindings
