// Shared by the bindings of the LZ77 core.
#pragma once

#include <span>
#include <utility>

#include "bind.h"
#include "columns.h"
#include "fastcompress/lz77/params.h"

namespace fastcompress::bindings {

// The columns of tokens from Python, of equal length.
class TokenArrays {
  public:
    // Raises ColumnError if a column is not a row of integers, or if the lengths differ.
    TokenArrays(py::handle kinds, py::handle values, py::handle lengths);

    // The number of tokens before the first one with a number that is negative or too large for its column.
    size_t num_readable() const { return num_readable_; }
    std::span<const uint8_t> kinds() const { return kinds_.values().first(num_readable_); }
    std::span<const uint32_t> values() const { return values_.values().first(num_readable_); }
    std::span<const uint32_t> lengths() const { return lengths_.values().first(num_readable_); }
    // Raises FormatError if there is such a token.
    void raise_if_unreadable() const;
    // Returns a private copy, in which each token is well-formed by itself. Raises a FormatError that names the first
    // that is not.
    lz77::TokenColumns copy() const;

  private:
    IntColumn<uint8_t> kinds_;
    IntColumn<uint32_t> values_, lengths_;
    size_t num_readable_;
};

inline py::tuple to_arrays(lz77::TokenColumns tokens) {
    return py::make_tuple(to_array(std::move(tokens.kinds)), to_array(std::move(tokens.values)),
                          to_array(std::move(tokens.lengths)));
}

// Raises ConfigError if a text is too long to be parsed.
void check_size(size_t num_bytes);

void bind_lz77_alphabets(py::module_& sub);

}  // namespace fastcompress::bindings
