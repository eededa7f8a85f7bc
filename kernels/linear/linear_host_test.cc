// What the host's own implementations do beyond the launches of linear_test.cc.
#include <thread>

#include "kernels/linear/linear.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using testing::RunKernel;
using testing::Tensor;

// Ranks may be threads of one process: each has kernels of its own.
TEST(LinearHostTest, LaunchesInSeveralThreadsAtOnce) {
  const Tensor x = Tensor::Random(DType::kF32, {300, 70}, 1),
               w = Tensor::Random(DType::kF32, {130, 70}, 2);
  const TensorSpec result{DType::kF32, {300, 130}};
  const Attributes attributes = {{"transpose_weight", int64_t{1}}};
  const std::vector<double> expected =
      RunKernel("linear", {x, w}, {result}, attributes)[0].values();
  std::vector<std::thread> ranks;
  std::vector<int> wrong(4, 0);
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, rank] {
      const KernelSpec spec{"linear", {x.spec(), w.spec()}, {result}, attributes, 1 + rank % 2};
      absl::StatusOr<KernelFn> launch = KernelRegistry::Host().Prepare(spec);
      Tensor y(result);
      const void* operands[] = {x.data(), w.data()};
      void* results[] = {y.data()};
      for (int step = 0; step < 50; ++step) {
        y.Poison();
        wrong[rank] +=
            !launch.ok() || !(*launch)({operands, results}).ok() || y.values() != expected;
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(GemmHostTest, AccumulatesInBothImplementations) {
  GemmShape shape;
  shape.m = 5;
  shape.n = 70;
  shape.k = 9;
  shape.accumulate = true;
  const Tensor a = Tensor::Random(DType::kF32, {5, 9}, 1),
               b = Tensor::Random(DType::kF32, {9, 70}, 2);
  const Tensor start = Tensor::Random(DType::kF32, {5, 70}, 3);
  std::vector<double> expected = start.values();
  const std::vector<double> left = a.values(), right = b.values();
  for (int64_t i = 0; i < 5 * 70; ++i) {
    for (int64_t p = 0; p < 9; ++p) expected[i] += left[i / 70 * 9 + p] * right[p * 70 + i % 70];
  }
  const auto run = [&](auto gemm) {
    Tensor c = testing::Clone(start);
    ASSERT_TRUE(gemm.ok()) << gemm.status();
    ASSERT_TRUE((*gemm)
                    ->Run(static_cast<const float*>(a.data()), static_cast<const float*>(b.data()),
                          nullptr, static_cast<float*>(c.data()))
                    .ok());
    ExpectClose(c, expected);
  };
  run(OneDnnGemm::Create(shape, 1));
  run(LoopGemm<float>::Create(shape, 1));
}

}  // namespace
}  // namespace oriel::kernels
