#include <pybind11/stl.h>

#include "bind.h"
#include "fastcompress/common/parallel.h"
#include "guarded_mixer.h"

namespace fastcompress::bindings {
namespace {

using context_mixer::ContextMixer;
using context_mixer::MixerParams;

constexpr size_t kDistribution = 256;

std::unique_ptr<GuardedMixer> make_mixer(uint32_t log2_table_bytes, uint32_t log2_match_entries,
                                         uint32_t reset_interval) {
    const MixerParams params = {log2_table_bytes, log2_match_entries, reset_interval};
    raise_if_failed(check(params));
    return make_guarded<ContextMixer>(params);
}

void update(GuardedMixer& guarded, py::handle data) {
    const TextView view(data);
    guarded.write([&](ContextMixer& mixer) {
        if (mixer.is_frozen())
            raise(invalid_argument("the context mixer is frozen and cannot learn; train another one"));
        without_gil([&] { mixer.update(view.bytes()); });
    });
}

void check_precision(unsigned precision) {
    if (precision >= 8 && precision <= arithmetic::kMaxPrecision) return;
    raise(invalid_argument("precision is " + std::to_string(precision) + "; it must be 8 to " +
                           std::to_string(arithmetic::kMaxPrecision)));
}

py::array_t<uint32_t> distributions(const GuardedMixer& guarded, py::handle contexts, unsigned precision,
                                    size_t num_threads) {
    check_precision(precision);
    const std::vector<TextView> views = text_views(contexts);
    if (num_threads == 0) num_threads = default_num_threads();
    std::vector<uint32_t> rows(views.size() * kDistribution);
    guarded.read_without_gil([&](const ContextMixer& mixer) {
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

py::bytes encode_bytes(const GuardedMixer& guarded, py::handle data) {
    const TextView view(data);
    return to_py_bytes(guarded.read_without_gil([&](const ContextMixer& mixer) { return mixer.encode(view.bytes()); }));
}

py::bytes decode_bytes(const GuardedMixer& guarded, py::handle code, size_t num_bytes) {
    const TextView view(code);
    return to_py_bytes(value_or_raise(
        guarded.read_without_gil([&](const ContextMixer& mixer) { return mixer.decode(view.bytes(), num_bytes); })));
}

std::unique_ptr<GuardedMixer> parse_mixer(py::handle blob) {
    const TextView view(blob);
    return make_guarded<ContextMixer>(value_or_raise(without_gil([&] { return ContextMixer::parse(view.bytes()); })));
}

std::unique_ptr<GuardedMixer> frozen(const GuardedMixer& guarded) {
    return guarded.read_without_gil([](const ContextMixer& mixer) {
        ContextMixer copy(mixer);
        copy.freeze();
        return make_guarded<ContextMixer>(std::move(copy));
    });
}

}  // namespace

void bind_context_mixer(py::module_& m) {
    py::module_ sub = m.def_submodule("context_mixer");
    py::class_<GuardedMixer>(sub, "ContextMixer")
        .def(py::init(&make_mixer))
        .def("update", &update)
        .def("reset", [](GuardedMixer& guarded) { guarded.write([](ContextMixer& mixer) { mixer.reset(); }); })
        .def("frozen", &frozen)
        .def("distributions", &distributions)
        .def("encode", &encode_bytes)
        .def("decode", &decode_bytes)
        .def("to_bytes",
             [](const GuardedMixer& guarded) {
                 return to_py_bytes(
                     guarded.read_without_gil([](const ContextMixer& mixer) { return mixer.serialize(); }));
             })
        .def_static("from_bytes", &parse_mixer)
        .def_property_readonly("is_frozen",
                               [](const GuardedMixer& guarded) {
                                   return guarded.read([](const ContextMixer& mixer) { return mixer.is_frozen(); });
                               })
        .def_property_readonly("num_bytes",
                               [](const GuardedMixer& guarded) {
                                   return guarded.read([](const ContextMixer& mixer) { return mixer.num_bytes(); });
                               })
        .def_property_readonly("params", [](const GuardedMixer& guarded) {
            return guarded.read([](const ContextMixer& mixer) {
                const MixerParams& params = mixer.params();
                return std::make_tuple(params.log2_table_bytes, params.log2_match_entries, params.reset_interval);
            });
        });
}

}  // namespace fastcompress::bindings
