#include "passes/cost/efficiency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/config/reader_testing.h"
#include "passes/cost/cluster.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ClusterDevice device(const std::string& name) { return findCluster(name)->device; }

double reached(const ClusterDevice& device, MatrixProduct product) {
  const double flops = 2.0 * static_cast<double>(product.count * product.rows) *
                       static_cast<double>(product.columns * product.depth);
  return flops / productSeconds(device.efficiency, device.rates(), product) /
         (product.wide ? device.rates().floatFlops : device.rates().halfFlops);
}

TEST(EfficiencyTest, LargeProductsReachTheShare) {
  for (const char* name : {"v100", "a100-80", "h100", "b200"}) {
    const ClusterDevice known = device(name);
    EXPECT_NEAR(reached(known, {1, 16384, 16384, 16384}) / known.efficiency.halfShare, 1, 0.03)
        << name;
    EXPECT_LT(reached(known, {1, 128, 128, 128}), 0.05) << name;
  }
}

TEST(EfficiencyTest, ProductsOfPublishedShapes) {
  // From the rows that the files name: TFLOP/s.
  const struct {
    const char* name;
    MatrixProduct product;
    double measured, tolerance;
  } cases[] = {
      {"h100", {1, 8192, 8192, 8192}, 795, 0.05},
      {"h100", {1, 4096, 4096, 4096}, 716, 0.05},
      {"a100-80", {1, 4096, 4096, 576}, 184.6 * 1.07, 0.1},
      {"b200", {1, 32768, 14336, 8192}, 1070, 0.1},
      {"v100", {1, 2048, 20480, 5120}, 85.3, 0.12},
  };
  for (const auto& c : cases) {
    const ClusterDevice known = device(c.name);
    const double rate = reached(known, c.product) * known.rates().halfFlops / 1e12;
    EXPECT_NEAR(rate / c.measured, 1, c.tolerance) << c.name << " " << rate;
  }
}

TEST(EfficiencyTest, ThinProductsAreAsFastAsMemory) {
  const ClusterDevice h100 = device("h100");
  const MatrixProduct thin = {1, 16, 16384, 16384};
  EXPECT_DOUBLE_EQ(
      productSeconds(h100.efficiency, h100.rates(), thin),
      memorySeconds(h100.efficiency, h100.rates(), 2.0 * (16 * 16384 * 2 + (1 << 28))));
}

TEST(EfficiencyTest, ManySmallProductsFillTheDevice) {
  const ClusterDevice h100 = device("h100");
  const auto seconds = [&](int64_t count) {
    return productSeconds(h100.efficiency, h100.rates(), {count, 128, 128, 128});
  };
  EXPECT_LT(seconds(64), 2 * seconds(1));
  EXPECT_GT(seconds(64 * 64), 16 * seconds(64));
}

TEST(EfficiencyTest, MoreIsNeverFaster) {
  for (const std::string& name : clusterPresets()) {
    const ClusterDevice known = device(name);
    for (const int64_t size : {1, 63, 64, 100, 128, 1000, 4096}) {
      const auto seconds = [&](int64_t rows, int64_t depth) {
        return productSeconds(known.efficiency, known.rates(), {1, rows, 512, depth});
      };
      EXPECT_LE(seconds(size, 512), seconds(2 * size, 512) * 1.0001) << name << size;
      EXPECT_LT(seconds(512, size), seconds(512, 2 * size)) << name << size;
    }
  }
}

double attentionRate(const ClusterDevice& device, AttentionWork work) {
  const double flops = 2.0 * static_cast<double>(work.batch * work.heads * work.queries) *
                       static_cast<double>(work.keys * (work.depth + work.valueDepth)) *
                       (work.causal ? 0.5 : 1) * (work.backward ? 2.5 : 1);
  return flops / attentionSeconds(device.efficiency, device.rates(), work) / 1e12;
}

AttentionWork attention(int64_t batch, int64_t heads, int64_t sequence, int64_t depth, bool causal,
                        bool backward = false) {
  AttentionWork work;
  work.batch = batch;
  work.heads = work.keyHeads = heads;
  work.queries = work.keys = sequence;
  work.depth = work.valueDepth = depth;
  work.causal = causal;
  work.backward = backward;
  return work;
}

TEST(EfficiencyTest, AttentionOfPublishedShapes) {
  const ClusterDevice h100 = device("h100");
  // Between FlashAttention-3 (648, 420, 521) and cuDNN (595, 363, 484).
  EXPECT_NEAR(attentionRate(h100, attention(1, 16, 16384, 128, false)), 620, 60);
  EXPECT_NEAR(attentionRate(h100, attention(4, 32, 4096, 64, true)), 390, 40);
  EXPECT_NEAR(attentionRate(h100, attention(8, 16, 2048, 128, true)), 500, 50);
  const ClusterDevice a100 = device("a100-80");
  const auto both = [&](const AttentionWork& forward) {
    AttentionWork backward = forward;
    backward.backward = true;
    return 3.5 / (1 / attentionRate(a100, forward) + 2.5 / attentionRate(a100, backward));
  };
  EXPECT_NEAR(both(attention(4, 32, 4096, 64, true)), 156, 8);
  EXPECT_NEAR(both(attention(1, 16, 16384, 128, false)), 203, 10);
}

TEST(EfficiencyTest, CausalAttentionComputesHalfOfLongSequences) {
  const ClusterDevice h100 = device("h100");
  const auto seconds = [&](int64_t sequence, bool causal) {
    return attentionSeconds(h100.efficiency, h100.rates(), attention(8, 32, sequence, 128, causal));
  };
  EXPECT_NEAR(seconds(32768, true) / seconds(32768, false), 0.5, 0.02);
  EXPECT_GT(seconds(512, true) / seconds(512, false), 0.65);
}

TEST(EfficiencyTest, MemoryReachesItsShareOfLargeTensors) {
  const ClusterDevice h100 = device("h100");
  const double bytes = 1e10;
  EXPECT_NEAR(bytes / memorySeconds(h100.efficiency, h100.rates(), bytes), 0.9 * 3.35e12, 1e10);
  EXPECT_DOUBLE_EQ(memorySeconds(h100.efficiency, h100.rates(), 0), 0);
}

TEST(EfficiencyTest, EveryPresetIsSoundAndItsNumbersHaveNames) {
  ASSERT_GE(efficiencyPresets().size(), 6u);
  for (const std::string& name : efficiencyPresets()) {
    absl::StatusOr<Efficiency> known = findEfficiency(name);
    ASSERT_TRUE(known.ok()) << known.status();
    for (const EfficiencyNumber& number : efficiencyNumbers(*known)) {
      EXPECT_GE(*number.value, 0) << name << " " << number.name;
    }
  }
  Efficiency efficiency;
  *efficiencyNumbers(efficiency)[1].value = 0.25;
  EXPECT_EQ(efficiency.halfShare, 0.25);
}

TEST(EfficiencyTest, DevicesWithoutAFileOfTheirOwn) {
  EXPECT_EQ(efficiencyOfDevice("H100-PCIe").name, "h100");
  EXPECT_EQ(efficiencyOfDevice("a100").name, "a100");
  EXPECT_EQ(efficiencyOfDevice("X1").name, "generic");
  EXPECT_EQ(device("h200").efficiency.name, "h100");
}

TEST(EfficiencyTest, SaysWhatIsWrongAndWhere) {
  const std::string text = *efficiencyPresetText("h100");
  const struct {
    const char* old;
    const char* now;
    const char* message;
  } cases[] = {
      {"processors: 132", "processors: 0", "'processors' must be 1 or more"},
      {"half: 0.80", "half: 80", "'products.half' must be a share"},
      {"half: 0.80", "halve: 0.80", "did you mean 'half'"},
      {"ramp: 3 us", "ramp: 3", "'memory.ramp' must be a number above 0 with a unit"},
      {"share: 0.83", "share: 0", "'attention.forward.share'"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(refusalOf(readEfficiencyText(replaced(text, c.old, c.now), "e.yaml")),
                AllOf(HasSubstr(c.message), HasSubstr("e.yaml:")));
  }
  EXPECT_EQ(findEfficiency("h10").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(findEfficiency("h10").status().message()), HasSubstr("'h100'"));
}

}  // namespace
}  // namespace oriel
