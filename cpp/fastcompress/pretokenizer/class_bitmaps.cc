#include "fastcompress/pretokenizer/class_bitmaps.h"

#include <utility>

#include "fastcompress/pretokenizer/char_blocks.h"
#include "fastcompress/pretokenizer/class_kernels.h"

namespace fastcompress::pretokenizer {

// Calls visit(bits) for each bitmap in use.
template <class Visit>
void ClassBitmaps::for_each_row(const Visit& visit) {
    for (int row = 0; row < kUpperSetRun; ++row) visit(mutable_row(static_cast<RunClass>(row)));
    for (const RunClass run_class : classes_of(family_)) visit(mutable_row(run_class));
}

void ClassBitmaps::fill(size_t begin) {
    begin_ = begin;
    end_ = std::min(begin + kWindowBytes, text_.size());
    if (end_ < text_.size()) {  // a character that does not fit, at most three bytes of it, is left to the next window
        for (int back = 0; back < 3 && (text_[end_] & 0xc0u) == 0x80u; ++back) --end_;
    }
    const size_t size = end_ - begin;
    const size_t num_words = (size + 63) / 64;
    // Words that are read past the window are zero: up to seven where eight are computed at once, and one after those.
    // (All of the last eight are cleared: a fixed number of words takes no loop.)
    const size_t last_eight = num_words == 0 ? 0 : (num_words - 1) / 8 * 8;
    for_each_row([&](uint64_t* bits) {
        bits[-1] = 0;
        std::fill_n(bits + last_eight, 8, 0);
        bits[last_eight + 8] = 0;
    });
    // The last bytes of the text are copied to a buffer of 64 bytes, all of which kernels read.
    const size_t num_direct = std::min(num_words, (text_.size() - begin) / 64);
    classify_ascii(text_.data() + begin, 0, num_direct);
    if (num_direct < num_words) {
        uint8_t padded[64] = {};
        std::copy(text_.begin() + static_cast<std::ptrdiff_t>(begin + 64 * num_direct), text_.end(), padded);
        classify_ascii(padded, num_direct, 1);
    }
    if (size % 64 != 0) {
        const uint64_t valid = (uint64_t{1} << size % 64) - 1;
        for_each_row([&](uint64_t* bits) { bits[num_words - 1] &= valid; });
        beyond_[num_words - 1] &= valid;
    }
    uint64_t any_beyond = 0;
    for (size_t word = 0; word < num_words; ++word) any_beyond |= beyond_[word];
    if (family_ == RunFamily::kBytes) {
        for (size_t word = 0; word < num_words; ++word) mutable_row(kLetterRun)[word] |= beyond_[word];
        return;
    }
    all_ascii_ = any_beyond == 0;
    if (!all_ascii_) fill_beyond_ascii(num_words);
}

// Sets the bits of ASCII characters and clears all other bits, in num_words words of every bitmap in use from `word`
// on.
void ClassBitmaps::classify_ascii(const uint8_t* bytes, size_t word, size_t num_words) {
    const auto at = [&](RunClass run_class) { return mutable_row(run_class) + word; };
    AsciiRows rows = {at(kLetterRun), at(kNumberRun),  at(kSpaceRun),  at(kSymbolRun), at(kNewlineRun),
                      at(kBlankRun),  at(kApostrophe), &beyond_[word], nullptr,        nullptr};
    if (family_ == RunFamily::kCases) {
        rows.upper = at(kUpperSetRun);
        rows.lower = at(kLowerSetRun);
    }
    class_kernels().classify_ascii(bytes, num_words, rows);
    std::fill_n(at(kContinuation), num_words, 0);
    if (family_ == RunFamily::kMarks) {
        std::copy_n(rows.letter, num_words, at(kMarkedWordRun));
        std::copy_n(rows.symbol, num_words, at(kUnmarkedSymbolRun));
    } else if (family_ == RunFamily::kScripts) {
        std::fill_n(at(kHanKanaWordRun), num_words, 0);
        std::fill_n(at(kHanKanaPunctuationRun), num_words, 0);
        std::copy_n(rows.letter, num_words, at(kOtherWordRun));
        for (size_t i = 0; i < num_words; ++i) {
            const uint64_t graphic = class_kernels().find_range(bytes + 64 * i, '!', '~');
            at(kOtherPunctuationRun)[i] = graphic & ~(rows.letter[i] | rows.number[i]);
        }
    }
}

// Classifies East Asian letters first, then block by block. Characters that are not well-formed, have four bytes, or
// stand at the very end are classified one by one. Most characters of a text are in few blocks, so the two blocks that
// were useful last are tried before the next character is decoded: the number of blocks in a word is hard to predict,
// and a misprediction costs more than two lookups that find nothing.
void ClassBitmaps::fill_beyond_ascii(size_t num_words) {
    uint64_t taken_before = 0;  // the bytes of this word that belong to characters that begin in the word before
    size_t decoded_to = 0;      // characters before this offset were looked up in the table
    std::array<BlockQuery, 2> usual = {};
    for (size_t word = 0; word < num_words; ++word) {
        const size_t offset = word * 64;
        uint64_t rest = beyond_[word] & ~std::exchange(taken_before, 0);
        if (rest == 0) continue;
        const auto take = [&](const Taken& taken) {
            rest &= ~taken.here;
            taken_before |= taken.next;
            return taken.here != 0;
        };
        const bool can_read_on = begin_ + offset + 66 <= text_.size();
        BlockQuery* useless = nullptr;  // one of the usual queries that found nothing
        if (can_read_on) {
            if (family_ != RunFamily::kScripts) take(add_east_asian(word));
            for (BlockQuery& query : usual) {
                if (query.block == nullptr || !take(add_block(word, query))) useless = &query;
            }
        }
        while (rest != 0) {
            const auto first = static_cast<uint32_t>(std::countr_zero(rest));
            if (offset + first >= decoded_to) {
                if (can_read_on) {
                    const BlockQuery query = block_of(offset + first);
                    if (query.block != nullptr && take(add_block(word, query))) {
                        if (useless != nullptr) *std::exchange(useless, nullptr) = query;
                        continue;
                    }
                }
                decoded_to = offset + first + add_character(offset + first);
            }
            rest &= rest - 1;
        }
    }
}

// Returns all bytes of characters of two or three bytes, given their first bytes.
ClassBitmaps::Taken ClassBitmaps::spread(uint64_t firsts, bool has_three) {
    const uint64_t third = has_three ? ~uint64_t{0} : 0;
    return {firsts | firsts << 1 | (firsts << 2 & third), firsts >> 63 | (firsts >> 62 & third)};
}

void ClassBitmaps::set(RunClass run_class, size_t word, const Taken& taken) {
    mutable_row(run_class)[word] |= taken.here;
    mutable_row(run_class)[word + 1] |= taken.next;
}

ClassBitmaps::Taken ClassBitmaps::add_east_asian(size_t word) {
    const uint64_t firsts = class_kernels().find_east_asian(text_.data() + begin_ + 64 * word) &
                            beyond_[word];  // not past the end of the window
    if (firsts == 0) return {};
    const Taken taken = spread(firsts, true);
    set(kLetterRun, word, taken);
    if (family_ == RunFamily::kMarks) set(kMarkedWordRun, word, taken);
    if (family_ == RunFamily::kCases) {
        set(kUpperSetRun, word, taken);
        set(kLowerSetRun, word, taken);
    }
    set(kContinuation, word, {taken.here & ~firsts, taken.next});
    return taken;
}

// Returns the query for the block of the character at an offset of the window. Its block is null unless the character
// is well-formed and has two or three bytes.
ClassBitmaps::BlockQuery ClassBitmaps::block_of(size_t offset) const {
    const uint8_t* bytes = text_.data() + begin_ + offset;
    const DecodedCodePoint decoded = decode_utf8(bytes, 0, text_.size() - begin_ - offset);
    if (decoded.length != 2 && decoded.length != 3) return {};
    return {{bytes[0], bytes[1]}, decoded.length, &char_block(family_, decoded.value / 64)};
}

// Does the work of add_character() for all characters of a block in a word. Requires that 66 bytes can be read.
ClassBitmaps::Taken ClassBitmaps::add_block(size_t word, const BlockQuery& query) {
    const CharBlock& block = *query.block;
    BlockMasks masks;
    class_kernels().match_block(text_.data() + begin_ + 64 * word, query.bytes, query.length, block.sets, masks);
    const bool has_three = query.length == 3;
    const uint64_t firsts = masks.all & beyond_[word];  // not past the end of the window
    if (firsts == 0) return {};
    for (size_t k = 0; k < block.sets.size; ++k) {
        set(block.classes[k], word, spread(masks.in_set[k] & firsts, has_three));
    }
    const Taken taken = spread(firsts, has_three);
    set(kContinuation, word, {taken.here & ~firsts, taken.next});
    return taken;
}

// Sets the bytes of the character at an offset of the window in the bitmaps of its classes; returns its length.
size_t ClassBitmaps::add_character(size_t offset) {
    const DecodedCodePoint decoded = decode_utf8(text_.data(), begin_ + offset, text_.size());
    const CharClass cls = class_of(decoded.value);
    uint64_t bits = (uint64_t{1} << decoded.length) - 1;
    const size_t word = offset / 64;
    const size_t shift = offset % 64;
    const auto set_bits = [&](RunClass run_class) {
        set(run_class, word, {bits << shift, bits >> 1 >> (63 - shift)});  // the second part crosses into the next word
    };
    if (cls & kLetter) {
        set_bits(kLetterRun);
    } else if (cls & kNumber) {
        set_bits(kNumberRun);
    } else {
        set_bits(cls & kSpace ? kSpaceRun : kSymbolRun);
    }
    for (const RunClass run_class : classes_of(family_)) {
        if (belongs(cls, decoded.value, run_class)) set_bits(run_class);
    }
    bits &= ~uint64_t{1};
    set_bits(kContinuation);
    return decoded.length;
}

}  // namespace fastcompress::pretokenizer
