#include "fastcompress/bpe/train/pretoken_counter.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "fastcompress/common/parallel.h"
#include "fastcompress/pretokenizer/text_cut.h"

namespace fastcompress::bpe {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 19;
constexpr size_t kMaxRuns = 64;  // that are open at once

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

// Texts, long ones in pieces, where the pretokens stay what they are.
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
    const std::vector<Bytes> pieces = pieces_of(texts, settings_.pattern, num_threads);
    const size_t num_parts = std::max<size_t>(1, std::min(num_threads, pieces.size()));
    if (tables_.size() < num_parts) tables_.resize(num_parts);
    const size_t cap = settings_.max_memory_bytes / tables_.size();
    std::vector<Status> errors(num_parts);
    const auto weight = [&](size_t i) { return pieces[i].size() + 1; };
    parallel_parts(pieces.size(), num_parts, weight, [&](size_t part, size_t begin, size_t end) {
        for (size_t i = begin; i < end && errors[part].ok(); ++i) {
            tables_[part].add_text(pieces[i], settings_.pattern);
            errors[part] = spill_if_over(tables_[part], cap);
        }
    });
    for (const Status& error : errors) {
        if (!error.ok()) return error;
    }
    return merge_runs_if_many();
}

Status PretokenCounter::add(SortedCounts& entries) {
    const size_t cap = settings_.max_memory_bytes / tables_.size();
    while (const std::optional<CountsEntry> entry = entries.next()) {
        tables_[0].add(entry->pretoken, entry->count);
        if (Status status = spill_if_over(tables_[0], cap); !status.ok()) return status;
    }
    if (Status status = entries.status(); !status.ok()) return status;
    return merge_runs_if_many();
}

std::unique_ptr<SortedCounts> PretokenCounter::sorted() {
    merge_tables();
    std::vector<std::unique_ptr<SortedCounts>> sources;
    for (const std::string& path : runs_) sources.push_back(CountsReader::open(path));
    sources.push_back(std::make_unique<SortedTable>(tables_[0]));
    return std::make_unique<MergedCounts>(std::move(sources));
}

Status PretokenCounter::for_each(const std::function<void(const CountsEntry&)>& visit) {
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
    uint64_t size = 0;
    if (runs_.empty()) {
        merge_tables();
        return uint64_t{tables_[0].size()};
    }
    if (Status status = for_each([&size](const CountsEntry&) { ++size; }); !status.ok()) return status;
    return size;
}

void PretokenCounter::clear() {
    tables_.clear();
    tables_.resize(1);
}

void PretokenCounter::merge_tables() {
    while (tables_.size() > 1) {
        tables_[0].add(tables_.back());
        tables_.pop_back();
    }
}

Status PretokenCounter::spill_if_over(PretokenCounts& table, size_t cap) {
    if (table.memory_bytes() <= cap || table.size() == 0) return {};
    std::string path;
    {
        const std::lock_guard<std::mutex> lock(runs_mutex_);
        path = settings_.folder + "/" + std::to_string(run_number_++) + ".counts";
        runs_.push_back(path);
    }
    SortedTable entries(table);
    Status error = write_run(path, entries);
    table.clear();
    return error;
}

Status PretokenCounter::write_run(const std::string& path, SortedCounts& entries) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    bool ok = file != nullptr;
    if (ok) {
        CountsWriter writer(
            [file](Bytes bytes) { return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(); },
            pretokenizer::info(settings_.pattern).name);
        while (const std::optional<CountsEntry> entry = entries.next()) writer.add(*entry);
        ok = writer.finish();
        ok = std::fclose(file) == 0 && ok;
    }
    if (Status status = entries.status(); !status.ok()) return status;
    if (ok) return {};
    return file_failed(path + ": cannot be written (" + std::generic_category().message(errno) +
                       "); counts over max_memory_bytes go there: make room, or name another temporary_folder");
}

// The oldest become one run behind the others, until few are left.
Status PretokenCounter::merge_runs_if_many() {
    while (runs_.size() > kMaxRuns) {
        std::vector<std::unique_ptr<SortedCounts>> sources;
        for (size_t i = 0; i < kMaxRuns; ++i) sources.push_back(CountsReader::open(runs_[i]));
        MergedCounts entries(std::move(sources));
        const std::string merged = settings_.folder + "/" + std::to_string(run_number_++) + ".counts";
        if (Status status = write_run(merged, entries); !status.ok()) return status;
        for (size_t i = 0; i < kMaxRuns; ++i) std::remove(runs_[i].c_str());
        runs_.erase(runs_.begin(), runs_.begin() + kMaxRuns);
        runs_.push_back(merged);
    }
    return {};
}

}  // namespace fastcompress::bpe
