// Matrices that exporters have written twice.
#ifndef ORIEL_FRONTEND_WEIGHT_COPIES_H_
#define ORIEL_FRONTEND_WEIGHT_COPIES_H_

#include "frontend/tensor_data.h"

namespace oriel {

enum class WeightCopy { kNone, kSame, kTransposed };

// What `a` is of `b`: matrices of the same type whose values are the same, or, transposed, those of
// the other; not of one value, such as zeros, as many parameters begin.
WeightCopy findCopy(const TensorData& a, const TensorData& b);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_WEIGHT_COPIES_H_
