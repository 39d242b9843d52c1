#include <pybind11/stl.h>

#include "bind_arithmetic.h"

#include <algorithm>
#include <limits>

#include "fastcompress/arithmetic/bulk_coder.h"

namespace fastcompress::bindings {
namespace {

using arithmetic::BulkDecoder;
using arithmetic::BulkEncoder;
using arithmetic::Quantizer;
using arithmetic::RangeDecoder;
using arithmetic::RangeEncoder;

template <class Symbol>
void check_symbols(std::span<const Symbol> symbols, size_t num_symbols) {
    Symbol greatest = 0;
    for (const Symbol symbol : symbols) greatest = std::max(greatest, symbol);
    if (symbols.empty() || greatest < num_symbols) return;
    size_t i = 0;
    while (symbols[i] < num_symbols) ++i;
    const bool is_negative =
        sizeof(Symbol) == 4 && static_cast<int64_t>(symbols[i]) > std::numeric_limits<int32_t>::max();
    raise(invalid_data("symbol " + std::to_string(i) + " is " +
                       (is_negative ? "negative or above 2^31" : std::to_string(symbols[i])) +
                       "; the table has symbols 0 to " + std::to_string(num_symbols - 1)));
}

template <class Symbol, class Visit>
void visit_symbols(const py::array& symbols, size_t num_symbols, const Visit& visit) {
    const std::span<const Symbol> span(static_cast<const Symbol*>(symbols.data()), static_cast<size_t>(symbols.size()));
    check_symbols(span, num_symbols);
    visit(span);
}

// Calls visit() with the symbols as a span of uint8_t, uint16_t or uint32_t, once all are known to be below
// num_symbols.
template <class Visit>
void with_symbols(const py::array& any, size_t num_symbols, const Visit& visit) {
    const char kind = any.dtype().kind();
    if (any.ndim() != 1 || ((kind != 'u' && kind != 'i') && any.size() > 0)) {
        throw py::type_error("symbols must be an int or a one-dimensional array of integers");
    }
    // 0: to be converted, since its bytes are in the order of another machine, or anywhere.
    const bool is_aligned = (any.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_) != 0;
    const auto itemsize = is_native(any) && is_aligned ? any.itemsize() : 0;
    const auto contiguous = py::array::ensure(any, py::array::c_style);
    if (any.size() == 0) return visit(std::span<const uint32_t>());
    if (itemsize == 1 && kind == 'u') return visit_symbols<uint8_t>(contiguous, num_symbols, visit);
    if (itemsize == 2 && kind == 'u') return visit_symbols<uint16_t>(contiguous, num_symbols, visit);
    if (itemsize == 4)
        return visit_symbols<uint32_t>(contiguous, num_symbols, visit);  // negative ones are far too large
    const auto wide = py::array_t<int64_t, py::array::c_style | py::array::forcecast>::ensure(any);
    if (!wide) throw py::error_already_set();
    std::vector<uint32_t> narrow(static_cast<size_t>(wide.size()));
    for (size_t i = 0; i < narrow.size(); ++i) {
        const auto symbol = static_cast<uint64_t>(wide.data()[i]);
        narrow[i] = static_cast<uint32_t>(std::min<uint64_t>(symbol, std::numeric_limits<uint32_t>::max()));
    }
    check_symbols<uint32_t>(narrow, num_symbols);
    visit(std::span<const uint32_t>(narrow));
}

void check_num_rows(size_t num_rows, size_t num_symbols) {
    if (num_rows != num_symbols) {
        raise(invalid_data(std::to_string(num_symbols) + " symbols and " + std::to_string(num_rows) +
                           " rows; give one row a symbol, or one table for all"));
    }
}

// Whether it is one symbol: an int, a NumPy integer, a tensor of no dimension. Arrays have __index__, too.
bool is_single(py::handle symbols) {
    if (PyLong_CheckExact(symbols.ptr())) return true;
    if (py::isinstance<py::array>(symbols)) return py::reinterpret_borrow<py::array>(symbols).ndim() == 0;
    return PyIndex_Check(symbols.ptr()) && !PySequence_Check(symbols.ptr());
}

// The one symbol of what is_single().
size_t single_symbol(py::handle given, size_t num_symbols) {
    const auto symbol = py::reinterpret_steal<py::object>(PyNumber_Index(given.ptr()));
    if (!symbol) throw py::error_already_set();
    const size_t value = PyLong_AsSize_t(symbol.ptr());
    if (value == static_cast<size_t>(-1) && PyErr_Occurred()) PyErr_Clear();
    if (value >= num_symbols) {
        raise(invalid_data("symbol " + std::string(py::str(symbol)) + " is not one of the table's, 0 to " +
                           std::to_string(num_symbols - 1)));
    }
    return value;
}

py::array symbols_array(py::handle symbols) {
    if (PyBytes_Check(symbols.ptr())) return py::module_::import("numpy").attr("frombuffer")(symbols, "uint8");
    auto any = py::array::ensure(symbols);
    if (!any) {
        PyErr_Clear();
        throw py::type_error("symbols must be an int or a one-dimensional array of integers");
    }
    return any;
}

// Drawn once each in a process, so that snapshots and coders never pass for others.
uint64_t next_serial() {
    static uint64_t last = 0;  // changed with the GIL held
    return ++last;
}

// While a call codes without the GIL, others on the same object are refused: they would find it half changed.
class Turn {
  public:
    explicit Turn(bool& is_taken) : is_taken_(is_taken) {
        if (is_taken) raise(invalid_argument("another thread is using this coder; give each thread its own"));
        is_taken = true;
    }
    ~Turn() { is_taken_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

  private:
    bool& is_taken_;
};

struct EncoderSnapshot {
    RangeEncoder::Snapshot state;
    uint64_t serial;
};

struct MessageEncoder {
    RangeEncoder encoder;
    KeptQuantizer quantizer;
    std::vector<uint64_t> serials;  // of the snapshots that are of what the message is now, in ascending order
    bool is_taken = false;

    EncoderSnapshot snapshot() {
        const Turn turn(is_taken);
        serials.push_back(next_serial());
        return {encoder.snapshot(), serials.back()};
    }
    void restore(const EncoderSnapshot& snapshot) {
        const Turn turn(is_taken);
        const auto found = std::ranges::lower_bound(serials, snapshot.serial);
        if (found == serials.end() || *found != snapshot.serial || !encoder.restore(snapshot.state)) {
            raise(invalid_argument(
                "the snapshot is of another message, of a part that was undone, or of bytes that were taken"));
        }
        serials.erase(found + 1, serials.end());
    }
    std::vector<uint8_t> finish() {
        const Turn turn(is_taken);
        serials.clear();
        return encoder.finish();
    }
    std::vector<uint8_t> take() {
        const Turn turn(is_taken);
        return encoder.take_settled();
    }
};

constexpr size_t kRowsAtOnce = 32;

// Calls code(begin, end) for parts of the rows, each once it has been checked.
template <class Code>
std::optional<Status> for_checked_rows(const Tables& tables, const Code& code) {
    for (size_t begin = 0; begin < tables.num_rows(); begin += kRowsAtOnce) {
        const size_t end = std::min(tables.num_rows(), begin + kRowsAtOnce);
        if (auto problem = tables.check_rows(begin, end)) return problem;
        code(begin, end);
    }
    return std::nullopt;
}

void encode(MessageEncoder& message, py::handle symbols, py::handle cumulative) {
    const Turn turn(message.is_taken);
    RangeEncoder& encoder = message.encoder;
    const Tables tables(cumulative);
    if (is_single(symbols)) {
        check_num_rows(tables.num_rows(), 1);
        if (const auto problem = tables.check_rows(0, tables.is_single() ? 0 : 1)) raise(*problem);
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
        if (!problem) return;
        encoder.restore(before);
        raise(*problem);
    });
}

void encode_weights(MessageEncoder& message, py::handle symbols, py::handle weights, Precision precision) {
    const Turn turn(message.is_taken);
    RangeEncoder& encoder = message.encoder;
    const Weights rows(weights, precision);
    Quantizer& quantizer = message.quantizer.of(rows);
    const auto put = [&](size_t row, size_t symbol) {
        const auto problem = rows.set_row(quantizer, row);
        if (problem) return problem;
        const auto slot = quantizer.slot(symbol);
        encoder.encode(slot.cumulative, slot.frequency, rows.precision());
        return problem;
    };
    const auto before = encoder.snapshot();
    std::optional<Status> problem;
    if (is_single(symbols)) {
        check_num_rows(rows.num_rows(), 1);
        problem = put(0, single_symbol(symbols, rows.num_symbols()));
    } else {
        with_symbols(symbols_array(symbols), rows.num_symbols(), [&](auto all) {
            check_num_rows(rows.num_rows(), all.size());
            problem = without_gil([&]() -> std::optional<Status> {
                for (size_t i = 0; i < all.size(); ++i) {
                    if (auto bad = put(i, all[i])) return bad;
                }
                return std::nullopt;
            });
        });
    }
    if (!problem) return;
    encoder.restore(before);
    raise(*problem);
}

// A decoder and the message it reads, which may come piece by piece.
class MessageDecoder {
  public:
    MessageDecoder() : decoder_({}) {}

    // What comes next of the message; `is_last`: nothing will come after it.
    void append(const py::bytes& piece, bool is_last) {
        const Turn turn(is_taken);
        if (is_last_) raise(invalid_argument("the message has ended; nothing can be appended"));
        const Bytes unread = has_begun_ ? decoder_.unread() : Bytes(message_);
        std::vector<uint8_t> rest(unread.begin(), unread.end());
        const Bytes more = bytes_of(piece);
        rest.insert(rest.end(), more.begin(), more.end());
        message_ = std::move(rest);
        is_last_ = is_last;
        if (!has_begun_ && (is_last || message_.size() >= 8)) {
            decoder_ = RangeDecoder(message_);
            has_begun_ = true;
        } else if (has_begun_) {
            decoder_.set_unread(message_);
        }
    }
    // How many symbols can be decoded before more of the message is needed.
    size_t num_ready() const {
        if (is_last_) return std::numeric_limits<size_t>::max();
        return has_begun_ ? decoder_.unread().size() / 4 : 0;
    }
    RangeDecoder& ready(size_t num_symbols) {
        if (num_symbols > num_ready()) raise(invalid_data("the message needs more bytes first; append them"));
        return decoder_;
    }
    RangeDecoder decoder() const { return decoder_; }
    void set_decoder(const RangeDecoder& decoder) { decoder_ = decoder; }
    bool is_taken = false;
    const uint64_t serial = next_serial();
    bool is_last() const { return is_last_; }
    KeptQuantizer quantizer;

  private:
    std::vector<uint8_t> message_;
    bool is_last_ = false;
    bool has_begun_ = false;
    RangeDecoder decoder_;
};

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
    if (const auto problem = tables.check_rows(0, tables.is_single() ? 0 : 1)) raise(*problem);
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
        if (problem) {
            decoder = before;
            raise(*problem);
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
    if (const auto problem = rows.set_row(quantizer, 0)) raise(*problem);
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
        const auto problem = without_gil([&]() -> std::optional<Status> {
            Quantizer& quantizer = message.quantizer.of(rows);
            for (size_t i = 0; i < out.size(); ++i) {
                if (auto bad = rows.set_row(quantizer, i)) return bad;
                Quantizer::Slot slot;
                out[i] = static_cast<Symbol>(quantizer.find(decoder.peek(rows.precision()), slot));
                decoder.consume(slot.cumulative, slot.frequency);
            }
            return std::nullopt;
        });
        if (problem) {
            decoder = before;
            raise(*problem);
        }
        check_message(decoder.ok());
    });
}

struct DecoderSnapshot {
    RangeDecoder state;
    uint64_t decoder_serial;
};

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
        .def_property_readonly("bits_if_closed",
                               [](const MessageEncoder& message) { return message.encoder.bits_if_closed(); })
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
        .def("snapshot",
             [](const MessageDecoder& message) {
                 if (!message.is_last()) {
                     raise(invalid_argument("a message that still comes in pieces keeps no snapshots; give it whole"));
                 }
                 return DecoderSnapshot{message.decoder(), message.serial};
             })
        .def("restore", [](MessageDecoder& message, const DecoderSnapshot& snapshot) {
            const Turn turn(message.is_taken);
            if (snapshot.decoder_serial != message.serial)
                raise(invalid_argument("the snapshot is of another decoder"));
            message.set_decoder(snapshot.state);
        });
}

}  // namespace fastcompress::bindings
