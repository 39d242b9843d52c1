#include <pybind11/stl.h>

#include "bind_arithmetic.h"

#include "coders.h"
#include "fastcompress/arithmetic/bulk_coder.h"
#include "symbols.h"

namespace fastcompress::bindings {
namespace {

using arithmetic::BulkDecoder;
using arithmetic::BulkEncoder;
using arithmetic::Quantizer;

constexpr size_t kRowsAtOnce = 32;

// Calls code(begin, end) for parts of the rows, after checking each part.
template <class Code>
Status for_checked_rows(const Tables& tables, const Code& code) {
    for (size_t begin = 0; begin < tables.num_rows(); begin += kRowsAtOnce) {
        const size_t end = std::min(tables.num_rows(), begin + kRowsAtOnce);
        if (Status status = tables.check_rows(begin, end); !status.ok()) return status;
        code(begin, end);
    }
    return {};
}

[[noreturn]] void raise_changed() {
    raise(invalid_data("the symbols or tables changed while they were coded; do not write to arrays in use"));
}

// Calls encode(). If it fails, or the arrays have changed meanwhile, restores the encoder.
template <class Encode>
void undo_if_failed(RangeEncoder& encoder, const Encode& encode, const bool& is_same) {
    const auto before = encoder.snapshot();
    Status problem;
    try {
        problem = encode();
    } catch (...) {
        encoder.restore(before);
        throw;
    }
    if (problem.ok() && is_same) return;
    encoder.restore(before);
    raise_if_failed(problem);
    raise_changed();
}

// Returns the part of [0, 2^precision) that belongs to a symbol of a checked table. Reads each number once.
Quantizer::Slot checked_slot(const Tables& table, size_t symbol) {
    const uint32_t begin = read_once(table.data()[symbol]);
    const uint32_t end = read_once(table.data()[symbol + 1]);
    if (begin >= end || end > 1u << table.precision()) raise_changed();
    return {begin, end - begin};
}

void encode(CodeEncoder& code, py::handle symbols, py::handle cumulative) {
    RangeEncoder& encoder = code.encoder;
    const Tables tables(cumulative);
    if (is_single(symbols)) {
        check_num_rows(tables.num_rows(), 1);
        raise_if_failed(tables.check_rows(0, tables.is_single() ? 0 : 1));
        const auto slot = checked_slot(tables, single_symbol(symbols, tables.num_symbols()));
        encoder.encode(slot.cumulative, slot.frequency, tables.precision());
        return;
    }
    with_symbols(symbols_array(symbols), tables.num_symbols(), [&]<class Symbol>(std::span<const Symbol> all) {
        BulkEncoder bulk(encoder);
        if (tables.is_single()) {
            const std::span<const uint32_t> table(tables.data(), tables.row_size());
            if (!without_gil([&] { return bulk.encode(all, table, tables.precision()); })) raise_changed();
            return;
        }
        check_num_rows(tables.num_rows(), all.size());
        bool is_same = true;
        const auto code_rows = [&](size_t begin, size_t end) {
            is_same =
                is_same && bulk.encode_rows(all.subspan(begin, end - begin), tables.data() + begin * tables.row_size(),
                                            tables.row_size(), tables.precision());
        };
        undo_if_failed(
            encoder, [&] { return without_gil([&] { return for_checked_rows(tables, code_rows); }); }, is_same);
    });
}

void encode_weights(CodeEncoder& code, py::handle symbols, py::handle weights, Precision precision) {
    RangeEncoder& encoder = code.encoder;
    const Weights rows(weights, precision);
    Quantizer& quantizer = code.quantizer.for_rows(rows);
    bool is_same = true;
    const auto put_all = [&]<class Symbol>(std::span<const Symbol> all) -> Status {
        for (size_t i = 0; i < all.size(); ++i) {
            const size_t symbol = read_once(all[i]);
            is_same = symbol < rows.num_symbols();
            if (!is_same) return {};
            if (!rows.set_row(quantizer, i)) return rows.row_problem(quantizer, i);
            const auto slot = quantizer.slot(symbol);
            encoder.encode(slot.cumulative, slot.frequency, rows.precision());
        }
        return {};
    };
    if (is_single(symbols)) {
        check_num_rows(rows.num_rows(), 1);
        const size_t symbol = single_symbol(symbols, rows.num_symbols());
        undo_if_failed(
            encoder, [&] { return put_all(std::span(&symbol, 1)); }, is_same);
        return;
    }
    with_symbols(symbols_array(symbols), rows.num_symbols(), [&](auto all) {
        check_num_rows(rows.num_rows(), all.size());
        undo_if_failed(
            encoder, [&] { return without_gil([&] { return put_all(all); }); }, is_same);
    });
}

void check_code(bool is_ok) {
    if (!is_ok) CodeDecoder::raise_damaged();
}

// Returns an array of the given dtype that decode() has filled.
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

size_t decode_symbol(CodeDecoder& code, py::handle cumulative) {
    const Tables tables(cumulative);
    check_num_rows(tables.num_rows(), 1);
    raise_if_failed(tables.check_rows(0, tables.is_single() ? 0 : 1));
    RangeDecoder& decoder = code.ready(1);
    const size_t symbol =
        arithmetic::find_symbol(tables.data(), tables.num_symbols(), decoder.peek(tables.precision()));
    const auto slot = checked_slot(tables, symbol);
    decoder.consume(slot.cumulative, slot.frequency);
    check_code(decoder.ok());
    return symbol;
}

py::array decode(CodeDecoder& code, py::handle cumulative, size_t count, const py::dtype& dtype) {
    const Tables tables(cumulative);
    if (!tables.is_single()) check_num_rows(tables.num_rows(), count);
    RangeDecoder& decoder = code.ready(count);
    return decoded(dtype, count, tables.num_symbols(), [&]<class Symbol>(std::span<Symbol> out) {
        BulkDecoder bulk(decoder);
        if (tables.is_single()) {
            return check_code(without_gil([&] {
                return bulk.decode(out, {tables.data(), tables.row_size()}, tables.precision());
            }));
        }
        const RangeDecoder before = decoder;
        const auto problem = without_gil([&] {
            return for_checked_rows(tables, [&](size_t begin, size_t end) {
                (void)bulk.decode_rows(out.subspan(begin, end - begin), tables.data() + begin * tables.row_size(),
                                       tables.row_size(), tables.precision());
            });
        });
        if (!problem.ok()) {
            decoder = before;
            raise(problem);
        }
        check_code(decoder.ok());
    });
}

size_t decode_symbol_weights(CodeDecoder& code, py::handle weights, Precision precision) {
    const Weights rows(weights, precision);
    check_num_rows(rows.num_rows(), 1);
    RangeDecoder& decoder = code.ready(1);
    Quantizer& quantizer = code.quantizer.for_rows(rows);
    if (!rows.set_row(quantizer, 0)) raise(rows.row_problem(quantizer, 0));
    Quantizer::Slot slot;
    const size_t symbol = quantizer.find(decoder.peek(rows.precision()), slot);
    decoder.consume(slot.cumulative, slot.frequency);
    check_code(decoder.ok());
    return symbol;
}

py::array decode_weights(CodeDecoder& code, py::handle weights, Precision precision, const py::dtype& dtype) {
    const Weights rows(weights, precision);
    RangeDecoder& decoder = code.ready(rows.num_rows());
    const RangeDecoder before = decoder;
    return decoded(dtype, rows.num_rows(), rows.num_symbols(), [&]<class Symbol>(std::span<Symbol> out) {
        const auto problem = without_gil([&]() -> Status {
            Quantizer& quantizer = code.quantizer.for_rows(rows);
            for (size_t i = 0; i < out.size(); ++i) {
                if (!rows.set_row(quantizer, i)) return rows.row_problem(quantizer, i);
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
        check_code(decoder.ok());
    });
}

// Binds a method that changes a guarded object.
template <class T, class Return, class... Args>
auto changing(Return (*method)(T&, Args...)) {
    return [method](Guarded<T>& guarded, Args... args) {
        return guarded.write([&](T& object) { return method(object, args...); });
    };
}

// The last overload of a method. Its error shows how to call the method, in place of pybind11's list of arguments.
auto wrong_call(const char* usage) {
    return [usage](const py::args&, const py::kwargs&) { throw py::type_error(std::string("call it as ") + usage); };
}

void bind_encoder(py::module_& sub) {
    py::class_<EncoderSnapshot>(sub, "EncoderSnapshot");
    py::class_<Guarded<CodeEncoder>>(sub, "Encoder")
        .def(py::init([] { return make_guarded<CodeEncoder>(); }))
        .def("encode", changing(&encode), py::arg("symbols"), py::arg("cumulative"))
        .def("encode", wrong_call("encode(symbols, cumulative), with a table or one row per symbol; weights with a "
                                  "precision go to encode_weights"))
        .def("encode_weights", changing(&encode_weights), py::arg("symbols"), py::arg("weights"),
             py::arg("precision") = py::none())
        .def("encode_weights", wrong_call("encode_weights(symbols, weights, precision=None), precision an int or None"))
        .def_property_readonly(
            "num_bits_if_finished",
            [](const Guarded<CodeEncoder>& guarded) {
                return guarded.read([](const CodeEncoder& code) { return code.encoder.num_bits_if_finished(); });
            })
        .def("snapshot",
             [](Guarded<CodeEncoder>& guarded) {
                 return guarded.write([](CodeEncoder& code) { return code.snapshot(); });
             })
        .def("restore",
             [](Guarded<CodeEncoder>& guarded, const EncoderSnapshot& snapshot) {
                 guarded.write([&](CodeEncoder& code) { code.restore(snapshot); });
             })
        .def("restore", wrong_call("restore(snapshot), with what snapshot() returned"))
        .def("take",
             [](Guarded<CodeEncoder>& guarded) {
                 return to_py_bytes(guarded.write([](CodeEncoder& code) { return code.encoder.take_settled(); }));
             })
        .def("finish", [](Guarded<CodeEncoder>& guarded) {
            return to_py_bytes(guarded.write([](CodeEncoder& code) { return code.finish(); }));
        });
}

void bind_decoder(py::module_& sub) {
    using Decoder = Guarded<CodeDecoder>;
    py::class_<DecoderSnapshot>(sub, "DecoderSnapshot");
    py::class_<Decoder>(sub, "Decoder")
        .def(py::init([] { return make_guarded<CodeDecoder>(); }))
        .def("append", [](Decoder& guarded, const py::bytes& piece,
                          bool is_last) { guarded.write([&](CodeDecoder& code) { code.append(piece, is_last); }); })
        .def_property_readonly("num_ready",
                               [](const Decoder& guarded) {
                                   return guarded.read([](const CodeDecoder& code) { return code.num_ready(); });
                               })
        .def_property_readonly("num_bytes_read",
                               [](const Decoder& guarded) {
                                   return guarded.read([](const CodeDecoder& code) { return code.num_bytes_read(); });
                               })
        .def("decode_symbol", changing(&decode_symbol), py::arg("cumulative"))
        .def("decode_symbol", wrong_call("decode_symbol(cumulative), with one table"))
        .def("decode_symbol_weights", changing(&decode_symbol_weights), py::arg("weights"),
             py::arg("precision") = py::none())
        .def("decode_symbol_weights",
             wrong_call("decode_symbol_weights(weights, precision=None), precision an int or None"))
        .def("decode_array", changing(&decode))
        .def("decode_weights_array", changing(&decode_weights))
        .def("snapshot",
             [](const Decoder& guarded) {
                 return guarded.read([](const CodeDecoder& code) { return code.snapshot(); });
             })
        .def("restore",
             [](Decoder& guarded, const DecoderSnapshot& snapshot) {
                 guarded.write([&](CodeDecoder& code) { code.restore(snapshot); });
             })
        .def("restore", wrong_call("restore(snapshot), with what snapshot() returned"))
        .def("finish", [](Decoder& guarded, bool allow_trailing) {
            guarded.write([&](CodeDecoder& code) { code.finish(allow_trailing); });
        });
}

}  // namespace

void bind_arithmetic(py::module_& m) {
    py::module_ sub = m.def_submodule("arithmetic");
    bind_quantizer(sub);
    bind_encoder(sub);
    bind_decoder(sub);
    bind_frequencies(sub);
}

}  // namespace fastcompress::bindings
