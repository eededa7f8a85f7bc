// Pooling.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

// Dimensions 2 to rank - 1.
Ints spatialDims(Value input) { return llvm::to_vector(llvm::seq<int64_t>(2, rankOf(input))); }

LogicalResult importGlobalAveragePool(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input || rankOf(input) < 3) {
    return input ? n.error() << "pools " << input.getType() : failure();
  }
  return n.replace(n.reduce<ir::ReduceMeanOp>(input, spatialDims(input), /*keepDims=*/true));
}

// Windows that tile the input: [n, c, h, w] → [n, c, h/kh, kh, w/kw, kw], and the mean over each.
// What is left over at the end is dropped, as ceil_mode 0 says.
LogicalResult importAveragePool(NodeImporter& n) {
  Value input = n.operand(0);
  std::optional<Ints> kernel = n.attrInts("kernel_shape");
  if (!input) {
    return failure();
  }
  size_t spatial = rankOf(input) < 3 ? 0 : rankOf(input) - 2;
  if (!kernel || spatial == 0 || kernel->size() != spatial ||
      llvm::any_of(*kernel, [](int64_t size) { return size < 1; })) {
    return n.error() << "needs one positive kernel size per spatial dimension of "
                     << input.getType();
  }
  auto areAll = [](const Ints& values, int64_t expected) {
    return llvm::all_of(values, [=](int64_t value) { return value == expected; });
  };
  std::string autoPad = n.attrString("auto_pad", "NOTSET");
  if (n.attrInts("strides").value_or(Ints(spatial, 1)) != *kernel ||
      !areAll(n.attrInts("pads").value_or(Ints()), 0) ||
      !areAll(n.attrInts("dilations").value_or(Ints()), 1) || n.attrInt("ceil_mode", 0) != 0 ||
      (autoPad != "NOTSET" && autoPad != "VALID")) {
    return n.error() << "is supported where the windows tile the input: strides equal to "
                        "kernel_shape, no pads, no dilations, ceil_mode 0";
  }
  Ints starts(rankOf(input), 0), limits(shapeOf(input)), windows(shapeOf(input).take_front(2)),
      dims;
  for (auto [dim, size] : llvm::enumerate(*kernel)) {
    int64_t count = shapeOf(input)[dim + 2] / size;
    if (count == 0) {
      return n.error() << "has a kernel larger than its input " << input.getType();
    }
    limits[dim + 2] = count * size;
    windows.push_back(count);
    dims.push_back(static_cast<int64_t>(windows.size()));
    windows.push_back(size);
  }
  Value tiled = n.reshape(n.slice(input, starts, limits), windows);
  return n.replace(tiled ? n.reduce<ir::ReduceMeanOp>(tiled, dims, /*keepDims=*/false) : Value());
}

}  // namespace

void registerPoolOps(OpRegistry& registry) {
  registry.add("AveragePool", 11, importAveragePool);
  registry.add("GlobalAveragePool", 1, importGlobalAveragePool);
}

}  // namespace oriel
