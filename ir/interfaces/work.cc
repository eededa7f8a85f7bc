#include "ir/interfaces/work.h"

#include <algorithm>

#include "ir/interfaces/work.cc.inc"

namespace oriel::ir {

namespace {

double product(std::initializer_list<int64_t> factors) {
  double result = 1;
  for (int64_t factor : factors) result *= static_cast<double>(factor);
  return result;
}

// Multiply-adds of the product of queries and keys, and of that with the values.
struct AttentionProducts {
  double scores, values;
};
AttentionProducts productsOf(const AttentionWork& work) {
  double pairs = product({work.queries, work.keys});
  // Query i sees the keys up to i, where both end at the same.
  if (work.isCausal && work.queries <= work.keys) {
    pairs = product({work.queries}) * (product({2 * work.keys - work.queries + 1})) / 2;
  }
  if (work.window > 0) pairs = std::min(pairs, product({work.queries, work.window}));
  const double scores = product({work.batch, work.heads}) * pairs;
  return {scores * product({work.depth}), scores * product({work.valueDepth})};
}

template <typename Of>
double sumOf(mlir::Operation* op, Of ofAttention) {
  auto worker = llvm::dyn_cast<WorkOpInterface>(op);
  if (!worker) return 0;
  const Work work = worker.getWork();
  double sum = work.attention ? ofAttention(*work.attention) : 0;
  for (const MatrixProduct& product : work.products) sum += product.flops();
  return sum;
}

}  // namespace

double MatrixProduct::flops() const { return 2 * product({count, rows, columns, depth}); }

double AttentionWork::flops() const {
  const AttentionProducts products = productsOf(*this);
  // The gradient: the scores again, of the query and of the key; of the value and of the weights.
  return isGradient ? 2 * (3 * products.scores + 2 * products.values)
                    : 2 * (products.scores + products.values);
}

double AttentionWork::modelFlops() const {
  const AttentionProducts products = productsOf(*this);
  return (isGradient ? 4 : 2) * (products.scores + products.values);
}

double workFlops(mlir::Operation* op) {
  return sumOf(op, [](const AttentionWork& work) { return work.flops(); });
}

double modelFlops(mlir::Operation* op) {
  return sumOf(op, [](const AttentionWork& work) { return work.modelFlops(); });
}

}  // namespace oriel::ir
