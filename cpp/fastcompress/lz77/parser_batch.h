// Several incremental parsers that advance together, one byte at a time each: the streams of a generation.
#pragma once

#include <cassert>
#include <span>
#include <vector>

#include "fastcompress/common/rollback.h"
#include "fastcompress/lz77/incremental_parser.h"

namespace fastcompress::lz77 {

// On one thread: a byte takes a stream less time than a thread takes to start.
class ParserBatch {
  public:
    // Valid params (check()).
    ParserBatch(const Params& params, size_t num_streams) {
        parsers_.reserve(num_streams);
        for (size_t i = 0; i < num_streams; ++i) parsers_.emplace_back(params);  // each with a history of its own
    }

    size_t size() const { return parsers_.size(); }
    const IncrementalParser& operator[](size_t stream) const { return parsers_[stream]; }
    IncrementalParser& operator[](size_t stream) { return parsers_[stream]; }
    // Appends bytes[i] to stream i. There are as many bytes as streams. On std::bad_alloc all streams are as before.
    void append(std::span<const uint8_t> bytes) {
        assert(bytes.size() == size());
        size_t num_done = 0;
        // Taking back the byte that was appended last needs no memory: it undoes changes where they were made.
        Rollback rollback([&] {
            for (size_t i = 0; i < num_done; ++i) parsers_[i].truncate(parsers_[i].num_bytes() - 1);
        });
        for (; num_done < bytes.size(); ++num_done) parsers_[num_done].append(bytes[num_done]);
        rollback.release();
    }
    // Makes stream i a fork of what stream sources[i] was. There may be more or fewer streams than before; a stream that
    // is used once is moved, not forked. On std::bad_alloc all streams are as before.
    void select(std::span<const size_t> sources) {
        std::vector<size_t> num_uses(parsers_.size());
        for (const size_t source : sources) {
            assert(source < size());
            ++num_uses[source];
        }
        std::vector<IncrementalParser> selected;
        std::vector<IncrementalParser> forks;  // for all uses of a stream but the last, in the order of `sources`
        selected.reserve(sources.size());
        forks.reserve(sources.size());
        std::vector<size_t> num_left = num_uses;
        for (const size_t source : sources) {
            if (--num_left[source] > 0) forks.push_back(parsers_[source]);
        }
        // From here on nothing fails.
        size_t next_fork = 0;
        for (const size_t source : sources) {
            selected.push_back(--num_uses[source] == 0 ? std::move(parsers_[source]) : std::move(forks[next_fork++]));
        }
        parsers_ = std::move(selected);
    }

  private:
    std::vector<IncrementalParser> parsers_;
};

}  // namespace fastcompress::lz77
