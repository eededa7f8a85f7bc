// The oriel dialect and its ops.
#ifndef ORIEL_IR_ORIEL_ORIEL_H_
#define ORIEL_IR_ORIEL_ORIEL_H_

#include <utility>

#include "ir/interfaces/interfaces.h"
#include "ir/oriel/traits.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

// The generated parts need what is included above. clang-format would sort them among it.
// clang-format off
#include "ir/oriel/oriel_dialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/oriel/oriel_attributes.h.inc"
#define GET_OP_CLASSES
#include "ir/oriel/oriel_ops.h.inc"
// clang-format on

namespace oriel::ir {

// On a collective, i64 from 1 on: it is started where it stands, on this communication stream.
inline constexpr llvm::StringLiteral kStreamAttr("oriel.stream");
// On started collectives that stand one behind the other: those with the same number travel as one.
// They are of one kind, and have the same axes, reduction and stream.
inline constexpr llvm::StringLiteral kBucketAttr("oriel.bucket");
// Checks these two attributes of an op.
mlir::LogicalResult verifyStream(mlir::Operation* op, mlir::NamedAttribute attribute);
// Whether two collectives are of one bucket, wherever they stand.
bool travelTogether(CollectiveOpInterface a, CollectiveOpInterface b);

// On a `max`, or a `reduce_max` of one dimension: of equal elements the first has the gradient, as
// in PyTorch's pooling. Else they share it, as in PyTorch's maximum and amax.
inline constexpr llvm::StringLiteral kFirstOfEqualAttr("oriel.first_of_equal");

// `OpTy::create` for operands whose shapes the user decides: the same arguments less the result
// types. Where the result types can't be inferred, `create` ends the process; this emits the
// op's rule as an error at `loc` and fails.
//
//   mlir::FailureOr<AddOp> sum = createChecked<AddOp>(builder, loc, lhs, rhs);
template <typename OpTy, typename... Args>
mlir::FailureOr<OpTy> createChecked(mlir::OpBuilder& builder, mlir::Location loc, Args&&... args) {
  using mlir::OpTrait::NResults;
  constexpr unsigned kResults = OpTy::template hasTrait<NResults<3>::Impl>()   ? 3
                                : OpTy::template hasTrait<NResults<2>::Impl>() ? 2
                                                                               : 1;
  mlir::OperationState state(loc, OpTy::getOperationName());
  // The builder that takes result types does not infer: placeholders, replaced below.
  llvm::SmallVector<mlir::Type> placeholders(kResults, builder.getNoneType());
  OpTy::build(builder, state, mlir::TypeRange(placeholders), std::forward<Args>(args)...);
  state.types.clear();
  if (failed(OpTy::inferReturnTypes(builder.getContext(), loc, state.operands,
                                    state.attributes.getDictionary(builder.getContext()),
                                    state.getRawProperties(), state.regions, state.types))) {
    return mlir::failure();
  }
  return llvm::cast<OpTy>(builder.create(state));
}

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_ORIEL_H_
