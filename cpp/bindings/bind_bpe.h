// Shared by the bindings of the BPE core.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "bind.h"
#include "fastcompress/bpe/encode/batch_encoder.h"
#include "fastcompress/bpe/encode/text_encoder.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"
#include "fastcompress/common/parallel.h"
#include "id_objects.h"

namespace fastcompress::bindings {

// A vocabulary and its encoders, which refer to it, so that a Tokenizer never moves in memory.
struct Tokenizer {
    explicit Tokenizer(bpe::Vocabulary v)
        : vocabulary(std::move(v)), pool(vocabulary), text_encoder(vocabulary), id_objects(vocabulary.size()) {}
    bpe::Vocabulary vocabulary;
    bpe::EncoderPool pool;
    bpe::TextEncoder text_encoder;
    IdObjects id_objects;
};

inline std::unique_ptr<Tokenizer> make_tokenizer(Result<bpe::Vocabulary> vocabulary) {
    if (!vocabulary.ok()) raise(vocabulary.status());
    return std::make_unique<Tokenizer>(std::move(*vocabulary));
}

inline size_t num_threads_or_default(std::optional<size_t> num_threads) {
    return num_threads ? std::max<size_t>(1, *num_threads) : default_num_threads();
}

// Bind the parts of the module bpe: encoding methods, and counting and training.
void bind_encoding(py::class_<Tokenizer>& tokenizer);
void bind_trainer(py::module_& bpe);

}  // namespace fastcompress::bindings
