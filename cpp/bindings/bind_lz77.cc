#include <pybind11/stl.h>

#include "bind_lz77.h"
#include "fastcompress/common/parallel.h"
#include "fastcompress/lz77/incremental_parser.h"
#include "fastcompress/lz77/parse.h"
#include "fastcompress/lz77/parser_batch.h"
#include "fastcompress/lz77/reconstruct.h"

namespace fastcompress::bindings {
namespace {

using lz77::IncrementalParser;
using lz77::Params;
using lz77::ParserBatch;
using lz77::Token;
using lz77::TokenColumns;

Params make_params(uint32_t window, uint32_t min_length, uint32_t max_length, uint32_t depth, bool is_lazy) {
    const Params params = {window, min_length, max_length, depth,
                           is_lazy ? lz77::ParseRule::kLazy : lz77::ParseRule::kGreedy};
    raise_if_failed(check(params));
    return params;
}

py::tuple parse(py::handle data, const Params& params) {
    const TextView view(data);
    check_size(view.bytes().size());
    return to_arrays(without_gil([&] { return lz77::parse(view.bytes(), params); }));
}

py::tuple parse_batch(const py::list& texts, const Params& params, size_t num_threads) {
    const std::vector<TextView> views = text_views(texts);
    for (const TextView& view : views) check_size(view.bytes().size());
    if (num_threads == 0) num_threads = default_num_threads();
    std::vector<uint64_t> offsets(views.size() + 1);
    TokenColumns all = without_gil([&] {
        std::vector<TokenColumns> parsed(views.size());
        const auto weight = [&](size_t i) { return views[i].bytes().size() + 64; };
        parallel_parts(views.size(), num_threads, weight, [&](size_t, size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i) parsed[i] = lz77::parse(views[i].bytes(), params);
        });
        TokenColumns joined;
        for (size_t i = 0; i < parsed.size(); ++i) offsets[i + 1] = offsets[i] + parsed[i].size();
        joined.kinds.reserve(offsets.back());
        joined.values.reserve(offsets.back());
        joined.lengths.reserve(offsets.back());
        for (const TokenColumns& tokens : parsed) {
            joined.kinds.insert(joined.kinds.end(), tokens.kinds.begin(), tokens.kinds.end());
            joined.values.insert(joined.values.end(), tokens.values.begin(), tokens.values.end());
            joined.lengths.insert(joined.lengths.end(), tokens.lengths.begin(), tokens.lengths.end());
        }
        return joined;
    });
    py::tuple arrays = to_arrays(std::move(all));
    return py::make_tuple(arrays[0], arrays[1], arrays[2], to_array(std::move(offsets)));
}

py::bytes reconstruct(const Column<uint8_t>& kinds, const Column<uint32_t>& values, const Column<uint32_t>& lengths,
                      size_t max_bytes) {
    const auto k = as_span(kinds);
    const auto v = as_span(values);
    const auto l = as_span(lengths);
    if (v.size() != k.size() || l.size() != k.size()) raise(invalid_argument("the columns of tokens differ in length"));
    const size_t size = value_or_raise(without_gil([&] { return lz77::reconstructed_bytes(k, v, l, max_bytes); }));
    py::bytes bytes = new_bytes(size);
    without_gil([&, out = writable(bytes)] { lz77::reconstruct(k, v, l, out); });
    return bytes;
}

void check_greedy(const Params& params) {
    if (params.rule == lz77::ParseRule::kGreedy) return;
    raise(invalid_argument(
        "legal tokens are those of greedy parses: a lazy parse of a text cut after a token may begin with "
        "other tokens; use parse='greedy'"));
}

Token make_token(uint32_t kind, uint32_t value, uint32_t length) {
    return {static_cast<lz77::TokenKind>(std::min(kind, 255u)), value, length};
}

void append(IncrementalParser& parser, py::handle data) {
    const TextView view(data);
    check_size(parser.num_bytes() + view.bytes().size());
    without_gil([&] { parser.append(view.bytes()); });
}

void truncate(IncrementalParser& parser, size_t num_bytes) {
    if (num_bytes > parser.num_bytes()) {
        raise(invalid_argument("cannot truncate " + std::to_string(parser.num_bytes()) + " bytes to " +
                               std::to_string(num_bytes)));
    }
    without_gil([&] { parser.truncate(num_bytes); });
}

template <class Query>
auto legal(const IncrementalParser& parser, const Query& query) {
    check_greedy(parser.params());
    return without_gil(query);
}

size_t checked_stream(const ParserBatch& batch, size_t stream) {
    if (stream >= batch.size()) throw py::index_error("there are " + std::to_string(batch.size()) + " streams");
    return stream;
}

void append_each(ParserBatch& batch, const Column<uint8_t>& bytes) {
    if (bytes.ndim() < 1 || bytes.ndim() > 2 || static_cast<size_t>(bytes.shape(0)) != batch.size()) {
        raise(invalid_argument("bytes must be uint8[" + std::to_string(batch.size()) + "] or [" +
                               std::to_string(batch.size()) + ", k], one row a stream"));
    }
    const size_t row = bytes.ndim() == 1 ? 1 : static_cast<size_t>(bytes.shape(1));
    for (size_t i = 0; i < batch.size(); ++i) check_size(batch[i].num_bytes() + row);
    without_gil([&] {
        if (row == 1) return batch.append({bytes.data(), batch.size()});
        for (size_t i = 0; i < batch.size(); ++i) batch[i].append(Bytes(bytes.data() + i * row, row));
    });
}

template <class T, class Get>
py::array_t<T> of_each(const ParserBatch& batch, const Get& get) {
    std::vector<T> values(batch.size());
    for (size_t i = 0; i < batch.size(); ++i) values[i] = static_cast<T>(get(batch[i]));
    return to_array(std::move(values));
}

void bind_parser(py::module_& sub) {
    py::class_<IncrementalParser>(sub, "IncrementalParser")
        .def(py::init<const Params&>())
        .def("append", &append)
        .def("truncate", &truncate)
        .def("fork", [](const IncrementalParser& parser) { return std::make_unique<IncrementalParser>(parser); })
        .def("tokens", [](const IncrementalParser& p) { return to_arrays(without_gil([&] { return p.tokens(); })); })
        .def_property_readonly("num_bytes", &IncrementalParser::num_bytes)
        .def_property_readonly("num_stable", &IncrementalParser::num_stable)
        .def_property_readonly("stable_bytes", &IncrementalParser::stable_bytes)
        .def("is_legal",
             [](const IncrementalParser& p, uint32_t kind, uint32_t value, uint32_t length) {
                 return legal(p, [&] { return p.is_legal(make_token(kind, value, length)); });
             })
        .def("push_token",
             [](IncrementalParser& p, uint32_t kind, uint32_t value, uint32_t length) {
                 return legal(p, [&] { return p.push_token(make_token(kind, value, length)); });
             })
        .def("legal_literals",
             [](const IncrementalParser& p) {
                 const auto mask = legal(p, [&] { return p.legal_literals(); });
                 py::array_t<bool> array(256);
                 std::ranges::copy(mask, array.mutable_data());
                 return array;
             })
        .def("legal_distances",
             [](const IncrementalParser& p) { return to_array(legal(p, [&] { return p.legal_distances(); })); })
        .def("legal_lengths", [](const IncrementalParser& p, uint32_t distance) {
            const auto lengths = legal(p, [&] { return p.legal_lengths(distance); });
            return std::make_pair(lengths.shortest, lengths.longest);
        });
    py::class_<ParserBatch>(sub, "ParserBatch")
        .def(py::init<const Params&, size_t>())
        .def("__len__", &ParserBatch::size)
        .def("append", &append_each)
        .def("truncate", [](ParserBatch& batch, size_t stream,
                            size_t num_bytes) { truncate(batch[checked_stream(batch, stream)], num_bytes); })
        .def("select",
             [](ParserBatch& batch, const std::vector<size_t>& sources) {
                 for (const size_t source : sources) checked_stream(batch, source);
                 without_gil([&] { batch.select(sources); });
             })
        .def("fork",
             [](const ParserBatch& batch, size_t stream) {
                 return std::make_unique<IncrementalParser>(batch[checked_stream(batch, stream)]);
             })
        .def("num_bytes",
             [](const ParserBatch& batch) {
                 return of_each<uint64_t>(batch, [](const IncrementalParser& p) { return p.num_bytes(); });
             })
        .def("num_stable", [](const ParserBatch& batch) {
            return of_each<uint64_t>(batch, [](const IncrementalParser& p) { return p.num_stable(); });
        });
}

}  // namespace

void check_size(size_t num_bytes) {
    if (num_bytes > lz77::kMaxTextBytes) {
        raise(invalid_argument("a text of " + std::to_string(num_bytes) + " bytes; at most " +
                               std::to_string(lz77::kMaxTextBytes) + " are parsed at once: cut it"));
    }
}

void bind_lz77(py::module_& m) {
    py::module_ sub = m.def_submodule("lz77");
    sub.attr("UNLIMITED") = py::int_(lz77::kUnlimited);
    sub.attr("MAX_TEXT_BYTES") = py::int_(lz77::kMaxTextBytes);
    py::class_<Params>(sub, "Params").def(py::init(&make_params));
    sub.def("parse", &parse);
    sub.def("parse_batch", &parse_batch);
    sub.def("reconstruct", &reconstruct);
    bind_parser(sub);
    bind_lz77_alphabets(sub);
}

}  // namespace fastcompress::bindings
