#include "kernels/generated/generated.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/common/parallel.h"

namespace oriel::kernels {
namespace {

using ::testing::HasSubstr;

// result[i] = operand[i] + 1 for i in [begin, end), of i32, behind a byte that is no code.
#if defined(__x86_64__)
constexpr unsigned char kIncrement[] = {
    0xcc,                    // int3
    0x48, 0x8b, 0x07,        // mov rax, [rdi]
    0x48, 0x8b, 0x36,        // mov rsi, [rsi]
    0x48, 0x39, 0xca,        // next: cmp rdx, rcx
    0x7d, 0x11,              // jge done
    0x44, 0x8b, 0x04, 0x90,  // mov r8d, [rax + 4 rdx]
    0x41, 0x83, 0xc0, 0x01,  // add r8d, 1
    0x44, 0x89, 0x04, 0x96,  // mov [rsi + 4 rdx], r8d
    0x48, 0xff, 0xc2,        // inc rdx
    0xeb, 0xea,              // jmp next
    0xc3,                    // done: ret
};

std::string Increment() { return {reinterpret_cast<const char*>(kIncrement), sizeof kIncrement}; }

KernelSpec Spec(int64_t units, int64_t unit_elements, int threads = 1) {
  const TensorSpec tensor{DType::kI32, {units * unit_elements}};
  return {"generated",
          {tensor},
          {tensor},
          {{"name", "k"},
           {"units", units},
           {"unit_elements", unit_elements},
           {"block_units", int64_t{0}},
           {"thread_elements", int64_t{1}},
           {"image.x86-64", Increment()},
           {"entry.x86-64", int64_t{1}}},
          threads};
}

TEST(GeneratedTest, RunsEachUnitOnce) {
  const int64_t before = std::exchange(min_parallel_work, 1);
  for (const int64_t count : {1, 1023, 1024, 5000}) {
    for (const int threads : {1, 3}) {
      absl::StatusOr<KernelFn> run = KernelRegistry::Host().Prepare(Spec(count, 1, threads));
      ASSERT_TRUE(run.ok()) << run.status();
      std::vector<int32_t> x(count), expected(count);
      std::iota(x.begin(), x.end(), 0);
      std::iota(expected.begin(), expected.end(), 1);
      const void* operands[] = {x.data()};
      void* results[] = {x.data()};  // in place: what ran twice would show
      ASSERT_TRUE((*run)({operands, results}).ok());
      EXPECT_EQ(x, expected) << count << " elements, " << threads << " threads";
    }
  }
  min_parallel_work = before;
}

TEST(GeneratedTest, EqualCodeIsLoadedOnce) {
  const auto first = HostCode::Load(Increment(), 1);
  const auto second = HostCode::Load(Increment(), 1);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->get(), second->get());
}

TEST(GeneratedTest, CodeThatBeginsElsewhereIsRefused) {
  for (const int64_t entry : {int64_t{-1}, static_cast<int64_t>(sizeof kIncrement)}) {
    const absl::Status status = HostCode::Load(Increment(), entry).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("can't begin at byte"));
  }
}

TEST(GeneratedTest, UnitsThatAreNotTheResultAreRefused) {
  KernelSpec spec = Spec(8, 2);
  spec.results[0].shape = {15};
  const absl::Status status = KernelRegistry::Host().Prepare(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("a result of 15 elements, but 8 units of 2"));
}

TEST(GeneratedTest, ResultsOfRowsHaveOneElementForEach) {
  KernelSpec spec = Spec(8, 2);
  spec.attributes["block_units"] = int64_t{4};
  spec.results.push_back({DType::kF32, {8}});
  EXPECT_TRUE(KernelRegistry::Host().Prepare(spec).ok());
  spec.results.back().shape = {4};
  EXPECT_THAT(std::string(KernelRegistry::Host().Prepare(spec).status().message()),
              HasSubstr("a result of 4 elements, but 8 units of 2"));
}

TEST(GeneratedTest, CodeForOtherProcessorsIsRefused) {
  KernelSpec spec = Spec(8, 1);
  spec.attributes.erase("image.x86-64");
  spec.attributes["image.riscv64"] = Increment();
  const absl::Status status = KernelRegistry::Host().Prepare(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the plan has code for riscv64"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--generated-kernels off"));
}
#endif

}  // namespace
}  // namespace oriel::kernels
