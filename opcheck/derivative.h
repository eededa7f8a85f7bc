// Vector-Jacobian products against finite differences.
#ifndef ORIEL_OPCHECK_DERIVATIVE_H_
#define ORIEL_OPCHECK_DERIVATIVE_H_

#include <random>
#include <string>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "opcheck/arguments.h"

namespace oriel {

// Hears what is wrong, and with which op, or function.
using OnFailure = llvm::function_ref<void(mlir::Operation* op, const std::string& what)>;

// Differentiates the function by all of its float arguments, which are f64, as `train` does; for
// random cotangents c, what it computes must be the derivative of L(x) = Σ c·f(x) by each element:
//   (8 (L(x+h) - L(x-h)) - (L(x+2h) - L(x-2h))) / 12h,
// whose error is h⁴ and rounding, and the same where the cotangent of one argument alone is asked
// for. The function's attribute `check.step` is h (1e-4). Returns the greatest difference,
// relative to max(1, |expected|), or infinity after a failure.
double checkDerivative(mlir::func::FuncOp function, const Tensors& arguments, std::mt19937* random,
                       OnFailure onFailure);

}  // namespace oriel

#endif  // ORIEL_OPCHECK_DERIVATIVE_H_
