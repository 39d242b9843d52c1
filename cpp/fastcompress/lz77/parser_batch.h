// Several incremental parsers that advance in step, for texts that are generated as a batch.
#pragma once

#include <cassert>
#include <span>
#include <vector>

#include "fastcompress/common/rollback.h"
#include "fastcompress/lz77/incremental_parser.h"

namespace fastcompress::lz77 {

// All streams run on the calling thread: appending a byte to each takes less time than starting a thread.
class ParserBatch {
  public:
    // Requires params that pass check().
    ParserBatch(const Params& params, size_t num_streams) {
        parsers_.reserve(num_streams);
        for (size_t i = 0; i < num_streams; ++i) parsers_.emplace_back(params);  // not copies, which share a history
    }

    size_t size() const { return parsers_.size(); }
    const IncrementalParser& operator[](size_t stream) const { return parsers_[stream]; }
    IncrementalParser& operator[](size_t stream) { return parsers_[stream]; }
    // Appends `num_each` bytes to each stream: bytes[i * num_each, (i + 1) * num_each) to stream i. Requires
    // bytes.size() == size() * num_each. On std::bad_alloc all streams are as before.
    void append(Bytes bytes, size_t num_each = 1) {
        assert(bytes.size() == size() * num_each);
        size_t num_done = 0;
        // Removing bytes that were appended since the last copy needs no memory (history.h), so this cannot fail.
        Rollback rollback([&] {
            for (size_t i = 0; i < num_done; ++i) parsers_[i].truncate(parsers_[i].num_bytes() - num_each);
        });
        if (num_each == 1) {
            for (; num_done < size(); ++num_done) parsers_[num_done].append(bytes[num_done]);
        } else {
            for (; num_done < size(); ++num_done) {
                parsers_[num_done].append(bytes.subspan(num_done * num_each, num_each));
            }
        }
        rollback.release();
    }
    // Makes stream i a fork of what stream sources[i] was. The number of streams may change. A stream that is used once
    // is moved, not forked. On std::bad_alloc all streams are as before.
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
