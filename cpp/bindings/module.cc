// The Python module fastcompress._core. Each core is bound in bind_<core>.cc, as a submodule.
#include "bind.h"

PYBIND11_MODULE(_core, m) {
    m.doc() =
        "The C++ cores of fastcompress. Use the package fastcompress, which checks arguments and documents everything.";
    m.attr("__version__") = FASTCOMPRESS_VERSION;
    fastcompress::bindings::bind_pretokenizer(m);
    fastcompress::bindings::bind_bpe(m);
    fastcompress::bindings::bind_arithmetic(m);
    fastcompress::bindings::bind_lz77(m);
    fastcompress::bindings::bind_context_mixer(m);
    fastcompress::bindings::bind_equal_info(m);
    fastcompress::bindings::bind_greedy_dictionary(m);
    fastcompress::bindings::bind_archive(m);
}
