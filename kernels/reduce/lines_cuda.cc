// Launches of lines.cu.
#include "kernels/cuda/factory.h"
#include "kernels/cuda/piece.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/rows.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// The lines of the operand along a dimension.
LineArgs LinesOf(const KernelSpec& spec, int64_t dim) {
  const TensorSpec& x = spec.operands[0];
  const int64_t inner = SizeOf(x.shape, dim + 1, x.rank());
  return LineArgs{SizeOf(x.shape, 0, dim) * inner, x.shape[dim], inner, 0, 0, 0, 0, 1};
}

absl::StatusOr<KernelFn> MakeSelect(const KernelSpec& spec, Device& device, const LineArgs& args) {
  ORIEL_ASSIGN_OR_RETURN(
      const Function function,
      FindTyped(spec, device, "oriel_select", {spec.operands[0].dtype, spec.results[0].dtype}));
  const RowGrid grid = RowGridFor(device, args.lines, args.n,
                                  runtime::DTypeBytes(spec.operands[0].dtype), /*packs=*/1);
  return KernelFn([=](const KernelArgs& launch) {
    if (args.lines * args.k == 0) return absl::OkStatus();
    return function.Launch(grid.blocks, grid.threads, StreamOf(launch), args, launch.operands[0],
                           launch.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeArgmax(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  const TensorSpec& x = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", x.rank()));
  ORIEL_ASSIGN_OR_RETURN(const bool keep, FlagOr(spec, "keep_dims", false));
  if (x.shape[dim] == 0) return Malformed(spec, "the dimension is empty");
  Shape expected = x.shape;
  if (keep) {
    expected[dim] = 1;
  } else {
    expected.erase(expected.begin() + dim);
  }
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, spec.results[0].dtype, expected));
  LineArgs args = LinesOf(spec, dim);
  args.k = 1;
  args.largest = 1;
  return MakeSelect(spec, device, args);
}

absl::StatusOr<KernelFn> MakeTopk(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  const TensorSpec& x = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", x.rank()));
  LineArgs args = LinesOf(spec, dim);
  ORIEL_ASSIGN_OR_RETURN(args.k, spec.Int("k"));
  ORIEL_ASSIGN_OR_RETURN(args.largest, FlagOr(spec, "largest", true));
  if (args.k < 0 || args.k > x.shape[dim]) return Malformed(spec, "k does not fit the dimension");
  Shape expected = x.shape;
  expected[dim] = args.k;
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, DType::kI64, expected));
  return MakeSelect(spec, device, args);
}

absl::StatusOr<KernelFn> MakeCumsum(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  const TensorSpec& x = spec.operands[0];
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", x.rank()));
  LineArgs args = LinesOf(spec, dim);
  ORIEL_ASSIGN_OR_RETURN(args.exclusive, FlagOr(spec, "exclusive", false));
  ORIEL_ASSIGN_OR_RETURN(args.reverse, FlagOr(spec, "reverse", false));
  // Where lines are few: of many, a thread for each keeps the device busy.
  constexpr int64_t kLong = 32;
  const bool is_long = args.n >= kLong && args.lines > 0 &&
                       args.lines <= int64_t{kCumsumThreads} * device.properties().multiprocessors;
  while (is_long && args.columns < 32 && args.columns < args.inner) args.columns *= 2;
  ORIEL_ASSIGN_OR_RETURN(
      const Function function,
      FindTyped(spec, device, is_long ? "oriel_cumsum_long" : "oriel_cumsum", {x.dtype}));
  const int64_t across = (args.inner + args.columns - 1) / args.columns;
  const Grid blocks = is_long ? BlocksFor(device, args.lines / args.inner * across, 1)
                              : BlocksFor(device, args.lines, kCumsumThreads);
  return KernelFn([=](const KernelArgs& launch) {
    if (args.lines * args.n == 0) return absl::OkStatus();
    return function.Launch(blocks, {kCumsumThreads}, StreamOf(launch), args, launch.operands[0],
                           launch.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeRemainingFrom(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const RowsWithValue shape, RowsWithValue::Make(spec));
  const DType dtype = spec.operands[0].dtype;
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_remaining_from", {dtype}));
  const RemainingArgs rows{shape.rows, PreparePiece(shape.elements, device),
                           reinterpret_cast<Fault*>(device.fault())};
  const RowGrid grid =
      RowGridFor(device, shape.rows, shape.elements.size, runtime::DTypeBytes(dtype), /*packs=*/1);
  return KernelFn([=](const KernelArgs& launch) {
    if (rows.rows == 0) return absl::OkStatus();
    RemainingArgs args = rows;
    args.elements = AtLaunch(rows.elements, shape.elements, launch);
    return function.Launch(grid.blocks, grid.threads, StreamOf(launch), args, launch.operands[0],
                           launch.operands[1], launch.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("argmax", 0, MakeArgmax);
ORIEL_REGISTER_CUDA_KERNEL("topk", 0, MakeTopk);
ORIEL_REGISTER_CUDA_KERNEL("cumsum", 0, MakeCumsum);
ORIEL_REGISTER_CUDA_KERNEL("remaining_from", 0, MakeRemainingFrom);

}  // namespace
}  // namespace oriel::kernels::cuda
