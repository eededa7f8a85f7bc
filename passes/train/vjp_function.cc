#include "passes/train/vjp_function.h"

#include "ir/oriel/oriel.h"
#include "passes/train/autodiff.h"
#include "passes/train/isolate.h"

using namespace mlir;

namespace oriel {
namespace {

Value zeros(OpBuilder& builder, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return ir::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(tensor, builder.getZeroAttr(tensor.getElementType())));
}

}  // namespace

SmallVector<unsigned> floatArguments(func::FuncOp function) {
  SmallVector<unsigned> arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (hasCotangent(type)) arguments.push_back(i);
  }
  return arguments;
}

FailureOr<VjpFunction> buildVjpFunction(func::FuncOp function, ArrayRef<unsigned> arguments) {
  Block& body = function.getBody().front();
  int64_t origin = 0;
  for (Operation& op : body) setOrigin(&op, origin++);

  SmallVector<Value> wanted, outputs, seeds, captured;
  for (unsigned i : arguments) {
    if (i >= function.getNumArguments() || !hasCotangent(function.getArgument(i).getType())) {
      return function.emitError("has no float argument ") << i << " to differentiate for";
    }
    wanted.push_back(function.getArgument(i));
  }
  Location loc = function.getLoc();
  OpBuilder outside(function);
  outside.setInsertionPointAfter(function);
  auto vjp = func::FuncOp::create(outside, loc, (function.getSymName() + "_vjp").str(),
                                  outside.getFunctionType({}, {}));
  Block* block = vjp.addEntryBlock();
  for (Value result : body.getTerminator()->getOperands()) {
    if (!hasCotangent(result.getType())) continue;
    outputs.push_back(result);
    seeds.push_back(block->addArgument(result.getType(), loc));
  }
  auto builder = OpBuilder::atBlockEnd(block);
  FailureOr<SmallVector<Value>> cotangents = Autodiff(body, outputs, wanted).build(builder, seeds);
  if (failed(cotangents)) return vjp.erase(), failure();
  for (auto [cotangent, value] : llvm::zip_equal(*cotangents, wanted)) {
    if (!cotangent) cotangent = zeros(builder, loc, value.getType());
  }
  func::ReturnOp::create(builder, loc, *cotangents);
  eraseDeadOps(*block);
  // Arguments are no parameters.
  for (Operation& op : *block) op.removeAttr(kWeightGradient);
  isolateBlock(*block, [&](Value value) {
    captured.push_back(value);
    return block->insertArgument(captured.size() - 1, value.getType(), value.getLoc());
  });
  vjp.setFunctionType(
      builder.getFunctionType(block->getArgumentTypes(), ValueRange(*cotangents).getTypes()));
  return VjpFunction{vjp, std::move(captured)};
}

}  // namespace oriel
