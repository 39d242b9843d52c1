#include "fastcompress/pretokenizer/text_cut.h"

#include <algorithm>

#include "fastcompress/unicode/char_class.h"

namespace fastcompress::pretokenizer {

using namespace unicode;
namespace {

bool is_ascii_space(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// Requires 0 < end <= text.size().
bool is_letter_or_number_before(Bytes text, size_t end) {
    size_t begin = end - 1;
    while (begin > 0 && end - begin < 4 && (text[begin] & 0xc0u) == 0x80u) --begin;
    const DecodedCodePoint decoded = decode_utf8(text.data(), begin, end);
    return begin + decoded.length == end && (class_of(decoded.value) & (kLetter | kNumber)) != 0;
}

}  // namespace

size_t next_cut(Bytes text, size_t from) {
    for (size_t i = std::max<size_t>(1, from); i < text.size(); ++i) {
        if (is_ascii_space(text[i]) && is_letter_or_number_before(text, i)) return i;
    }
    return text.size();
}

size_t last_cut(Bytes text) {
    for (size_t i = text.size(); i-- > 1;) {
        if (is_ascii_space(text[i]) && is_letter_or_number_before(text, i)) return i;
    }
    return 0;
}

}  // namespace fastcompress::pretokenizer
