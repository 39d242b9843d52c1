// Any bytes through every pattern: pretokens are non-empty and their concatenation is the text.
#include <cstdlib>

#include "fastcompress/pretokenizer/pretokenizer.h"

using namespace fastcompress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    for (const auto& info : pretokenizer::patterns()) {
        const uint8_t* expected = data;
        pretokenizer::for_each_pretoken(info.pattern, Bytes(data, size), [&](Bytes pretoken) {
            if (pretoken.empty() || pretoken.data() != expected) std::abort();
            expected += pretoken.size();
        });
        if (expected != data + size) std::abort();
    }
    return 0;
}
