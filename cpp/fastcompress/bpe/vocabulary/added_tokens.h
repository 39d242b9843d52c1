// Tokens that stand beside the merges: their texts are sought in a text before it is cut into pretokens. Special
// tokens are the best known of them.
//
// The semantics are those of `tokenizers` 0.23 (its "added tokens"): of the tokens that occur, the leftmost is taken,
// of those that begin at one place the longest; then the search goes on behind it. A match of a single_word token
// beside a word character is ordinary text, and so is that of a special token that the caller does not allow. Tokens
// not `normalized` are sought in the text as it is, the others afterwards in the normalized rest.
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
    kSpecial = 1 << 0,       // a token only where the caller allows it
    kNormalized = 1 << 1,    // sought in the normalized text, by its own normalized form
    kLstrip = 1 << 2,        // takes the white space before it
    kRstrip = 1 << 3,        // takes the white space after it
    kSingleWord = 1 << 4,    // no word character (\w) may stand beside it
    kSharesId = 1 << 5,      // its id is that of an ordinary token too, and decodes to that token's bytes
    kNeverMatched = 1 << 6,  // its id can be decoded, but no text encodes to it
};
inline constexpr uint8_t kAllAddedTokenFlags = (1 << 7) - 1;

struct AddedToken {
    std::string text;
    TokenId id;
    uint8_t flags = kSpecial;
};

// What an added token that was found in a text becomes.
enum class Treatment : uint8_t {
    kToken,    // its id
    kText,     // ordinary text, in which no other added token is sought
    kIgnored,  // it is not sought at all
};

// Where one of a set of strings occurs: a trie. Immutable.
class AddedTokenMatcher {
  public:
    struct Pattern {
        std::string text;  // not empty; distinct
        uint32_t index;    // of the token, for `treatments`
        uint8_t flags;
    };
    explicit AddedTokenMatcher(std::vector<Pattern> patterns);

    struct Match {
        size_t begin;  // == the text's size: none
        size_t end;
        uint32_t pattern;  // index into patterns()
    };
    // The leftmost longest occurrence from `begin` on of a token that is not kIgnored. O(text.size() - begin), times
    // the length of the longest token in the worst case.
    Match find(Bytes text, size_t begin, std::span<const Treatment> treatments) const;

    const std::vector<Pattern>& patterns() const { return patterns_; }

    // Cuts a text: calls on_text(Bytes) for ordinary stretches, none empty, and on_token(index) for added tokens. (A
    // token found in the white space that the one before it took may overlap it, and what it leaves of that is text
    // again: as in `tokenizers`.)
    template <class OnText, class OnToken>
    void cut(Bytes text, std::span<const Treatment> treatments, const OnText& on_text, const OnToken& on_token) const;

  private:
    static constexpr uint32_t kNone = 0xffffffffu;
    struct Node {
        uint32_t first_child = 0;  // children stand side by side, by byte
        uint16_t num_children = 0;
        uint8_t byte = 0;
        uint32_t pattern = kNone;  // the one that ends here
    };
    void add_nodes();
    uint32_t child(uint32_t node, uint8_t byte) const;
    size_t skip_to_candidate(Bytes text, size_t begin) const;
    size_t skip_blocks(Bytes text, size_t begin) const;

    std::vector<Pattern> patterns_;  // by text
    std::vector<Node> nodes_;        // nodes_[0] is the root
    std::array<uint32_t, 256> roots_;
    std::vector<bool> begins_;  // by the first two bytes: a token may begin so
    struct Beginning {
        uint8_t first;
        uint8_t second;
        bool any_second;  // a token of one byte
    };
    static constexpr size_t kMaxBeginnings = 8;
    std::vector<Beginning> beginnings_;  // the same as a list; empty if there are more
    int rare_first_byte_ = -1;           // that of all tokens, if there is one and it is not a space
};

// Whether \w matches the last character of a text, or the first one.
bool ends_with_word(Bytes text);
bool begins_with_word(Bytes text);
// Where the white space at the end of a text begins, and where that at its beginning ends.
size_t trailing_space_begin(Bytes text);
size_t leading_space_end(Bytes text);

template <class OnText, class OnToken>
void AddedTokenMatcher::cut(Bytes text, std::span<const Treatment> treatments, const OnText& on_text,
                            const OnToken& on_token) const {
    size_t done = 0;
    size_t space_end = 0;  // of the white space that the last kRstrip token took: never scanned twice
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
        if (begin >= end) continue;  // white space that a token before has taken, all of it
        if (done < begin) on_text(text.subspan(done, begin - done));
        on_token(pattern.index);
        done = end;
    }
    if (done < text.size()) on_text(text.subspan(done));
}

}  // namespace fastcompress::bpe
