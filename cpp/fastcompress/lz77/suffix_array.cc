// A suffix is of type S if it sorts before the suffix that begins one position later, else of type L. An LMS position
// is a position of type S after one of type L. Once the LMS suffixes are sorted, two scans sort ("induce") all others:
// a scan in ascending order finds each suffix of type L when it meets the suffix one position later, and a scan in
// descending order finds those of type S. The same two scans, started with the LMS positions in any order, sort the
// substrings between LMS positions. Equal substrings get equal names, and the names form a text of at most half the
// length, whose suffix array is the order of the LMS suffixes.
//   banana        types L S L S L L, LMS positions 1 and 3, substrings "ana" and, sorted before it, "ana$"
#include "fastcompress/lz77/suffix_array.h"

#include <algorithm>
#include <numeric>

namespace fastcompress::lz77 {
namespace {

template <class Symbol>
class Inducer {
  public:
    Inducer(const Symbol* text, int32_t size, int32_t num_symbols)
        : text_(text), size_(size), is_s_(static_cast<size_t>(size)), bucket_ends_(static_cast<size_t>(num_symbols)) {
        // The end of the text sorts first, so the last suffix is of type L.
        for (int32_t i = size - 2; i >= 0; --i) {
            const size_t k = static_cast<size_t>(i);
            is_s_[k] = text[k] != text[k + 1] ? text[k] < text[k + 1] : is_s_[k + 1];
        }
        for (int32_t i = 0; i < size; ++i) ++bucket_ends_[symbol(i)];
        std::partial_sum(bucket_ends_.begin(), bucket_ends_.end(), bucket_ends_.begin());
    }
    bool is_lms(int32_t i) const {
        return i > 0 && is_s_[static_cast<size_t>(i)] && !is_s_[static_cast<size_t>(i) - 1];
    }

    // Sorts all suffixes if `lms` is sorted by suffix; otherwise only the substrings between LMS positions.
    void induce(const std::vector<int32_t>& lms, std::vector<int32_t>& suffixes) const {
        suffixes.assign(static_cast<size_t>(size_), -1);
        std::vector<int32_t> next = bucket_ends_;
        for (size_t k = lms.size(); k-- > 0;) put(suffixes, --next[symbol(lms[k])], lms[k]);
        std::copy(bucket_ends_.begin(), bucket_ends_.end() - 1, next.begin() + 1);  // the beginnings of buckets
        next[0] = 0;
        put(suffixes, next[symbol(size_ - 1)]++, size_ - 1);  // induced by the end of the text
        for (size_t r = 0; r < suffixes.size(); ++r) {
            const int32_t i = suffixes[r] - 1;
            if (i >= 0 && !is_s_[static_cast<size_t>(i)]) put(suffixes, next[symbol(i)]++, i);
        }
        next = bucket_ends_;
        for (size_t r = suffixes.size(); r-- > 0;) {
            const int32_t i = suffixes[r] - 1;
            if (i >= 0 && is_s_[static_cast<size_t>(i)]) put(suffixes, --next[symbol(i)], i);
        }
    }
    // Whether the substrings from two LMS positions up to the next LMS position, inclusive, are equal.
    bool equal_substrings(int32_t a, int32_t b) const {
        for (int32_t k = 0;; ++k) {
            if (a + k == size_ || b + k == size_) return false;  // one of them ends with the text
            const bool ends = k > 0 && is_lms(a + k);
            if (symbol(a + k) != symbol(b + k) || (k > 0 && ends != is_lms(b + k))) return false;
            if (ends) return true;
        }
    }

  private:
    size_t symbol(int32_t i) const { return static_cast<size_t>(text_[i]); }
    static void put(std::vector<int32_t>& suffixes, int32_t rank, int32_t i) {
        suffixes[static_cast<size_t>(rank)] = i;
    }

    const Symbol* text_;
    int32_t size_;
    std::vector<bool> is_s_;
    std::vector<int32_t> bucket_ends_;
};

template <class Symbol>
std::vector<int32_t> sort_suffixes(const Symbol* text, int32_t size, int32_t num_symbols) {
    if (size == 0) return {};
    if (size == 1) return {0};
    const Inducer<Symbol> inducer(text, size, num_symbols);
    std::vector<int32_t> lms;
    std::vector<int32_t> number(static_cast<size_t>(size), -1);  // the index of each LMS position in `lms`
    for (int32_t i = 1; i < size; ++i) {
        if (!inducer.is_lms(i)) continue;
        number[static_cast<size_t>(i)] = static_cast<int32_t>(lms.size());
        lms.push_back(i);
    }
    std::vector<int32_t> suffixes;
    inducer.induce(lms, suffixes);
    if (lms.size() <= 1) return suffixes;

    std::vector<int32_t> names(lms.size());
    int32_t num_names = 0;
    int32_t before = -1;
    for (const int32_t i : suffixes) {
        if (!inducer.is_lms(i)) continue;
        if (before >= 0 && !inducer.equal_substrings(before, i)) ++num_names;
        names[static_cast<size_t>(number[static_cast<size_t>(i)])] = num_names;
        before = i;
    }
    ++num_names;
    std::vector<int32_t> sorted(lms.size());
    if (static_cast<size_t>(num_names) < lms.size()) {
        const std::vector<int32_t> order = sort_suffixes(names.data(), static_cast<int32_t>(names.size()), num_names);
        for (size_t r = 0; r < order.size(); ++r) sorted[r] = lms[static_cast<size_t>(order[r])];
    } else {
        for (size_t k = 0; k < lms.size(); ++k) sorted[static_cast<size_t>(names[k])] = lms[k];
    }
    inducer.induce(sorted, suffixes);
    return suffixes;
}

}  // namespace

std::vector<int32_t> suffix_array(Bytes text) {
    return sort_suffixes(text.data(), static_cast<int32_t>(text.size()), 256);
}

std::vector<int32_t> lcp_array(Bytes text, const std::vector<int32_t>& suffixes, const std::vector<int32_t>& ranks) {
    std::vector<int32_t> lcp(suffixes.size());
    size_t length = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto rank = static_cast<size_t>(ranks[i]);
        if (rank == 0) {
            length = 0;
            continue;
        }
        const auto j = static_cast<size_t>(suffixes[rank - 1]);
        while (std::max(i, j) + length < text.size() && text[i + length] == text[j + length]) ++length;
        lcp[rank] = static_cast<int32_t>(length);
        if (length > 0) --length;
    }
    return lcp;
}

}  // namespace fastcompress::lz77
