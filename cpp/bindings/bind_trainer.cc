#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "bind_bpe.h"
#include "fastcompress/bpe/train/pretoken_counter.h"
#include "fastcompress/bpe/train/trainer.h"
#include "fastcompress/pretokenizer/text_cut.h"
#include "guarded.h"

namespace fastcompress::bindings {
namespace {

// A view of a text that is read once. TextView would leave the UTF-8 of a str that is not ASCII in the object for good,
// which doubles the memory of a corpus.
TextView view_once(py::handle text) {
    if (PyUnicode_Check(text.ptr()) && !PyUnicode_IS_ASCII(text.ptr())) {
        if (const auto utf8 = py::reinterpret_steal<py::object>(PyUnicode_AsUTF8String(text.ptr()))) {
            return TextView(utf8, Surrogates::kReplace);
        }
        PyErr_Clear();  // surrogates, which TextView replaces
    }
    return TextView(text, Surrogates::kReplace);
}

class PretokenCounts;

// The entries of counts in ascending order, in batches.
class CountItems {
  public:
    explicit CountItems(PretokenCounts& counts);
    py::list next_batch(size_t max_items);

  private:
    PretokenCounts& counts_;  // kept alive by the binding
    std::unique_ptr<bpe::SortedCounts> entries_;
    uint64_t version_;
};

// Counts that several threads may add to: a call waits for its turn, without the GIL. A call from within another call
// on the same thread (from the sink of write()) would wait for itself, so it is refused.
class PretokenCounts {
  public:
    PretokenCounts(std::string_view pattern, std::optional<size_t> max_memory_bytes, std::string folder)
        : counter_({parse_pattern(pattern), max_memory_bytes.value_or(std::numeric_limits<size_t>::max()),
                    std::move(folder)}) {}

    // Calls body() in its turn, without the GIL. locked() is for calls that change the counts.
    template <class Body>
    auto locked_read(const Body& body) {
        if (turn_.is_mine()) refuse_second_use("PretokenCounts");
        return without_gil([&] {
            const std::lock_guard<TurnTaker> lock(turn_);
            return body();
        });
    }
    template <class Body>
    auto locked(const Body& body) {
        return locked_read([&] {
            ++version_;
            return body();
        });
    }

    void add_texts(const py::sequence& texts, std::optional<size_t> num_threads) {
        const py::tuple items = items_of(texts);
        std::vector<TextView> views;
        std::vector<Bytes> bytes;
        for (size_t i = 0; i < items.size(); ++i) {
            views.push_back(view_once(items[i]));
            bytes.push_back(views.back().bytes());
        }
        raise_if_failed(locked([&] { return counter_.add_texts(bytes, num_threads_or_default(num_threads)); }));
    }

    // Adds the counts of another object. Locks both at once, so that a += b and b += a cannot deadlock.
    void add_counts(PretokenCounts& other) {
        if (&other == this) raise(invalid_argument("counts cannot be added to themselves; add a copy of them"));
        if (turn_.is_mine() || other.turn_.is_mine()) refuse_second_use("PretokenCounts");
        raise_if_failed(without_gil([&] {
            std::scoped_lock lock(turn_, other.turn_);
            ++version_;
            return counter_.add(other.counter_);
        }));
    }

    void add_file(const std::string& path) {
        raise_if_failed(locked([&] { return add_read(*bpe::CountsReader::open(path)); }));
    }
    void add_bytes(const py::bytes& blob) {
        const Bytes bytes = bytes_of(blob);
        raise_if_failed(locked([&] { return add_read(*bpe::CountsReader::from_bytes(bytes)); }));
    }

    // Calls sink(bytes) until everything is written.
    void write(const std::function<void(py::bytes)>& sink) {
        raise_if_failed(locked([&]() -> Status {
            bpe::CountsWriter writer(
                [&](Bytes bytes) {
                    const py::gil_scoped_acquire held;
                    sink(to_py_bytes(bytes));
                    return true;
                },
                pattern_name());
            const std::unique_ptr<bpe::SortedCounts> entries = counter_.sorted();
            while (const auto entry = entries->next()) writer.add(*entry);
            if (Status status = entries->status(); !status.ok()) return status;
            writer.finish();
            return {};
        }));
    }

    uint64_t size() {
        Result<uint64_t> result = locked_read([&] { return counter_.size(); });
        if (!result.ok()) raise(result.status());
        return *result;
    }

    // Adds all pretokens to a trainer, and empties the table if `consume`. Returns the number of distinct pretokens.
    Result<uint64_t> feed(bpe::Trainer& trainer, bool consume) {
        return locked_read([&]() -> Result<uint64_t> {
            uint64_t size = 0;
            Status refused;
            const Status unread = counter_.for_each([&](const bpe::CountsEntry& entry) {
                ++size;
                if (refused.ok()) refused = trainer.add(entry.pretoken, entry.count);
            });
            if (!unread.ok()) return unread;
            if (!refused.ok()) return refused;
            if (consume) {
                ++version_;
                counter_.clear();
            }
            return size;
        });
    }

    std::string_view pattern_name() const { return pretokenizer::info(counter_.pattern()).name; }
    pretokenizer::Pattern pattern() const { return counter_.pattern(); }
    size_t num_runs() {
        return locked_read([&] { return counter_.num_runs(); });
    }

  private:
    friend class CountItems;

    Status add_read(bpe::CountsReader& reader) {
        if (reader.status().ok() && reader.pattern() != pattern_name()) {
            return invalid_data("pretoken counts of the pattern '" + reader.pattern() + "', not '" +
                                std::string(pattern_name()) + "'");
        }
        return counter_.add(reader);
    }

    bpe::PretokenCounter counter_;
    TurnTaker turn_;
    uint64_t version_ = 0;  // grows with every change
};

CountItems::CountItems(PretokenCounts& counts) : counts_(counts) {
    entries_ = counts.locked_read([&] {
        version_ = counts.version_;
        return counts.counter_.sorted();
    });
}

py::list CountItems::next_batch(size_t max_items) {
    std::vector<std::pair<std::string, uint64_t>> batch;
    bool is_valid = true;
    counts_.locked_read([&] {  // waits without the GIL, which the holder of the lock may need
        is_valid = version_ == counts_.version_;
        while (is_valid && batch.size() < max_items) {
            const auto entry = entries_->next();
            if (!entry) break;
            batch.emplace_back(as_chars(entry->pretoken), entry->count);
        }
        return 0;
    });
    if (!is_valid) throw std::runtime_error("pretoken counts changed during iteration");
    raise_if_failed(entries_->status());
    py::list items;
    for (const auto& [pretoken, count] : batch) items.append(py::make_tuple(py::bytes(pretoken), count));
    return items;
}

}  // namespace

template <>
inline constexpr const char* kPythonName<CountItems> = "CountItems";

namespace {

// Returns the pattern of a file of counts.
std::string pattern_of_reader(const bpe::CountsReader& reader) {
    raise_if_failed(reader.status());
    return reader.pattern();
}

// Returns the tokenizer and the number of distinct pretokens that it was trained on. Empties the counts if `consume`.
py::tuple train(PretokenCounts& counts, bool consume, size_t vocab_size, const std::vector<std::string>& special_tokens,
                bool huggingface, int64_t min_frequency, std::optional<uint64_t> max_token_length,
                const py::bytes& initial_alphabet, const Tokenizer* base, const bpe::Trainer::Progress& progress) {
    bpe::TrainerSettings settings;
    settings.pattern = counts.pattern();
    settings.tie_break = huggingface ? bpe::TieBreak::kHuggingFace : bpe::TieBreak::kLowestId;
    settings.vocab_size = vocab_size;
    settings.special_tokens = special_tokens;
    settings.min_frequency = min_frequency;
    if (max_token_length) settings.max_token_length = *max_token_length;
    for (const uint8_t byte : bytes_of(initial_alphabet)) settings.initial_alphabet[byte] = true;
    settings.base = base != nullptr ? &base->vocabulary : nullptr;

    const auto progress_with_gil = [&](size_t done, size_t wanted) {
        const py::gil_scoped_acquire held;
        progress(done, wanted);
    };
    auto trainer = value_or_raise(without_gil([&] { return bpe::Trainer::make(std::move(settings)); }));
    const uint64_t num_distinct = value_or_raise(counts.feed(*trainer, consume));
    Result<bpe::Vocabulary> vocabulary = without_gil([&]() -> Result<bpe::Vocabulary> {
        Result<bpe::VocabularySpec> spec = trainer->train(progress_with_gil);
        if (!spec.ok()) return spec.status();
        trainer.reset();
        return bpe::Vocabulary::make(std::move(*spec));
    });
    return py::make_tuple(make_tokenizer(std::move(vocabulary)), num_distinct);
}

}  // namespace

void bind_trainer(py::module_& bpe) {
    py::class_<Guarded<CountItems>>(bpe, "CountItems")
        .def(
            "next_batch",
            [](Guarded<CountItems>& guarded, size_t max_items) {
                return guarded.write([&](CountItems& items) { return items.next_batch(max_items); });
            },
            py::arg("max_items"));
    py::class_<PretokenCounts>(bpe, "PretokenCounts")
        .def(py::init<std::string_view, std::optional<size_t>, std::string>(), py::arg("pattern"),
             py::arg("max_memory_bytes"), py::arg("folder"))
        .def("add_texts", &PretokenCounts::add_texts, py::arg("texts"), py::arg("num_threads"))
        .def("add_counts", &PretokenCounts::add_counts, py::arg("other"))
        .def("add_file", &PretokenCounts::add_file, py::arg("path"))
        .def("add_bytes", &PretokenCounts::add_bytes, py::arg("blob"))
        .def("write", &PretokenCounts::write, py::arg("sink"))
        .def(
            "items", [](PretokenCounts& counts) { return make_guarded<CountItems>(counts); }, py::keep_alive<0, 1>())
        .def("size", &PretokenCounts::size)
        .def_property_readonly("num_runs", &PretokenCounts::num_runs)
        .def_property_readonly("pattern", [](const PretokenCounts& c) { return std::string(c.pattern_name()); });
    bpe.def("train", &train, py::arg("counts"), py::arg("consume"), py::arg("vocab_size"), py::arg("special_tokens"),
            py::arg("huggingface"), py::arg("min_frequency"), py::arg("max_token_length"), py::arg("initial_alphabet"),
            py::arg("base"), py::arg("progress"));
    bpe.def(
        "counts_pattern_of_file",
        [](const std::string& path) { return pattern_of_reader(*bpe::CountsReader::open(path)); }, py::arg("path"));
    bpe.def(
        "counts_pattern_of_bytes",
        [](const py::bytes& blob) { return pattern_of_reader(*bpe::CountsReader::from_bytes(bytes_of(blob))); },
        py::arg("blob"));
    bpe.def(
        "last_cut", [](const py::bytes& text) { return pretokenizer::last_cut(bytes_of(text)); }, py::arg("text"));
}

}  // namespace fastcompress::bindings
