#include "bind.h"
#include "fastcompress/equal_info/windows.h"

namespace fastcompress::bindings {
namespace {

using context_mixer::ContextMixer;
using equal_info::DecodedBytes;
using equal_info::WindowCoder;

const ContextMixer& checked_frozen(const ContextMixer& mixer) {
    if (!mixer.is_frozen()) {
        raise(invalid_argument(
            "the context mixer still learns; windows and documents are coded by one that is frozen()"));
    }
    return mixer;
}

std::unique_ptr<WindowCoder> make_windows(const ContextMixer& mixer, unsigned window_bits) {
    if (window_bits < equal_info::kMinWindowBits || window_bits > equal_info::kMaxWindowBits || window_bits % 8 != 0) {
        raise(invalid_argument("window_bits is " + std::to_string(window_bits) + "; it must be a multiple of 8 from " +
                               std::to_string(equal_info::kMinWindowBits) + " to " +
                               std::to_string(equal_info::kMaxWindowBits) + " (below: a Codebook)"));
    }
    return std::make_unique<WindowCoder>(checked_frozen(mixer), window_bits);
}

py::tuple to_arrays(DecodedBytes decoded) {
    py::bytes bytes = to_py_bytes(decoded.bytes);
    return py::make_tuple(std::move(bytes), to_array(std::move(decoded.num_known)));
}

}  // namespace

void bind_windows(py::module_& m) {
    py::module_ sub = m.def_submodule("windows");
    py::class_<WindowCoder>(sub, "WindowCoder")
        .def(py::init(&make_windows), py::keep_alive<1, 2>())
        .def("encode",
             [](const WindowCoder& windows, py::handle data) {
                 const TextView view(data);
                 return to_py_bytes(without_gil([&] { return windows.encode(view.bytes()); }));
             })
        .def("decode", [](const WindowCoder& windows, const py::bytes& code, size_t max_bytes) {
            const Bytes bytes = bytes_of(code);
            return to_arrays(value_or_raise(without_gil([&] { return windows.decode(bytes, max_bytes); })));
        });
    sub.def("encode_document", [](const ContextMixer& mixer, py::handle data) {
        checked_frozen(mixer);
        const TextView view(data);
        return to_py_bytes(without_gil([&] { return equal_info::encode_document(mixer, view.bytes()); }));
    });
    sub.def("decode_document", [](const ContextMixer& mixer, const py::bytes& message, size_t max_bytes) {
        checked_frozen(mixer);
        const Bytes bytes = bytes_of(message);
        return to_arrays(
            value_or_raise(without_gil([&] { return equal_info::decode_document(mixer, bytes, max_bytes); })));
    });
}

}  // namespace fastcompress::bindings
