// The launches that kernels_bench.cc times: those of bench/results/README.md's table.
#ifndef ORIEL_KERNELS_CUDA_KERNELS_BENCH_H_
#define ORIEL_KERNELS_CUDA_KERNELS_BENCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace oriel::kernels::cuda {

struct BenchLaunch {
  std::string kernel;
  std::vector<TensorSpec> operands;
  std::vector<TensorSpec> results;
  std::map<std::string, Attribute> attributes;
  double flops = 0;  // a multiply-add counts two; 0 for what moves bytes
  double bytes = 0;  // that it must move, if not all operands and results once
  // Of integers; of a mask, in each row, how many are true, if not all.
  int64_t index_limit = 0;
  std::vector<int> in_place = {};  // the operands in whose memory the first results are
  std::vector<int> squares = {};   // the operands that have no number below 0

  double AllBytes() const;
  double MovedBytes() const { return bytes > 0 ? bytes : AllBytes(); }
};

// A product of square matrices in bf16, that others are compared with.
BenchLaunch SquareProduct(int64_t size);
// 8 sequences of 1024 tokens of a 7 B decoder, and its optimizer.
std::vector<BenchLaunch> DecoderLaunches();
// The same at sizes for tests.
std::vector<BenchLaunch> TinyLaunches();

// With what a kernel is benched that has no launch there, or why with nothing; empty if nothing is
// said of it.
std::string BenchedWith(const std::string& kernel);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_KERNELS_BENCH_H_
