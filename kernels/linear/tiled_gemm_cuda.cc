#include "absl/strings/str_cat.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/plain_arithmetic.h"
#include "kernels/linear/gemm_cuda.h"
#include "kernels/linear/tiled_gemm.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

class TiledDeviceGemm : public DeviceGemm {
 public:
  TiledDeviceGemm(const TiledGemm& gemm, int64_t blocks, Function function)
      : gemm_(gemm), blocks_(static_cast<unsigned>(blocks)), function_(std::move(function)) {}

  int64_t workspace_bytes() const override { return 0; }

  absl::Status Launch(CUstream stream, const DeviceGemmArgs& args, CUdeviceptr) override {
    if (blocks_ == 0) return absl::OkStatus();
    return function_.Launch({blocks_}, {kGemmThreads}, stream, gemm_, args.a, args.b, args.bias,
                            args.addend, args.c);
  }

 private:
  const TiledGemm gemm_;
  const unsigned blocks_;
  const Function function_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<DeviceGemm>> MakeTiledGemm(const DeviceGemmShape& shape,
                                                          Device& device) {
  if (shape.epilogue != Epilogue::kNone) return absl::UnimplementedError("tiles: no epilogue");
  const KernelSpec product{"gemm", {}, {}, {}};
  ORIEL_ASSIGN_OR_RETURN(Function function,
                         FindTyped(product, device, "oriel_gemm", {shape.factors, shape.result}));
  TiledGemm gemm{};
  gemm.m = shape.m;
  gemm.n = shape.n;
  gemm.k = shape.k;
  gemm.row_tiles = (shape.m + kGemmTile - 1) / kGemmTile;
  gemm.column_tiles = (shape.n + kGemmTile - 1) / kGemmTile;
  gemm.a_row = shape.transpose_a ? 1 : shape.k;
  gemm.a_column = shape.transpose_a ? shape.m : 1;
  gemm.a_step = shape.same_a ? 0 : shape.m * shape.k;
  gemm.b_row = shape.transpose_b ? 1 : shape.n;
  gemm.b_column = shape.transpose_b ? shape.k : 1;
  gemm.b_step = shape.same_b ? 0 : shape.k * shape.n;
  gemm.bias = !shape.bias                    ? TiledGemm::Bias::kNone
              : shape.added == shape.factors ? TiledGemm::Bias::kFactors
                                             : TiledGemm::Bias::kComputed;
  gemm.accumulate = shape.accumulate;
  const int64_t blocks = shape.batch * gemm.row_tiles * gemm.column_tiles;
  if (blocks > INT32_MAX) return absl::UnimplementedError("tiles: too many for one grid");
  if (shape.factors == DType::kBF16) {
    const double multiplications = static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                                   static_cast<double>(shape.n) * static_cast<double>(shape.k);
    WarnOfPlainArithmetic(
        absl::StrCat("a product [", shape.m, ", ", shape.n, "] over ", shape.k, " of bf16"),
        multiplications, "cuBLASLt");
  }
  return std::make_shared<TiledDeviceGemm>(gemm, blocks, std::move(function));
}

absl::StatusOr<std::shared_ptr<DeviceGemm>> MakeDeviceGemm(const DeviceGemmShape& shape,
                                                           Device& device) {
  absl::StatusOr<std::shared_ptr<DeviceGemm>> gemm = MakeCublasLtGemm(shape, device);
  if (gemm.ok() || !absl::IsUnimplemented(gemm.status())) return gemm;
  return MakeTiledGemm(shape, device);
}

}  // namespace oriel::kernels::cuda
