#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "bind_bpe.h"
#include "columns.h"
#include "fastcompress/bpe/encode/canonical_pairs.h"
#include "fastcompress/bpe/encode/dropout.h"

namespace fastcompress::bindings {
namespace {

using bpe::TokenId;

// A text of so many bytes is encoded in a microsecond or two, and in some fifty at worst: others can wait so long for the
// GIL, which takes time to release and to get again.
constexpr size_t kFewBytes = 1024;
// So many ids are copied in less time than it takes to make an object that owns them.
constexpr size_t kFewIds = 1024;

py::array_t<TokenId> to_token_array(bpe::TokenBuffer tokens) {
    const size_t size = tokens.size();
    if (size > kFewIds) return to_array(tokens.release(), size);
    py::array_t<TokenId> array(static_cast<py::ssize_t>(size));
    std::ranges::copy(tokens.tokens(), array.mutable_data());
    return array;
}

void check_size(Bytes text, size_t max_bytes = bpe::kMaxTextBytes) {
    if (text.size() > max_bytes) {
        raise(invalid_argument("a text of " + std::to_string(text.size()) +
                               " bytes is too long for one call; split it below " + std::to_string(max_bytes)));
    }
}

// Raises TypeError for an object that is neither str nor one of Python's own types for bytes.
void check_usual_text(py::handle text) {
    PyObject* const given = text.ptr();
    if (PyUnicode_Check(given) || PyBytes_Check(given) || PyByteArray_Check(given) || PyMemoryView_Check(given)) return;
    throw py::type_error("text is neither str nor bytes");
}

// Returns the ids of one pretoken, by merges alone.
py::array_t<TokenId> encode_by_merges(Tokenizer& tokenizer, const py::bytes& pretoken) {
    const Bytes bytes = bindings::bytes_of(pretoken);
    check_size(bytes);
    return to_token_array(without_gil([&] {
        bpe::TokenBuffer tokens(bpe::expected_ids(bytes.size()));
        if (!bytes.empty()) {
            tokenizer.pool.with_encoder(0, [&](bpe::Encoder& encoder) { encoder.encode_by_merges(bytes, tokens); });
        }
        return tokens;
    }));
}

// Returns the treatment of each added token. `allowed` has one byte per added token, not 0 to allow a special one, or
// is empty.
std::vector<bpe::Treatment> treatments_of(const Tokenizer& tokenizer, const py::bytes& allowed) {
    const Bytes bytes = bytes_of(allowed);
    const size_t count = tokenizer.vocabulary.added_tokens().size();
    if (!bytes.empty() && bytes.size() != count) {
        throw py::value_error("allowed has " + std::to_string(bytes.size()) + " bytes for " + std::to_string(count) +
                              " added tokens");
    }
    return tokenizer.text_encoder.treatments(bytes);
}

void check_named_pattern(const Tokenizer& tokenizer) {
    if (!tokenizer.vocabulary.custom_pattern().empty()) {
        throw py::value_error("the vocabulary has a custom pattern; split segments() and call encode_pretokens()");
    }
}

// Returns how to encode a text. For vocabularies with a named pattern.
bpe::TextMethod method_of(const Tokenizer& tokenizer, const py::bytes& allowed) {
    check_named_pattern(tokenizer);
    if (tokenizer.text_encoder.is_plain() && bytes_of(allowed).empty()) {
        const bool has_pretokens = tokenizer.vocabulary.pattern() != pretokenizer::Pattern::kNone;
        return {[](bpe::Encoder& encoder, std::span<const Bytes> texts, bpe::TokenBuffer& out, uint64_t* ends) {
                    encoder.encode(texts, out, ends);
                },
                has_pretokens};
    }
    return {[&tokenizer, treatments = treatments_of(tokenizer, allowed)](
                bpe::Encoder& encoder, std::span<const Bytes> texts, bpe::TokenBuffer& out, uint64_t* ends) {
        for (const Bytes text : texts) {
            tokenizer.text_encoder.encode(text, treatments, encoder, out);
            *ends++ = out.size();
        }
    }};
}

bpe::TokenBuffer encode_bytes(Tokenizer& tokenizer, Bytes bytes, const py::bytes& allowed,
                              std::optional<size_t> num_threads) {
    constexpr size_t kManyBytes = size_t{1} << 20;  // below this, threads are started only on request
    check_size(bytes, tokenizer.text_encoder.max_text_bytes());
    const bpe::TextMethod method = method_of(tokenizer, allowed);
    const size_t threads = !num_threads && bytes.size() < kManyBytes ? 1 : num_threads_or_default(num_threads);
    const auto encode = [&] {
        if (threads > 1) {
            const unicode::StoredText stored(bytes);
            return std::move(bpe::encode_batch(tokenizer.pool, {&stored, 1}, threads, method).tokens);
        }
        bpe::TokenBuffer tokens(bpe::expected_ids(bytes.size()));
        tokenizer.pool.with_encoder(0, [&](bpe::Encoder& encoder) {
            uint64_t end;
            method.encode_texts(encoder, {&bytes, 1}, tokens, &end);
        });
        return tokens;
    };
    return bytes.size() <= kFewBytes && tokenizer.pool.is_warm() ? encode() : without_gil(encode);
}

bpe::TokenBuffer encode_text(Tokenizer& tokenizer, py::handle text, const py::bytes& allowed,
                             std::optional<size_t> num_threads) {
    const TextView view(text, Surrogates::kReplace);
    return encode_bytes(tokenizer, view.bytes(), allowed, num_threads);
}

// The functions for the usual call follow: few arguments, and a TypeError for each that is not of the usual types, at
// which BPE looks more closely.

// Returns a number of threads that is None, or an int from 1 to 65535.
std::optional<size_t> usual_num_threads(py::handle given) {
    if (given.is_none()) return std::nullopt;
    if (PyLong_CheckExact(given.ptr())) {
        int overflow = 0;
        const long number = PyLong_AsLongAndOverflow(given.ptr(), &overflow);
        if (number >= 1 && number <= 0xffff) return static_cast<size_t>(number);
    }
    throw py::type_error("num_threads is neither None nor an int from 1 to 65535");
}

// Encodes a text that holds no special token; nothing if it holds one.
std::optional<bpe::TokenBuffer> encode_without_special(Tokenizer& tokenizer, py::handle text, py::handle num_threads) {
    check_usual_text(text);
    const std::optional<size_t> threads = usual_num_threads(num_threads);
    const TextView view(text, Surrogates::kReplace);
    const Bytes bytes = view.bytes();
    const auto has_special = [&] { return tokenizer.text_encoder.has_special(bytes); };
    if (bytes.size() <= kFewBytes ? has_special() : without_gil(has_special)) return std::nullopt;
    return encode_bytes(tokenizer, bytes, py::bytes(), threads);
}

py::object encode_without_special_to_list(Tokenizer& tokenizer, py::handle text, py::handle num_threads) {
    const auto tokens = encode_without_special(tokenizer, text, num_threads);
    if (!tokens) return py::none();
    return tokenizer.id_objects.list(tokens->tokens());
}

py::object encode_without_special_to_array(Tokenizer& tokenizer, py::handle text, py::handle num_threads) {
    auto tokens = encode_without_special(tokenizer, text, num_threads);
    if (!tokens) return py::none();
    return to_token_array(std::move(*tokens));
}

py::list encode_ordinary_to_list(Tokenizer& tokenizer, py::handle text, py::handle num_threads) {
    return tokenizer.id_objects.list(
        encode_text(tokenizer, text, py::bytes(), usual_num_threads(num_threads)).tokens());
}

py::array_t<TokenId> encode(Tokenizer& tokenizer, py::handle text, const py::bytes& allowed,
                            std::optional<size_t> num_threads) {
    return to_token_array(encode_text(tokenizer, text, allowed, num_threads));
}

py::list encode_to_list(Tokenizer& tokenizer, py::handle text, const py::bytes& allowed,
                        std::optional<size_t> num_threads) {
    return tokenizer.id_objects.list(encode_text(tokenizer, text, allowed, num_threads).tokens());
}

// Returns views that keep every text alive and readable while the GIL is released.
template <class MakeView>
std::vector<TextView> views_of(const py::sequence& texts, const MakeView& view_of) {
    const py::tuple items = items_of(texts);
    std::vector<TextView> views;
    views.reserve(items.size());
    for (size_t i = 0; i < items.size(); ++i) views.push_back(view_of(items[i]));
    return views;
}

bpe::EncodedBatch encode_texts(Tokenizer& tokenizer, const py::sequence& texts, std::optional<size_t> num_threads,
                               const py::bytes& allowed) {
    const std::vector<TextView> views = views_of(texts, &TextView::as_stored);
    std::vector<unicode::StoredText> stored;
    stored.reserve(views.size());
    for (const TextView& view : views) {
        check_size(view.stored().memory, tokenizer.text_encoder.max_text_bytes());
        stored.push_back(view.stored());
    }
    const bpe::TextMethod method = method_of(tokenizer, allowed);
    return without_gil(
        [&] { return bpe::encode_batch(tokenizer.pool, stored, num_threads_or_default(num_threads), method); });
}

py::tuple encode_batch(Tokenizer& tokenizer, const py::sequence& texts, std::optional<size_t> num_threads,
                       const py::bytes& allowed) {
    bpe::EncodedBatch batch = encode_texts(tokenizer, texts, num_threads, allowed);
    return py::make_tuple(to_token_array(std::move(batch.tokens)), to_array(std::move(batch.offsets)));
}

py::list encode_batch_to_lists(Tokenizer& tokenizer, const py::sequence& texts, std::optional<size_t> num_threads,
                               const py::bytes& allowed) {
    const bpe::EncodedBatch batch = encode_texts(tokenizer, texts, num_threads, allowed);
    const std::span<const TokenId> ids = batch.tokens.tokens();
    py::list lists(batch.offsets.size() - 1);
    for (size_t i = 0; i + 1 < batch.offsets.size(); ++i) {
        const py::list list =
            tokenizer.id_objects.list(ids.subspan(batch.offsets[i], batch.offsets[i + 1] - batch.offsets[i]));
        PyList_SET_ITEM(lists.ptr(), static_cast<Py_ssize_t>(i), list.inc_ref().ptr());
    }
    return lists;
}

// Returns a private copy of the ends of pretokens that the caller has split off. They must ascend strictly to the size
// of the text.
std::vector<uint64_t> checked_ends(py::handle given, Bytes text) {
    const IntColumn<uint64_t> column(given, "ends");
    const auto values = column.checked();
    std::vector<uint64_t> ends(values.begin(), values.end());
    uint64_t begin = 0;
    for (const uint64_t end : ends) {
        if (end <= begin) throw py::value_error("ends must ascend");
        begin = end;
    }
    if (begin != text.size()) throw py::value_error("ends must ascend to the end of the text");
    return ends;
}

// texts[i] is a text with the seed seeds[i], or the stretch of such a text that begins at its byte begins[i]. With a
// custom pattern, ends[i] are the ends of its pretokens.
py::tuple encode_batch_with_dropout(const Tokenizer& tokenizer, const py::sequence& texts,
                                    const std::vector<uint64_t>& seeds, const std::vector<uint64_t>& begins,
                                    const py::sequence& ends, double dropout, std::optional<size_t> num_threads) {
    const bool is_custom = !tokenizer.vocabulary.custom_pattern().empty();
    const std::vector<TextView> views =
        views_of(texts, [](py::handle text) { return TextView(text, Surrogates::kReplace); });
    for (const TextView& view : views) check_size(view.bytes());
    const py::tuple all_ends = items_of(ends);
    if (views.size() != seeds.size() || views.size() != begins.size() ||
        all_ends.size() != (is_custom ? views.size() : 0)) {
        raise(invalid_argument("as many seeds and begins as texts are needed, and as many ends for a custom pattern"));
    }
    if (!(dropout >= 0 && dropout <= 1))
        raise(invalid_argument("dropout is " + std::to_string(dropout) + "; it must be 0 to 1"));
    std::vector<bpe::DropoutText> stretches;
    std::vector<std::vector<uint64_t>> checked(all_ends.size());
    for (size_t i = 0; i < views.size(); ++i) {
        stretches.push_back({views[i].bytes(), seeds[i], begins[i]});
        if (!is_custom) continue;
        checked[i] = checked_ends(all_ends[i], views[i].bytes());
        stretches.back().ends = checked[i];
    }
    bpe::EncodedBatch batch = without_gil([&] {
        return bpe::encode_batch_with_dropout(tokenizer.vocabulary, stretches, dropout,
                                              num_threads_or_default(num_threads));
    });
    return py::make_tuple(to_token_array(std::move(batch.tokens)), to_array(std::move(batch.offsets)));
}

// Returns the stretches of ordinary text, normalized, as bytes, and the ids of added tokens between them.
py::list segments(const Tokenizer& tokenizer, py::handle text, const py::bytes& allowed) {
    const TextView view(text, Surrogates::kReplace);
    check_size(view.bytes(), tokenizer.text_encoder.max_text_bytes());
    py::list parts;
    tokenizer.text_encoder.for_each_segment(
        view.bytes(), treatments_of(tokenizer, allowed), [&](Bytes stretch) { parts.append(to_py_bytes(stretch)); },
        [&](TokenId id) { parts.append(id); });
    return parts;
}

std::vector<bpe::Treatment> seeking(const Tokenizer& tokenizer, const py::bytes& wanted) {
    const Bytes bytes = bytes_of(wanted);
    if (bytes.size() != tokenizer.vocabulary.added_tokens().size()) {
        throw py::value_error("wanted needs a byte for each added token");
    }
    return tokenizer.text_encoder.seeking(bytes);
}

// Returns (byte offset, text) of the first special token in a text whose byte in `wanted` (one per added token) is not
// 0.
std::optional<std::pair<size_t, std::string>> find_special(const Tokenizer& tokenizer, py::handle text,
                                                           const py::bytes& wanted) {
    const TextView view(text, Surrogates::kReplace);
    const std::vector<bpe::Treatment> treatments = seeking(tokenizer, wanted);
    const auto found = without_gil([&] { return tokenizer.text_encoder.find(view.bytes(), treatments); });
    if (!found) return std::nullopt;
    return std::make_pair(found->position, tokenizer.vocabulary.added_tokens()[found->index].text);
}

// Returns the number of the first text that holds such a token.
std::optional<size_t> find_text_with_special(const Tokenizer& tokenizer, const py::sequence& texts,
                                             const py::bytes& wanted, std::optional<size_t> num_threads) {
    const std::vector<TextView> views = views_of(texts, [](py::handle text) {
        check_usual_text(text);
        return TextView::as_stored(text);
    });
    const std::vector<bpe::Treatment> treatments = seeking(tokenizer, wanted);
    std::atomic<size_t> first = views.size();
    without_gil([&] {
        size_t num_bytes = 0;
        for (const TextView& view : views) num_bytes += view.stored().memory.size();
        constexpr size_t kMinBytesPerThread = size_t{1} << 20;  // a fraction of a millisecond
        const size_t threads = std::min(num_threads_or_default(num_threads), 1 + num_bytes / kMinBytesPerThread);
        const auto weight = [&](size_t i) { return views[i].stored().memory.size() + 1; };
        parallel_parts(views.size(), threads, weight, [&](size_t, size_t begin, size_t end) {
            unicode::Utf8Buffer utf8;
            for (size_t i = begin; i < end && i < first.load(std::memory_order_relaxed); ++i) {
                if (!tokenizer.text_encoder.find(utf8.read({&views[i].stored(), 1})[0], treatments)) continue;
                size_t known = first.load(std::memory_order_relaxed);
                while (i < known && !first.compare_exchange_weak(known, i, std::memory_order_relaxed)) {
                }
            }
        });
    });
    if (first == views.size()) return std::nullopt;
    return first.load();
}

// Returns the ids of pretokens that the caller has split off: pretoken i is text[ends[i - 1], ends[i]).
py::array_t<TokenId> encode_pretokens(Tokenizer& tokenizer, py::handle text, py::handle given) {
    const TextView view(text, Surrogates::kReplace);
    check_size(view.bytes());
    const IntColumn<uint64_t> column(given, "ends");
    const auto ends = column.checked();
    bool is_ascending = true;
    bpe::TokenBuffer all = without_gil([&] {
        bpe::TokenBuffer tokens(bpe::expected_ids(view.bytes().size()));
        tokenizer.pool.with_encoder(0, [&](bpe::Encoder& encoder) {
            uint64_t begin = 0;
            for (const uint64_t& given_end : ends) {
                const uint64_t end = read_once(given_end);  // another thread may change it
                is_ascending = begin <= end && end <= view.bytes().size();
                if (!is_ascending) return;
                encoder.encode_pretoken(view.bytes().subspan(begin, end - begin), tokens);
                begin = end;
            }
        });
        return tokens;
    });
    if (!is_ascending) throw py::value_error("ends must ascend in the text");
    return to_token_array(std::move(all));
}

// Returns uint8[size, row bytes]: bit u of row t is set if the bytes of t and u are encoded so as one pretoken.
py::array_t<uint8_t> canonical_pairs(const Tokenizer& tokenizer, size_t num_threads) {
    const size_t row_bytes = bpe::pair_row_bytes(tokenizer.vocabulary);
    py::array_t<uint8_t> rows({tokenizer.vocabulary.size(), row_bytes});
    const std::span<uint8_t> out(rows.mutable_data(), static_cast<size_t>(rows.size()));
    const size_t threads = num_threads == 0 ? default_num_threads() : num_threads;
    raise_if_failed(without_gil([&] { return bpe::canonical_pairs(tokenizer.vocabulary, threads, out); }));
    return rows;
}

}  // namespace

void bind_encoding(py::class_<Tokenizer>& tokenizer) {
    tokenizer.def("encode", &encode, py::arg("text"), py::arg("allowed") = py::bytes(), py::arg("num_threads") = 1)
        .def("encode_to_list", &encode_to_list, py::arg("text"), py::arg("allowed") = py::bytes(),
             py::arg("num_threads") = 1)
        .def("encode_without_special", &encode_without_special_to_array, py::arg("text"), py::arg("num_threads"))
        .def("encode_without_special_to_list", &encode_without_special_to_list, py::arg("text"), py::arg("num_threads"))
        .def("encode_ordinary_to_list", &encode_ordinary_to_list, py::arg("text"), py::arg("num_threads"))
        .def("encode_batch", &encode_batch, py::arg("texts"), py::arg("num_threads"), py::arg("allowed") = py::bytes())
        .def("encode_batch_to_lists", &encode_batch_to_lists, py::arg("texts"), py::arg("num_threads"),
             py::arg("allowed") = py::bytes())
        .def("find_special", &find_special, py::arg("text"), py::arg("wanted"))
        .def("find_text_with_special", &find_text_with_special, py::arg("texts"), py::arg("wanted"),
             py::arg("num_threads"))
        .def("segments", &segments, py::arg("text"), py::arg("allowed"))
        .def("encode_pretokens", &encode_pretokens, py::arg("text"), py::arg("ends"))
        .def("encode_batch_with_dropout", &encode_batch_with_dropout, py::arg("texts"), py::arg("seeds"),
             py::arg("begins"), py::arg("ends"), py::arg("dropout"), py::arg("num_threads"))
        .def("encode_by_merges", &encode_by_merges, py::arg("pretoken"))
        .def("canonical_pairs", &canonical_pairs, py::arg("num_threads"));
}

}  // namespace fastcompress::bindings
