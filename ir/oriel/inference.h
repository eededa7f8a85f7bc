// Helpers of the ops' type inference. Each refusal is a diagnostic that names the op, and the
// arithmetic on sizes can't overflow: shapes may come from a hostile model file.
#ifndef ORIEL_IR_ORIEL_INFERENCE_H_
#define ORIEL_IR_ORIEL_INFERENCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ir/interfaces/tensor_type.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Value.h"

namespace oriel::ir {

// Tensors with more elements are refused, so that the bytes of 32,767 of them add up in an int64_t.
// Logits of all data-parallel ranks together have 2^40 and more in published runs.
inline constexpr int64_t kMaxElements = int64_t{1} << 44;
// As in a plan.
inline constexpr int64_t kMaxRank = 32;

// What no tensor may have and this shape does: "more than 32 dimensions". Empty if it may be.
std::string shapeProblem(llvm::ArrayRef<int64_t> shape);

using MaybeLocation = std::optional<mlir::Location>;

// Where a refusal goes: the op's name and the place, if a diagnostic is wanted at all.
class InferenceContext {
 public:
  InferenceContext(MaybeLocation location, llvm::StringRef opName)
      : location_(location), opName_(opName) {}

  // Emits "'oriel.op' op <parts>" and fails.
  template <typename... Parts>
  mlir::LogicalResult refuse(Parts&&... parts) const {
    return mlir::emitOptionalError(location_, "'", opName_, "' op ", std::forward<Parts>(parts)...);
  }

  // Appends the tensor type, or refuses more than kMaxElements.
  mlir::LogicalResult addResult(llvm::ArrayRef<int64_t> shape, mlir::Type elementType,
                                llvm::SmallVectorImpl<mlir::Type>& results) const;

  // The following refuse unless the condition in their name holds.
  mlir::LogicalResult expectRank(llvm::StringRef name, mlir::Value value, int64_t rank) const;
  mlir::LogicalResult expectShape(llvm::StringRef name, mlir::Value value,
                                  llvm::ArrayRef<int64_t> shape) const;
  mlir::LogicalResult expectType(llvm::StringRef name, mlir::Value value, mlir::Type type) const;
  mlir::LogicalResult expectElementType(llvm::StringRef name, mlir::Value value,
                                        mlir::Type elementType) const;
  // `first` and the whole's size, named `name`, are both there or both not (0); the whole is not
  // smaller than its piece.
  mlir::LogicalResult expectPiece(mlir::Value first, llvm::StringRef name, int64_t whole,
                                  int64_t piece) const;
  // 0 <= dim < rank
  mlir::LogicalResult expectDim(llvm::StringRef name, int64_t dim, int64_t rank) const;

 private:
  MaybeLocation location_;
  llvm::StringRef opName_;
};

// Refuses what is no kind of oriel.activation.
mlir::LogicalResult checkActivationKind(const InferenceContext& context, llvm::StringRef kind);

// The element type of sums and statistics: f32 where the elements are narrower floats.
mlir::Type wideType(mlir::Type elementType);
// Whether the types are these, or have f32 elements in place of narrower floats:
// `isCompatibleReturnTypes` of ops with the trait InferWideTypes.
bool areTypesOrWide(mlir::TypeRange inferred, mlir::TypeRange actual);

// "[2, 8, 64]", of not more than kMaxRank sizes.
std::string shapeText(llvm::ArrayRef<int64_t> shape);

// Whether `from` broadcasts to `to` as NumPy does.
bool broadcastsTo(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);
// The common shape of two operands; fails where there is none.
mlir::FailureOr<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> lhs,
                                                            llvm::ArrayRef<int64_t> rhs);

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_INFERENCE_H_
