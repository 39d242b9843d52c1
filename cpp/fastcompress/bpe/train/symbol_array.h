// The pretokens that merges are learned from, as one array of symbols (token ids), which become fewer and longer.
//
// There is one cell per byte, and one more before each pretoken:
//
//     [boundary 0] t h e [boundary 1] c a t [boundary 2] ...        a boundary has the number of the pretoken after it
//     [boundary 0] X . X [boundary 1] c Y Y [boundary 2] ...        after t h e -> X and a t -> Y ("." is meaningless)
//
// A symbol occupies as many cells as it has bytes, and is stored in the first and the last of them. So the next symbol
// begins that many cells later, the symbol before is in the cell before, and a merge takes two writes. That is a linked
// list without links, of four bytes per byte of text (compare YouTokenToMe), in which pretokens may have any length.
//
// Invariant: if symbol s once began at a cell that now contains s, it still begins there. Suppose that s was merged
// with the symbol before it. Then its first cell is either inside the new symbol, and contains kNoSymbol, or is the
// last cell of the new symbol, and contains that. In the second case s had one byte and the new symbol has more, so
// they differ.
#pragma once

#include <span>
#include <vector>

#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/common/growing_array.h"
#include "fastcompress/common/prefetch.h"

namespace fastcompress::bpe {

class SymbolArray {
  public:
    using Position = uint32_t;
    static constexpr TokenId kNoSymbol = 0x7fffffff;  // cells from kBoundary on are boundaries
    static constexpr TokenId kBoundary = 0x80000000;
    // Positions have 32 bits; the pretokens before the last must leave room for its cells.
    static constexpr size_t kMaxCells = 0xffffffffu;
    static constexpr size_t kMaxPretokens = 0x7ffffffeu;

    // length_of[symbol] is the number of bytes. add_symbol() adds the symbols made later.
    explicit SymbolArray(std::vector<uint32_t> length_of) : length_of_(std::move(length_of)) {}

    // Appends a pretoken that occurs `count` times. Returns false if there is no room (4 GiB in all).
    bool add_pretoken(std::span<const TokenId> symbols, int64_t count);
    // Must be called after the last pretoken and before any function below.
    void finish();
    void add_symbol(uint32_t length) { length_of_.push_back(length); }

    size_t num_cells() const { return cells_.size(); }
    size_t num_symbols() const { return length_of_.size(); }
    size_t num_pretokens() const { return counts_.size(); }
    uint32_t length(TokenId symbol) const { return length_of_[symbol]; }

    static bool is_boundary(TokenId cell) { return cell >= kBoundary; }
    // Whether `left` begins at p and `right` follows it. Requires that `left` once began there.
    bool is_at(Position p, TokenId left, TokenId right) const {
        return cells_[p] == left && cells_[p + length_of_[left]] == right;
    }
    // The cell after a symbol: the first cell of the next one, or a boundary.
    TokenId at(Position p) const { return cells_[p]; }
    // The symbol that ends before the symbol at p, or a boundary.
    TokenId before(Position p) const { return cells_[p - 1]; }
    void prefetch(Position p) const { fastcompress::prefetch(cells_.data() + p); }

    // The pretoken that a cell belongs to. Takes at most kBlockCells steps, back to its boundary or the beginning of
    // the block.
    uint32_t pretoken_at(Position p) const {
        const Position block = p / kBlockCells;
        const uint32_t first = first_pretoken_[block];
        if (first == first_pretoken_[block + 1]) return first;
        for (; p > block * kBlockCells; --p) {
            if (is_boundary(cells_[p - 1])) return cells_[p - 1] - kBoundary;
        }
        return first;
    }
    int64_t count_at(Position p) const { return counts_[pretoken_at(p)]; }

    // Replaces the symbol at p and the symbol at q, which follows it, with `result`.
    void merge(Position p, Position q, uint32_t right_length, TokenId result) {
        cells_[p] = result;
        cells_[q] = kNoSymbol;
        cells_[q + right_length - 1] = result;
    }

    // Calls visit(position, left, right, count) for each pair of symbols, in order of position.
    template <class Visit>
    void for_each_pair(const Visit& visit) const {
        int64_t count = 0;
        for (size_t p = 0; p + 1 < cells_.size();) {
            if (is_boundary(cells_[p])) {
                count = counts_[cells_[p] - kBoundary];
                ++p;
                continue;
            }
            const size_t next = p + length_of_[cells_[p]];
            if (!is_boundary(cells_[next])) visit(static_cast<Position>(p), cells_[p], cells_[next], count);
            p = next;
        }
    }

  private:
    static constexpr uint32_t kBlockCells = 16;

    GrowingArray<TokenId> cells_;
    std::vector<uint32_t> length_of_;
    std::vector<int64_t> counts_;
    std::vector<uint32_t>
        first_pretoken_;  // by block: the pretoken that its first cell belongs to, or is the boundary of
};

}  // namespace fastcompress::bpe
