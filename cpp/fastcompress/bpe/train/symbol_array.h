// The pretokens that merges are learned from, as one array of symbols (token ids) that shrink to fewer, longer ones.
//
// A cell a byte, and one more before each pretoken:
//
//     [boundary 0] t h e [boundary 1] c a t [boundary 2] ...          boundaries name the pretoken that follows
//     [boundary 0] X . X [boundary 1] c Y Y [boundary 2] ...          after t h e -> X and a t -> Y ("." has no meaning)
//
// A symbol lies in as many cells as it has bytes and stands in the first and the last of them. So the symbol after one
// begins that many cells on, the symbol before one is read from the cell before it, and a merge is two writes: a linked
// list without links, four bytes a byte of text (compare YouTokenToMe), in which a pretoken may have any length.
//
// A cell where symbol s began once, and which holds s, is still where it begins: if s was since merged with what was before
// it, its first cell is either inside a symbol, and was given kNoSymbol, or the last cell of one, and was given that
// symbol; but then s had one byte, and that symbol has more.
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

    // length_of[symbol] is the number of bytes; symbols made later are told by add_symbol.
    explicit SymbolArray(std::vector<uint32_t> length_of) : length_of_(std::move(length_of)) {}

    // Appends a pretoken that occurs `count` times. False: there is no room (4 GiB in all).
    bool add_pretoken(std::span<const TokenId> symbols, int64_t count);
    // After the last pretoken, before anything else.
    void finish();
    void add_symbol(uint32_t length) { length_of_.push_back(length); }

    size_t num_cells() const { return cells_.size(); }
    size_t num_symbols() const { return length_of_.size(); }
    size_t num_pretokens() const { return counts_.size(); }
    uint32_t length(TokenId symbol) const { return length_of_[symbol]; }

    static bool is_boundary(TokenId cell) { return cell >= kBoundary; }
    // Whether `left` begins at p, where it did once, and `right` follows it.
    bool is_at(Position p, TokenId left, TokenId right) const {
        return cells_[p] == left && cells_[p + length_of_[left]] == right;
    }
    // The cell after a symbol: the first cell of the next one, or a boundary.
    TokenId at(Position p) const { return cells_[p]; }
    // The symbol that ends before the symbol at p, or a boundary.
    TokenId before(Position p) const { return cells_[p - 1]; }
    void prefetch(Position p) const { fastcompress::prefetch(cells_.data() + p); }

    // The pretoken that a cell belongs to. At most kBlockCells steps: back to the pretoken's boundary or the block's begin.
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

    // Makes one symbol of `left` at p and `right` at q, which follows it.
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
