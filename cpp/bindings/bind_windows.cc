#include "bind.h"
#include "fastcompress/equal_info/windows.h"
#include "guarded_mixer.h"

namespace fastcompress::bindings {
namespace {

using context_mixer::ContextMixer;
using equal_info::DecodedBytes;
using equal_info::WindowCoder;

void check_frozen(const ContextMixer& mixer) {
    if (mixer.is_frozen()) return;
    raise(invalid_argument("the context mixer still learns; windows and documents need a frozen one, from frozen()"));
}

// A window coder and the mixer that it reads.
class BoundWindows {
  public:
    BoundWindows(const GuardedMixer& mixer, unsigned window_bits)
        : mixer_(mixer), windows_(mixer.read([&](const ContextMixer& frozen) {
              check_frozen(frozen);
              return WindowCoder(frozen, window_bits);
          })) {}

    // Calls body(windows) without the GIL, while no call changes the mixer.
    template <class Body>
    auto read(const Body& body) const {
        return mixer_.read_without_gil([&](const ContextMixer&) { return body(windows_); });
    }

  private:
    const GuardedMixer& mixer_;  // kept alive by the binding
    WindowCoder windows_;
};

std::unique_ptr<BoundWindows> make_windows(const GuardedMixer& mixer, unsigned window_bits) {
    if (window_bits < equal_info::kMinWindowBits || window_bits > equal_info::kMaxWindowBits || window_bits % 8 != 0) {
        raise(invalid_argument("window_bits is " + std::to_string(window_bits) + "; it must be a multiple of 8 from " +
                               std::to_string(equal_info::kMinWindowBits) + " to " +
                               std::to_string(equal_info::kMaxWindowBits) + "; for 9 to 16 bits, use a Codebook"));
    }
    return std::make_unique<BoundWindows>(mixer, window_bits);
}

py::tuple to_arrays(DecodedBytes decoded) {
    py::bytes bytes = to_py_bytes(decoded.bytes);
    return py::make_tuple(std::move(bytes), to_array(std::move(decoded.num_known)));
}

}  // namespace

void bind_windows(py::module_& sub) {
    py::class_<BoundWindows>(sub, "WindowCoder")
        .def(py::init(&make_windows), py::keep_alive<1, 2>())
        .def("encode",
             [](const BoundWindows& windows, py::handle data) {
                 const TextView view(data);
                 return to_py_bytes(windows.read([&](const WindowCoder& coder) { return coder.encode(view.bytes()); }));
             })
        .def("decode", [](const BoundWindows& windows, const py::bytes& code, size_t max_bytes) {
            const Bytes bytes = bytes_of(code);
            return to_arrays(
                value_or_raise(windows.read([&](const WindowCoder& coder) { return coder.decode(bytes, max_bytes); })));
        });
    sub.def("encode_document", [](const GuardedMixer& guarded, py::handle data) {
        const TextView view(data);
        return to_py_bytes(guarded.read([&](const ContextMixer& mixer) {
            check_frozen(mixer);
            return without_gil([&] { return equal_info::encode_document(mixer, view.bytes()); });
        }));
    });
    sub.def("decode_document", [](const GuardedMixer& guarded, const py::bytes& code, size_t max_bytes) {
        const Bytes bytes = bytes_of(code);
        return to_arrays(value_or_raise(guarded.read([&](const ContextMixer& mixer) {
            check_frozen(mixer);
            return without_gil([&] { return equal_info::decode_document(mixer, bytes, max_bytes); });
        })));
    });
}

}  // namespace fastcompress::bindings
