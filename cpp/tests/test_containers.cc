// The arrays of common/ and bpe/: moving, growing, sizes that no memory has. And what a static object finds when it hashes
// before main() begins.
#include <new>
#include <utility>

#include "check.h"
#include "fastcompress/bpe/vocabulary/token_buffer.h"
#include "fastcompress/common/growing_array.h"
#include "fastcompress/common/hash.h"
#include "fastcompress/common/huge_array.h"
#include "fastcompress/pretokenizer/class_kernels.h"

namespace fastcompress {
namespace {

// Dynamic initialization on purpose: this may run before any other file's globals are set.
const uint64_t kEarlyHash = hash_bytes(as_bytes("early"));
const auto kEarlyKernel = pretokenizer::class_kernels().find_range;

void test_static_objects() {
    CHECK_EQ(kEarlyHash, hash_bytes(as_bytes("early")));
    CHECK(kEarlyKernel != nullptr && kEarlyKernel == pretokenizer::class_kernels().find_range);
}

void test_moves() {
    GrowingArray<int> array;
    array.push_back(7);
    GrowingArray<int> other = std::move(array);
    CHECK(other.size() == 1 && other[0] == 7);
    CHECK(array.size() == 0 && array.capacity() == 0);  // NOLINT: a moved-from array is empty
    array.push_back(8);
    CHECK(array.size() == 1 && array[0] == 8);
    array.insert_zeros(2);
    CHECK(array.size() == 3 && array[0] == 0 && array[1] == 0 && array[2] == 8);
    array.erase_front(2);
    CHECK(array.size() == 1 && array[0] == 8);
    array = std::move(other);
    CHECK(array.size() == 1 && array[0] == 7 && other.size() == 0 && other.capacity() == 0);

    bpe::TokenBuffer tokens(3);
    tokens.append(std::vector<bpe::TokenId>{1, 2});
    bpe::TokenBuffer taken = std::move(tokens);
    CHECK(taken.size() == 2 && tokens.size() == 0 && tokens.tokens().empty());
    tokens.append(std::vector<bpe::TokenId>{5});
    taken = std::move(tokens);
    CHECK(taken.size() == 1 && taken.tokens()[0] == 5 && tokens.size() == 0);

    for (const size_t size : {size_t{100}, size_t{3} << 20}) {  // from calloc, and mapped
        HugeArray<uint8_t> bytes(size);
        bytes[size - 1] = 9;
        HugeArray<uint8_t> moved = std::move(bytes);
        CHECK(moved.size() == size && moved[size - 1] == 9 && bytes.size() == 0);
        bytes = HugeArray<uint8_t>(size);
        CHECK(bytes.size() == size && bytes[0] == 0 && bytes[size - 1] == 0);
    }
}

template <class Body>
bool runs_out_of_memory(const Body& body) {
    try {
        body();
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

void test_impossible_sizes() {
    GrowingArray<uint64_t> array;
    array.push_back(1);
    CHECK(runs_out_of_memory([&] { array.extend(SIZE_MAX / 16); }));
    CHECK(runs_out_of_memory([&] { array.extend(SIZE_MAX); }));
    CHECK(array.size() == 1 && array[0] == 1);
    CHECK(runs_out_of_memory([] { HugeArray<uint64_t>(SIZE_MAX / 4); }));
}

}  // namespace
}  // namespace fastcompress

int main() {
    using namespace fastcompress;
    test_static_objects();
    test_moves();
    test_impossible_sizes();
    return testing::report();
}
