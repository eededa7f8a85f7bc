// Conversions of half and bfloat16 bit patterns.
#ifndef ORIEL_RUNTIME_TRAIN_FLOAT16_H_
#define ORIEL_RUNTIME_TRAIN_FLOAT16_H_

#include <cstdint>

namespace oriel::runtime {

float HalfToFloat(uint16_t half);
// Rounds to nearest, ties to even; overflow gives infinity. NaN stays NaN.
uint16_t FloatToHalf(float value);
float BFloat16ToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_FLOAT16_H_
