#include "kernels/linear/gemm_cuda.h"

#include <cstdlib>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/libraries/cublaslt.h"
#include "kernels/cuda/plain_arithmetic.h"
#include "kernels/cuda/registry.h"
#include "kernels/testing.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

using kernels::testing::ExpectClose;
using kernels::testing::Tensor;
using ::testing::HasSubstr;

using MakeGemm = absl::StatusOr<std::shared_ptr<DeviceGemm>> (*)(const DeviceGemmShape&, Device&);

// A tensor's memory on the device.
struct OnDevice {
  CUdeviceptr address = 0;
  OnDevice(const Driver& driver, const Tensor& tensor) : driver_(driver), tensor_(tensor) {
    const size_t bytes = static_cast<size_t>(tensor.spec().bytes());
    EXPECT_EQ(driver.cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    EXPECT_EQ(
        driver.cuMemcpyAsync(address, reinterpret_cast<CUdeviceptr>(tensor.data()), bytes, nullptr),
        CUDA_SUCCESS);
  }
  ~OnDevice() { driver_.cuMemFree(address); }
  Tensor Read() const {
    Tensor read(tensor_.spec());
    EXPECT_EQ(driver_.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(read.data()), address,
                                    static_cast<size_t>(read.spec().bytes()), nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    return read;
  }
  void* data() const { return reinterpret_cast<void*>(address); }

 private:
  const Driver& driver_;
  const Tensor& tensor_;
};

// c = a b + c, of f32, for a batch that may share an operand.
void CheckAccumulates(MakeGemm make, bool same_a, bool same_b) {
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(EmulatedDriver(), 0);
  ASSERT_TRUE(device.ok()) << device.status();
  GemmShape plain;
  plain.batch = 3;
  plain.m = 6;
  plain.n = 70;
  plain.k = 9;
  plain.accumulate = true;
  DeviceGemmShape shape(plain);
  shape.same_a = same_a;
  shape.same_b = same_b;
  const Tensor a = Tensor::Random(DType::kF32, {same_a ? 1 : 3, 6, 9}, 1);
  const Tensor b = Tensor::Random(DType::kF32, {same_b ? 1 : 3, 9, 70}, 2);
  const Tensor start = Tensor::Random(DType::kF32, {3, 6, 70}, 3);
  std::vector<double> expected = start.values();
  const std::vector<double> left = a.values(), right = b.values();
  for (int64_t s = 0; s < 3; ++s) {
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 70; ++j) {
        for (int64_t p = 0; p < 9; ++p) {
          expected[(s * 6 + i) * 70 + j] +=
              left[((same_a ? 0 : s) * 6 + i) * 9 + p] * right[((same_b ? 0 : s) * 9 + p) * 70 + j];
        }
      }
    }
  }
  const absl::StatusOr<std::shared_ptr<DeviceGemm>> gemm = make(shape, **device);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  ASSERT_TRUE((*device)->AddScratch((*gemm)->workspace_bytes()).ok());
  const Driver& driver = (*device)->driver();
  const OnDevice x(driver, a), y(driver, b), z(driver, start);
  const absl::Status status =
      (*gemm)->Run(nullptr, x.data(), y.data(), nullptr, z.data(), (*device)->scratch());
  ASSERT_TRUE(status.ok()) << status;
  ExpectClose(z.Read(), expected, 2);
}

TEST(DeviceGemmTest, AccumulatesAndSharesOperands) {
  for (MakeGemm make : {MakeCublasLtGemm, MakeTiledGemm}) {
    CheckAccumulates(make, false, false);
    CheckAccumulates(make, true, false);
    CheckAccumulates(make, false, true);
  }
}

TEST(DeviceGemmTest, CublasLtSaysWhatItRefuses) {
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(EmulatedDriver(), 0);
  ASSERT_TRUE(device.ok()) << device.status();
  GemmShape plain;
  plain.m = plain.n = plain.k = 4;
  const auto refusal = [&](const GemmShape& shape) {
    const absl::Status status = MakeCublasLtGemm(DeviceGemmShape(shape), **device).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    return std::string(status.message());
  };
  GemmShape f64 = plain;
  f64.factors = f64.result = DType::kF64;
  EXPECT_THAT(refusal(f64), HasSubstr("taken for f32 and bf16"));
  GemmShape empty = plain;
  empty.k = 0;
  EXPECT_THAT(refusal(empty), HasSubstr("nothing to multiply"));
  GemmShape many = plain;
  many.batch = 65536;
  EXPECT_THAT(refusal(many), HasSubstr("too many matrices"));
  GemmShape mixed = plain;
  mixed.factors = mixed.result = DType::kBF16;
  mixed.bias = true;
  mixed.added = DType::kF32;
  EXPECT_THAT(refusal(mixed), HasSubstr("a bias of the result's type"));
}

// One answer for each shape, device and table.
TEST(DeviceGemmTest, HeuristicsAreAskedOnce) {
  static int asked = 0;
  static const CublasLt* const emulated = *CublasLtFor(EmulatedDriver());
  static Driver driver = EmulatedDriver();
  static CublasLt table = *emulated;
  table.cublasLtMatmulAlgoGetHeuristic = [](cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                            cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                            cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                            cublasLtMatmulPreference_t preference, int wanted,
                                            cublasLtMatmulHeuristicResult_t* results, int* count) {
    ++asked;
    return emulated->cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, c, d, preference,
                                                    wanted, results, count);
  };
  ProvideCublasLt(driver, table);
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(driver, 0);
  ASSERT_TRUE(device.ok()) << device.status();
  GemmShape shape;
  shape.m = shape.n = shape.k = 8;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(MakeCublasLtGemm(DeviceGemmShape(shape), **device).ok());
  EXPECT_EQ(asked, 1);
  shape.bias = true;
  ASSERT_TRUE(MakeCublasLtGemm(DeviceGemmShape(shape), **device).ok());
  EXPECT_EQ(asked, 2);
}

// What ORIEL_LOG=dispatch says of it.
std::string LogOf(const std::function<absl::Status()>& prepare) {
  setenv("ORIEL_LOG", "dispatch", 1);
  ::testing::internal::CaptureStderr();
  const absl::Status status = prepare();
  unsetenv("ORIEL_LOG");
  EXPECT_TRUE(status.ok()) << status;
  return ::testing::internal::GetCapturedStderr();
}

// Of the launches that have epilogues for it, one is taken, not the product and another launch.
TEST(DeviceGemmTest, EpiloguesAreTaken) {
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(EmulatedDriver(), 0);
  ASSERT_TRUE(device.ok()) << device.status();
  const auto taken = [&](const KernelSpec& spec) {
    return LogOf([&] { return Registry::Get().Prepare(spec, **device).status(); });
  };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const TensorSpec x{dtype, {16, 8}}, w{dtype, {8, 24}}, y{dtype, {16, 24}}, bias{dtype, {24}};
    const std::string gelu = "gelu_tanh";
    EXPECT_THAT(taken({"linear_activation", {x, w, bias}, {y, y}, {{"kind", gelu}}}),
                HasSubstr("): MakeActivation\n"));
    EXPECT_THAT(taken({"linear_activation_grad", {x, w, y}, {y}, {{"kind", gelu}}}),
                HasSubstr("): MakeActivationGrad\n"));
    EXPECT_THAT(taken({"linear_grads", {x, y}, {w, bias}, {}}), HasSubstr("): MakeGrads\n"));
    EXPECT_THAT(taken({"linear_weight_grad", {x, y, w}, {w}, {}}), HasSubstr("MakeCublasLtGemm"));
  }
}

// A small gradient of many rows is split along them, where the library does that without the sums
// beside it alone.
TEST(DeviceGemmTest, SumsBesideAProductDoNotLeaveTheDeviceIdle) {
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(EmulatedDriver(), 0);
  ASSERT_TRUE(device.ok()) << device.status();
  const auto grads = [&](int64_t rows, int64_t n) {
    const TensorSpec x{DType::kBF16, {rows, 768}}, y{DType::kBF16, {rows, n}};
    const TensorSpec w{DType::kF32, {768, n}}, bias{DType::kF32, {n}};
    return LogOf([&] {
      return Registry::Get().Prepare({"linear_grads", {x, y}, {w, bias}, {}}, **device).status();
    });
  };
  const std::string log = grads(65536, 768);
  EXPECT_THAT(log, HasSubstr("MakeOfParts<MakeLinearGrads>"));
  EXPECT_THAT(log, HasSubstr("(not: cuBLASLt: fills 0.136364 of the device with these sums, "
                             "0.954545 without)"));
  EXPECT_THAT(
      log,
      HasSubstr("[768, 768] over 65536, bf16 -> f32, transposed a, epilogue 1, alignment 64: "
                "algorithm 0, tile 23, splits 7, reduction 2, waves 0.954545, workspace 4096\n"));
  // Of few rows there is nothing to split, and many columns are tiles enough.
  EXPECT_THAT(grads(512, 768), HasSubstr("): MakeGrads\n"));
  EXPECT_THAT(grads(65536, 4096), HasSubstr("): MakeGrads\n"));
}

// Once for each library.
TEST(PlainArithmeticTest, LargeLaunchesAreSaid) {
  static int runs = 0;
  const std::string library = absl::StrCat("library ", ++runs);
  const auto said = [&](double multiplications) {
    ::testing::internal::CaptureStderr();
    WarnOfPlainArithmetic("a product", multiplications, library.c_str());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(9e9), "");
  EXPECT_THAT(said(1e10), HasSubstr("a product runs without tensor cores, because " + library +
                                    " does not take it"));
  EXPECT_EQ(said(1e12), "");
}

// A library whose heuristics know nothing of what they are asked.
TEST(DeviceGemmTest, WhatHeuristicsFindInvalidIsRefused) {
  static Driver driver = EmulatedDriver();
  const absl::StatusOr<const CublasLt*> emulated = CublasLtFor(EmulatedDriver());
  ASSERT_TRUE(emulated.ok()) << emulated.status();
  static CublasLt table = **emulated;
  table.cublasLtMatmulAlgoGetHeuristic =
      [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
         cublasLtMatmulHeuristicResult_t*, int*) { return CUBLAS_STATUS_INVALID_VALUE; };
  ProvideCublasLt(driver, table);
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(driver, 0);
  ASSERT_TRUE(device.ok()) << device.status();
  GemmShape shape;
  shape.m = shape.n = shape.k = 4;
  const absl::Status refusal = MakeCublasLtGemm(DeviceGemmShape(shape), **device).status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("CUBLAS_STATUS_INVALID_VALUE"));
  EXPECT_TRUE(MakeDeviceGemm(DeviceGemmShape(shape), **device).ok());
}

}  // namespace
}  // namespace oriel::kernels::cuda
