#include <pybind11/stl.h>

#include "bind_lz77.h"
#include "fastcompress/common/parallel.h"
#include "fastcompress/common/rollback.h"
#include "fastcompress/lz77/incremental_parser.h"
#include "fastcompress/lz77/parse.h"
#include "fastcompress/lz77/parser_batch.h"
#include "fastcompress/lz77/reconstruct.h"
#include "guarded.h"

namespace fastcompress::bindings {

template <>
inline constexpr const char* kPythonName<lz77::IncrementalParser> = "IncrementalParser";
template <>
inline constexpr const char* kPythonName<lz77::ParserBatch> = "ParserBatch";

namespace {

using lz77::IncrementalParser;
using lz77::Params;
using lz77::ParserBatch;
using lz77::Token;
using lz77::TokenColumns;
using Parser = Guarded<IncrementalParser>;
using Batch = Guarded<ParserBatch>;

constexpr size_t kFewBytes = 1024;

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

py::tuple parse_batch(py::handle texts, const Params& params, size_t num_threads) {
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

std::vector<uint32_t> counts_of(Bytes text, const Params& params) {
    IncrementalParser parser(params);
    parser.append(text);
    return parser.stable_counts();
}

py::array_t<uint32_t> stable_counts(py::handle data, const Params& params) {
    const TextView view(data);
    check_size(view.bytes().size());
    return to_array(without_gil([&] { return counts_of(view.bytes(), params); }));
}

py::tuple stable_counts_batch(py::handle texts, const Params& params, size_t num_threads) {
    const std::vector<TextView> views = text_views(texts);
    std::vector<uint64_t> offsets(views.size() + 1);
    for (size_t i = 0; i < views.size(); ++i) {
        check_size(views[i].bytes().size());
        offsets[i + 1] = offsets[i] + views[i].bytes().size() + 1;
    }
    if (num_threads == 0) num_threads = default_num_threads();
    std::vector<uint32_t> all = without_gil([&] {
        std::vector<uint32_t> counts(offsets.back());
        const auto weight = [&](size_t i) { return views[i].bytes().size() + 64; };
        parallel_parts(views.size(), num_threads, weight, [&](size_t, size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i)
                std::ranges::copy(counts_of(views[i].bytes(), params),
                                  counts.begin() + static_cast<ptrdiff_t>(offsets[i]));
        });
        return counts;
    });
    return py::make_tuple(to_array(std::move(all)), to_array(std::move(offsets)));
}

py::bytes reconstruct(py::handle kinds, py::handle values, py::handle lengths, size_t max_bytes) {
    const TokenArrays tokens(kinds, values, lengths);
    const auto k = tokens.kinds();
    const auto v = tokens.values();
    const auto l = tokens.lengths();
    const size_t size = value_or_raise(without_gil([&] { return lz77::reconstructed_bytes(k, v, l, max_bytes); }));
    tokens.raise_if_unreadable();
    py::bytes bytes = new_bytes(size);
    const std::span<uint8_t> out(writable(bytes), size);
    if (!without_gil([&] { return lz77::reconstruct(k, v, l, out); })) {
        raise(invalid_data("the tokens changed while they were decoded; do not write to arrays in use"));
    }
    return bytes;
}

// Returns private copies of columns, after checking that every token is well-formed by itself.
py::tuple check_tokens(py::handle kinds, py::handle values, py::handle lengths) {
    return to_arrays(TokenArrays(kinds, values, lengths).copy());
}

void check_greedy(const Params& params) {
    if (params.rule == lz77::ParseRule::kGreedy) return;
    raise(invalid_argument(
        "only greedy parses have legal tokens, because the lazy parse of a text cut after a token may begin with "
        "other tokens; use parse='greedy'"));
}

Token make_token(uint32_t kind, uint32_t value, uint32_t length) {
    return {static_cast<lz77::TokenKind>(std::min(kind, 255u)), value, length};
}

void append(Parser& guarded, py::handle data) {
    const TextView view(data);
    guarded.write([&](IncrementalParser& parser) {
        check_size(parser.num_bytes() + view.bytes().size());
        without_gil([&] { parser.append(view.bytes()); });
    });
}

// Appends bytes; returns the number of leading tokens that were stable before, and all tokens after these, as tuples,
// which for a few tokens are cheaper than arrays. With few bytes, releasing the GIL would take longer than the work.
py::tuple extend(Parser& guarded, py::handle data) {
    const TextView view(data);
    return guarded.write([&](IncrementalParser& parser) {
        const size_t num_bytes = parser.num_bytes();
        const size_t num_kept = parser.num_stable();
        check_size(num_bytes + view.bytes().size());
        if (view.bytes().size() < kFewBytes) {
            parser.append(view.bytes());
        } else {
            without_gil([&] { parser.append(view.bytes()); });
        }
        Rollback rollback([&] { parser.truncate(num_bytes); });
        py::list tokens;
        const auto add = [&](const Token& token) {
            tokens.append(py::make_tuple(static_cast<unsigned>(token.kind), token.value, token.length));
        };
        for (size_t i = num_kept; i < parser.num_stable(); ++i) add(parser.stable_token(i));
        for (const Token& token : parser.unstable_tokens()) add(token);
        py::tuple result = py::make_tuple(num_kept, std::move(tokens));
        rollback.release();
        return result;
    });
}

void truncate(IncrementalParser& parser, size_t num_bytes) {
    if (num_bytes > parser.num_bytes()) {
        raise(invalid_argument("num_bytes is " + std::to_string(num_bytes) + "; it must be 0 to " +
                               std::to_string(parser.num_bytes())));
    }
    without_gil([&] { parser.truncate(num_bytes); });
}

// Returns query(parser). Raises ConfigError unless the parse is greedy.
template <class Query>
auto legal(const Parser& guarded, const Query& query) {
    return guarded.read([&](const IncrementalParser& parser) {
        check_greedy(parser.params());
        return without_gil([&] { return query(parser); });
    });
}

size_t checked_stream(const ParserBatch& batch, size_t stream) {
    if (stream >= batch.size()) {
        throw py::index_error("stream is " + std::to_string(stream) + "; it must be below " +
                              std::to_string(batch.size()));
    }
    return stream;
}

void append_each(Batch& guarded, const py::array_t<uint8_t, py::array::c_style>& given) {
    guarded.write([&](ParserBatch& batch) {
        const size_t size = batch.size();
        if (given.ndim() < 1 || given.ndim() > 2 || static_cast<size_t>(given.shape(0)) != size) {
            raise(invalid_argument("data must be uint8[" + std::to_string(size) + "] or uint8[" + std::to_string(size) +
                                   ", k], one row per stream"));
        }
        const std::vector<uint8_t> bytes(given.data(), given.data() + given.size());
        const size_t row = given.ndim() == 1 ? 1 : static_cast<size_t>(given.shape(1));
        for (size_t i = 0; i < size; ++i) check_size(batch[i].num_bytes() + row);
        without_gil([&] { batch.append(bytes, row); });
    });
}

template <class Get>
py::array_t<uint64_t> of_each(const Batch& guarded, const Get& get) {
    return guarded.read([&](const ParserBatch& batch) {
        std::vector<uint64_t> values(batch.size());
        for (size_t i = 0; i < batch.size(); ++i) values[i] = get(batch[i]);
        return to_array(std::move(values));
    });
}

void bind_incremental_parser(py::module_& sub) {
    py::class_<Parser>(sub, "IncrementalParser")
        .def(py::init([](const Params& params) { return make_guarded<IncrementalParser>(params); }))
        .def("append", &append)
        .def("truncate", [](Parser& parser,
                            size_t num_bytes) { parser.write([&](IncrementalParser& p) { truncate(p, num_bytes); }); })
        .def("fork",
             [](const Parser& parser) {
                 return parser.read([](const IncrementalParser& p) { return make_guarded<IncrementalParser>(p); });
             })
        .def("tokens",
             [](const Parser& parser) {
                 return to_arrays(parser.read_without_gil([](const IncrementalParser& p) { return p.tokens(); }));
             })
        .def("extend", &extend)
        .def_property_readonly(
            "num_bytes", [](const Parser& p) { return p.read([](const auto& parser) { return parser.num_bytes(); }); })
        .def_property_readonly(
            "num_stable",
            [](const Parser& p) { return p.read([](const auto& parser) { return parser.num_stable(); }); })
        .def_property_readonly(
            "stable_bytes",
            [](const Parser& p) { return p.read([](const auto& parser) { return parser.stable_bytes(); }); })
        .def("is_legal",
             [](const Parser& parser, uint32_t kind, uint32_t value, uint32_t length) {
                 return legal(parser, [&](const auto& p) { return p.is_legal(make_token(kind, value, length)); });
             })
        .def("push_token",
             [](Parser& parser, uint32_t kind, uint32_t value, uint32_t length) {
                 return parser.write([&](IncrementalParser& p) {
                     check_greedy(p.params());
                     return without_gil([&] { return p.push_token(make_token(kind, value, length)); });
                 });
             })
        .def("legal_literals",
             [](const Parser& parser) {
                 const auto mask = legal(parser, [](const auto& p) { return p.legal_literals(); });
                 py::array_t<bool> array(256);
                 std::ranges::copy(mask, array.mutable_data());
                 return array;
             })
        .def("legal_distances",
             [](const Parser& parser) {
                 return to_array(legal(parser, [](const auto& p) { return p.legal_distances(); }));
             })
        .def("legal_lengths", [](const Parser& parser, uint32_t distance) {
            const auto lengths = legal(parser, [&](const auto& p) { return p.legal_lengths(distance); });
            return std::make_pair(lengths.shortest, lengths.longest);
        });
}

void bind_parser_batch(py::module_& sub) {
    py::class_<Batch>(sub, "ParserBatch")
        .def(py::init(
            [](const Params& params, size_t num_streams) { return make_guarded<ParserBatch>(params, num_streams); }))
        .def("__len__", [](const Batch& batch) { return batch.read([](const auto& b) { return b.size(); }); })
        .def("append", &append_each)
        .def("truncate",
             [](Batch& batch, size_t stream, size_t num_bytes) {
                 batch.write([&](ParserBatch& b) { truncate(b[checked_stream(b, stream)], num_bytes); });
             })
        .def("select",
             [](Batch& batch, const std::vector<size_t>& sources) {
                 batch.write([&](ParserBatch& b) {
                     for (const size_t source : sources) checked_stream(b, source);
                     without_gil([&] { b.select(sources); });
                 });
             })
        .def("fork",
             [](const Batch& batch, size_t stream) {
                 return batch.read([&](const ParserBatch& b) {
                     return make_guarded<IncrementalParser>(b[checked_stream(b, stream)]);
                 });
             })
        .def(
            "num_bytes",
            [](const Batch& batch) { return of_each(batch, [](const IncrementalParser& p) { return p.num_bytes(); }); })
        .def("num_stable", [](const Batch& batch) {
            return of_each(batch, [](const IncrementalParser& p) { return p.num_stable(); });
        });
}

}  // namespace

TokenArrays::TokenArrays(py::handle kinds, py::handle values, py::handle lengths)
    : kinds_(kinds, "kind"), values_(values, "value"), lengths_(lengths, "length") {
    if (values_.size() != kinds_.size() || lengths_.size() != kinds_.size()) {
        raise_named("ColumnError", "the columns of tokens have " + std::to_string(kinds_.size()) + ", " +
                                       std::to_string(values_.size()) + " and " + std::to_string(lengths_.size()) +
                                       " numbers; they must be equally long");
    }
    num_readable_ = std::min({kinds_.first_bad(), values_.first_bad(), lengths_.first_bad()});
}

void TokenArrays::raise_if_unreadable() const {
    if (num_readable_ == kinds_.size()) return;
    std::string what = lengths_.first_bad() == num_readable_ ? lengths_.bad_message() : "";
    if (values_.first_bad() == num_readable_) what = values_.bad_message();
    if (kinds_.first_bad() == num_readable_) what = kinds_.bad_message();
    raise(malformed("token " + std::to_string(num_readable_) + " is malformed: " + what));
}

TokenColumns TokenArrays::copy() const {
    TokenColumns tokens(kinds(), values(), lengths());
    raise_if_failed(without_gil([&]() -> Status {
        for (size_t i = 0; i < tokens.size(); ++i) {
            Status status = lz77::check_token(tokens.kinds[i], tokens.values[i], tokens.lengths[i], i);
            if (!status.ok()) return status;
        }
        return {};
    }));
    raise_if_unreadable();
    return tokens;
}

void check_size(size_t num_bytes) {
    if (num_bytes > lz77::kMaxTextBytes) {
        raise(invalid_argument("the text has " + std::to_string(num_bytes) + " bytes; it must have at most " +
                               std::to_string(lz77::kMaxTextBytes) + ", so split it"));
    }
}

void bind_lz77(py::module_& m) {
    py::module_ sub = m.def_submodule("lz77");
    sub.attr("UNLIMITED") = py::int_(lz77::kUnlimited);
    sub.attr("MAX_TEXT_BYTES") = py::int_(lz77::kMaxTextBytes);
    py::class_<Params>(sub, "Params").def(py::init(&make_params));
    sub.def("parse", &parse);
    sub.def("parse_batch", &parse_batch);
    sub.def("stable_counts", &stable_counts);
    sub.def("stable_counts_batch", &stable_counts_batch);
    sub.def("reconstruct", &reconstruct);
    sub.def("check_tokens", &check_tokens);
    bind_incremental_parser(sub);
    bind_parser_batch(sub);
    bind_lz77_alphabets(sub);
}

}  // namespace fastcompress::bindings
