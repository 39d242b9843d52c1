// BPE training (Gage 1994; Sennrich, Haddow and Birch 2016), exactly and deterministically.
//
//   count the distinct pretokens (PretokenCounts) -> repeat: merge the pair of tokens that occurs most often, everywhere.
//
// Which of several pairs that occur equally often is merged first decides ids, so there is a rule for it (TieBreak).
// Counts are exact 64-bit integers, and the vocabulary depends on the multiset of pretokens only: not on the order of
// texts, the number of threads, or the machine. The work is done by MergeLoop; here ids get their meaning.
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
    // The pair with the smaller (left id, right id) comes first; bytes have the ids 0 to 255, the n-th merge makes id
    // 256 + n, and special tokens follow. rustbpe's merges.
    kLowestId,
    // The ids and merges of Hugging Face's tokenizers with its byte-level alphabet: special tokens have the first ids,
    // then bytes in the order of the characters that stand for them there, then merges; smaller ids come first. See
    // MergeRules for what else is done as there.
    kHuggingFace,
};

struct TrainerSettings {
    pretokenizer::Pattern pattern = pretokenizer::Pattern::kCl100k;
    TieBreak tie_break = TieBreak::kLowestId;
    size_t vocab_size = 0;                    // ids, bytes and special tokens included
    std::vector<std::string> special_tokens;  // distinct; none that `base` has
    int64_t min_frequency = 1;                // pairs that occur less often are not merged
    // kLowestId: the greatest number of bytes a merge may make. kHuggingFace: merges of longer tokens than bytes make less.
    uint64_t max_token_length = std::numeric_limits<uint64_t>::max();
    // kHuggingFace: bytes that are in the alphabet even if no text holds them. Others that no text holds get ids after
    // the merges, beyond vocab_size: a vocabulary needs all of them.
    std::array<bool, 256> initial_alphabet{};
    // Go on from this vocabulary: its ids and merges stay, new ones follow. It must list merges.
    const Vocabulary* base = nullptr;
};

// Takes pretokens, each distinct one once; then trains, once.
class Trainer {
  public:
    static Result<std::unique_ptr<Trainer>> make(TrainerSettings settings);

    // Adds a pretoken, which is not empty, that occurs `count` >= 1 times. O(pretoken). On an error or std::bad_alloc the
    // trainer is as before.
    Status add(Bytes pretoken, uint64_t count);

    // Called now and then with the numbers of tokens made and wanted; may throw to stop.
    using Progress = std::function<void(size_t, size_t)>;
    // The vocabulary of vocab_size ids, or of fewer when no pair is left that may be merged. Training uses the pretokens up:
    // after train(), however it ends, add() and train() fail (kInvalidArgument).
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
    // Symbols are numbered such that they compare as their ids do: ids of the base vocabulary, or bytes in the order of
    // their ids; then merges.
    std::vector<std::string> symbol_bytes_;  // by symbol
    std::array<TokenId, 256> symbol_of_byte_{};
    std::optional<SymbolArray> symbols_;
    std::unique_ptr<Encoder> encoder_;                          // with the base vocabulary
    TokenBuffer buffer_;                                        // of one pretoken
    std::array<bool, 256> is_in_alphabet_{};                    // by byte, kHuggingFace
    std::unordered_map<std::string, TokenId> symbol_of_bytes_;  // kHuggingFace: by spelling; kNoToken: a special token
    bool is_spent_ = false;
    uint64_t num_bytes_ = 0;     // of all pretokens, as often as they occur
    std::vector<Merge> merges_;  // of symbols, in the order made
};

}  // namespace fastcompress::bpe
