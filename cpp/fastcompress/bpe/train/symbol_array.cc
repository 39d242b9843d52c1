#include "fastcompress/bpe/train/symbol_array.h"

namespace fastcompress::bpe {

bool SymbolArray::add_pretoken(std::span<const TokenId> symbols, int64_t count) {
    size_t num_cells = 1;
    for (const TokenId symbol : symbols) num_cells += length_of_[symbol];
    if (cells_.size() + num_cells >= kMaxCells || counts_.size() >= kMaxPretokens) return false;
    cells_.reserve_more(num_cells);
    counts_.push_back(count);
    // From here on nothing fails.
    TokenId* cell = cells_.extend(num_cells);
    *cell++ = kBoundary + static_cast<TokenId>(counts_.size() - 1);
    for (const TokenId symbol : symbols) {
        const uint32_t length = length_of_[symbol];
        for (uint32_t i = 0; i < length; ++i) cell[i] = kNoSymbol;
        cell[0] = symbol;
        cell[length - 1] = symbol;
        cell += length;
    }
    return true;
}

void SymbolArray::finish() {
    cells_.push_back(kBoundary + static_cast<TokenId>(counts_.size()));
    cells_.set_capacity(cells_.size());
    counts_.shrink_to_fit();
    first_pretoken_.assign(cells_.size() / kBlockCells + 2, static_cast<uint32_t>(counts_.size()));
    uint32_t pretoken = 0;
    for (size_t p = 0; p < cells_.size(); ++p) {
        if (is_boundary(cells_[p])) pretoken = cells_[p] - kBoundary;
        if (p % kBlockCells == 0) first_pretoken_[p / kBlockCells] = pretoken;
    }
}

}  // namespace fastcompress::bpe
