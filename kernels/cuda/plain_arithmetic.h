// What is large enough to be slow without tensor cores.
#ifndef ORIEL_KERNELS_CUDA_PLAIN_ARITHMETIC_H_
#define ORIEL_KERNELS_CUDA_PLAIN_ARITHMETIC_H_

#include <string>

namespace oriel::kernels::cuda {

// A launch of bf16 runs in Oriel's own kernel because `library` does not take it. Says so on
// standard error, once for each library, if it multiplies 1e10 numbers or more: that takes many
// times as long as on tensor cores.
void WarnOfPlainArithmetic(const std::string& launch, double multiplications, const char* library);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_PLAIN_ARITHMETIC_H_
