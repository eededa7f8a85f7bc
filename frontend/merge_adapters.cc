#include "frontend/merge_adapters.h"

#include <utility>

#include "frontend/compose_part.h"
#include "frontend/error.h"

namespace oriel {
namespace {

// Adds scale B A to `values`, which are [outputs, inputs], or transposed.
void addProduct(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b, int64_t rank, double scale,
                bool isOutputFirst, llvm::MutableArrayRef<float> values) {
  const int64_t inputs = static_cast<int64_t>(a.size()) / rank;
  const int64_t outputs = static_cast<int64_t>(b.size()) / rank;
  if (isOutputFirst) {
    for (int64_t out = 0; out < outputs; ++out) {
      float* row = &values[out * inputs];
      for (int64_t r = 0; r < rank; ++r) {
        const auto factor = static_cast<float>(scale * b[out * rank + r]);
        for (int64_t in = 0; in < inputs; ++in) row[in] += factor * a[r * inputs + in];
      }
    }
    return;
  }
  std::vector<float> column(outputs);  // of B
  for (int64_t r = 0; r < rank; ++r) {
    for (int64_t out = 0; out < outputs; ++out) column[out] = b[out * rank + r];
    for (int64_t in = 0; in < inputs; ++in) {
      const auto factor = static_cast<float>(scale * a[r * inputs + in]);
      float* row = &values[in * outputs];
      for (int64_t out = 0; out < outputs; ++out) row[out] += factor * column[out];
    }
  }
}

// A weight as the checkpoint has it; as the base's file does where that is the same, but for the
// precision of a plan that froze it.
llvm::Error readWeight(const std::string& name, const ModelFile& base,
                       const TrainedWeights& weights, llvm::MutableArrayRef<float> values) {
  if (llvm::Error error = weights.read(name, values)) return error;
  auto kept = ownValuesIfKept(base, weights, name, values);
  if (!kept) return kept.takeError();
  if (*kept) llvm::copy(**kept, values.begin());
  return llvm::Error::success();
}

}  // namespace

llvm::Expected<TrainedWeights> mergeAdapters(const Adapters& adapters, const ModelFile& base,
                                             const TrainedWeights& weights) {
  if (fingerprint(base) != adapters.fingerprint) {
    return makeError("\"" + base.path() +
                     "\" is not the file that was adapted: its nodes or the shapes of its weights "
                     "differ; name that one with --base");
  }
  TrainedWeights merged;
  merged.elements = weights.elements;
  merged.untrained = weights.untrained;
  std::map<std::string, Adapter> byWeight;
  for (const Adapter& adapter : adapters.all) {
    auto header = base.initializerHeader(adapter.weight);
    if (!header) return header.takeError();
    if (header->shape.size() != 2) {
      return makeError("the adapted model says that \"" + adapter.weight +
                       "\" is a matrix, which it is not: adapt the base again");
    }
    const bool isThere = weights.elements.count(adapter.a) + weights.elements.count(adapter.b) > 0;
    // The loss does not depend on it: B is zero still.
    if (!isThere) continue;
    if (adapter.isShared) {
      return makeError("can't merge the adapter of \"" + adapter.weight +
                       "\" into it: something else reads that weight, too (an embedding that is "
                       "tied to the output layer, say); export the adapted model, or adapt other "
                       "layers");
    }
    const int64_t outputs = header->shape[adapter.isOutputFirst ? 0 : 1];
    const int64_t inputs = header->shape[adapter.isOutputFirst ? 1 : 0];
    for (const auto& [name, elements] : {std::pair(adapter.a, inputs * adapters.rank),
                                         std::pair(adapter.b, outputs * adapters.rank),
                                         std::pair(adapter.weight, outputs * inputs)}) {
      auto found = weights.elements.find(name);
      if (found == weights.elements.end() || found->second != elements) {
        return makeError("the plan does not have \"" + name +
                         "\" with the size that the adapted model says");
      }
    }
    merged.elements.erase(adapter.a);
    merged.elements.erase(adapter.b);
    merged.untrained.erase(adapter.a);
    merged.untrained.erase(adapter.b);
    merged.untrained.erase(adapter.weight);
    byWeight[adapter.weight] = adapter;
  }
  const double scale = adapters.alpha / static_cast<double>(adapters.rank);
  merged.read = [byWeight = std::move(byWeight), rank = adapters.rank, scale, &base, &weights](
                    const std::string& name, llvm::MutableArrayRef<float> values) -> llvm::Error {
    auto found = byWeight.find(name);
    if (found == byWeight.end()) return weights.read(name, values);
    const Adapter& adapter = found->second;
    if (llvm::Error error = readWeight(name, base, weights, values)) return error;
    std::vector<float> a(weights.elements.at(adapter.a)), b(weights.elements.at(adapter.b));
    if (llvm::Error error = weights.read(adapter.a, a)) return error;
    if (llvm::Error error = weights.read(adapter.b, b)) return error;
    addProduct(a, b, rank, scale, adapter.isOutputFirst, values);
    return llvm::Error::success();
  };
  return merged;
}

}  // namespace oriel
