// Transcendental functions of one f32, made of sums, products, quotients, comparisons and shifts
// that are rounded one by one: so every target gives the same bits. The forms are those of the host
// kernels (kernels/common/vector_math.h), which the C++ compiler contracts: those may have other
// last bits.
//
// Against the exact function over all finite x, where it is above 2^-126, in units in the last
// place (tests/generated/functions_test.cc):
//   exp      1.5   0 for x < -86.9, where it is below 1.9e-38; infinite above 88.7228394
//   sigmoid  2.6   0 for x < -88.7228394
//   tanh     1.6
//   erf      2.7
// NaN gives NaN.
#ifndef ORIEL_IR_SCALAR_FUNCTIONS_H_
#define ORIEL_IR_SCALAR_FUNCTIONS_H_

#include "ir/scalar/build.h"

namespace oriel::ir {

mlir::Value expOf(const At& at, mlir::Value x);
mlir::Value sigmoidOf(const At& at, mlir::Value x);
mlir::Value tanhOf(const At& at, mlir::Value x);
mlir::Value erfOf(const At& at, mlir::Value x);

}  // namespace oriel::ir

#endif  // ORIEL_IR_SCALAR_FUNCTIONS_H_
