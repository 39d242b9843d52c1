#include <pybind11/stl.h>

#include <algorithm>
#include <optional>

#include "bind_bpe.h"

namespace fastcompress::bindings {
namespace {

using bpe::Merge;
using bpe::TokenId;
using bpe::Vocabulary;
using Specials = std::vector<std::pair<std::string, TokenId>>;

py::array_t<TokenId> to_token_array(bpe::TokenBuffer tokens) {
    const size_t size = tokens.size();
    return to_array(tokens.release(), size);
}

template <class T>
T value_or_raise(Result<T> result) {
    if (!result.ok()) raise(result.status());
    return std::move(*result);
}

std::vector<bpe::SpecialToken> to_special_tokens(const Specials& specials) {
    std::vector<bpe::SpecialToken> tokens;
    for (const auto& [text, id] : specials) tokens.push_back({text, id});
    return tokens;
}

std::unique_ptr<Tokenizer> from_ranks(const std::vector<std::pair<py::bytes, TokenId>>& ranks, std::string_view pattern,
                                      const Specials& specials) {
    bpe::VocabularySpec spec;
    spec.order = bpe::MergeOrder::kRanks;
    spec.pattern = parse_pattern(pattern);
    spec.special_tokens = to_special_tokens(specials);
    for (const auto& [token, id] : ranks) {
        if (id >= ranks.size() + bpe::kMaxUnusedIds) {
            raise(invalid_argument("rank " + std::to_string(id) + " in a vocabulary of " +
                                   std::to_string(ranks.size()) + " tokens: at most " +
                                   std::to_string(bpe::kMaxUnusedIds) + " ids may be unused"));
        }
        if (id >= spec.tokens.size()) spec.tokens.resize(id + 1);
        if (!spec.tokens[id].empty()) raise(invalid_argument("rank " + std::to_string(id) + " stands twice"));
        spec.tokens[id] = std::string(token);
    }
    return make_tokenizer(without_gil([&] { return Vocabulary::make(std::move(spec)); }));
}

std::unique_ptr<Tokenizer> parse(const py::bytes& blob) {
    const Bytes bytes = bytes_of(blob);
    return make_tokenizer(without_gil([&] { return Vocabulary::parse(bytes); }));
}

void check_size(Bytes text) {
    if (text.size() > bpe::kMaxTextBytes) {
        raise(invalid_argument("a text of " + std::to_string(text.size()) +
                               " bytes is too long for one call; split it below " +
                               std::to_string(bpe::kMaxTextBytes)));
    }
}

py::array_t<TokenId> encode(Tokenizer& tokenizer, py::handle text) {
    const TextView view(text);
    check_size(view.bytes());
    return to_token_array(without_gil([&] {
        bpe::TokenBuffer tokens(view.bytes().size() / 3 + 16);
        tokenizer.pool.with_encoder([&](bpe::Encoder& encoder) { encoder.encode(view.bytes(), tokens); });
        return tokens;
    }));
}

// The views keep every text alive and readable while the GIL is released.
std::vector<TextView> views_of(const py::sequence& texts) {
    // A list or tuple of the items: a sequence that makes its items on access would free them at once.
    const auto items = py::reinterpret_steal<py::object>(PySequence_Fast(texts.ptr(), "expected a sequence of texts"));
    if (!items) throw py::error_already_set();
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
    std::vector<TextView> views;
    views.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
        views.emplace_back(PySequence_Fast_GET_ITEM(items.ptr(), i));
        check_size(views.back().bytes());
    }
    return views;
}

std::vector<Bytes> bytes_of(const std::vector<TextView>& views) {
    std::vector<Bytes> bytes;
    bytes.reserve(views.size());
    for (const TextView& view : views) bytes.push_back(view.bytes());
    return bytes;
}

py::tuple encode_batch(Tokenizer& tokenizer, const py::sequence& texts, std::optional<size_t> num_threads) {
    const std::vector<TextView> views = views_of(texts);
    const std::vector<Bytes> bytes = bytes_of(views);
    bpe::EncodedBatch batch =
        without_gil([&] { return bpe::encode_batch(tokenizer.pool, bytes, num_threads_or_default(num_threads)); });
    return py::make_tuple(to_token_array(std::move(batch.tokens)), to_array(std::move(batch.offsets)));
}

using TokenArray = py::array_t<TokenId, py::array::c_style>;

py::bytes decode(const Tokenizer& tokenizer, const TokenArray& tokens) {
    const std::span<const TokenId> ids(tokens.data(), static_cast<size_t>(tokens.size()));
    return to_py_bytes(value_or_raise(without_gil([&] { return bpe::decode(tokenizer.vocabulary, ids); })));
}

py::array_t<int64_t> token_lengths(const Tokenizer& tokenizer) {
    std::vector<int64_t> lengths(tokenizer.vocabulary.size());
    for (TokenId id = 0; id < lengths.size(); ++id)
        lengths[id] = static_cast<int64_t>(tokenizer.vocabulary.token_bytes(id).size());
    return to_array(std::move(lengths));
}

py::bytes token_bytes(const Tokenizer& tokenizer, int64_t id) {
    const bool in_range = id >= 0 && static_cast<uint64_t>(id) < tokenizer.vocabulary.size();
    const Bytes bytes = in_range ? tokenizer.vocabulary.token_bytes(static_cast<TokenId>(id)) : Bytes();
    if (bytes.empty()) {
        raise(invalid_data("token id " + std::to_string(id) + " is not in the vocabulary of " +
                           std::to_string(tokenizer.vocabulary.size()) + " ids"));
    }
    return to_py_bytes(bytes);
}

py::array_t<TokenId> merges(const Tokenizer& tokenizer) {
    py::array_t<TokenId> rows({static_cast<py::ssize_t>(tokenizer.vocabulary.merges().size()), py::ssize_t{3}});
    auto cells = rows.mutable_unchecked<2>();
    for (py::ssize_t i = 0; i < cells.shape(0); ++i) {
        const Merge& merge = tokenizer.vocabulary.merges()[static_cast<size_t>(i)];
        cells(i, 0) = merge.left;
        cells(i, 1) = merge.right;
        cells(i, 2) = merge.result;
    }
    return rows;
}

}  // namespace

void bind_bpe(py::module_& m) {
    py::module_ sub = m.def_submodule("bpe");
    py::class_<Tokenizer>(sub, "Tokenizer")
        .def_static("from_ranks", &from_ranks, py::arg("ranks"), py::arg("pattern"), py::arg("special_tokens"))
        .def_static("parse", &parse, py::arg("blob"))
        .def("serialize", [](const Tokenizer& t) { return to_py_bytes(t.vocabulary.serialize()); })
        .def("encode", &encode, py::arg("text"))
        .def("encode_batch", &encode_batch, py::arg("texts"), py::arg("num_threads"))
        .def("decode", &decode, py::arg("tokens").noconvert())
        .def("token_bytes", &token_bytes, py::arg("id"))
        .def("token_lengths", &token_lengths)
        .def("merges", &merges)
        .def_property_readonly("size", [](const Tokenizer& t) { return t.vocabulary.size(); })

        .def_property_readonly(
            "pattern", [](const Tokenizer& t) { return std::string(pretokenizer::info(t.vocabulary.pattern()).name); })
        .def_property_readonly("special_tokens", [](const Tokenizer& t) {
            py::dict ids;
            for (const auto& special : t.vocabulary.special_tokens()) ids[py::str(special.text)] = special.id;
            return ids;
        });
    bind_trainer(sub);
}

}  // namespace fastcompress::bindings
