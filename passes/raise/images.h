// Images that the recipe declares, and the merges that take their features.
#ifndef ORIEL_PASSES_RAISE_IMAGES_H_
#define ORIEL_PASSES_RAISE_IMAGES_H_

#include <optional>
#include <string>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {

// Arguments of the function that `roots` depend on, other than by the features that merges put
// into text.
llvm::SmallPtrSet<mlir::Value, 8> argumentsBehind(llvm::ArrayRef<mlir::Value> roots);

// The only name of an input that images are declared by, where it may be any.
inline constexpr llvm::StringLiteral kAnyInput = "*";

// Whether `inputs`, those of several kinds of images, are inputs of the function, or one that may
// be any, and each list has a number of at least 1 for each of them; else an error says what is
// wrong.
mlir::LogicalResult checkImages(mlir::func::FuncOp function, llvm::ArrayRef<std::string> inputs,
                                llvm::ArrayRef<llvm::ArrayRef<int64_t>> numbers);

// Which of `inputs` (of the model, or `kAnyInput` alone) the features come from: an index, or none.
// Failure, with an error at `merge`, where they come from several.
mlir::FailureOr<std::optional<size_t>> imagesOf(mlir::Operation* merge, mlir::Value features,
                                                llvm::ArrayRef<std::string> inputs);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_IMAGES_H_
