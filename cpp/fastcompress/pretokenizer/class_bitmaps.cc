#include "fastcompress/pretokenizer/class_bitmaps.h"

#include <utility>

#include "fastcompress/pretokenizer/class_kernels.h"

namespace fastcompress::pretokenizer {

// The bitmaps that all patterns need and those of the family.
template <class Visit>
void ClassBitmaps::for_each_row(const Visit& visit) {
    for (int row = 0; row < kUpperSetRun; ++row) visit(mutable_row(static_cast<RunClass>(row)));
    const auto [first, last] = [&]() -> std::pair<int, int> {
        switch (family_) {
            case RunFamily::kCases: return {kUpperSetRun, kLowerSetRun};
            case RunFamily::kMarks: return {kMarkedWordRun, kUnmarkedSymbolRun};
            case RunFamily::kScripts: return {kHanKanaWordRun, kOtherPunctuationRun};
            case RunFamily::kBasic: break;
        }
        return {0, -1};
    }();
    for (int row = first; row <= last; ++row) visit(mutable_row(static_cast<RunClass>(row)));
}

void ClassBitmaps::fill(size_t begin) {
    begin_ = begin;
    end_ = std::min(begin + kWindowBytes, text_.size());
    if (end_ < text_.size()) {  // a character that does not fit is left to the next window; at most three bytes of it
        for (int back = 0; back < 3 && (text_[end_] & 0xc0u) == 0x80u; ++back) --end_;
    }
    const size_t size = end_ - begin;
    const size_t num_words = (size + 63) / 64;
    // What is looked at beyond the window is zero: three words at most where four are computed at once, and one after.
    for_each_row([&](uint64_t* bits) {
        bits[-1] = 0;
        std::fill_n(bits + num_words, (4 - num_words % 4) % 4 + 1, 0);
    });
    // The last bytes of the text are copied, so that as many may be read as there are bits.
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
    all_ascii_ = any_beyond == 0;
    if (!all_ascii_) fill_beyond_ascii(num_words);
}

// Sets the bits of ASCII characters, and clears those of the others, in every bitmap in use: num_words words of them,
// from `word` on.
void ClassBitmaps::classify_ascii(const uint8_t* bytes, size_t word, size_t num_words) {
    const auto at = [&](RunClass run_class) { return mutable_row(run_class) + word; };
    AsciiRows rows = {at(kLetterRun), at(kNumberRun),  at(kSpaceRun),  at(kSymbolRun), at(kNewlineRun),
                      at(kBlankRun),  at(kApostrophe), &beyond_[word], nullptr,        nullptr};
    if (family_ == RunFamily::kCases) {
        rows.upper = at(kUpperSetRun);
        rows.lower = at(kLowerSetRun);
    }
    kClassKernels.classify_ascii(bytes, num_words, rows);
    std::fill_n(at(kContinuation), num_words, 0);
    if (family_ == RunFamily::kMarks) {
        std::copy_n(rows.letter, num_words, at(kMarkedWordRun));
        std::copy_n(rows.symbol, num_words, at(kUnmarkedSymbolRun));
    } else if (family_ == RunFamily::kScripts) {
        std::fill_n(at(kHanKanaWordRun), num_words, 0);
        std::fill_n(at(kHanKanaPunctuationRun), num_words, 0);
        std::copy_n(rows.letter, num_words, at(kOtherWordRun));
        for (size_t i = 0; i < num_words; ++i) {
            at(kOtherPunctuationRun)[i] =
                kClassKernels.find_graphic(bytes + 64 * i) & ~(rows.letter[i] | rows.number[i]);
        }
    }
}

// Letters of the commonest scripts by vector code, the other characters one by one.
void ClassBitmaps::fill_beyond_ascii(size_t num_words) {
    LetterBits carried;     // what the letters at the end of one word reach into the next
    size_t decoded_to = 0;  // the table was asked for characters before this offset
    for (size_t word = 0; word < num_words; ++word) {
        const size_t offset = word * 64;
        uint64_t rest = beyond_[word];
        if (rest == 0) continue;
        LetterBits bits = carried;
        carried = {};
        if (begin_ + offset + 66 <= text_.size()) {
            LetterMasks masks;
            kClassKernels.classify_letters(text_.data() + begin_ + offset, masks);
            // Characters of the given first bytes, spread over their bytes.
            const auto spread = [&](uint64_t first2, uint64_t first3, uint64_t& here, uint64_t& next) {
                first2 &= beyond_[word];
                first3 &= beyond_[word];
                here |= first2 | first2 << 1 | first3 | first3 << 1 | first3 << 2;
                next = first2 >> 63 | first3 >> 63 | first3 >> 62;
            };
            const bool with_case = family_ == RunFamily::kCases;
            const uint64_t first2 = with_case ? masks.upper2 | masks.lower2 | masks.other2 : masks.letters2;
            const uint64_t first3 =
                family_ == RunFamily::kScripts ? 0 : masks.other3;  // Han and Hangul are not told apart
            spread(first2, first3, bits.all, carried.all);
            if (with_case) {
                spread(masks.upper2 | masks.other2, first3, bits.upper, carried.upper);
                spread(masks.lower2 | masks.other2, first3, bits.lower, carried.lower);
            }
            bits.continuation |= bits.all & ~(first2 | first3);
            carried.continuation = carried.all;
        }
        set_letters(word, bits);
        for (rest &= ~bits.all; rest != 0; rest &= rest - 1) {
            const size_t position = offset + static_cast<size_t>(std::countr_zero(rest));
            if (position >= decoded_to) decoded_to = position + add_character(position);
        }
    }
}

void ClassBitmaps::set_letters(size_t word, const LetterBits& bits) {
    mutable_row(kLetterRun)[word] |= bits.all;
    mutable_row(kContinuation)[word] |= bits.continuation;
    switch (family_) {
        case RunFamily::kBasic: return;
        case RunFamily::kCases:
            mutable_row(kUpperSetRun)[word] |= bits.upper;
            mutable_row(kLowerSetRun)[word] |= bits.lower;
            return;
        case RunFamily::kMarks: mutable_row(kMarkedWordRun)[word] |= bits.all; return;
        case RunFamily::kScripts: mutable_row(kOtherWordRun)[word] |= bits.all; return;
    }
}

// Sets the bytes of the character at an offset of the window in the bitmaps of its classes; returns its length.
size_t ClassBitmaps::add_character(size_t offset) {
    const DecodedCodePoint decoded = decode_utf8(text_.data(), begin_ + offset, text_.size());
    const CharClass cls = class_of(decoded.value);
    uint64_t bits = (uint64_t{1} << decoded.length) - 1;
    const size_t word = offset / 64;
    const size_t shift = offset % 64;
    const auto set = [&](RunClass run_class) {
        mutable_row(run_class)[word] |= bits << shift;
        mutable_row(run_class)[word + 1] |= bits >> 1 >> (63 - shift);  // what crosses into the next word
    };
    if (cls & kLetter) {
        set(kLetterRun);
    } else if (cls & kNumber) {
        set(kNumberRun);
    } else {
        set(cls & kSpace ? kSpaceRun : kSymbolRun);
    }
    const auto set_if_member = [&](RunClass run_class) {
        if (belongs(cls, decoded.value, run_class)) set(run_class);
    };
    switch (family_) {
        case RunFamily::kBasic: break;
        case RunFamily::kCases:
            set_if_member(kUpperSetRun);
            set_if_member(kLowerSetRun);
            break;
        case RunFamily::kMarks:
            set_if_member(kMarkedWordRun);
            set_if_member(kUnmarkedSymbolRun);
            break;
        case RunFamily::kScripts:
            set_if_member(kHanKanaWordRun);
            set_if_member(kHanKanaPunctuationRun);
            set_if_member(kOtherWordRun);
            set_if_member(kOtherPunctuationRun);
            break;
    }
    bits &= ~uint64_t{1};
    set(kContinuation);
    return decoded.length;
}

}  // namespace fastcompress::pretokenizer
