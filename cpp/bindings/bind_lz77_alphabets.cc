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
    sub.def("bucket_encode", [](py::handle kinds, py::handle values, py::handle lengths, const Params& params) {
        const TokenColumns tokens = TokenArrays(kinds, values, lengths).copy();
        const BucketAlphabet alphabet(params);
        raise_if_failed(without_gil([&] { return alphabet.check(tokens); }));
        return to_array(without_gil([&] { return alphabet.encode(tokens); }));
    });
    sub.def("bucket_decode", [](py::handle given, const Params& params) {
        const IntColumn<uint32_t> ids(given, "ids");
        const auto span = ids.checked();
        auto decoded = value_or_raise(without_gil([&] { return BucketAlphabet(params).decode(span); }));
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
    sub.def("lzp_decode", [](py::handle given, const LzpParams& params, size_t max_bytes) {
        const IntColumn<uint32_t> ids(given, "ids");
        const auto span = ids.checked();
        return to_py_bytes(value_or_raise(without_gil([&] { return lz77::lzp_decode(span, params, max_bytes); })));
    });
}

}  // namespace fastcompress::bindings
