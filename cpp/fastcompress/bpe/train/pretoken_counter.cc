#include "fastcompress/bpe/train/pretoken_counter.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include "fastcompress/common/parallel.h"
#include "fastcompress/common/rollback.h"
#include "fastcompress/pretokenizer/text_cut.h"

namespace fastcompress::bpe {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 19;
constexpr size_t kMaxRuns = 64;  // that are open at the same time

class SortedTable : public SortedCounts {
  public:
    explicit SortedTable(const PretokenCounts& table) : entries_(table.sorted()) {}
    std::optional<CountsEntry> next() override {
        if (next_ == entries_.size()) return std::nullopt;
        return entries_[next_++];
    }

  private:
    std::vector<CountsEntry> entries_;
    size_t next_ = 0;
};

// The entries of an unusable counter.
class FailedCounts : public SortedCounts {
  public:
    explicit FailedCounts(Status why) : why_(std::move(why)) {}
    std::optional<CountsEntry> next() override { return std::nullopt; }
    Status status() const override { return why_; }

  private:
    Status why_;
};

// Returns the texts, long ones cut into pieces where that does not change their pretokens.
std::vector<Bytes> pieces_of(std::span<const Bytes> texts, pretokenizer::Pattern pattern, size_t num_threads) {
    if (num_threads == 1 || pattern == pretokenizer::Pattern::kNone) return {texts.begin(), texts.end()};
    std::vector<Bytes> pieces;
    for (Bytes text : texts) {
        while (text.size() > 2 * kPieceBytes) {
            const size_t end = pretokenizer::next_cut(text, kPieceBytes);
            pieces.push_back(text.first(end));
            text = text.subspan(end);
        }
        pieces.push_back(text);
    }
    return pieces;
}

}  // namespace

Status PretokenCounter::add_texts(std::span<const Bytes> texts, size_t num_threads) {
    if (!failed_.ok()) return failed_;
    const uint64_t total_before = max_total_;
    Rollback rollback([&] { max_total_ = total_before; });
    uint64_t num_bytes = 0;
    for (const Bytes text : texts) num_bytes += text.size();
    if (Status status = reserve_total(num_bytes); !status.ok()) return status;
    const std::vector<Bytes> pieces = pieces_of(texts, settings_.pattern, num_threads);
    const size_t num_parts = std::max<size_t>(1, std::min(num_threads, pieces.size()));
    if (tables_.size() < num_parts) tables_.resize(num_parts);
    if (Status status = count_pieces(pieces, num_parts); !status.ok()) return status;
    rollback.release();
    return merge_runs_if_many();
}

// Counts each piece in the table of its part. On std::bad_alloc subtracts the pieces again, unless some of them have
// been spilled by then.
Status PretokenCounter::count_pieces(std::span<const Bytes> pieces, size_t num_parts) {
    struct Part {
        size_t begin = 0;
        size_t end = 0;  // end of the pieces counted so far
        Status error;
    };
    std::vector<Part> parts(num_parts);
    const size_t num_runs = runs_.size();
    Status if_spilled = file_failed(
        "pretoken counts: memory ran out after some of the texts had been written to disk; count again from the "
        "beginning");
    Rollback rollback([&] {
        if (runs_.size() > num_runs) {
            failed_ = std::move(if_spilled);
            return;
        }
        for (size_t k = 0; k < num_parts; ++k) {
            for (size_t i = parts[k].begin; i < parts[k].end; ++i) {
                tables_[k].subtract_text(pieces[i], settings_.pattern);
            }
        }
    });
    const size_t cap = settings_.max_memory_bytes / tables_.size();
    const auto weight = [&](size_t i) { return pieces[i].size() + 1; };
    parallel_parts(pieces.size(), num_parts, weight, [&](size_t k, size_t begin, size_t end) {
        Part& part = parts[k];
        part.begin = part.end = begin;
        while (part.end < end && part.error.ok()) {
            tables_[k].add_text(pieces[part.end], settings_.pattern);
            ++part.end;
            part.error = spill_if_over(tables_[k], cap, runs_);
        }
    });
    rollback.release();
    for (Part& part : parts) {
        if (part.error.ok()) continue;
        failed_ = std::move(part.error);
        return failed_;
    }
    return {};
}

// Collects entries in a separate table and separate runs, which become part of the counter once all have been read.
Status PretokenCounter::add(SortedCounts& entries) {
    if (!failed_.ok()) return failed_;
    merge_tables();
    const size_t cap = settings_.max_memory_bytes / 2;
    if (Status status = spill_if_over(tables_[0], cap, runs_); !status.ok()) return status;
    PretokenCounts added;
    std::vector<std::string> runs;
    const uint64_t total_before = max_total_;
    Rollback rollback([&] {
        max_total_ = total_before;
        for (const std::string& path : runs) std::remove(path.c_str());
    });
    if (Status status = read_into(entries, added, cap, runs); !status.ok()) return status;
    tables_.reserve(2);
    runs_.reserve(runs_.size() + runs.size());
    // From here on nothing fails.
    rollback.release();
    if (added.size() > 0) tables_.push_back(std::move(added));
    for (std::string& path : runs) runs_.push_back(std::move(path));
    return merge_runs_if_many();
}

Status PretokenCounter::read_into(SortedCounts& entries, PretokenCounts& table, size_t cap,
                                  std::vector<std::string>& runs) {
    while (const std::optional<CountsEntry> entry = entries.next()) {
        if (Status status = reserve_total(entry->count); !status.ok()) return status;
        table.add(entry->pretoken, entry->count);
        if (Status status = spill_if_over(table, cap, runs); !status.ok()) return status;
    }
    return entries.status();
}

Status PretokenCounter::add(PretokenCounter& other) {
    if (!other.failed_.ok()) return other.failed_;
    if (Status status = reserve_total(other.max_total_); !status.ok()) return status;
    max_total_ -= other.max_total_;
    return add(*other.sorted());
}

Status PretokenCounter::reserve_total(uint64_t count) {
    if (count > kMaxTotal - max_total_) {
        return invalid_data("the counts overflow; together they must stay below 2^63");
    }
    max_total_ += count;
    return {};
}

std::unique_ptr<SortedCounts> PretokenCounter::sorted() {
    if (!failed_.ok()) return std::make_unique<FailedCounts>(failed_);
    merge_tables();
    std::vector<std::unique_ptr<SortedCounts>> sources;
    for (const std::string& path : runs_) sources.push_back(CountsReader::open(path));
    sources.push_back(std::make_unique<SortedTable>(tables_[0]));
    return std::make_unique<MergedCounts>(std::move(sources));
}

Status PretokenCounter::for_each(const std::function<void(const CountsEntry&)>& visit) {
    if (!failed_.ok()) return failed_;
    if (runs_.empty()) {
        merge_tables();
        tables_[0].for_each(visit);
        return {};
    }
    const std::unique_ptr<SortedCounts> entries = sorted();
    while (const std::optional<CountsEntry> entry = entries->next()) visit(*entry);
    return entries->status();
}

Result<uint64_t> PretokenCounter::size() {
    if (!failed_.ok()) return failed_;
    uint64_t size = 0;
    if (runs_.empty()) {
        merge_tables();
        return uint64_t{tables_[0].size()};
    }
    if (Status status = for_each([&size](const CountsEntry&) { ++size; }); !status.ok()) return status;
    return size;
}

void PretokenCounter::clear() {
    if (runs_.empty()) max_total_ = 0;
    tables_.resize(1);
    tables_[0].clear();
}

void PretokenCounter::merge_tables() {
    while (tables_.size() > 1) {
        tables_[0].add(tables_.back());
        tables_.pop_back();
    }
}

// If a table is larger than `cap`, writes it to a run, adds the path to `runs`, and empties the table. On an error or
// std::bad_alloc both are as before.
Status PretokenCounter::spill_if_over(PretokenCounts& table, size_t cap, std::vector<std::string>& runs) {
    if (table.memory_bytes() <= cap || table.size() == 0) return {};
    std::string path = new_run_path();
    SortedTable entries(table);
    if (Status status = write_run(path, entries); !status.ok()) return status;
    Rollback rollback([&] { std::remove(path.c_str()); });
    const std::lock_guard<std::mutex> lock(runs_mutex_);
    runs.push_back(path);
    rollback.release();
    table.clear();
    return {};
}

std::string PretokenCounter::new_run_path() {
    return settings_.folder + "/" + std::to_string(run_number_++) + ".counts";
}

// Writes a run. Leaves no incomplete file behind.
Status PretokenCounter::write_run(const std::string& path, SortedCounts& entries) {
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wb"));
    Rollback rollback([&] {
        file.reset();
        std::remove(path.c_str());
    });
    bool ok = file != nullptr;
    if (ok) {
        CountsWriter writer(
            [&file](Bytes bytes) { return std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size(); },
            pretokenizer::info(settings_.pattern).name);
        while (const std::optional<CountsEntry> entry = entries.next()) writer.add(*entry);
        ok = writer.finish();
        ok = std::fclose(file.release()) == 0 && ok;
    }
    if (Status status = entries.status(); !status.ok()) return status;
    if (!ok) {
        return file_failed(path + ": cannot be written (" + std::generic_category().message(errno) +
                           "); counts over max_memory_bytes go there: make room, or name another temporary_folder");
    }
    rollback.release();
    return {};
}

// Merges the oldest runs into one until at most kMaxRuns are left. If there is no memory for that, it is postponed: the
// counts are complete without it.
Status PretokenCounter::merge_runs_if_many() try {
    while (runs_.size() > kMaxRuns) {
        std::vector<std::unique_ptr<SortedCounts>> sources;
        for (size_t i = 0; i < kMaxRuns; ++i) sources.push_back(CountsReader::open(runs_[i]));
        MergedCounts entries(std::move(sources));
        std::string merged = new_run_path();
        if (Status status = write_run(merged, entries); !status.ok()) {
            failed_ = status;
            return status;
        }
        for (size_t i = 0; i < kMaxRuns; ++i) std::remove(runs_[i].c_str());
        runs_[kMaxRuns - 1] = std::move(merged);
        runs_.erase(runs_.begin(), runs_.begin() + kMaxRuns - 1);
        std::rotate(runs_.begin(), runs_.begin() + 1, runs_.end());  // after the others
    }
    return {};
} catch (const std::bad_alloc&) {
    return {};
}

}  // namespace fastcompress::bpe
