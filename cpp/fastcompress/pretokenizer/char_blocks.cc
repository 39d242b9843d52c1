#include "fastcompress/pretokenizer/char_blocks.h"

#include <atomic>
#include <initializer_list>
#include <memory>

namespace fastcompress::pretokenizer {
namespace {

constexpr uint32_t kBlockSize = 64;
constexpr uint32_t kNumBlocks = 0x10000 / kBlockSize;

CharBlock make_block(RunFamily family, uint32_t number) {
    CharBlock block{};
    const auto add = [&](RunClass run_class) {
        const uint32_t k = block.sets.size;
        LastByteSet set{};
        for (uint32_t i = 0; i < kBlockSize; ++i) {
            const uint32_t code_point = number * kBlockSize + i;
            if (!belongs(class_of(code_point), code_point, run_class)) continue;
            set[i % 16] |= static_cast<uint8_t>(1 << i / 16);
            block.sets.sets_of[i] |= static_cast<uint8_t>(1 << k);
        }
        if (set == LastByteSet{}) return;
        block.classes[k] = run_class;
        block.sets.sets[k] = set;
        ++block.sets.size;
    };
    for (const RunClass run_class : {kLetterRun, kNumberRun, kSpaceRun, kSymbolRun}) add(run_class);
    for (const RunClass run_class : classes_of(family)) add(run_class);
    return block;
}

}  // namespace

const CharBlock& char_block(RunFamily family, uint32_t number) {
    static std::array<std::array<std::atomic<const CharBlock*>, kNumBlocks>, kNumRunFamilies> blocks;
    std::atomic<const CharBlock*>& slot = blocks[static_cast<size_t>(family)][number];
    const CharBlock* known = slot.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto made = std::make_unique<const CharBlock>(make_block(family, number));
    // If another thread was faster, its block stays.
    if (slot.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return *made.release();
    return *known;
}

}  // namespace fastcompress::pretokenizer
