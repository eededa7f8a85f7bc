#include "frontend/ops/grid_sample_computed.h"

#include <array>

namespace oriel {
namespace {

using mlir::Value;

// Of a dimension, for each position [b, p].
struct Tap {
  Value place;   // i64, within the dimension
  Value weight;  // 0 beyond its edges
};

Tap tapAt(NodeImporter& n, Value place, Value weight, int64_t size) {
  const double last = static_cast<double>(size) - 1;
  Value inside = n.create<ir::AndOp>(n.create<ir::GreaterEqualOp>(place, n.scalarLike(place, 0)),
                                     n.create<ir::LessEqualOp>(place, n.scalarLike(place, last)));
  weight = n.create<ir::SelectOp>(inside, weight, n.scalarLike(weight, 0));
  return {n.cast(n.clamp(place, 0, last), n.builder().getI64Type()), weight};
}

// `component` of [b, p, 2], in a dimension of this size.
std::array<Tap, 2> tapsOf(NodeImporter& n, const GridSampleRules& rules, Value grid,
                          int64_t component, int64_t size) {
  const Ints shape(shapeOf(grid));
  Value given = n.reshape(n.sliceDim(grid, 2, component, component + 1), {shape[0], shape[1]});
  const auto extent = static_cast<double>(size);
  // The ends are the centers of the outermost places, or their outer edges (ONNX, GridSample).
  const double scale = (rules.alignsCorners ? extent - 1 : extent) / 2;
  Value at = n.create<ir::MulOp>(given, n.scalarLike(given, scale));
  at = n.create<ir::AddOp>(at, n.scalarLike(at, (extent - 1) / 2));
  if (rules.padding == "border") at = n.clamp(at, 0, extent - 1);
  Value below = n.create<ir::FloorOp>(at);
  Value above = n.create<ir::AddOp>(below, n.scalarLike(below, 1));
  return {tapAt(n, below, n.create<ir::SubOp>(above, at), size),
          tapAt(n, above, n.create<ir::SubOp>(at, below), size)};
}

}  // namespace

Value sampleAtComputed(NodeImporter& n, const GridSampleRules& rules, Value x, Value grid) {
  if (rules.mode != "linear" || rules.padding == "reflection") {
    n.error() << "samples at positions that are not known at compile time, or differ between "
                 "samples: that is supported for the mode \"linear\" with the padding_mode "
                 "\"zeros\" or \"border\", not for \""
              << rules.mode << "\" with \"" << rules.padding << "\"";
    return nullptr;
  }
  const Ints shape(shapeOf(x)), places(shapeOf(grid));
  const int64_t samples = shape[0], channels = shape[1], height = shape[2], width = shape[3];
  const int64_t positions = places[1] * places[2];
  Value rows = n.transpose(n.reshape(x, {samples, channels, height * width}), {0, 2, 1});
  Value flat = n.reshape(grid, {samples, positions, 2});
  const std::array<Tap, 2> columns = tapsOf(n, rules, flat, 0, width);
  const std::array<Tap, 2> lines = tapsOf(n, rules, flat, 1, height);
  Value sum;
  for (const Tap& line : lines) {
    Value first = n.create<ir::MulOp>(line.place, n.scalarLike(line.place, width));
    for (const Tap& column : columns) {
      Value picked = n.create<ir::GatherOp>(rows, n.create<ir::AddOp>(first, column.place),
                                            /*dim=*/int64_t{1}, OptionalValue{},
                                            /*rows=*/int64_t{0}, /*batch_dims=*/int64_t{1});
      Value weight = n.create<ir::MulOp>(line.weight, column.weight);
      weight = n.cast(n.reshape(weight, {samples, positions, 1}), elementOf(x));
      picked = n.create<ir::MulOp>(picked, weight);
      sum = sum ? n.create<ir::AddOp>(sum, picked) : picked;
    }
  }
  return n.reshape(n.transpose(sum, {0, 2, 1}), {samples, channels, places[1], places[2]});
}

}  // namespace oriel
