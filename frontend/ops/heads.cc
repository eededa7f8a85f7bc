#include "frontend/ops/heads.h"

namespace oriel {

using mlir::Value;

Value splitHeads(NodeImporter& n, Value x, int64_t heads) {
  auto shape = shapeOf(x);
  if (heads < 1 || shape[2] % heads != 0) {
    n.error() << "can't split " << x.getType() << " into " << heads << " heads";
    return {};
  }
  return n.transpose(n.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Value mergeHeads(NodeImporter& n, Value x) {
  if (!x) {
    return {};
  }
  auto shape = shapeOf(x);
  return n.reshape(n.transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

}  // namespace oriel
