#include <pybind11/stl.h>

#include "bind.h"
#include "fastcompress/archive/container.h"
#include "guarded.h"

namespace fastcompress::bindings {

template <>
inline constexpr const char* kPythonName<archive::ArchiveWriter> = "Compressor";
template <>
inline constexpr const char* kPythonName<archive::ArchiveReader> = "Decompressor";

namespace {

using archive::ArchiveReader;
using archive::ArchiveWriter;
using archive::BlockCoder;
using archive::Header;
using archive::Method;
using archive::WriterSettings;

constexpr Method kMethods[] = {Method::kLz, Method::kCm};

std::string names() {
    std::string all;
    for (const Method method : kMethods) {
        const BlockCoder* const coder = archive::block_coder(method);
        if (coder != nullptr) all += (all.empty() ? "'" : ", '") + std::string(coder->name()) + "'";
    }
    return all;
}

Method method_named(const std::string& name) {
    for (const Method method : kMethods) {
        const BlockCoder* const coder = archive::block_coder(method);
        if (coder != nullptr && coder->name() == name) return method;
    }
    raise(invalid_argument("there is no method '" + name + "'; there are " + names()));
}

WriterSettings make_settings(const std::string& method, unsigned level, size_t block_bytes,
                             std::optional<uint64_t> content_bytes, size_t num_threads) {
    return {method_named(method), level, block_bytes, content_bytes, num_threads};
}

using Writer = Guarded<ArchiveWriter>;
using Reader = Guarded<ArchiveReader>;

void bind_passes(py::module_& sub) {
    py::class_<Writer>(sub, "Writer")
        .def(py::init([](const std::string& method, unsigned level, size_t block_bytes,
                         std::optional<uint64_t> content_bytes, size_t num_threads) {
            const auto settings = make_settings(method, level, block_bytes, content_bytes, num_threads);
            return make_guarded<ArchiveWriter>(value_or_raise(ArchiveWriter::make(settings)));
        }))
        .def("append",
             [](Writer& writer, py::handle data) {
                 const TextView view(data);
                 return to_py_bytes(
                     writer.write_without_gil([&](ArchiveWriter& pass) { return pass.append(view.bytes()); }));
             })
        .def("finish", [](Writer& writer) {
            return to_py_bytes(
                value_or_raise(writer.write_without_gil([](ArchiveWriter& pass) { return pass.finish(); })));
        });
    py::class_<Reader>(sub, "Reader")
        .def(py::init([](uint64_t max_output, size_t num_threads) {
            return make_guarded<ArchiveReader>(max_output, num_threads);
        }))
        .def("append",
             [](Reader& reader, py::handle data) {
                 const TextView view(data);
                 return to_py_bytes(value_or_raise(
                     reader.write_without_gil([&](ArchiveReader& pass) { return pass.append(view.bytes()); })));
             })
        .def("finish", [](Reader& reader) {
            raise_if_failed(reader.write_without_gil([](ArchiveReader& pass) { return pass.finish(); }));
        });
}

py::tuple header(py::handle data) {
    const TextView view(data);
    const Header header = value_or_raise(archive::read_header(view.bytes()));
    const std::string name(archive::block_coder(header.method)->name());
    return py::make_tuple(name, header.level, header.block_bytes, header.content_bytes,
                          to_py_bytes(Bytes(header.model_hash)));
}

}  // namespace

void bind_archive(py::module_& m) {
    py::module_ sub = m.def_submodule("archive");
    sub.attr("MIN_BLOCK_BYTES") = py::int_(archive::kMinBlockBytes);
    sub.attr("MAX_BLOCK_BYTES") = py::int_(archive::kMaxBlockBytes);
    sub.def("compress", [](py::handle data, const std::string& method, unsigned level, size_t block_bytes,
                           size_t num_threads) {
        const TextView view(data);
        const auto settings = make_settings(method, level, block_bytes, std::nullopt, num_threads);
        return to_py_bytes(value_or_raise(without_gil([&] { return archive::compress(view.bytes(), settings); })));
    });
    sub.def("decompress", [](py::handle data, uint64_t max_output, size_t num_threads) {
        const TextView view(data);
        return to_py_bytes(
            value_or_raise(without_gil([&] { return archive::decompress(view.bytes(), max_output, num_threads); })));
    });
    sub.def("header", &header);
    bind_passes(sub);
}

}  // namespace fastcompress::bindings
