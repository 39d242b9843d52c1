#include <algorithm>

#include "bind_lz77.h"
#include "fastcompress/lz77/buckets.h"
#include "fastcompress/lz77/lzp.h"

namespace fastcompress::bindings {
namespace {

using lz77::BucketAlphabet;
using lz77::LzpParams;
using lz77::Params;
using lz77::TokenColumns;

TokenColumns to_columns(const Column<uint8_t>& kinds, const Column<uint32_t>& values, const Column<uint32_t>& lengths) {
    return {as_span(kinds), as_span(values), as_span(lengths)};
}

LzpParams make_lzp_params(uint32_t order, uint32_t min_length, uint32_t max_length) {
    const LzpParams params = {order, min_length, max_length};
    raise_if_failed(check(params));
    return params;
}

}  // namespace

void bind_lz77_alphabets(py::module_& sub) {
    sub.def("bucket_sizes", [](const Params& params) {
        const BucketAlphabet alphabet(params);
        return py::make_tuple(alphabet.num_ids(), alphabet.most_ids());
    });
    sub.def("bucket_encode", [](const Column<uint8_t>& kinds, const Column<uint32_t>& values,
                                const Column<uint32_t>& lengths, const Params& params) {
        const TokenColumns tokens = to_columns(kinds, values, lengths);
        return to_array(without_gil([&] { return BucketAlphabet(params).encode(tokens); }));
    });
    sub.def("bucket_decode", [](const Column<uint32_t>& ids, const Params& params) {
        auto decoded = value_or_raise(without_gil([&] { return BucketAlphabet(params).decode(as_span(ids)); }));
        const py::tuple columns = to_arrays(std::move(decoded.tokens));
        return py::make_tuple(columns[0], columns[1], columns[2], to_array(std::move(decoded.byte_lengths)));
    });
    py::class_<LzpParams>(sub, "LzpParams")
        .def(py::init(&make_lzp_params))
        .def_property_readonly("num_ids", &LzpParams::num_ids);
    sub.def("lzp_encode", [](py::handle data, const LzpParams& params) {
        const TextView view(data);
        check_size(view.bytes().size());
        return to_array(without_gil([&] { return lz77::lzp_encode(view.bytes(), params); }));
    });
    sub.def("lzp_decode", [](const Column<uint32_t>& ids, const LzpParams& params, size_t max_bytes) {
        return to_py_bytes(
            value_or_raise(without_gil([&] { return lz77::lzp_decode(as_span(ids), params, max_bytes); })));
    });
}

}  // namespace fastcompress::bindings
