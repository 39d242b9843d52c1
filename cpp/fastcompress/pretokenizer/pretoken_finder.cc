#include "fastcompress/pretokenizer/pretoken_finder.h"

#include "fastcompress/pretokenizer/class_kernels.h"

namespace fastcompress::pretokenizer {
Method method_of(Pattern pattern) {
    using enum BoundaryRules::WordRule;
    switch (pattern) {
        case Pattern::kGpt2: return {RunFamily::kBasic, next_gpt2, true, {kSpaceBefore, 0, false}};
        case Pattern::kCl100k: return {RunFamily::kBasic, next_cl100k, true, {kAnyBefore, 3, true}};
        case Pattern::kO200k: return {RunFamily::kCases, next_o200k, true, {kCasedWords, 3, true}};
        case Pattern::kLlama3: return {RunFamily::kBasic, next_llama3, true, {kAnyBefore, 3, true}};
        case Pattern::kQwen2: return {RunFamily::kBasic, next_qwen2, true, {kAnyBefore, 1, true}};
        case Pattern::kDeepSeekV3: return {RunFamily::kScripts, next_deepseek_v3, false, {}};
        case Pattern::kStrict: return {RunFamily::kMarks, next_strict, false, {}};
        case Pattern::kWhitespace: return {RunFamily::kBasic, next_whitespace, false, {}};
        case Pattern::kWords: return {RunFamily::kBytes, next_words, true, {kKinds, 0, false}};
        case Pattern::kNone: break;
    }
    return {RunFamily::kBasic, nullptr, false, {}};
}

namespace {

bool bit_at(const uint64_t* words, size_t offset) {
    return words[offset / 64] >> offset % 64 & 1;
}

// Returns the first set bit in [begin, end), or `end`.
size_t first_bit(const uint64_t* words, size_t begin, size_t end) {
    if (begin >= end) return end;
    size_t word = begin / 64;
    uint64_t bits = words[word] & (~uint64_t{0} << begin % 64);
    while (bits == 0) {
        if (++word * 64 >= end) return end;
        bits = words[word];
    }
    return std::min(end, word * 64 + static_cast<size_t>(std::countr_zero(bits)));
}

}  // namespace

PretokenFinder::PretokenFinder(Pattern pattern, Bytes text)
    : text_(text),
      method_(method_of(pattern)),
      bitmaps_(method_.scanner ? text : Bytes(), method_.family),
      reader_(text, bitmaps_),
      bits_(method_.rules) {}

bool PretokenFinder::next() {
    begin_ = end_;
    count_ = 0;
    if (begin_ == text_.size()) return false;
    if (!method_.scanner) {
        add(text_.size());
    } else if (method_.has_bits) {
        find_by_bits();
    } else {
        find_by_scanner();
    }
    return true;
}

void PretokenFinder::add(size_t end) {
    ends_[count_++] = static_cast<uint32_t>(end - begin_);
    end_ = end;
}

void PretokenFinder::find_by_scanner() {
    while (end_ < text_.size() && end_ - begin_ < ClassBitmaps::kWindowBytes) {
        bitmaps_.move_to(end_);
        add(method_.scanner(reader_, end_));
    }
}

void PretokenFinder::find_by_bits() {
    bitmaps_.begin_at(begin_);
    bits_.find(bitmaps_);
    const size_t limit = bits_.limit();
    size_t done = 0;  // pretokens up to this offset are found
    while (bits_.has_uncertain()) {
        const size_t uncertain = first_bit(bits_.uncertain(), done, limit);
        if (uncertain == limit) break;
        copy_boundaries(done + 1, uncertain);
        done = scan_past(uncertain, limit);
        if (done >= limit) return;
    }
    copy_boundaries(done + 1, limit);
    if (bitmaps_.end() == text_.size()) {
        add(text_.size());
    } else if (count_ == 0) {  // a pretoken longer than the window
        add(method_.scanner(reader_, begin_));
    }
}

// Lets the scanner find pretokens until one ends after `uncertain` at a boundary of the bitmap, or at or after the
// limit.
size_t PretokenFinder::scan_past(size_t uncertain, size_t limit) {
    size_t offset;
    do {
        add(method_.scanner(reader_, end_));
        offset = end_ - begin_;
    } while (offset < limit && (offset <= uncertain || !bit_at(bits_.boundaries(), offset)));
    return offset;
}

// Adds the boundaries in [begin, end) as ends of pretokens.
void PretokenFinder::copy_boundaries(size_t begin, size_t end) {
    if (begin >= end) return;
    count_ += class_kernels().list_bits(bits_.boundaries(), begin, end, ends_.data() + count_);
    if (count_ > 0) end_ = begin_ + ends_[count_ - 1];
}

}  // namespace fastcompress::pretokenizer
