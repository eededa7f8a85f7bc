#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

LogicalResult DeltaScanOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                            Adaptor adaptor, SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  ArrayRef<int64_t> values = shapeOf(adaptor.getValues()), keys = shapeOf(adaptor.getReadKeys());
  if (values.size() < 3 || keys.size() != values.size() || keys.drop_back() != values.drop_back()) {
    return context.refuse("expects values [b.., n, c, v] and read_keys [b.., n, c, k], got ",
                          shapeText(values), " and ", shapeText(keys));
  }
  SmallVector<int64_t> states(values.drop_back(2));
  states.append({keys.back(), values.back()});
  SmallVector<int64_t> state(values.drop_back(3));
  state.append({keys.back(), values.back()});
  SmallVector<int64_t> decays(values.drop_back(2));
  decays.append({keys.back(), 1});
  if (shapeOf(adaptor.getDecays()) != ArrayRef(decays)) decays[decays.size() - 2] = 1;
  mlir::Type elementType = elementOf(adaptor.getValues());
  auto expectWideOr = [&](llvm::StringRef name, Value value) {
    mlir::Type type = elementOf(value);
    return type == wideType(elementType) ? success()
                                         : context.expectElementType(name, value, elementType);
  };
  if (failed(context.expectElementType("read_keys", adaptor.getReadKeys(), elementType)) ||
      failed(context.expectType("write_keys", adaptor.getWriteKeys(),
                                adaptor.getReadKeys().getType())) ||
      failed(context.expectShape("decays", adaptor.getDecays(), decays)) ||
      failed(context.expectShape("initial", adaptor.getInitial(), state)) ||
      failed(expectWideOr("decays", adaptor.getDecays())) ||
      failed(expectWideOr("initial", adaptor.getInitial()))) {
    return mlir::failure();
  }
  if (failed(context.addResult(values, elementType, results)) ||
      failed(context.addResult(states, elementType, results))) {
    return mlir::failure();
  }
  if (Value added = adaptor.getAdded();
      added && failed(context.expectType("added", added, results.back()))) {
    return mlir::failure();
  }
  return context.addResult(state, elementOf(adaptor.getInitial()), results);
}

// Two products with each state.
int64_t DeltaScanOp::getFlops() {
  return boundedProduct({4, elementCount(shapeOf(getValues())), shapeOf(getReadKeys()).back()});
}

// A state follows from the one before, by all of its rows; its columns are by themselves.
ShardingRule DeltaScanOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims batch = rule.parallel(shapeOf(getInitial()).drop_back(2));
  const int v = rule.parallel(shapeOf(getValues()).back());
  const Dims columns = batch + kWhole + kWhole + v;
  const Dims whole = batch + kWhole + kWhole + kWhole;
  rule.operand(0, columns);
  rule.operand(1, whole);
  rule.operand(2, whole);
  rule.operand(3, whole);
  rule.operand(4, batch + kWhole + v);
  if (getAdded()) rule.operand(5, columns);
  rule.result(0, columns);
  rule.result(1, columns);
  rule.result(2, batch + kWhole + v);
  return rule.take();
}

}  // namespace oriel::ir
