#include <pybind11/stl.h>

#include "bind.h"
#include "fastcompress/arithmetic/adaptive_frequencies.h"
#include "fastcompress/common/parallel.h"
#include "fastcompress/context_mixer/context_mixer.h"

namespace fastcompress::bindings {
namespace {

using arithmetic::AdaptiveFrequencies;
using arithmetic::FrequencyParams;
using context_mixer::ContextMixer;
using context_mixer::MixerParams;
using Symbols = py::array_t<uint32_t, py::array::c_style>;

constexpr size_t kDistribution = 256;

std::unique_ptr<ContextMixer> make_mixer(uint32_t log2_table_bytes, uint32_t log2_match_entries, uint32_t window) {
    const MixerParams params = {log2_table_bytes, log2_match_entries, window};
    raise_if_failed(check(params));
    return std::make_unique<ContextMixer>(params);
}

void update(ContextMixer& mixer, py::handle data) {
    if (mixer.is_frozen()) raise(invalid_argument("a frozen context mixer does not learn; train another"));
    const TextView view(data);
    without_gil([&] { mixer.update(view.bytes()); });
}

void check_precision(unsigned precision) {
    if (precision >= 8 && precision <= arithmetic::kMaxPrecision) return;
    raise(invalid_argument("the precision is " + std::to_string(precision) + "; it must be 8 to " +
                           std::to_string(arithmetic::kMaxPrecision)));
}

py::array_t<uint32_t> distributions(const ContextMixer& mixer, const py::list& contexts, unsigned precision,
                                    size_t num_threads) {
    check_precision(precision);
    const std::vector<TextView> views = text_views(contexts);
    if (num_threads == 0) num_threads = default_num_threads();
    std::vector<uint32_t> rows(views.size() * kDistribution);
    without_gil([&] {
        const auto weight = [&](size_t i) { return views[i].bytes().size() + 10000; };
        parallel_parts(views.size(), num_threads, weight, [&](size_t, size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i) {
                const std::span<uint32_t, kDistribution> row(rows.data() + i * kDistribution, kDistribution);
                mixer.distribution(views[i].bytes(), precision, row);
            }
        });
    });
    const auto num_rows = static_cast<py::ssize_t>(views.size());
    return to_array(std::move(rows)).reshape({num_rows, static_cast<py::ssize_t>(kDistribution)});
}

py::bytes encode_bytes(const ContextMixer& mixer, py::handle data) {
    const TextView view(data);
    return to_py_bytes(without_gil([&] { return mixer.encode(view.bytes()); }));
}

py::bytes decode_bytes(const ContextMixer& mixer, py::handle message, size_t num_bytes) {
    const TextView view(message);
    return to_py_bytes(value_or_raise(without_gil([&] { return mixer.decode(view.bytes(), num_bytes); })));
}

std::unique_ptr<ContextMixer> parse_mixer(py::handle blob) {
    const TextView view(blob);
    return std::make_unique<ContextMixer>(
        value_or_raise(without_gil([&] { return ContextMixer::parse(view.bytes()); })));
}

std::unique_ptr<ContextMixer> frozen(const ContextMixer& mixer) {
    auto copy = without_gil([&] { return std::make_unique<ContextMixer>(mixer); });
    copy->freeze();
    return copy;
}

std::unique_ptr<AdaptiveFrequencies> make_frequencies(uint32_t num_symbols, uint32_t increment, uint32_t limit) {
    const FrequencyParams params = {num_symbols, increment, limit};
    raise_if_failed(check(params));
    return std::make_unique<AdaptiveFrequencies>(params);
}

std::span<const uint32_t> checked_symbols(const AdaptiveFrequencies& model, const Symbols& symbols) {
    const std::span<const uint32_t> all(symbols.data(), static_cast<size_t>(symbols.size()));
    for (const uint32_t symbol : all) {
        if (symbol < model.num_symbols()) continue;
        raise(invalid_data("symbol " + std::to_string(symbol) + " of an alphabet of " +
                           std::to_string(model.num_symbols())));
    }
    return all;
}

void update_frequencies(AdaptiveFrequencies& model, const Symbols& symbols) {
    for (const uint32_t symbol : checked_symbols(model, symbols)) model.update(symbol);
}

py::bytes encode_symbols(const AdaptiveFrequencies& model, const Symbols& symbols) {
    const auto all = checked_symbols(model, symbols);
    AdaptiveFrequencies copy = model;  // with the GIL held, so that no update is under way
    return to_py_bytes(without_gil([&] {
        arithmetic::RangeEncoder encoder;
        copy.encode(all, encoder);
        return encoder.finish();
    }));
}

py::array_t<uint32_t> decode_symbols(const AdaptiveFrequencies& model, py::handle message, size_t num_symbols) {
    const TextView view(message);
    AdaptiveFrequencies copy = model;  // with the GIL held, so that no update is under way
    auto symbols = without_gil([&]() -> Result<std::vector<uint32_t>> {
        arithmetic::RangeDecoder decoder(view.bytes());
        std::vector<uint32_t> out;  // grows with what is decoded
        while (out.size() < num_symbols) {
            const size_t done = out.size();
            out.resize(std::min(num_symbols, std::max<size_t>(2 * done, 65536)));
            if (Status status = copy.decode(decoder, std::span(out).subspan(done)); !status.ok()) return status;
        }
        return out;
    });
    return to_array(value_or_raise(std::move(symbols)));
}

}  // namespace

void bind_models(py::module_& m) {
    py::module_ sub = m.def_submodule("models");
    py::class_<ContextMixer>(sub, "ContextMixer")
        .def(py::init(&make_mixer))
        .def("update", &update)
        .def("reset", &ContextMixer::reset)
        .def("frozen", &frozen)
        .def("distributions", &distributions)
        .def("encode", &encode_bytes)
        .def("decode", &decode_bytes)
        .def("to_bytes",
             [](const ContextMixer& mixer) { return to_py_bytes(without_gil([&] { return mixer.serialize(); })); })
        .def_static("from_bytes", &parse_mixer)
        .def_property_readonly("is_frozen", &ContextMixer::is_frozen)
        .def_property_readonly("num_bytes", &ContextMixer::num_bytes)
        .def_property_readonly("params", [](const ContextMixer& mixer) {
            const MixerParams& params = mixer.params();
            return std::make_tuple(params.log2_table_bytes, params.log2_match_entries, params.window);
        });
    py::class_<AdaptiveFrequencies>(sub, "AdaptiveFrequencies")
        .def(py::init(&make_frequencies))
        .def("update", &update_frequencies)
        .def("encode", &encode_symbols)
        .def("decode", &decode_symbols)
        .def("cumulative", [](const AdaptiveFrequencies& model) { return to_array(model.cumulative()); })
        .def_property_readonly("num_symbols", &AdaptiveFrequencies::num_symbols)
        .def_property_readonly("precision", &AdaptiveFrequencies::precision);
}

}  // namespace fastcompress::bindings
