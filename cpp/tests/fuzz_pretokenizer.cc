// Any bytes through every pattern: pretokens are non-empty, their concatenation is the text, and they are those that the
// pattern's scanner finds alone.
#include <cstdlib>

#include "fastcompress/pretokenizer/pretokenizer.h"
#include "scan_plainly.h"

using namespace fastcompress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    for (const auto& info : pretokenizer::patterns()) {
        const std::vector<size_t> ends = testing::scan_plainly(info.pattern, Bytes(data, size));
        size_t count = 0;
        const uint8_t* expected = data;
        pretokenizer::for_each_pretoken(info.pattern, Bytes(data, size), [&](Bytes pretoken) {
            if (pretoken.empty() || pretoken.data() != expected) std::abort();
            expected += pretoken.size();
            if (count == ends.size() || expected != data + ends[count++]) std::abort();
        });
        if (expected != data + size || count != ends.size()) std::abort();
    }
    return 0;
}
