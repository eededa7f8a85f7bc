// Random values that a function is checked on, and what it computes of them.
//
// Of an argument, `check.low` and `check.high` bound them; else floats are from -2 to 2, integers
// and booleans 0 or 1.
#ifndef ORIEL_OPCHECK_ARGUMENTS_H_
#define ORIEL_OPCHECK_ARGUMENTS_H_

#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "opcheck/interpreter.h"
#include "passes/train/vjp_function.h"

namespace oriel {

using Tensors = std::vector<HostTensor>;

double numberOr(mlir::Attribute attribute, double fallback);
// `type` is a static tensor that specOf() takes; integers are rounded towards zero.
HostTensor randomTensor(mlir::Type type, double low, double high, std::mt19937* random);
// An error names an argument that is no static tensor of numbers.
absl::StatusOr<Tensors> randomArguments(mlir::func::FuncOp function, std::mt19937* random);
// Of the function's float results, from -1 to 1.
Tensors randomCotangents(mlir::func::FuncOp function, std::mt19937* random);
std::vector<const HostTensor*> pointersTo(const Tensors& tensors);

// Values of the function, inner ones too, for these arguments.
absl::StatusOr<Tensors> valuesOf(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Value> values,
                                 const Tensors& arguments);
// The arguments of a vjp function: what it captures, then these cotangents.
absl::StatusOr<Tensors> vjpArguments(mlir::func::FuncOp function, const VjpFunction& vjp,
                                     const Tensors& arguments, const Tensors& cotangents);

}  // namespace oriel

#endif  // ORIEL_OPCHECK_ARGUMENTS_H_
