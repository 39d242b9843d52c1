// Counts the pretokens of a corpus on several threads, in bounded memory.
//
// Each thread has its own table (PretokenCounts). Texts are divided among threads in stretches of equal size, and long
// texts are cut where that does not change their pretokens (text_cut.h). When a table exceeds its share of
// max_memory_bytes, it is written to disk as a sorted run and emptied. At the end, runs and tables are merged. Sums do
// not depend on the order of additions, so the result is the same for every number of threads, every division of the
// texts, and every limit.
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
        // Tables are spilled when they exceed this in all. A smaller limit than 1,024 pretokens per thread has no
        // effect.
        size_t max_memory_bytes = std::numeric_limits<size_t>::max();
        std::string folder;  // folder for runs, used for nothing else; the caller creates and removes it
    };
    explicit PretokenCounter(Settings settings) : settings_(std::move(settings)), tables_(1) {}

    // The sum of all counts is at most this, so that it fits the signed 64-bit sums of training and the varints of the
    // file.
    static constexpr uint64_t kMaxTotal = (uint64_t{1} << 63) - 1;

    // Adds the pretokens of texts. O(bytes), divided among the threads. kInvalidData, with nothing added, if the counts
    // might overflow. On std::bad_alloc nothing is added. But if some of the texts have been spilled by then, or a run
    // cannot be written (kFile), the counter becomes unusable, and every later call fails.
    Status add_texts(std::span<const Bytes> texts, size_t num_threads);
    // Adds all entries, whose pretokens are not empty. On an error or std::bad_alloc nothing is added.
    Status add(SortedCounts& entries);

    // Adds the counts of another counter. kInvalidData if the counts might overflow. On an error or std::bad_alloc
    // nothing is added.
    Status add(PretokenCounter& other);

    // Returns all entries. They are valid until something is added.
    std::unique_ptr<SortedCounts> sorted();
    // Calls visit(entry) for each distinct pretoken, in any order. Faster than sorted() if nothing was spilled.
    Status for_each(const std::function<void(const CountsEntry&)>& visit);
    // Returns the number of distinct pretokens. Reads all entries if something was spilled.
    Result<uint64_t> size();
    // Frees the memory of tables; runs stay. Must be the last call.
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
    std::mutex runs_mutex_;  // guards runs_ while threads count
    std::atomic<size_t> run_number_ = 0;
    Status failed_;           // why the counter is unusable, if it is
    uint64_t max_total_ = 0;  // an upper bound on the sum of all counts: a text adds at most its number of bytes
};

}  // namespace fastcompress::bpe
