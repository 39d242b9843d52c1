// Counts the pretokens of a corpus on several threads, in bounded memory.
//
// Each thread has a table of its own (PretokenCounts). Texts go to threads in stretches of equal size, long ones cut where
// that changes nothing (text_cut.h). When a table exceeds its share of max_memory_bytes, it is written to disk as a sorted
// run and emptied; at the end runs and tables are merged k ways. Sums do not depend on who counted what, so the result is
// the same for every number of threads, every way to divide the texts, and every cap.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "fastcompress/bpe/train/counts_file.h"
#include "fastcompress/bpe/train/pretoken_counts.h"

namespace fastcompress::bpe {

class PretokenCounter {
  public:
    struct Settings {
        pretokenizer::Pattern pattern = pretokenizer::Pattern::kCl100k;
        // Tables larger than this in all are spilled. The least that is kept to: a table of 1,024 pretokens a thread.
        size_t max_memory_bytes = std::numeric_limits<size_t>::max();
        std::string folder;  // for runs; theirs alone. Who made it removes it
    };
    explicit PretokenCounter(Settings settings) : settings_(std::move(settings)), tables_(1) {}

    // All counts together stay below this, so none overflows the signed 64-bit sums of training or the file's varints.
    static constexpr uint64_t kMaxTotal = (uint64_t{1} << 63) - 1;

    // Adds the pretokens of texts. O(bytes) divided by threads. Fails (kInvalidData) before it adds anything if the
    // counts might overflow. On std::bad_alloc nothing is added; but if part of the texts has been spilled by then, or a
    // run cannot be written (kFile), the counter is of no more use, and every later call fails.
    Status add_texts(std::span<const Bytes> texts, size_t num_threads);
    // Adds all entries, whose pretokens are not empty. On an error or std::bad_alloc nothing is added.
    Status add(SortedCounts& entries);

    // Adds what another counter holds, or on an error or std::bad_alloc nothing. Fails (kInvalidData) if the counts might
    // overflow.
    Status add(PretokenCounter& other);

    // All entries; valid while nothing is added.
    std::unique_ptr<SortedCounts> sorted();
    // Calls visit(entry) for each distinct pretoken, in any order, which is faster where nothing was spilled.
    Status for_each(const std::function<void(const CountsEntry&)>& visit);
    // The number of distinct pretokens; reads everything if something was spilled.
    Result<uint64_t> size();
    // Gives back the memory of tables; runs stay. To be called last.
    void clear();

    pretokenizer::Pattern pattern() const { return settings_.pattern; }
    size_t num_runs() const { return runs_.size(); }

  private:
    Status reserve_total(uint64_t count);
    void merge_tables();
    Status count_pieces(std::span<const Bytes> pieces, size_t num_parts);
    Status read_into(SortedCounts& entries, PretokenCounts& table, size_t cap, std::vector<std::string>& runs);
    Status spill_if_over(PretokenCounts& table, size_t cap, std::vector<std::string>& runs);
    std::string new_run_path();
    Status write_run(const std::string& path, SortedCounts& entries);
    Status merge_runs_if_many();

    Settings settings_;
    std::vector<PretokenCounts> tables_;  // at least one
    std::vector<std::string> runs_;
    std::mutex runs_mutex_;  // of runs_ while threads count
    std::atomic<size_t> run_number_ = 0;
    Status failed_;           // why the counter is of no more use, if it is not
    uint64_t max_total_ = 0;  // all counts together are at most this: a text adds at most its bytes
};

}  // namespace fastcompress::bpe
