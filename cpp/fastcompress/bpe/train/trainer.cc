#include "fastcompress/bpe/train/trainer.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <unordered_set>

#include "fastcompress/bpe/vocabulary/byte_alphabet.h"

namespace fastcompress::bpe {
namespace {

constexpr size_t kProgressEvery = 256;
// The limit of a Vocabulary.
constexpr size_t kMaxTokenBytes = 0xffffffffu;

Status trainer_is_spent() {
    return invalid_argument("this trainer has been used already; make another one and add the pretokens again");
}

Status special_token_is_learned(const std::string& bytes) {
    return invalid_argument("a special token has the text of the ordinary token '" + bytes +
                            "'; leave it out of special_tokens, or train with tie_break='lowest_id'");
}

}  // namespace

Trainer::Trainer(TrainerSettings settings) : settings_(std::move(settings)) {}

Result<std::unique_ptr<Trainer>> Trainer::make(TrainerSettings settings) {
    std::unique_ptr<Trainer> trainer(new Trainer(std::move(settings)));
    if (trainer->settings_.base == nullptr) {
        trainer->start_from_bytes();
    } else if (Status status = trainer->start_from_base(); !status.ok()) {
        return status;
    }
    if (trainer->is_huggingface()) {
        if (Status status = trainer->reserve_symbol_bytes(); !status.ok()) return status;
    }
    std::vector<uint32_t> lengths;
    for (const std::string& bytes : trainer->symbol_bytes_)
        lengths.push_back(static_cast<uint32_t>(std::max<size_t>(1, bytes.size())));
    trainer->symbols_.emplace(std::move(lengths));
    return trainer;
}

void Trainer::start_from_bytes() {
    std::array<TokenId, 256> bytes{};  // in the order of their symbols
    std::iota(bytes.begin(), bytes.end(), 0);
    if (is_huggingface()) {
        const std::array<uint32_t, 256> alphabet = byte_alphabet();
        std::ranges::sort(bytes, {}, [&](TokenId byte) { return alphabet[byte]; });
        is_in_alphabet_ = settings_.initial_alphabet;
    }
    for (TokenId symbol = 0; symbol < 256; ++symbol) {
        symbol_of_byte_[bytes[symbol]] = symbol;
        symbol_bytes_.emplace_back(1, static_cast<char>(bytes[symbol]));
    }
}

Status Trainer::start_from_base() {
    const Vocabulary& base = *settings_.base;
    if (base.order() != MergeOrder::kMerges) {
        return invalid_argument(
            "continue_from is a vocabulary of ranks, which lists no merges; it must be one that was trained with this "
            "library or read from a tokenizer.json");
    }
    encoder_ = std::make_unique<Encoder>(base);
    for (TokenId id = 0; id < base.size(); ++id) {
        symbol_bytes_.emplace_back(base.is_ordinary(id) ? as_chars(base.token_bytes(id)) : std::string_view());
    }
    return {};
}

// Under the rules of Hugging Face, a merge that makes the bytes of an older token becomes that token.
Status Trainer::reserve_symbol_bytes() {
    for (TokenId symbol = 0; symbol < symbol_bytes_.size(); ++symbol) {
        if (!symbol_bytes_[symbol].empty()) symbol_of_bytes_.try_emplace(symbol_bytes_[symbol], symbol);
    }
    std::vector<std::string> specials = settings_.special_tokens;
    if (settings_.base != nullptr) {
        for (const AddedToken& added : settings_.base->added_tokens()) specials.push_back(added.text);
    }
    for (const std::string& special : specials) {
        const std::optional<std::string> bytes = bytes_of_byte_alphabet(special);
        if (bytes && !symbol_of_bytes_.try_emplace(*bytes, kNoToken).second) return special_token_is_learned(*bytes);
    }
    return {};
}

Status Trainer::add(Bytes pretoken, uint64_t count) {
    assert(!pretoken.empty() && count >= 1);
    if (is_spent_) return trainer_is_spent();
    const uint64_t most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) - num_bytes_;
    if (count > most / pretoken.size())
        return invalid_data("the occurrences of all pretokens have 2^63 bytes or more; they must have fewer");
    buffer_.clear();
    if (encoder_) {
        encoder_->encode_by_merges(pretoken, buffer_);
    } else {
        TokenId* symbols = buffer_.reserve(pretoken.size());
        for (size_t i = 0; i < pretoken.size(); ++i) symbols[i] = symbol_of_byte_[pretoken[i]];
        buffer_.commit(pretoken.size());
    }
    // There is nothing to merge in a single symbol.
    if (buffer_.size() >= 2 && !symbols_->add_pretoken(buffer_.tokens(), static_cast<int64_t>(count))) {
        return invalid_data(
            "the distinct pretokens have more than 4 GiB together, the limit of training; use less text, or a pattern "
            "that splits it into shorter pretokens");
    }
    num_bytes_ += count * pretoken.size();
    if (is_huggingface() && !encoder_) {
        for (const uint8_t byte : pretoken) is_in_alphabet_[byte] = true;
    }
    return {};
}

Result<VocabularySpec> Trainer::train(const Progress& progress) {
    if (is_spent_) return trainer_is_spent();
    is_spent_ = true;
    const size_t num_specials = settings_.special_tokens.size();
    size_t num_first = num_first_symbols();
    if (is_huggingface() && settings_.base == nullptr)
        num_first = static_cast<size_t>(std::ranges::count(is_in_alphabet_, true));
    const size_t num_given = num_first + num_specials;
    if (settings_.vocab_size > num_given) {
        if (Status status = learn(settings_.vocab_size - num_given, progress); !status.ok()) return status;
    }

    const std::vector<TokenId> id_of = ids_of_symbols();
    VocabularySpec spec;
    spec.pattern = settings_.pattern;
    TokenId next_special = is_huggingface() ? 0 : static_cast<TokenId>(symbol_bytes_.size());
    if (settings_.base != nullptr) {
        spec = settings_.base->spec();
        next_special = static_cast<TokenId>(symbol_bytes_.size());
    }
    spec.tokens.resize(symbol_bytes_.size() + num_specials);
    for (size_t symbol = 0; symbol < symbol_bytes_.size(); ++symbol) spec.tokens[id_of[symbol]] = symbol_bytes_[symbol];
    for (const std::string& text : settings_.special_tokens) spec.added_tokens.push_back({text, next_special++});
    append_merges(spec, id_of);
    return spec;
}

// Makes up to num_tokens new tokens.
Status Trainer::learn(size_t num_tokens, const Progress& progress) {
    symbols_->finish();
    const MergeRules rules{is_huggingface(), settings_.min_frequency, settings_.max_token_length};
    MergeLoop loop(std::move(*symbols_), rules, num_tokens);
    symbols_.reset();
    const size_t wanted = symbol_bytes_.size() + num_tokens;
    size_t num_token_bytes = 0;
    while (symbol_bytes_.size() < wanted) {
        const std::optional<MergeLoop::Candidate> candidate = loop.pop_most_frequent();
        if (!candidate) break;
        const Result<TokenId> symbol = symbol_for_merge(candidate->pair);
        if (!symbol.ok()) return symbol.status();
        const TokenId result = *symbol;
        num_token_bytes += symbol_bytes_[result].size();
        if (num_token_bytes > kMaxTokenBytes)
            return invalid_data("the learned tokens have more than 4 GiB together; set max_token_length");
        merges_.push_back({left_of(candidate->pair), right_of(candidate->pair), result});
        loop.merge(*candidate, result);
        if (merges_.size() % kProgressEvery == 0) progress(num_tokens - (wanted - symbol_bytes_.size()), num_tokens);
    }
    return {};
}

// Returns the symbol that a merge makes: a new one or, under the rules of Hugging Face, perhaps an old one.
Result<TokenId> Trainer::symbol_for_merge(Pair pair) {
    std::string bytes = symbol_bytes_[left_of(pair)] + symbol_bytes_[right_of(pair)];
    const auto next = static_cast<TokenId>(symbol_bytes_.size());
    if (is_huggingface()) {
        const auto [found, is_new] = symbol_of_bytes_.try_emplace(bytes, next);
        if (found->second == kNoToken) return special_token_is_learned(bytes);
        if (!is_new) return TokenId{found->second};
    }
    symbol_bytes_.push_back(std::move(bytes));
    return TokenId{next};
}

std::vector<TokenId> Trainer::ids_of_symbols() const {
    std::vector<TokenId> id_of(symbol_bytes_.size());
    std::iota(id_of.begin(), id_of.end(), 0);
    if (!is_huggingface() || settings_.base != nullptr) return id_of;
    // The order of ids: special tokens, the alphabet, merges, and the bytes that are not in the alphabet.
    auto next = static_cast<TokenId>(settings_.special_tokens.size());
    const auto is_left_out = [&](size_t symbol) {
        return symbol < 256 && !is_in_alphabet_[static_cast<uint8_t>(symbol_bytes_[symbol][0])];
    };
    for (const bool left_out : {false, true}) {
        for (size_t symbol = 0; symbol < id_of.size(); ++symbol) {
            if (is_left_out(symbol) == left_out) id_of[symbol] = next++;
        }
    }
    return id_of;
}

// Appends the new merges to those of the base vocabulary. If a pair was merged several times (under the rules of
// Hugging Face), keeps the merge of the base, or else the last one.
void Trainer::append_merges(VocabularySpec& spec, const std::vector<TokenId>& id_of) const {
    std::unordered_set<Pair> seen;
    if (is_huggingface()) {
        for (const Merge& merge : spec.merges) seen.insert(make_pair(merge.left, merge.right));
    }
    std::vector<Merge> kept;
    for (size_t i = merges_.size(); i-- > 0;) {
        const Merge merge{id_of[merges_[i].left], id_of[merges_[i].right], id_of[merges_[i].result]};
        if (is_huggingface() && !seen.insert(make_pair(merge.left, merge.right)).second) continue;
        kept.push_back(merge);
    }
    spec.merges.insert(spec.merges.end(), kept.rbegin(), kept.rend());
}

}  // namespace fastcompress::bpe
