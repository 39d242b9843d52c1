// Decoding for Python: ids come as NumPy arrays or as sequences of int, text goes out as bytes or str.
#pragma once

#include <optional>

#include "bind.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bindings {

// An id from any object with __index__. TypeError if it is none; TokenRangeError, which says where it stands if
// `position` is given, if it does not fit.
bpe::TokenId to_token_id(py::handle index, std::optional<size_t> position = std::nullopt);

// Token ids as the core reads them, for as long as the TokenView lives: of a C-contiguous uint32 array without a copy,
// of any other sequence of integers as a copy. Built and destroyed with the GIL held.
class TokenView {
  public:
    explicit TokenView(py::handle tokens);
    std::span<const bpe::TokenId> ids() const { return ids_; }

  private:
    void copy_ids(py::handle sequence);

    py::object owner_;
    std::vector<bpe::TokenId> copy_;
    std::span<const bpe::TokenId> ids_;
};

// The bytes of ids. UnknownTokenError for an id that the vocabulary does not have.
py::bytes decode_to_bytes(const bpe::Vocabulary& vocabulary, py::handle tokens);
// The same as str; `errors` as in bytes.decode.
py::str decode_to_str(const bpe::Vocabulary& vocabulary, py::handle tokens, const py::str& errors);

// Both for many sequences, on up to num_threads threads. An error names the first sequence that has one.
py::list decode_batch_to_bytes(const bpe::Vocabulary& vocabulary, const py::list& batch, size_t num_threads);
py::list decode_batch_to_str(const bpe::Vocabulary& vocabulary, const py::list& batch, const py::str& errors,
                             size_t num_threads);

}  // namespace fastcompress::bindings
