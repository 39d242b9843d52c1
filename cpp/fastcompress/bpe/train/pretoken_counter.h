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

    // Adds the pretokens of texts. O(bytes) divided by threads. An error (kFile) leaves the counter unusable.
    Status add_texts(std::span<const Bytes> texts, size_t num_threads);
    // Adds entries, whose pretokens are not empty, until there are no more.
    Status add(SortedCounts& entries);

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
    void merge_tables();
    Status spill_if_over(PretokenCounts& table, size_t cap);
    Status write_run(const std::string& path, SortedCounts& entries);
    Status merge_runs_if_many();

    Settings settings_;
    std::vector<PretokenCounts> tables_;  // at least one
    std::vector<std::string> runs_;
    std::mutex runs_mutex_;  // of runs_ and run_number_, while threads count
    size_t run_number_ = 0;
};

}  // namespace fastcompress::bpe
