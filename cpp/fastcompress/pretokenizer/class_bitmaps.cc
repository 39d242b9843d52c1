#include "fastcompress/pretokenizer/class_bitmaps.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define FASTCOMPRESS_SSE2 1
#elif defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>
#define FASTCOMPRESS_NEON 1
#endif

namespace fastcompress::pretokenizer {

// Bit i of each mask says whether byte i of 64 is an ASCII character of the class.
struct AsciiMasks {
    uint64_t upper = 0, lower = 0, number = 0, space = 0, newline = 0, blank = 0, apostrophe = 0;
    uint64_t graphic = 0;  // ! to ~: letters, numbers and what is kPunctuation
    uint64_t beyond = 0;   // not ASCII
};

namespace {

#if defined(FASTCOMPRESS_SSE2)

uint64_t mask_of(__m128i matches, int shift) {
    return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(matches))) << shift;
}

// first <= byte <= last, by one unsigned comparison: byte - first <= last - first.
__m128i in_range(__m128i bytes, char first, char last) {
    const __m128i offset = _mm_sub_epi8(bytes, _mm_set1_epi8(first));
    const __m128i limit = _mm_set1_epi8(static_cast<char>(last - first));
    return _mm_cmpeq_epi8(_mm_min_epu8(offset, limit), offset);
}

AsciiMasks classify(const uint8_t* bytes) {
    AsciiMasks masks;
    for (int i = 0; i < 64; i += 16) {
        const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
        masks.upper |= mask_of(in_range(v, 'A', 'Z'), i);
        masks.lower |= mask_of(in_range(v, 'a', 'z'), i);
        masks.number |= mask_of(in_range(v, '0', '9'), i);
        const __m128i blank = _mm_cmpeq_epi8(v, _mm_set1_epi8(' '));
        masks.blank |= mask_of(blank, i);
        masks.space |= mask_of(_mm_or_si128(in_range(v, '\t', '\r'), blank), i);
        masks.newline |=
            mask_of(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\n')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\r'))), i);
        masks.apostrophe |= mask_of(_mm_cmpeq_epi8(v, _mm_set1_epi8('\'')), i);
        masks.graphic |= mask_of(in_range(v, '!', '~'), i);
        masks.beyond |= mask_of(v, i);
    }
    return masks;
}

#elif defined(FASTCOMPRESS_NEON)

uint64_t mask_of(uint8x16_t matches, int shift) {
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bits = vandq_u8(matches, bit);
    const uint64_t low = vaddv_u8(vget_low_u8(bits));
    const uint64_t high = vaddv_u8(vget_high_u8(bits));
    return (low | high << 8) << shift;
}

uint8x16_t in_range(uint8x16_t bytes, uint8_t first, uint8_t last) {
    return vcleq_u8(vsubq_u8(bytes, vdupq_n_u8(first)), vdupq_n_u8(static_cast<uint8_t>(last - first)));
}

AsciiMasks classify(const uint8_t* bytes) {
    AsciiMasks masks;
    for (int i = 0; i < 64; i += 16) {
        const uint8x16_t v = vld1q_u8(bytes + i);
        masks.upper |= mask_of(in_range(v, 'A', 'Z'), i);
        masks.lower |= mask_of(in_range(v, 'a', 'z'), i);
        masks.number |= mask_of(in_range(v, '0', '9'), i);
        const uint8x16_t blank = vceqq_u8(v, vdupq_n_u8(' '));
        masks.blank |= mask_of(blank, i);
        masks.space |= mask_of(vorrq_u8(in_range(v, '\t', '\r'), blank), i);
        masks.newline |= mask_of(vorrq_u8(vceqq_u8(v, vdupq_n_u8('\n')), vceqq_u8(v, vdupq_n_u8('\r'))), i);
        masks.apostrophe |= mask_of(vceqq_u8(v, vdupq_n_u8('\'')), i);
        masks.graphic |= mask_of(in_range(v, '!', '~'), i);
        masks.beyond |= mask_of(vcgeq_u8(v, vdupq_n_u8(0x80)), i);
    }
    return masks;
}

#else

AsciiMasks classify(const uint8_t* bytes) {
    AsciiMasks masks;
    for (int i = 0; i < 64; ++i) {
        const uint64_t bit = uint64_t{1} << i;
        if (bytes[i] >= 0x80) {
            masks.beyond |= bit;
            continue;
        }
        const CharClass cls = kClassBlocks[bytes[i]];
        if (cls & kUpper) masks.upper |= bit;
        if (cls & kLower) masks.lower |= bit;
        if (cls & kNumber) masks.number |= bit;
        if (cls & kSpace) masks.space |= bit;
        if (cls & kNewline) masks.newline |= bit;
        if (cls & (kLetter | kNumber | kPunctuation)) masks.graphic |= bit;
        if (bytes[i] == ' ') masks.blank |= bit;
        if (bytes[i] == '\'') masks.apostrophe |= bit;
    }
    return masks;
}

#endif

}  // namespace

void ClassBitmaps::fill(size_t begin) {
    begin_ = begin;
    end_ = std::min(begin + kWindowBytes, text_.size());
    if (end_ <
        text_.size()) {  // a character that does not fit is left to the next window; at most three bytes of it are
        for (int back = 0; back < 3 && (text_[end_] & 0xc0u) == 0x80u; ++back) --end_;
    }
    const size_t size = end_ - begin;
    size_t decoded_to = 0;  // characters past ASCII before this offset are in the bitmaps
    const size_t num_words = (size + 63) / 64;
    for (auto& bits : rows_) bits[0] = bits[num_words + 1] = bits[num_words + 2] = 0;
    all_ascii_ = true;
    for (size_t word = 0; word < num_words; ++word) {
        const size_t offset = word * 64;
        AsciiMasks masks;
        if (begin + offset + 64 <= text_.size()) {
            masks = classify(text_.data() + begin + offset);
        } else {
            uint8_t padded[64] = {};
            std::copy(text_.begin() + static_cast<std::ptrdiff_t>(begin + offset), text_.end(), padded);
            masks = classify(padded);
        }
        const uint64_t valid = size - offset < 64 ? (uint64_t{1} << (size - offset)) - 1 : ~uint64_t{0};
        set_ascii(word, masks, valid);
        beyond_[word] = masks.beyond & valid;
        all_ascii_ &= beyond_[word] == 0;
    }
    if (all_ascii_) return;
    for (size_t word = 0; word < num_words; ++word) {
        for (uint64_t left = beyond_[word]; left != 0; left &= left - 1) {
            const size_t offset = word * 64 + static_cast<size_t>(std::countr_zero(left));
            if (offset >= decoded_to) decoded_to = offset + add_character(offset);
        }
    }
}

// Sets the bits of 64 bytes' ASCII characters, and clears those of the others, in every bitmap in use.
void ClassBitmaps::set_ascii(size_t word, const AsciiMasks& masks, uint64_t valid) {
    const uint64_t letter = masks.upper | masks.lower;
    row(kLetterRun)[word] = letter & valid;
    row(kNumberRun)[word] = masks.number & valid;
    row(kSpaceRun)[word] = masks.space & valid;
    row(kSymbolRun)[word] = ~(letter | masks.number | masks.space | masks.beyond) & valid;
    row(kNewlineRun)[word] = masks.newline & valid;
    row(kBlankRun)[word] = masks.blank & valid;
    row(kApostrophe)[word] = masks.apostrophe & valid;
    row(kContinuation)[word] = 0;
    switch (family_) {
        case RunFamily::kBasic: return;
        case RunFamily::kCases:
            row(kUpperSetRun)[word] = masks.upper & valid;
            row(kLowerSetRun)[word] = masks.lower & valid;
            return;
        case RunFamily::kMarks:
            row(kMarkedWordRun)[word] = letter & valid;
            row(kUnmarkedSymbolRun)[word] = row(kSymbolRun)[word];
            return;
        case RunFamily::kScripts:
            row(kHanKanaWordRun)[word] = row(kHanKanaPunctuationRun)[word] = 0;
            row(kOtherWordRun)[word] = letter & valid;
            row(kOtherPunctuationRun)[word] = masks.graphic & ~(letter | masks.number) & valid;
            return;
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
        row(run_class)[word] |= bits << shift;
        row(run_class)[word + 1] |= bits >> 1 >> (63 - shift);  // what crosses into the next word
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
