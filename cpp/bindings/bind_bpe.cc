#include <pybind11/stl.h>

#include <algorithm>
#include <optional>

#include "bind_bpe.h"
#include "decoding.h"
#include "fastcompress/bpe/vocabulary/rank_file.h"

namespace fastcompress::bindings {
namespace {

using bpe::Merge;
using bpe::TokenId;
using bpe::Vocabulary;
using Specials = std::vector<std::pair<std::string, TokenId>>;

std::vector<bpe::AddedToken> to_special_tokens(const Specials& specials) {
    std::vector<bpe::AddedToken> tokens;
    for (const auto& [text, id] : specials) tokens.push_back({text, id});
    return tokens;
}

// Sets the pattern by name, or by the JSON of a custom pattern, which begins with a bracket (no name does).
void set_pattern(bpe::VocabularySpec& spec, std::string_view pattern) {
    if (pattern.starts_with('[')) {
        spec.custom_pattern = pattern;
    } else {
        spec.pattern = parse_pattern(pattern);
    }
}

std::unique_ptr<Tokenizer> from_tokens(std::vector<std::string> tokens, std::string_view pattern,
                                       const Specials& specials) {
    bpe::VocabularySpec spec;
    spec.order = bpe::MergeOrder::kRanks;
    set_pattern(spec, pattern);
    spec.added_tokens = to_special_tokens(specials);
    for (bpe::AddedToken& token : spec.added_tokens) {  // as in tiktoken, a special token may have the id of a rank
        if (token.id < tokens.size() && !tokens[token.id].empty()) token.flags |= bpe::kSharesId;
    }
    spec.tokens = std::move(tokens);
    return make_tokenizer(without_gil([&] { return Vocabulary::make(std::move(spec)); }));
}

std::unique_ptr<Tokenizer> from_ranks(const py::dict& ranks, std::string_view pattern, const Specials& specials) {
    std::vector<std::string> tokens;
    const auto items = py::reinterpret_steal<py::list>(PyDict_Items(ranks.ptr()));  // __index__ of a rank may change it
    if (!items) throw py::error_already_set();
    for (const py::handle item : items) {
        const auto pair = py::reinterpret_borrow<py::tuple>(item);
        const py::object token = pair[0], rank = pair[1];
        if (!py::isinstance<py::bytes>(token)) {
            throw py::type_error("tokens are bytes, not " + std::string(Py_TYPE(token.ptr())->tp_name));
        }
        const TokenId id = to_token_id(rank);
        if (id >= ranks.size() + bpe::kMaxUnusedIds) {
            raise(invalid_argument("rank " + std::to_string(id) + " in a vocabulary of " +
                                   std::to_string(ranks.size()) + " tokens; at most " +
                                   std::to_string(bpe::kMaxUnusedIds) + " ids may be unused"));
        }
        if (id >= tokens.size()) tokens.resize(id + 1);
        if (!tokens[id].empty())
            raise(
                invalid_argument("rank " + std::to_string(id) + " is repeated; each token must have a different rank"));
        tokens[id] = std::string(py::reinterpret_borrow<py::bytes>(token));
        if (tokens[id].empty())
            raise(invalid_argument("the token of rank " + std::to_string(id) +
                                   " is empty; it must have at least one byte"));
    }
    return from_tokens(std::move(tokens), pattern, specials);
}

std::unique_ptr<Tokenizer> from_rank_file(const py::bytes& file, std::string_view pattern, const Specials& specials) {
    const Bytes bytes = bytes_of(file);
    auto tokens = value_or_raise(without_gil([&] { return bpe::parse_rank_file(bytes); }));
    try {
        return from_tokens(std::move(tokens), pattern, specials);
    } catch (const py::error_already_set&) {  // if the reason is a repeated token, the error names its line
        raise_if_failed(bpe::find_repeated_token(bytes));
        throw;
    }
}

// Returns the ranks of a rank file, by token.
py::dict parse_rank_file(const py::bytes& file) {
    const Bytes bytes = bytes_of(file);
    const auto tokens = value_or_raise(without_gil([&] { return bpe::parse_rank_file(bytes); }));
    py::dict ranks;
    size_t num_tokens = 0;
    for (size_t rank = 0; rank < tokens.size(); ++rank) {
        if (tokens[rank].empty()) continue;
        ranks[to_py_bytes(as_bytes(tokens[rank]))] = rank;
        if (ranks.size() != ++num_tokens) raise(bpe::find_repeated_token(bytes));
    }
    return ranks;
}

// Returns every ordinary token with its id, in the order of ids.
py::dict ordinary_tokens(const Tokenizer& tokenizer) {
    const Vocabulary& vocabulary = tokenizer.vocabulary;
    py::dict ids;
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
        if (!vocabulary.is_ordinary(id)) continue;
        ids[to_py_bytes(vocabulary.token_bytes(id))] = id;
    }
    return ids;
}

std::unique_ptr<Tokenizer> parse(const py::bytes& blob) {
    const Bytes bytes = bytes_of(blob);
    return make_tokenizer(without_gil([&] { return Vocabulary::parse(bytes); }));
}

py::array_t<int64_t> token_lengths(const Tokenizer& tokenizer) {
    std::vector<int64_t> lengths(tokenizer.vocabulary.size());
    for (TokenId id = 0; id < lengths.size(); ++id)
        lengths[id] = static_cast<int64_t>(tokenizer.vocabulary.token_bytes(id).size());
    return to_array(std::move(lengths));
}

py::bytes token_bytes(const Tokenizer& tokenizer, py::handle index) {
    const TokenId id = to_token_id(index);
    const Bytes bytes = id < tokenizer.vocabulary.size() ? tokenizer.vocabulary.token_bytes(id) : Bytes();
    if (bytes.empty()) {
        raise(unknown_token("token id " + std::to_string(id) + " is not in the vocabulary of " +
                            std::to_string(tokenizer.vocabulary.size()) + " ids"));
    }
    return to_py_bytes(bytes);
}

TokenId token_id(const Tokenizer& tokenizer, py::handle token) {
    std::optional<TextView> view;
    Bytes bytes;
    if (PyUnicode_Check(token.ptr())) {
        view.emplace(token, Surrogates::kReplace);
        bytes = view->bytes();
    } else if (PyBytes_Check(token.ptr())) {
        bytes = bindings::bytes_of(py::reinterpret_borrow<py::bytes>(token));
    } else {
        throw py::type_error("expected str or bytes, not " + std::string(Py_TYPE(token.ptr())->tp_name));
    }
    const TokenId id = tokenizer.vocabulary.token_id(bytes);
    if (id == bpe::kNoToken) {
        raise(unknown_token("no token spells " + std::string(py::repr(token)) + "; encode gives the ids of any text"));
    }
    return id;
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

// Makes a vocabulary of merges from all fields of a VocabularySpec.
std::unique_ptr<Tokenizer> from_merges(std::vector<std::string> tokens, const py::array_t<TokenId>& merges,
                                       std::string_view pattern,
                                       const std::vector<std::tuple<std::string, TokenId, uint8_t>>& added_tokens,
                                       bool ignore_merges, bool prefix_space, bool nfc, std::string metadata) {
    bpe::VocabularySpec spec;
    set_pattern(spec, pattern);
    spec.tokens = std::move(tokens);
    const auto rows = merges.unchecked<2>();
    spec.merges.resize(static_cast<size_t>(rows.shape(0)));
    for (py::ssize_t i = 0; i < rows.shape(0); ++i) {
        spec.merges[static_cast<size_t>(i)] = {rows(i, 0), rows(i, 1), rows(i, 2)};
    }
    for (const auto& [text, id, flags] : added_tokens) spec.added_tokens.push_back({text, id, flags});
    spec.ignore_merges = ignore_merges;
    spec.prefix_space = prefix_space;
    spec.normalizer = nfc ? bpe::Normalizer::kNfc : bpe::Normalizer::kNone;
    spec.metadata = std::move(metadata);
    return make_tokenizer(without_gil([&] { return Vocabulary::make(std::move(spec)); }));
}

py::list added_tokens(const Tokenizer& tokenizer) {
    py::list rows;
    for (const bpe::AddedToken& token : tokenizer.vocabulary.added_tokens()) {
        rows.append(py::make_tuple(token.text, token.id, token.flags));
    }
    return rows;
}

void bind_files(py::class_<Tokenizer>& tokenizer) {
    tokenizer.def_static("from_ranks", &from_ranks, py::arg("ranks"), py::arg("pattern"), py::arg("special_tokens"))
        .def_static("from_rank_file", &from_rank_file, py::arg("file"), py::arg("pattern"), py::arg("special_tokens"))
        .def_static("parse", &parse, py::arg("blob"))
        .def("to_rank_file",
             [](const Tokenizer& t) {
                 const std::string file = value_or_raise(bpe::write_rank_file(t.vocabulary));
                 return to_py_bytes(as_bytes(file));
             })
        .def("serialize", [](const Tokenizer& t) { return to_py_bytes(t.vocabulary.serialize()); })
        .def_static("from_merges", &from_merges, py::kw_only(), py::arg("tokens"), py::arg("merges"),
                    py::arg("pattern"), py::arg("added_tokens"), py::arg("ignore_merges"), py::arg("prefix_space"),
                    py::arg("nfc"), py::arg("metadata"));
}

void bind_decoding(py::class_<Tokenizer>& tokenizer) {
    tokenizer
        .def(
            "decode", [](const Tokenizer& t, py::handle tokens) { return decode_to_bytes(t.vocabulary, tokens); },
            py::arg("tokens"))
        .def(
            "decode_to_str",
            [](const Tokenizer& t, py::handle tokens, const py::str& errors) {
                return decode_to_str(t.vocabulary, tokens, errors);
            },
            py::arg("tokens"), py::arg("errors"))
        .def(
            "decode_batch",
            [](const Tokenizer& t, const py::list& batch, std::optional<size_t> num_threads) {
                return decode_batch_to_bytes(t.vocabulary, batch, num_threads_or_default(num_threads));
            },
            py::arg("batch"), py::arg("num_threads"))
        .def(
            "decode_batch_to_str",
            [](const Tokenizer& t, const py::list& batch, const py::str& errors, std::optional<size_t> num_threads) {
                return decode_batch_to_str(t.vocabulary, batch, errors, num_threads_or_default(num_threads));
            },
            py::arg("batch"), py::arg("errors"), py::arg("num_threads"));
}

void bind_contents(py::class_<Tokenizer>& tokenizer) {
    tokenizer.def("added_tokens", &added_tokens)
        .def_property_readonly("is_ranks",
                               [](const Tokenizer& t) { return t.vocabulary.order() == bpe::MergeOrder::kRanks; })
        .def_property_readonly("ignore_merges", [](const Tokenizer& t) { return t.vocabulary.ignore_merges(); })
        .def_property_readonly("prefix_space", [](const Tokenizer& t) { return t.vocabulary.prefix_space(); })
        .def_property_readonly("has_all_bytes", [](const Tokenizer& t) { return t.vocabulary.has_all_bytes(); })
        .def_property_readonly("metadata", [](const Tokenizer& t) { return t.vocabulary.metadata(); })
        .def_property_readonly("nfc",
                               [](const Tokenizer& t) { return t.vocabulary.normalizer() == bpe::Normalizer::kNfc; })
        .def("token_bytes", &token_bytes, py::arg("id"))
        .def("token_id", &token_id, py::arg("token"))
        .def("ordinary_tokens", &ordinary_tokens)
        .def("token_lengths", &token_lengths)
        .def("merges", &merges)
        .def_property_readonly("size", [](const Tokenizer& t) { return t.vocabulary.size(); })
        .def_property_readonly("pattern",
                               [](const Tokenizer& t) {
                                   const std::string& custom = t.vocabulary.custom_pattern();
                                   return custom.empty() ? std::string(pretokenizer::info(t.vocabulary.pattern()).name)
                                                         : custom;
                               })
        .def_property_readonly("special_tokens", [](const Tokenizer& t) {
            py::dict ids;
            for (const auto& token : t.vocabulary.added_tokens()) {
                if (token.flags & bpe::kSpecial) ids[py::str(token.text)] = token.id;
            }
            return ids;
        });
}

}  // namespace

void bind_bpe(py::module_& m) {
    py::module_ sub = m.def_submodule("bpe");
    py::class_<Tokenizer> tokenizer(sub, "Tokenizer");
    bind_encoding(tokenizer);
    bind_files(tokenizer);
    bind_decoding(tokenizer);
    bind_contents(tokenizer);
    sub.def("parse_rank_file", &parse_rank_file, py::arg("file"));
    bind_trainer(sub);
}

}  // namespace fastcompress::bindings
