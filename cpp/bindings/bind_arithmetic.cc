#include <pybind11/stl.h>

#include "bind_arithmetic.h"

#include "fastcompress/arithmetic/bulk_coder.h"
#include "message_coders.h"
#include "symbols.h"

namespace fastcompress::bindings {
namespace {

using arithmetic::BulkDecoder;
using arithmetic::BulkEncoder;
using arithmetic::Quantizer;

constexpr size_t kRowsAtOnce = 32;

// Calls code(begin, end) for parts of the rows, each once it has been checked.
template <class Code>
Status for_checked_rows(const Tables& tables, const Code& code) {
    for (size_t begin = 0; begin < tables.num_rows(); begin += kRowsAtOnce) {
        const size_t end = std::min(tables.num_rows(), begin + kRowsAtOnce);
        if (Status status = tables.check_rows(begin, end); !status.ok()) return status;
        code(begin, end);
    }
    return {};
}

void encode(MessageEncoder& message, py::handle symbols, py::handle cumulative) {
    const Turn turn(message.is_taken);
    RangeEncoder& encoder = message.encoder;
    const Tables tables(cumulative);
    if (is_single(symbols)) {
        check_num_rows(tables.num_rows(), 1);
        raise_if_failed(tables.check_rows(0, tables.is_single() ? 0 : 1));
        const uint32_t* const at = tables.data() + single_symbol(symbols, tables.num_symbols());
        encoder.encode(at[0], at[1] - at[0], tables.precision());
        return;
    }
    with_symbols(symbols_array(symbols), tables.num_symbols(), [&]<class Symbol>(std::span<const Symbol> all) {
        BulkEncoder bulk(encoder);
        if (tables.is_single()) return without_gil([&] { bulk.encode(all, tables.data(), tables.precision()); });
        check_num_rows(tables.num_rows(), all.size());
        const auto before = encoder.snapshot();
        const auto problem = without_gil([&] {
            return for_checked_rows(tables, [&](size_t begin, size_t end) {
                bulk.encode_rows(all.subspan(begin, end - begin), tables.data() + begin * tables.row_size(),
                                 tables.row_size(), tables.precision());
            });
        });
        if (problem.ok()) return;
        encoder.restore(before);
        raise(problem);
    });
}

void encode_weights(MessageEncoder& message, py::handle symbols, py::handle weights, Precision precision) {
    const Turn turn(message.is_taken);
    RangeEncoder& encoder = message.encoder;
    const Weights rows(weights, precision);
    Quantizer& quantizer = message.quantizer.of(rows);
    const auto put = [&](size_t row, size_t symbol) {
        const auto problem = rows.set_row(quantizer, row);
        if (!problem.ok()) return problem;
        const auto slot = quantizer.slot(symbol);
        encoder.encode(slot.cumulative, slot.frequency, rows.precision());
        return problem;
    };
    const auto before = encoder.snapshot();
    Status problem;
    if (is_single(symbols)) {
        check_num_rows(rows.num_rows(), 1);
        problem = put(0, single_symbol(symbols, rows.num_symbols()));
    } else {
        with_symbols(symbols_array(symbols), rows.num_symbols(), [&](auto all) {
            check_num_rows(rows.num_rows(), all.size());
            problem = without_gil([&]() -> Status {
                for (size_t i = 0; i < all.size(); ++i) {
                    if (Status status = put(i, all[i]); !status.ok()) return status;
                }
                return {};
            });
        });
    }
    if (problem.ok()) return;
    encoder.restore(before);
    raise(problem);
}

void check_message(bool is_ok) {
    if (!is_ok) {
        raise(malformed(
            "this is not a message of these symbols: it is truncated, damaged, or was encoded with other tables"));
    }
}

// Calls decode() with a span of the type named, to fill, and gives its array.
template <class Decode>
py::array decoded(const py::dtype& dtype, size_t count, size_t num_symbols, const Decode& decode) {
    const auto fill = [&]<class Symbol>(Symbol) -> py::array {
        if (num_symbols - 1 > std::numeric_limits<Symbol>::max()) {
            raise(invalid_argument(std::to_string(num_symbols) + " symbols do not fit " + std::string(py::str(dtype)) +
                                   "; choose a wider dtype"));
        }
        py::array_t<Symbol> out(static_cast<py::ssize_t>(count));
        const std::span<Symbol> span(out.mutable_data(), count);
        decode(span);
        return out;
    };
    if (dtype.kind() == 'u' && dtype.itemsize() == 1) return fill(uint8_t{});
    if (dtype.kind() == 'u' && dtype.itemsize() == 2) return fill(uint16_t{});
    if (dtype.kind() == 'u' && dtype.itemsize() == 4) return fill(uint32_t{});
    throw py::type_error("dtype must be uint8, uint16 or uint32, not " + std::string(py::str(dtype)));
}

size_t decode_symbol(MessageDecoder& message, py::handle cumulative) {
    const Turn turn(message.is_taken);
    const Tables tables(cumulative);
    check_num_rows(tables.num_rows(), 1);
    raise_if_failed(tables.check_rows(0, tables.is_single() ? 0 : 1));
    RangeDecoder& decoder = message.ready(1);
    const size_t symbol =
        arithmetic::find_symbol(tables.data(), tables.num_symbols(), decoder.peek(tables.precision()));
    decoder.consume(tables.data()[symbol], tables.data()[symbol + 1] - tables.data()[symbol]);
    check_message(decoder.ok());
    return symbol;
}

py::array decode(MessageDecoder& message, py::handle cumulative, size_t count, const py::dtype& dtype) {
    const Turn turn(message.is_taken);
    const Tables tables(cumulative);
    if (!tables.is_single()) check_num_rows(tables.num_rows(), count);
    RangeDecoder& decoder = message.ready(count);
    return decoded(dtype, count, tables.num_symbols(), [&]<class Symbol>(std::span<Symbol> out) {
        BulkDecoder bulk(decoder);
        if (tables.is_single()) {
            return check_message(without_gil([&] {
                return bulk.decode(out, {tables.data(), tables.row_size()}, tables.precision());
            }));
        }
        const RangeDecoder before = decoder;
        const auto problem = without_gil([&] {
            return for_checked_rows(tables, [&](size_t begin, size_t end) {
                bulk.decode_rows(out.subspan(begin, end - begin), tables.data() + begin * tables.row_size(),
                                 tables.row_size(), tables.precision());
            });
        });
        if (!problem.ok()) {
            decoder = before;
            raise(problem);
        }
        check_message(decoder.ok());
    });
}

size_t decode_symbol_weights(MessageDecoder& message, py::handle weights, Precision precision) {
    const Turn turn(message.is_taken);
    const Weights rows(weights, precision);
    check_num_rows(rows.num_rows(), 1);
    RangeDecoder& decoder = message.ready(1);
    Quantizer& quantizer = message.quantizer.of(rows);
    raise_if_failed(rows.set_row(quantizer, 0));
    Quantizer::Slot slot;
    const size_t symbol = quantizer.find(decoder.peek(rows.precision()), slot);
    decoder.consume(slot.cumulative, slot.frequency);
    check_message(decoder.ok());
    return symbol;
}

py::array decode_weights(MessageDecoder& message, py::handle weights, Precision precision, const py::dtype& dtype) {
    const Turn turn(message.is_taken);
    const Weights rows(weights, precision);
    RangeDecoder& decoder = message.ready(rows.num_rows());
    const RangeDecoder before = decoder;
    return decoded(dtype, rows.num_rows(), rows.num_symbols(), [&]<class Symbol>(std::span<Symbol> out) {
        const auto problem = without_gil([&]() -> Status {
            Quantizer& quantizer = message.quantizer.of(rows);
            for (size_t i = 0; i < out.size(); ++i) {
                if (Status status = rows.set_row(quantizer, i); !status.ok()) return status;
                Quantizer::Slot slot;
                out[i] = static_cast<Symbol>(quantizer.find(decoder.peek(rows.precision()), slot));
                decoder.consume(slot.cumulative, slot.frequency);
            }
            return {};
        });
        if (!problem.ok()) {
            decoder = before;
            raise(problem);
        }
        check_message(decoder.ok());
    });
}

}  // namespace

void bind_arithmetic(py::module_& m) {
    py::module_ sub = m.def_submodule("arithmetic");
    bind_quantizer(sub);
    py::class_<EncoderSnapshot>(sub, "EncoderSnapshot");
    py::class_<MessageEncoder>(sub, "Encoder")
        .def(py::init<>())
        .def("encode", &encode, py::arg("symbols"), py::arg("cumulative"))
        .def("encode_weights", &encode_weights, py::arg("symbols"), py::arg("weights"),
             py::arg("precision") = py::none())
        .def_property_readonly("bits_if_closed", &MessageEncoder::bits_if_closed)
        .def("snapshot", &MessageEncoder::snapshot)
        .def("restore", &MessageEncoder::restore)
        .def("take", [](MessageEncoder& message) { return to_py_bytes(message.take()); })
        .def("finish", [](MessageEncoder& message) { return to_py_bytes(message.finish()); });
    py::class_<DecoderSnapshot>(sub, "DecoderSnapshot");
    py::class_<MessageDecoder>(sub, "Decoder")
        .def(py::init<>())
        .def("append", &MessageDecoder::append)
        .def_property_readonly("num_ready", &MessageDecoder::num_ready)
        .def("decode_symbol", &decode_symbol, py::arg("cumulative"))
        .def("decode_symbol_weights", &decode_symbol_weights, py::arg("weights"), py::arg("precision") = py::none())
        .def("decode_array", &decode)
        .def("decode_weights_array", &decode_weights)
        .def("snapshot", &MessageDecoder::snapshot)
        .def("restore", &MessageDecoder::restore);
}

}  // namespace fastcompress::bindings
