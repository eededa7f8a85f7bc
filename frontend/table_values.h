// Whether the values of a tensor are a table that is computed, as no training leaves a weight.
#ifndef ORIEL_FRONTEND_TABLE_VALUES_H_
#define ORIEL_FRONTEND_TABLE_VALUES_H_

#include <cstdint>
#include <vector>

#include "frontend/tensor_data.h"
#include "llvm/ADT/ArrayRef.h"

namespace oriel {

// Tensors of floats with more than this many elements are none of these.
inline constexpr int64_t kLargestTable = int64_t{1} << 26;

// Every element is 0 or hides what it is added to (-1e9 or less), and some do.
bool isAddedMask(const TensorData& data);

// Dimensions of more than one element.
int64_t spannedDims(llvm::ArrayRef<int64_t> shape);
// Every element is NaN, or such a number of either sign: what is put in the place of others.
bool isFillValue(const TensorData& data);
// Of two or more dimensions, all elements the same.
bool isOfOneNumber(const TensorData& data);

// Of two or more dimensions, each element 0 or the same large number (50 or more, of either sign),
// and both are there: hidden by -100, as Swin's windows are, say.
bool isScoreMask(const TensorData& data);
// Of two or more dimensions, each element 0 or 1, and both are there.
bool isFactorMask(const TensorData& data);

// Cosines and sines of the same angles, times a factor: the squares of the elements of `a` and `b`,
// which have the same shape, add up to the same number everywhere. They are of more than two
// magnitudes.
bool areCosinesAndSines(const TensorData& a, const TensorData& b);
// Both in one: in the halves of a dimension.
bool isOfCosinesAndSines(const TensorData& data);

// Slopes of ALiBi for four heads or more (Press et al. 2022, section 3): with p heads, a power of
// two, 2^(-8/p), 2^(-16/p), ..; further heads take every other one of 2p.
bool isOfAlibiSlopes(const TensorData& data);
// Biases that grow by the same step from key to key (the last dimension) in each row, or by one up
// to a key and by another behind it, as by distance; but for what is hidden, and in some row at
// all.
bool isOfAlibiBiases(const TensorData& data);

// Positions times frequencies: along some dimension all elements grow by the same step.
bool isOfAngles(const TensorData& data);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_TABLE_VALUES_H_
