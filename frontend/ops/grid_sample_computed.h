// GridSample at positions that the model computes, as deformable attention does.
#ifndef ORIEL_FRONTEND_OPS_GRID_SAMPLE_COMPUTED_H_
#define ORIEL_FRONTEND_OPS_GRID_SAMPLE_COMPUTED_H_

#include <string>

#include "frontend/node_importer.h"

namespace oriel {

struct GridSampleRules {
  std::string mode, padding;  // as of opset 20
  bool alignsCorners;
};

// x [b, c, h, w] at `grid` [b, .., .., 2], in [-1, 1]: four rows of [b, h w, c] for each position,
// each times its weight. Null, with an error, for what is not linear, and for reflection.
mlir::Value sampleAtComputed(NodeImporter& n, const GridSampleRules& rules, mlir::Value x,
                             mlir::Value grid);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OPS_GRID_SAMPLE_COMPUTED_H_
