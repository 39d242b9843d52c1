#include <pybind11/stl.h>

#include "bind_arithmetic.h"
#include "fastcompress/arithmetic/adaptive_frequencies.h"
#include "guarded.h"

namespace fastcompress::bindings {

template <>
inline constexpr const char* kPythonName<arithmetic::AdaptiveFrequencies> = "AdaptiveFrequencies";

namespace {

using arithmetic::AdaptiveFrequencies;
using arithmetic::FrequencyParams;
using Frequencies = Guarded<AdaptiveFrequencies>;

std::unique_ptr<Frequencies> make_frequencies(uint32_t num_symbols, uint32_t increment, uint32_t limit) {
    const FrequencyParams params = {num_symbols, increment, limit};
    raise_if_failed(check(params));
    return make_guarded<AdaptiveFrequencies>(params);
}

// Returns a private copy of symbols. Raises DataError for a symbol that is not in the alphabet.
std::vector<uint32_t> checked_symbols(uint32_t num_symbols, py::handle given) {
    const IntColumn<uint32_t> column(given, "symbols");
    std::vector<uint32_t> symbols(column.values().begin(), column.values().end());
    for (size_t i = 0; i < symbols.size(); ++i) {
        if (i == column.first_bad()) raise(invalid_data(column.bad_message()));
        if (symbols[i] < num_symbols) continue;
        raise(invalid_data("symbols[" + std::to_string(i) + "] is " + std::to_string(symbols[i]) +
                           "; it must be 0 to " + std::to_string(num_symbols - 1)));
    }
    return symbols;
}

uint32_t num_symbols_of(const Frequencies& guarded) {
    return guarded.read([](const AdaptiveFrequencies& model) { return model.num_symbols(); });
}

void update_frequencies(Frequencies& guarded, py::handle given) {
    const std::vector<uint32_t> symbols = checked_symbols(num_symbols_of(guarded), given);
    guarded.write_without_gil([&](AdaptiveFrequencies& model) {
        for (const uint32_t symbol : symbols) model.update(symbol);
    });
}

py::bytes encode_symbols(const Frequencies& guarded, py::handle given) {
    const std::vector<uint32_t> symbols = checked_symbols(num_symbols_of(guarded), given);
    return to_py_bytes(guarded.read_without_gil([&](const AdaptiveFrequencies& model) {
        AdaptiveFrequencies copy = model;
        arithmetic::RangeEncoder encoder;
        copy.encode(symbols, encoder);
        return encoder.finish();
    }));
}

py::array_t<uint32_t> decode_symbols(const Frequencies& guarded, py::handle code, size_t num_symbols) {
    const TextView view(code);
    auto symbols = guarded.read_without_gil([&](const AdaptiveFrequencies& model) -> Result<std::vector<uint32_t>> {
        AdaptiveFrequencies copy = model;
        arithmetic::RangeDecoder decoder(view.bytes());
        std::vector<uint32_t> out;  // grows with what is decoded
        while (out.size() < num_symbols) {
            const size_t done = out.size();
            out.resize(std::min(num_symbols, std::max<size_t>(2 * done, 65536)));
            if (Status status = copy.decode(decoder, std::span(out).subspan(done)); !status.ok()) return status;
        }
        if (Status status = decoder.check_end(view.bytes().size()); !status.ok()) return status;
        return out;
    });
    return to_array(value_or_raise(std::move(symbols)));
}

}  // namespace

void bind_frequencies(py::module_& sub) {
    py::class_<Frequencies>(sub, "AdaptiveFrequencies")
        .def(py::init(&make_frequencies))
        .def("update", &update_frequencies)
        .def("encode", &encode_symbols)
        .def("decode", &decode_symbols)
        .def("cumulative",
             [](const Frequencies& guarded) {
                 return to_array(guarded.read([](const AdaptiveFrequencies& model) { return model.cumulative(); }));
             })
        .def_property_readonly("num_symbols", &num_symbols_of)
        .def_property_readonly("precision", [](const Frequencies& guarded) {
            return guarded.read([](const AdaptiveFrequencies& model) { return model.precision(); });
        });
}

}  // namespace fastcompress::bindings
