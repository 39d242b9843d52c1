// Decoding for Python: ids from NumPy arrays or sequences of int, to bytes or str.
#pragma once

#include <optional>

#include "bind.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bindings {

// Returns the id in an object with __index__. Raises TypeError for other objects, and TokenRangeError, which names
// `position` if it is given, if the number does not fit.
bpe::TokenId to_token_id(py::handle index, std::optional<size_t> position = std::nullopt);

// Token ids for the core, valid as long as the TokenView lives. A C-contiguous uint32 array is not copied; any other
// sequence of integers is. Must be created and destroyed with the GIL held.
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

// Decodes ids to bytes. Raises UnknownTokenError for an id that the vocabulary does not have.
py::bytes decode_to_bytes(const bpe::Vocabulary& vocabulary, py::handle tokens);
// Decodes ids to str; `errors` as in bytes.decode.
py::str decode_to_str(const bpe::Vocabulary& vocabulary, py::handle tokens, const py::str& errors);

// The same for many sequences, on up to num_threads threads. An error names the first sequence that causes one.
py::list decode_batch_to_bytes(const bpe::Vocabulary& vocabulary, const py::list& batch, size_t num_threads);
py::list decode_batch_to_str(const bpe::Vocabulary& vocabulary, const py::list& batch, const py::str& errors,
                             size_t num_threads);

}  // namespace fastcompress::bindings
