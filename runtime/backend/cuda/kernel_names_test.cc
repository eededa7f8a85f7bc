#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/registry.h"
#include "runtime/plan/device.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAreArray;

// What the compiler takes for granted (runtime/plan/cuda_kernels.inc).
TEST(CudaKernelsTest, CompilerKnowsThoseOfTheRegistry) {
  std::vector<std::string> names = kernels::cuda::Registry::Get().Names();
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  EXPECT_THAT(CudaKernels(), ElementsAreArray(names.begin(), names.end()));
}

}  // namespace
}  // namespace oriel::runtime
