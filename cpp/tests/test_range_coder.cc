// The range coder, bulk and symbol by symbol, and the quantizer's kernels against plain arithmetic.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "check.h"
#include "fastcompress/arithmetic/bulk_coder.h"
#include "fastcompress/arithmetic/exp2_tables.h"
#include "fastcompress/arithmetic/quantizer.h"

using namespace fastcompress;
using namespace fastcompress::arithmetic;

namespace {

std::mt19937_64 random_source(1);

uint64_t random_below(uint64_t limit) {
    return random_source() % limit;
}

// Weights of many sizes, some zero.
std::vector<uint32_t> random_weights(size_t count) {
    std::vector<uint32_t> weights(count);
    const uint64_t shape = random_below(3);
    for (uint32_t& weight : weights) {
        weight = static_cast<uint32_t>(random_source() >> (32 + (shape == 0 ? 0 : random_below(32))));
        if (shape == 2 && random_below(2) == 0) weight = 0;
    }
    weights[random_below(count)] += 1;
    return weights;
}

int scaled_bits(size_t num_symbols) {
    return std::min(30, 38 - static_cast<int>(std::bit_width(num_symbols - 1)));
}

std::vector<uint32_t> plain_table(const std::vector<uint64_t>& scaled, unsigned precision) {
    const uint64_t sum = std::accumulate(scaled.begin(), scaled.end(), uint64_t{0});
    const uint64_t total = uint64_t{1} << precision;
    const uint64_t multiplier = ((total - scaled.size()) << 39) / sum;
    std::vector<uint32_t> table;
    uint64_t before = 0;
    for (size_t i = 0; i < scaled.size(); ++i) {
        table.push_back(static_cast<uint32_t>(i + (before * multiplier >> 39)));
        before += scaled[i];
    }
    table.push_back(static_cast<uint32_t>(total));
    return table;
}

template <class Weight>
std::vector<uint32_t> table_of(const std::vector<Weight>& weights, unsigned precision) {
    Quantizer quantizer(weights.size(), precision);
    CHECK(quantizer.set_row(weights.data()).ok());
    std::vector<uint32_t> table(weights.size() + 1);
    quantizer.cumulative(table.data());
    for (size_t i = 0; i < weights.size(); i += 1 + i / 8) {
        const Quantizer::Slot slot = quantizer.slot(i);
        CHECK_EQ(slot.cumulative, table[i]);
        CHECK_EQ(slot.frequency, table[i + 1] - table[i]);
        for (const uint32_t quantile : {table[i], table[i + 1] - 1}) {
            Quantizer::Slot found;
            CHECK_EQ(quantizer.find(quantile, found), i);
            CHECK_EQ(found.cumulative, slot.cumulative);
            CHECK_EQ(found.frequency, slot.frequency);
        }
    }
    return table;
}

void test_quantizer() {
    for (int round = 0; round < 400; ++round) {
        const size_t num_symbols = 1 + random_below(round % 10 == 0 ? 3000 : 300);
        const auto precision = static_cast<unsigned>(std::bit_width(num_symbols) + random_below(8));
        const std::vector<uint32_t> weights = random_weights(num_symbols);
        const int shift =
            scaled_bits(num_symbols) + 1 - std::bit_width(*std::max_element(weights.begin(), weights.end()));
        std::vector<uint64_t> scaled(weights.size());
        for (size_t i = 0; i < scaled.size(); ++i) {
            scaled[i] = shift >= 0 ? uint64_t{weights[i]} << shift : weights[i] >> -shift;
        }
        const std::vector<uint32_t> expected = plain_table(scaled, precision);
        CHECK(table_of(weights, precision) == expected);
        CHECK(table_of(std::vector<uint64_t>(weights.begin(), weights.end()), precision) == expected);
        CHECK(table_of(std::vector<int64_t>(weights.begin(), weights.end()), precision) == expected);
        for (const int exponent : {0, -40, 300, -1060}) {
            std::vector<double> floats(weights.size());
            // Far down, floats have fewer bits: only weights that keep theirs are compared.
            const bool is_exact = exponent != -1060 || shift >= 20;
            for (size_t i = 0; i < floats.size(); ++i) floats[i] = std::ldexp(weights[i], exponent);
            if (is_exact) CHECK(table_of(floats, precision) == expected);
        }
        std::vector<float> narrow(weights.size());
        for (size_t i = 0; i < narrow.size(); ++i) narrow[i] = static_cast<float>(weights[i] >> 8);
        narrow[0] += 1;
        CHECK(table_of(narrow, precision) == table_of(std::vector<double>(narrow.begin(), narrow.end()), precision));
    }
}

void test_logits() {
    for (int round = 0; round < 100; ++round) {
        std::vector<int32_t> logits(1 + random_below(100));
        for (int32_t& logit : logits) logit = static_cast<int32_t>(random_source() >> (32 + random_below(31)));
        std::vector<uint64_t> scaled;
        const int64_t greatest = *std::max_element(logits.begin(), logits.end());
        for (const int32_t logit : logits) {
            const auto x = static_cast<uint64_t>(greatest - logit);
            const uint64_t product = uint64_t{kExp2Coarse[x >> 8 & 255]} * kExp2Fine[x & 255];
            const uint64_t weight = x >> 16 > 30 ? 0 : product >> (32 + (x >> 16));
            scaled.push_back(weight >> (30 - scaled_bits(logits.size())));
        }
        Quantizer quantizer(logits.size(), 16);
        quantizer.set_row_of_logits(logits.data());
        std::vector<uint32_t> table(logits.size() + 1);
        quantizer.cumulative(table.data());
        CHECK(table == plain_table(scaled, 16));
    }
}

void test_bad_weights() {
    const auto is_refused = [](const auto& weights) {
        return !Quantizer(weights.size(), 16).set_row(weights.data()).ok();
    };
    for (size_t i = 0; i < 70; ++i) {
        std::vector<float> floats(70, 1.0f);
        for (const float bad : {-1.0f, std::nanf(""), -std::nanf(""), INFINITY, -INFINITY}) {
            floats[i] = bad;
            CHECK(is_refused(floats));
            CHECK(is_refused(std::vector<double>(floats.begin(), floats.end())));
        }
        floats[i] = -0.0f;
        CHECK(!is_refused(floats));
        std::vector<int32_t> integers(70, 1);
        integers[i] = -5;
        CHECK(is_refused(integers));
        CHECK(is_refused(std::vector<int64_t>(integers.begin(), integers.end())));
    }
    CHECK(is_refused(std::vector<float>(5)));
    CHECK(is_refused(std::vector<uint32_t>(5)));
}

template <class Symbol>
void test_bulk() {
    for (int round = 0; round < 60; ++round) {
        const size_t num_symbols = 1 + random_below(round % 3 == 0 ? 256 : 20);
        const auto precision = static_cast<unsigned>(std::max<uint64_t>(8, random_below(25)));
        const std::vector<uint32_t> table = table_of(random_weights(num_symbols), precision);
        std::vector<Symbol> symbols(random_below(round % 5 == 0 ? 90'000 : 300));
        for (Symbol& symbol : symbols) {
            const auto quantile = static_cast<uint32_t>(random_below(table.back()));
            symbol = static_cast<Symbol>(find_symbol(table.data(), num_symbols, quantile));
        }
        RangeEncoder one_by_one;
        for (const Symbol symbol : symbols)
            one_by_one.encode(table[symbol], table[symbol + 1u] - table[symbol], precision);
        RangeEncoder bulk;
        CHECK(BulkEncoder(bulk).encode<Symbol>(symbols, table, precision));
        CHECK_EQ(bulk.num_bits_if_finished(), one_by_one.num_bits_if_finished());
        const std::vector<uint8_t> message = bulk.finish();
        CHECK(message == one_by_one.finish());

        std::vector<Symbol> out(symbols.size());
        RangeDecoder decoder(message);
        CHECK(BulkDecoder(decoder).decode<Symbol>(out, table, precision));
        CHECK(out == symbols);
        RangeDecoder plain(message);
        for (const Symbol symbol : symbols) {
            const uint32_t quantile = plain.peek(precision);
            CHECK(table[symbol] <= quantile && quantile < table[symbol + 1u]);
            plain.consume(table[symbol], table[symbol + 1u] - table[symbol]);
        }
        CHECK(plain.ok());
        if (message.size() > 40) {
            RangeDecoder cut(Bytes(message).first(message.size() - 20));
            CHECK(!BulkDecoder(cut).decode<Symbol>(out, table, precision) || out != symbols);
        }
    }
}

// Several calls for one code, of which some fail, some bytes are taken meanwhile, and carries are frequent and long.
void test_bulk_pieces() {
    const auto encode_plainly = [](RangeEncoder& encoder, std::span<const uint8_t> symbols, const auto& table) {
        for (const uint8_t symbol : symbols)
            encoder.encode(table[symbol], table[symbol + 1u] - table[symbol], kMaxPrecision);
    };
    for (int round = 0; round < 300; ++round) {
        const size_t num_symbols = 3 + random_below(200);
        const std::vector<uint32_t> table =
            table_of(std::vector<uint32_t>(num_symbols, uint32_t{1} << 20), kMaxPrecision);
        // These symbols lead to an interval just below and above 1/2: words of ones, until one carries.
        std::vector<uint8_t> symbols(random_below(60));
        std::vector<uint8_t> half(64);
        half[0] = 0x80;
        RangeDecoder towards_half(half);
        CHECK(BulkDecoder(towards_half).decode<uint8_t>(std::span(symbols).first(symbols.size() / 2), table, 24));
        for (size_t i = symbols.size() / 2; i < symbols.size(); ++i) {
            symbols[i] = static_cast<uint8_t>(random_below(2) == 0 ? num_symbols - 1 : random_below(num_symbols));
        }
        RangeEncoder bulk, plain;
        for (size_t begin = 0; begin < symbols.size();) {
            const size_t count = std::min<size_t>(1 + random_below(20), symbols.size() - begin);
            std::vector<uint8_t> piece(&symbols[begin], &symbols[begin] + count);
            encode_plainly(plain, piece, table);
            piece.push_back(static_cast<uint8_t>(num_symbols));  // no symbol: nothing is encoded
            CHECK(!BulkEncoder(bulk).encode<uint8_t>(piece, table, kMaxPrecision));
            piece.pop_back();
            CHECK(BulkEncoder(bulk).encode<uint8_t>(piece, table, kMaxPrecision));
            if (random_below(4) == 0) CHECK(bulk.take_settled() == plain.take_settled());
            begin += count;
        }
        CHECK_EQ(bulk.num_bits_if_finished(), plain.num_bits_if_finished());
        CHECK(bulk.finish() == plain.finish());
    }
}

// Tables that are not what the caller checked, as if another thread had changed them, with few symbols and with many.
void test_changed_tables() {
    for (const size_t count : {size_t{10}, size_t{5000}}) {
        const std::vector<uint8_t> symbols(count, 1);
        std::vector<uint8_t> out(count);
        for (const std::vector<uint32_t>& table : std::vector<std::vector<uint32_t>>{
                 {0, 9, 9, 256}, {0, 200, 100, 256}, {0, 9, 300, 256}, {0, 9, 1u << 31, 256}}) {
            RangeEncoder encoder;
            encoder.encode(3, 7, 8);
            const uint64_t before = encoder.bits_used();
            CHECK(!BulkEncoder(encoder).encode<uint8_t>(symbols, table, 8));
            CHECK_EQ(encoder.bits_used(), before);
            const std::vector<uint8_t> code(100, 0x20);
            RangeDecoder decoder(code);
            (void)BulkDecoder(decoder).decode<uint8_t>(out, table, 8);  // any symbols of the table, or none
            for (const uint8_t symbol : out) CHECK(symbol < 3);
        }
    }
}

// Decoding with an index: of all symbols or of every n-th one, and of tables that change, which then gives any symbols.
void test_index() {
    for (const size_t num_symbols : {size_t{2}, size_t{200}, size_t{1000}, size_t{5000}, size_t{70'000}}) {
        const unsigned precision = default_precision(num_symbols);
        for (const size_t count : {size_t{160}, size_t{400}, size_t{700}, size_t{2100}, size_t{9000}}) {
            std::vector<uint32_t> weights(num_symbols);
            for (uint32_t& weight : weights) {
                const auto wide = static_cast<uint32_t>(1 + random_below(count % 3 == 0 ? 4 : 1 << 20));
                weight = wide >> random_below(16);
            }
            weights[0] = 1;
            std::vector<uint32_t> table = table_of(weights, precision);
            std::vector<uint32_t> symbols(count), out(count);
            RangeEncoder encoder;
            for (uint32_t& symbol : symbols) {
                const auto quantile = static_cast<uint32_t>(random_below(table.back()));
                symbol =
                    static_cast<uint32_t>(std::upper_bound(table.begin(), table.end(), quantile) - table.begin() - 1);
                encoder.encode(table[symbol], table[symbol + 1] - table[symbol], precision);
            }
            const std::vector<uint8_t> code = encoder.finish();
            RangeDecoder decoder(code);
            CHECK(BulkDecoder(decoder).decode<uint32_t>(out, table, precision));
            CHECK(out == symbols);
            for (uint32_t& number : table) {
                if (random_below(3) == 0)
                    number = static_cast<uint32_t>(random_below(uint64_t{1} << (8 + random_below(25))));
            }
            RangeDecoder confused(code);
            (void)BulkDecoder(confused).decode<uint32_t>(out, table, precision);
            for (const uint32_t symbol : out) CHECK(symbol < num_symbols);
        }
    }
}

void test_bits() {
    for (int round = 0; round < 50; ++round) {
        std::vector<std::pair<bool, uint32_t>> bits(random_below(5000));
        for (auto& [bit, p1] : bits) {
            p1 = static_cast<uint32_t>(1 + random_below(65535) / (1 + random_below(round + 1) * random_below(2)));
            p1 = std::min(p1, 65535u);
            bit = random_below(65536) < p1;
        }
        RangeEncoder encoder;
        std::vector<uint8_t> message;
        for (size_t i = 0; i < bits.size(); ++i) {
            if (i % 100 == 50) {
                const RangeEncoder::Snapshot before = encoder.snapshot();
                for (int k = 0; k < 200; ++k)
                    encoder.encode_bit(random_below(2) == 0, random_below(2) == 0 ? 1 : 65535);
                CHECK(encoder.restore(before));
            }
            encoder.encode_bit(bits[i].first, bits[i].second);
            if (i % 700 == 0) {
                const std::vector<uint8_t> settled = encoder.take_settled();
                message.insert(message.end(), settled.begin(), settled.end());
            }
        }
        const uint64_t num_bits = encoder.num_bits_if_finished();
        const std::vector<uint8_t> rest = encoder.finish();
        message.insert(message.end(), rest.begin(), rest.end());
        CHECK_EQ(message.size(), (num_bits + 7) / 8);
        RangeDecoder decoder(message);
        bool all = true;
        for (const auto& [bit, p1] : bits) all &= decoder.decode_bit(p1) == bit;
        CHECK(all);
        CHECK(decoder.ok());
    }
}

void test_tables() {
    CHECK_EQ(*check_cumulative(std::vector<uint32_t>{0, 3, 8}), 3u);
    for (const std::vector<uint32_t>& bad : std::vector<std::vector<uint32_t>>{
             {}, {0}, {0, 3, 9}, {1, 8}, {0, 4, 4, 8}, {0, 6, 4, 8}, {0, 1u << 25}, {0, 1}}) {
        CHECK(!check_cumulative(bad).ok());
    }
    CHECK(!check_table_size(0, 16).ok());
    CHECK(!check_table_size(5, 2).ok());
    CHECK(!check_table_size(5, 25).ok());
    CHECK(check_table_size(4, 2).ok());
    CHECK_EQ(default_precision(256), 16u);
    CHECK_EQ(default_precision(65536), 24u);
}

}  // namespace

int main() {
    test_quantizer();
    test_logits();
    test_bad_weights();
    test_bulk<uint8_t>();
    test_bulk<uint16_t>();
    test_bulk<uint32_t>();
    test_bulk_pieces();
    test_changed_tables();
    test_index();
    test_bits();
    test_tables();
    return testing::report();
}
