// What passes ask of an op: its cost, its kernel, its vector-Jacobian product, the types in which
// it computes, how it splits; and of an op between ranks.
//
//   if (auto kernel = llvm::dyn_cast<oriel::ir::KernelOpInterface>(op)) ... kernel.getKernelName()
#ifndef ORIEL_IR_INTERFACES_INTERFACES_H_
#define ORIEL_IR_INTERFACES_INTERFACES_H_

#include <cstdint>
#include <optional>

#include "ir/interfaces/local_pieces.h"
#include "ir/interfaces/sharding_rule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace oriel::ir {

// Elements of a static shape; INT64_MAX where the product does not fit. 0 for a shape with a
// dynamic size.
int64_t elementCount(llvm::ArrayRef<int64_t> shape);

// Bytes of a value: whole bytes per element (a boolean takes one), no padding. 0 for a type
// that is not a static ranked tensor of numbers; INT64_MAX where the product does not fit.
int64_t typeBytes(mlir::Type type);
// Their sum, likewise bounded.
int64_t typesBytes(mlir::TypeRange types);

// One floating-point operation per element of each result; none for a view.
int64_t defaultFlops(mlir::Operation* op);

// The mnemonic of an oriel op, the whole name of another dialect's.
llvm::StringRef shortName(mlir::OperationName name);
llvm::StringRef defaultKernelName(mlir::Operation* op);

// a * b * .. and at most INT64_MAX. For counts: factors must not be negative.
int64_t boundedProduct(llvm::ArrayRef<int64_t> factors);

// Beside an op: element i of a result depends on element i of each operand alone, after
// broadcasting as NumPy does.
template <typename Op>
class Pointwise : public mlir::OpTrait::TraitBase<Op, Pointwise> {};

// How an op computes under mixed precision.
enum class Precision {
  kWide,        // in f32: operands are widened
  kWideInside,  // as kWide, but the first result is narrow as soon as it is an activation
  kNarrow,      // in the narrow type, as soon as an operand is an activation
  kFollow,      // in the narrow type, if an operand is a narrow activation
  kMove,        // as kFollow, without arithmetic: what moves weights takes the type that is wanted
};
// kMove for a view, kFollow with the trait Pointwise, else kWide.
Precision defaultPrecision(mlir::Operation* op);

// Whether the rules of all ops fit them (misfitOf): passes take a rule at its word, and an op may
// be a plugin's. An error says where one does not.
mlir::LogicalResult checkShardingRules(mlir::Operation* root);

// No factors.
ShardingRule wholeRule(mlir::Operation* op);
// A parallel factor per dimension of the results, which have one shape, less the dimensions
// `whole`. Operands are aligned at the last dimension and have it where their size is the same.
ShardingRule pointwiseRule(mlir::Operation* op, llvm::ArrayRef<int64_t> whole = {});
// pointwiseRule with the trait Pointwise, else wholeRule.
ShardingRule defaultShardingRule(mlir::Operation* op);
// The op on pieces: its attributes, these operands, and results of local shapes.
mlir::Operation* cloneLocal(mlir::Operation* op, mlir::OpBuilder& builder,
                            mlir::ValueRange operands, const ShardingRule& rule,
                            const LocalPieces& pieces);
// The same for an op that may have a piece of a dimension only, made of at most one factor
// (`dim`). If that is cut, the op takes one operand more, the index where its piece begins, and
// the attribute `whole`, the size of all pieces together.
mlir::Operation* cloneLocalAt(mlir::Operation* op, mlir::OpBuilder& builder,
                              mlir::ValueRange operands, const ShardingRule& rule,
                              const LocalPieces& pieces, const FactorList& dim,
                              llvm::StringRef whole);

}  // namespace oriel::ir

#include "ir/interfaces/collective.h.inc"
#include "ir/interfaces/cost.h.inc"
#include "ir/interfaces/differentiable.h.inc"
#include "ir/interfaces/kernel.h.inc"
#include "ir/interfaces/precision.h.inc"
#include "ir/interfaces/sharding.h.inc"

#endif  // ORIEL_IR_INTERFACES_INTERFACES_H_
