// The methods. To add one, write a BlockCoder and a line in block_coder().
#include "fastcompress/archive/block_coder.h"

#include "fastcompress/archive/cm_codec.h"
#include "fastcompress/archive/lz_codec.h"

namespace fastcompress::archive {
namespace {

class LzCoder final : public BlockCoder {
  public:
    std::vector<uint8_t> encode(Bytes block, unsigned level) const override { return lz_encode(block, level); }
    Status decode(Bytes coded, unsigned, std::span<uint8_t> out) const override { return lz_decode(coded, out); }
    std::string_view name() const override { return "lz"; }
    unsigned max_level() const override { return kMaxLzLevel; }
    unsigned default_level() const override { return 8; }
    size_t default_block_bytes(unsigned level) const override {
        return size_t{level < 4 ? 4u : level < 7 ? 8u : 16u} << 20;
    }
};

class CmCoder final : public BlockCoder {
  public:
    std::vector<uint8_t> encode(Bytes block, unsigned level) const override { return cm_encode(block, level); }
    Status decode(Bytes coded, unsigned level, std::span<uint8_t> out) const override {
        return cm_decode(coded, level, out);
    }
    std::string_view name() const override { return "cm"; }
    unsigned max_level() const override { return kMaxCmLevel; }
    unsigned default_level() const override { return 5; }
    size_t default_block_bytes(unsigned) const override { return size_t{16} << 20; }
};

}  // namespace

const BlockCoder* block_coder(Method method) {
    static const LzCoder lz;
    static const CmCoder cm;
    switch (method) {
        case Method::kLz: return &lz;
        case Method::kCm: return &cm;
    }
    return nullptr;
}

}  // namespace fastcompress::archive
