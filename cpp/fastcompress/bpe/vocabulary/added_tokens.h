// Added tokens, which take no part in merges: a text is searched for their texts before it is split into pretokens.
// Special tokens are the best-known kind.
//
// The semantics are those of the "added tokens" of `tokenizers` 0.23. The leftmost occurrence is taken, and the longest
// of those that begin at the same position; then the search continues after it. An occurrence of a single_word token
// next to a word character is ordinary text, and so is a special token that the caller does not allow. Tokens without
// the flag `normalized` are searched for in the text as it is; the others afterwards, in the normalized rest.
//   tokens "<|a|>" and "<|a|>b"    text "x<|a|>bc"   ->   text "x", token "<|a|>b", text "c"
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/common/bytes.h"

namespace fastcompress::bpe {

enum AddedTokenFlag : uint8_t {
    kSpecial = 1 << 0,       // a token only if the caller allows it
    kNormalized = 1 << 1,    // searched for in the normalized text, in its own normalized form
    kLstrip = 1 << 2,        // takes the white space before it
    kRstrip = 1 << 3,        // takes the white space after it
    kSingleWord = 1 << 4,    // no word character (\w) may stand next to it
    kSharesId = 1 << 5,      // it has the id of an ordinary token, and the id decodes to the bytes of that token
    kNeverMatched = 1 << 6,  // its id can be decoded, but no text encodes to it
};
inline constexpr uint8_t kAllAddedTokenFlags = (1 << 7) - 1;

struct AddedToken {
    std::string text;
    TokenId id;
    uint8_t flags = kSpecial;
};

// What an occurrence of an added token becomes.
enum class Treatment : uint8_t {
    kToken,    // its id
    kText,     // ordinary text, which is not searched for other added tokens
    kIgnored,  // the token is not searched for
};

// Finds occurrences of a set of strings, with a trie. Immutable.
class AddedTokenMatcher {
  public:
    struct Pattern {
        std::string text;  // not empty, and different from all others
        uint32_t index;    // index of the token in `treatments`
        uint8_t flags;
    };
    explicit AddedTokenMatcher(std::vector<Pattern> patterns);

    struct Match {
        size_t begin;  // the size of the text if there is no match
        size_t end;
        uint32_t pattern;  // index into patterns()
    };
    // Returns the leftmost longest occurrence from `begin` on of a token that is not kIgnored. O(text.size() - begin),
    // at worst times the length of the longest token.
    Match find(Bytes text, size_t begin, std::span<const Treatment> treatments) const;

    const std::vector<Pattern>& patterns() const { return patterns_; }

    // Splits a text: calls on_text(Bytes) for stretches of ordinary text, which are not empty, and on_token(index) for
    // added tokens. (A token may begin in the white space that the token before it took. What remains of that white
    // space after it is text again, as in `tokenizers`.)
    template <class OnText, class OnToken>
    void cut(Bytes text, std::span<const Treatment> treatments, const OnText& on_text, const OnToken& on_token) const;

  private:
    static constexpr uint32_t kNone = 0xffffffffu;
    struct Node {
        uint32_t first_child = 0;  // children are adjacent, sorted by byte
        uint16_t num_children = 0;
        uint8_t byte = 0;
        uint32_t pattern = kNone;  // the pattern that ends here
    };
    void add_nodes();
    uint32_t child(uint32_t node, uint8_t byte) const;
    size_t skip_to_candidate(Bytes text, size_t begin) const;
    size_t skip_blocks(Bytes text, size_t begin) const;

    std::vector<Pattern> patterns_;  // sorted by text
    std::vector<Node> nodes_;        // nodes_[0] is the root
    std::array<uint32_t, 256> roots_;
    std::vector<bool> begins_;  // by two bytes: whether some token begins with them
    struct Beginning {
        uint8_t first;
        uint8_t second;
        bool any_second;  // for a token of one byte
    };
    static constexpr size_t kMaxBeginnings = 8;
    std::vector<Beginning> beginnings_;  // the same as a list; empty if there are more than kMaxBeginnings
    int rare_first_byte_ = -1;           // the first byte that all tokens share, if it is not a space
};

// Whether \w matches the last character of a text, or the first.
bool ends_with_word(Bytes text);
bool begins_with_word(Bytes text);
// Where the white space at the end of a text begins, and where the white space at its beginning ends.
size_t trailing_space_begin(Bytes text);
size_t leading_space_end(Bytes text);

template <class OnText, class OnToken>
void AddedTokenMatcher::cut(Bytes text, std::span<const Treatment> treatments, const OnText& on_text,
                            const OnToken& on_token) const {
    size_t done = 0;
    size_t space_end = 0;  // end of the white space that the last kRstrip token took, which is not scanned again
    for (Match match = find(text, 0, treatments); match.begin < text.size();
         match = find(text, match.end, treatments)) {
        const Pattern& pattern = patterns_[match.pattern];
        if (treatments[pattern.index] == Treatment::kText) continue;
        if ((pattern.flags & kSingleWord) &&
            (ends_with_word(text.first(match.begin)) || begins_with_word(text.subspan(match.end)))) {
            continue;
        }
        size_t begin = match.begin;
        size_t end = match.end;
        if (pattern.flags & kLstrip) {
            begin = std::max(begin, done);
            begin = done + trailing_space_begin(text.subspan(done, begin - done));
        }
        if (pattern.flags & kRstrip) {
            if (end >= space_end) space_end = end + leading_space_end(text.subspan(end));
            end = space_end;
        }
        if (begin >= end) continue;  // a token before has taken all of this white space
        if (done < begin) on_text(text.subspan(done, begin - done));
        on_token(pattern.index);
        done = end;
    }
    if (done < text.size()) on_text(text.subspan(done));
}

}  // namespace fastcompress::bpe
