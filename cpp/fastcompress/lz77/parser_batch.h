// Several incremental parsers that go on together, a byte each at a time: the streams of a generation.
#pragma once

#include <span>
#include <vector>

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
    // bytes[i] to stream i; as many as there are streams.
    void append(std::span<const uint8_t> bytes) {
        for (size_t i = 0; i < bytes.size(); ++i) parsers_[i].append(bytes[i]);
    }
    // Stream i becomes a fork of what stream sources[i] was; there may be more or fewer of them than before. A stream
    // that is taken once is moved, not forked.
    void select(std::span<const size_t> sources) {
        std::vector<size_t> num_uses(parsers_.size());
        for (const size_t source : sources) ++num_uses[source];
        std::vector<IncrementalParser> selected;
        selected.reserve(sources.size());
        for (const size_t source : sources) {
            selected.push_back(--num_uses[source] == 0 ? std::move(parsers_[source]) : parsers_[source]);
        }
        parsers_ = std::move(selected);
    }

  private:
    std::vector<IncrementalParser> parsers_;
};

}  // namespace fastcompress::lz77
