// Launches of cross_entropy.cu.
#include "kernels/cuda/factory.h"
#include "kernels/cuda/piece.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/rows.h"
#include "kernels/loss/cross_entropy.h"
#include "kernels/loss/loss_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// What all launches with labels have: the logits are operand `logits`, the labels the next one.
struct Loss {
  CrossEntropyShape shape;
  LossArgs args;
  DType dtype, small, index;

  RowGrid GridFor(Device& device) const {
    return RowGridFor(device, shape.rows, shape.vocabulary, runtime::DTypeBytes(dtype),
                      /*packs=*/4);
  }
  LossArgs At(const KernelArgs& launch) const {
    LossArgs result = args;
    result.classes = AtLaunch(args.classes, shape.classes, launch);
    return result;
  }
};

absl::StatusOr<Loss> LossOf(const KernelSpec& spec, Device& device, size_t logits, size_t first) {
  ORIEL_ASSIGN_OR_RETURN(const CrossEntropyShape shape,
                         CrossEntropyShape::Make(spec, logits, first));
  const DType index = spec.operands[logits + 1].dtype;
  if (index != DType::kI64 && index != DType::kI32) {
    return Unsupported(spec, "takes labels of i64 and i32");
  }
  const FaultArgs labels = FaultsOf(
      device, absl::StrCat(spec.kernel, ": label {value} of row {position} is outside [0, ",
                           shape.classes.whole, ") and is not ignore_index ", shape.ignore_index));
  const DType dtype = spec.operands[logits].dtype;
  return Loss{shape,
              {shape.rows, shape.vocabulary, shape.ignore_index,
               PreparePiece(shape.classes, device), labels},
              dtype,
              ComputeDType(dtype),
              index};
}

absl::StatusOr<KernelFn> MakeCrossEntropy(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3));
  ORIEL_ASSIGN_OR_RETURN(const Loss loss, LossOf(spec, device, 0, 2));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, loss.small, {}));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, loss.small, {}));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 2, loss.small, spec.operands[1].shape));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_cross_entropy", {loss.dtype, loss.index}));
  ORIEL_ASSIGN_OR_RETURN(const Function finish,
                         FindTyped(spec, device, "oriel_finish_loss", {loss.small, loss.index}));
  const int64_t rows = loss.shape.rows;
  const RowGrid grid = loss.GridFor(device);
  ORIEL_RETURN_IF_ERROR(device.AddScratch(rows * static_cast<int64_t>(sizeof(double))));
  return KernelFn([=, &device](const KernelArgs& args) {
    const CUdeviceptr losses = device.scratch();
    if (rows > 0) {
      ORIEL_RETURN_IF_ERROR(function.Launch(grid.blocks, grid.threads, StreamOf(args),
                                            loss.At(args), args.operands[0], args.operands[1],
                                            args.results[2], losses));
    }
    return finish.Launch({1}, {512}, StreamOf(args), loss.At(args), args.operands[1], losses,
                         args.results[0], args.results[1]);
  });
}

absl::StatusOr<KernelFn> MakeTokenLosses(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 2));
  ORIEL_ASSIGN_OR_RETURN(const Loss loss, LossOf(spec, device, 0, 2));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, loss.small, spec.operands[1].shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, loss.small, spec.operands[1].shape));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_token_losses", {loss.dtype, loss.index}));
  const RowGrid grid = loss.GridFor(device);
  return KernelFn([=](const KernelArgs& args) {
    if (loss.shape.rows == 0) return absl::OkStatus();
    return function.Launch(grid.blocks, grid.threads, StreamOf(args), loss.At(args),
                           args.operands[0], args.operands[1], args.results[1], args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeCrossEntropyGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 4, 5, 1));
  ORIEL_ASSIGN_OR_RETURN(const Loss loss, LossOf(spec, device, 1, 4));
  ORIEL_ASSIGN_OR_RETURN(const bool is_of_rows, IsCotangentOfRows(spec));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 3, loss.small, spec.operands[2].shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, loss.dtype, spec.operands[1].shape));
  ORIEL_ASSIGN_OR_RETURN(
      const Function function,
      FindTyped(spec, device, "oriel_cross_entropy_grad", {loss.dtype, loss.index}));
  const RowGrid grid = loss.GridFor(device);
  return KernelFn([=](const KernelArgs& args) {
    if (loss.shape.rows == 0) return absl::OkStatus();
    return function.Launch(grid.blocks, grid.threads, StreamOf(args), loss.At(args),
                           args.operands[0], is_of_rows, args.operands[1], args.operands[2],
                           args.operands[3], args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeLabelLogits(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  ORIEL_ASSIGN_OR_RETURN(const Loss loss, LossOf(spec, device, 0, 2));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, loss.small, spec.operands[1].shape));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_label_logits", {loss.dtype, loss.index}));
  const Grid blocks = BlocksFor(device, loss.shape.rows, 256);
  return KernelFn([=](const KernelArgs& args) {
    if (loss.shape.rows == 0) return absl::OkStatus();
    return function.Launch(blocks, {256}, StreamOf(args), loss.At(args), args.operands[0],
                           args.operands[1], args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeBlockLogsumexp(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const BlockShape shape, BlockShape::Make(spec));
  const DType dtype = spec.operands[0].dtype;
  ORIEL_ASSIGN_OR_RETURN(const Function function, FindTyped(spec, device, "oriel_block_logsumexp",
                                                            {dtype, spec.operands[1].dtype}));
  // Nothing but where a piece begins is found to be wrong.
  const LossArgs loss = {shape.loss.rows, shape.loss.vocabulary, shape.loss.ignore_index,
                         PreparePiece(shape.piece, device), FaultsOf(device, "")};
  const RowGrid grid =
      RowGridFor(device, shape.loss.rows * shape.blocks, shape.loss.vocabulary / shape.blocks,
                 runtime::DTypeBytes(dtype), /*packs=*/4);
  return KernelFn([=](const KernelArgs& args) {
    if (loss.rows == 0) return absl::OkStatus();
    LossArgs now = loss;
    now.classes = AtLaunch(loss.classes, shape.piece, args);
    return function.Launch(grid.blocks, grid.threads, StreamOf(args), now, shape.blocks,
                           args.operands[0], args.operands[1], args.results[0], args.results[1]);
  });
}

absl::StatusOr<KernelFn> MakeSumExp(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  const TensorSpec& x = spec.operands[0];
  if (x.rank() < 1) return Malformed(spec, "the input has rank 0");
  const Shape outer(x.shape.begin(), x.shape.end() - 1);
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, ComputeDType(x.dtype), outer));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, ComputeDType(x.dtype), outer));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_sum_exp", {x.dtype}));
  const int64_t rows = runtime::NumElements(outer), n = x.shape.back();
  const RowGrid grid = RowGridFor(device, rows, n, runtime::DTypeBytes(x.dtype), /*packs=*/4);
  return KernelFn([=](const KernelArgs& args) {
    if (rows == 0) return absl::OkStatus();
    return function.Launch(grid.blocks, grid.threads, StreamOf(args), args.operands[0],
                           args.operands[1], args.results[0], rows, n);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("block_logsumexp", 0, MakeBlockLogsumexp);
ORIEL_REGISTER_CUDA_KERNEL("cross_entropy", 0, MakeCrossEntropy);
ORIEL_REGISTER_CUDA_KERNEL("cross_entropy_grad", 0, MakeCrossEntropyGrad);
ORIEL_REGISTER_CUDA_KERNEL("label_logits", 0, MakeLabelLogits);
ORIEL_REGISTER_CUDA_KERNEL("sum_exp", 0, MakeSumExp);
ORIEL_REGISTER_CUDA_KERNEL("token_losses", 0, MakeTokenLosses);

}  // namespace
}  // namespace oriel::kernels::cuda
