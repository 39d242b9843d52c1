// BPE training (Gage 1994; Sennrich, Haddow and Birch 2016), exactly and deterministically.
//
//   count the distinct pretokens (PretokenCounts) -> repeat: merge the most frequent pair of tokens everywhere
//
// Ids depend on which of several equally frequent pairs is merged first, so there is a rule for it (TieBreak). Counts
// are exact 64-bit integers, and the vocabulary depends on the multiset of pretokens only: not on the order of texts,
// the number of threads, or the machine. MergeLoop, whose head has an example, does the work; this class assigns ids.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fastcompress/bpe/encode/encoder.h"
#include "fastcompress/bpe/train/merge_loop.h"
#include "fastcompress/bpe/vocabulary/vocabulary.h"

namespace fastcompress::bpe {

enum class TieBreak {
    // The pair with the smaller (left id, right id) goes first. Bytes have the ids 0 to 255, merge n makes the id 256 +
    // n, and special tokens follow. The merges of rustbpe.
    kLowestId,
    // The ids and merges of Hugging Face's tokenizers with its byte-level alphabet: special tokens have the first ids;
    // bytes, in the order of the characters that stand for them, follow; then merges. Smaller ids go first. The head of
    // merge_loop.h lists the other rules.
    kHuggingFace,
};

struct TrainerSettings {
    pretokenizer::Pattern pattern = pretokenizer::Pattern::kCl100k;
    TieBreak tie_break = TieBreak::kLowestId;
    size_t vocab_size = 0;                    // the number of ids, including bytes and special tokens
    std::vector<std::string> special_tokens;  // distinct, and not in `base`
    int64_t min_frequency = 1;                // pairs that occur less often are not merged
    // kLowestId: the largest number of bytes of a merged token. kHuggingFace: merges of tokens of more than one byte
    // must make fewer.
    uint64_t max_token_length = std::numeric_limits<uint64_t>::max();
    // kHuggingFace: bytes that are in the alphabet even if no text contains them. Other bytes that no text contains get
    // ids after the merges, in excess of vocab_size, because a vocabulary needs all bytes.
    std::array<bool, 256> initial_alphabet{};
    // A vocabulary to continue from, or null: its ids and merges stay, and new ones follow. It must list merges.
    const Vocabulary* base = nullptr;
};

// Takes pretokens, each distinct one once, and then trains once.
class Trainer {
  public:
    static Result<std::unique_ptr<Trainer>> make(TrainerSettings settings);

    // Adds a pretoken that occurs `count` times. Requires count >= 1 and a pretoken that is not empty. O(pretoken). On
    // an error or std::bad_alloc the trainer is as before.
    Status add(Bytes pretoken, uint64_t count);

    // Called from time to time with the numbers of tokens made and wanted. May throw to stop training.
    using Progress = std::function<void(size_t, size_t)>;
    // Returns a vocabulary of vocab_size ids, or of fewer if no pair is left that may be merged. Training consumes the
    // pretokens: after train(), however it ends, add() and train() fail (kInvalidArgument).
    Result<VocabularySpec> train(const Progress& progress);

  private:
    explicit Trainer(TrainerSettings settings);
    void start_from_bytes();
    Status start_from_base();
    Status reserve_symbol_bytes();
    Status learn(size_t num_tokens, const Progress& progress);
    Result<TokenId> symbol_for_merge(Pair pair);
    std::vector<TokenId> ids_of_symbols() const;
    void append_merges(VocabularySpec& spec, const std::vector<TokenId>& id_of) const;
    bool is_huggingface() const { return settings_.tie_break == TieBreak::kHuggingFace; }
    size_t num_first_symbols() const { return settings_.base != nullptr ? settings_.base->size() : 256; }

    TrainerSettings settings_;
    // Symbols are numbered in the order of their ids: ids of the base vocabulary, or bytes in the order of their ids;
    // then merges.
    std::vector<std::string> symbol_bytes_;  // by symbol
    std::array<TokenId, 256> symbol_of_byte_{};
    std::optional<SymbolArray> symbols_;
    std::unique_ptr<Encoder> encoder_;                          // an encoder of the base vocabulary
    TokenBuffer buffer_;                                        // symbols of one pretoken
    std::array<bool, 256> is_in_alphabet_{};                    // by byte, kHuggingFace
    std::unordered_map<std::string, TokenId> symbol_of_bytes_;  // kHuggingFace: by bytes; kNoToken: a special token
    bool is_spent_ = false;
    uint64_t num_bytes_ = 0;     // bytes of all occurrences of pretokens
    std::vector<Merge> merges_;  // merges of symbols, in the order made
};

}  // namespace fastcompress::bpe
