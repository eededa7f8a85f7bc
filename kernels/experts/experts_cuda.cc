// Launches of experts.cu and experts_mma.cu.
#include <algorithm>
#include <string>

#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/embedding/index_sort.h"
#include "kernels/experts/expert_args.h"
#include "kernels/experts/experts.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int64_t kAlignment = 256;
// A grid has up to 65,535 tiles of 64 of them.
constexpr int64_t kMaxColumns = 65535 * kExpertTile;

unsigned Tiles(int64_t size, int64_t tile) {
  return static_cast<unsigned>((size + tile - 1) / tile);
}

// Sorts the choices and makes the table of an expert's tiles.
class TableMaker {
 public:
  static absl::StatusOr<TableMaker> Make(const KernelSpec& spec, Device& device,
                                         const ExpertShape& shape, int tile) {
    const GatherShape choices{
        1, shape.experts, 1, shape.choices, shape.choices, shape.experts, shape.piece};
    ORIEL_ASSIGN_OR_RETURN(IndexSort sort,
                           IndexSort::Make(spec, device, choices, shape.index, "choice"));
    ORIEL_ASSIGN_OR_RETURN(Function table, device.Find("oriel_expert_table"));
    const int64_t tiles = shape.MostTiles(tile);
    if (tiles > INT32_MAX || shape.experts > 65535) {
      return Unsupported(spec, "takes up to 65,535 experts and 2^31 - 1 tiles of rows");
    }
    if (std::max(shape.depth, shape.columns) > kMaxColumns) {
      return Unsupported(spec, "takes matrices of up to 4,194,240 rows and columns");
    }
    const ExpertArgs args{shape.choices,
                          static_cast<int32_t>(shape.depth),
                          static_cast<int32_t>(shape.columns),
                          static_cast<int32_t>(shape.per_row),
                          static_cast<int32_t>(shape.experts),
                          static_cast<int32_t>(tiles),
                          shape.transposed,
                          shape.accumulates};
    ORIEL_RETURN_IF_ERROR(device.AddScratch(BeginAt(sort) + BeginBytes(args) +
                                            tiles * static_cast<int64_t>(sizeof(RowTile))));
    return TableMaker(std::move(sort), std::move(table), args, tile, device);
  }

  const ExpertArgs& args() const { return args_; }

  absl::StatusOr<ExpertTable> Launch(const KernelArgs& launch, const void* choices) const {
    const CUdeviceptr scratch = device_->scratch();
    ORIEL_ASSIGN_OR_RETURN(const SortedIndices sorted, sort_.Launch(launch, choices, scratch));
    const CUdeviceptr begin = scratch + static_cast<CUdeviceptr>(BeginAt(sort_));
    const ExpertTable table{
        sorted.rows, sorted.order, reinterpret_cast<int32_t*>(begin),
        reinterpret_cast<RowTile*>(begin + static_cast<CUdeviceptr>(BeginBytes(args_)))};
    ORIEL_RETURN_IF_ERROR(
        table_.Launch({1}, {kExpertTableThreads}, StreamOf(launch), args_, tile_, table));
    return table;
  }

 private:
  TableMaker(IndexSort sort, Function table, const ExpertArgs& args, int32_t tile,
             const Device& device)
      : sort_(std::move(sort)),
        table_(std::move(table)),
        args_(args),
        tile_(tile),
        device_(&device) {}

  static int64_t Aligned(int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  static int64_t BeginAt(const IndexSort& sort) { return Aligned(sort.scratch_bytes()); }
  static int64_t BeginBytes(const ExpertArgs& args) {
    return Aligned((int64_t{args.experts} + 1) * static_cast<int64_t>(sizeof(int32_t)));
  }

  IndexSort sort_;
  Function table_;
  ExpertArgs args_;
  int32_t tile_;
  const Device* device_;
};

absl::Status Clear(const Device& device, const KernelArgs& launch, int64_t bytes) {
  return ORIEL_CUDA(device.driver(), cuMemsetD8Async,
                    reinterpret_cast<CUdeviceptr>(launch.results[0]), 0, static_cast<size_t>(bytes),
                    StreamOf(launch));
}

// Why tensor cores don't take it; nothing if they do.
absl::Status CheckMma(const KernelSpec& spec, const ExpertShape& shape) {
  if (shape.factors != DType::kBF16) return Unsupported(spec, "tensor cores: take bf16");
  if (shape.depth % 8 != 0 || shape.columns % 8 != 0) {
    return Unsupported(spec, "tensor cores: sizes are no multiples of 8");
  }
  return absl::OkStatus();
}

absl::StatusOr<KernelFn> LaunchLinear(const KernelSpec& spec, Device& device,
                                      const ExpertShape& shape, Function function, int tile) {
  ORIEL_ASSIGN_OR_RETURN(const TableMaker maker, TableMaker::Make(spec, device, shape, tile));
  const int64_t bytes = spec.results[0].bytes();
  // Choices of other pieces are in no tile.
  const bool clears = shape.piece.operand >= 0 || shape.depth == 0;
  const Grid blocks = {static_cast<unsigned>(maker.args().tiles), Tiles(shape.columns, tile)};
  const Device* from = &device;
  return KernelFn([=](const KernelArgs& launch) -> absl::Status {
    if (bytes == 0) return absl::OkStatus();
    if (clears) ORIEL_RETURN_IF_ERROR(Clear(*from, launch, bytes));
    ORIEL_ASSIGN_OR_RETURN(const ExpertTable table, maker.Launch(launch, launch.operands[2]));
    return function.Launch(blocks, {kExpertThreads}, StreamOf(launch), maker.args(), table,
                           launch.operands[0], launch.operands[1], launch.results[0]);
  });
}

absl::StatusOr<KernelFn> LaunchWeightGrad(const KernelSpec& spec, Device& device,
                                          const ExpertShape& shape, Function function, int tile) {
  ORIEL_ASSIGN_OR_RETURN(const TableMaker maker, TableMaker::Make(spec, device, shape, tile));
  const int64_t bytes = spec.results[0].bytes(), choices = shape.choices;
  const bool accumulates = shape.accumulates;
  const size_t addend = spec.operands.size() - 1;
  const Shape& matrix = spec.results[0].shape;
  const Grid blocks = {Tiles(matrix[1], tile), Tiles(matrix[2], tile),
                       static_cast<unsigned>(shape.experts)};
  const Device* from = &device;
  return KernelFn([=](const KernelArgs& launch) -> absl::Status {
    if (bytes == 0) return absl::OkStatus();
    if (accumulates && launch.operands[addend] != launch.results[0]) {
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(from->driver(), cuMemcpyAsync,
                                       reinterpret_cast<CUdeviceptr>(launch.results[0]),
                                       reinterpret_cast<CUdeviceptr>(launch.operands[addend]),
                                       static_cast<size_t>(bytes), StreamOf(launch)));
    }
    if (choices == 0) return accumulates ? absl::OkStatus() : Clear(*from, launch, bytes);
    ORIEL_ASSIGN_OR_RETURN(const ExpertTable table, maker.Launch(launch, launch.operands[2]));
    return function.Launch(blocks, {kExpertThreads}, StreamOf(launch), maker.args(), table,
                           launch.operands[0], launch.operands[1], launch.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeMmaLinear(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const ExpertShape shape, ExpertShape::OfLinear(spec));
  ORIEL_RETURN_IF_ERROR(CheckMma(spec, shape));
  ORIEL_ASSIGN_OR_RETURN(Function function,
                         device.Find(shape.transposed ? "oriel_expert_linear_transposed_mma"
                                                      : "oriel_expert_linear_mma"));
  return LaunchLinear(spec, device, shape, std::move(function), kExpertMmaTile);
}

absl::StatusOr<KernelFn> MakeTiledLinear(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const ExpertShape shape, ExpertShape::OfLinear(spec));
  ORIEL_ASSIGN_OR_RETURN(Function function,
                         FindTyped(spec, device, "oriel_expert_linear", {shape.factors}));
  return LaunchLinear(spec, device, shape, std::move(function), kExpertTile);
}

using ShapeOf = absl::StatusOr<ExpertShape> (*)(const KernelSpec&);

template <ShapeOf kShapeOf>
absl::StatusOr<KernelFn> MakeMmaWeightGrad(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const ExpertShape shape, kShapeOf(spec));
  ORIEL_RETURN_IF_ERROR(CheckMma(spec, shape));
  ORIEL_ASSIGN_OR_RETURN(Function function,
                         FindTyped(spec, device, "oriel_expert_weight_grad_mma", {shape.result}));
  return LaunchWeightGrad(spec, device, shape, std::move(function), kExpertMmaTile);
}

template <ShapeOf kShapeOf>
absl::StatusOr<KernelFn> MakeTiledWeightGrad(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const ExpertShape shape, kShapeOf(spec));
  ORIEL_ASSIGN_OR_RETURN(Function function, FindTyped(spec, device, "oriel_expert_weight_grad",
                                                      {shape.factors, shape.result}));
  return LaunchWeightGrad(spec, device, shape, std::move(function), kExpertTile);
}

constexpr ShapeOf kGrad = ExpertShape::OfWeightGrad, kSum = ExpertShape::OfWeightGradAdd;
ORIEL_REGISTER_CUDA_KERNEL("expert_linear", 10, MakeMmaLinear);
ORIEL_REGISTER_CUDA_KERNEL("expert_linear", 0, MakeTiledLinear);
ORIEL_REGISTER_CUDA_KERNEL("expert_linear_weight_grad", 10, MakeMmaWeightGrad<kGrad>);
ORIEL_REGISTER_CUDA_KERNEL("expert_linear_weight_grad", 0, MakeTiledWeightGrad<kGrad>);
ORIEL_REGISTER_CUDA_KERNEL("expert_linear_weight_grad_add", 10, MakeMmaWeightGrad<kSum>);
ORIEL_REGISTER_CUDA_KERNEL("expert_linear_weight_grad_add", 0, MakeTiledWeightGrad<kSum>);

}  // namespace
}  // namespace oriel::kernels::cuda
