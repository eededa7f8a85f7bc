#include "passes/cost/efficiency.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace oriel {

namespace {

// Constants of the form, the same for all silicon (docs/cost_model.md says what they were fitted
// on).

// Tiles that libraries choose from, and into how many parts they split the depth.
constexpr double kTiles[][2] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
constexpr double kSplits[] = {1, 2, 4, 8};
// What a tile pays for fetching operands, as the harmonic half of its sides at which that is as
// long as its products.
constexpr double kFetch = 30;
// How much of what processors idle in an unfilled last wave is lost: work is also balanced within
// tiles, and the others run faster.
constexpr double kWaveLoss = 0.25;
// Of a result's way to memory, what no product runs beside.
constexpr double kResultExposed = 0.25;
constexpr double kKeyBlock = 128;

double blocks(double size, double block) { return std::ceil(size / block); }

// Waves of `work` equal pieces over the processors.
double waves(double work, double processors) {
  const double even = work / processors;
  return std::max(even + kWaveLoss * (std::ceil(even) - even), 1.0);
}

}  // namespace

double memorySeconds(const Efficiency& efficiency, const DeviceRates& rates, double bytes) {
  if (bytes <= 0) return 0;
  return efficiency.memoryRamp + bytes / (efficiency.memoryShare * rates.bytes);
}

double productSeconds(const Efficiency& efficiency, const DeviceRates& rates,
                      const MatrixProduct& product) {
  const auto count = static_cast<double>(product.count), rows = static_cast<double>(product.rows),
             columns = static_cast<double>(product.columns),
             depth = static_cast<double>(product.depth);
  if (count * rows * columns * depth <= 0) return 0;
  const double reached = product.wide ? efficiency.floatShare * rates.floatFlops
                                      : efficiency.halfShare * rates.halfFlops;
  const double rate = reached / efficiency.processors;
  const double bandwidth = efficiency.memoryShare * rates.bytes;
  const auto fetch = [&](double tall, double wide) {
    return 1 + kFetch * efficiency.tile * (1 / tall + 1 / wide);
  };
  const double best = fetch(efficiency.tile * kTiles[0][0], efficiency.tile * kTiles[0][1]);

  double seconds = std::numeric_limits<double>::infinity();
  for (const auto& sides : kTiles) {
    const double tall = efficiency.tile * sides[0], wide = efficiency.tile * sides[1];
    for (const double split : kSplits) {
      const double tiles = split * count * blocks(rows, tall) * blocks(columns, wide);
      const double operations = 2 * tall * wide * (depth / split + efficiency.depthLatency);
      const double computing =
          waves(tiles, efficiency.processors) * operations * fetch(tall, wide) / best / rate;
      // Parts are summed in memory, in 32 bits.
      const double summing = split > 1 ? count * rows * columns * 8 / bandwidth : 0;
      seconds = std::min(seconds, computing + summing);
    }
  }
  const double written = count * rows * columns * product.resultBytes;
  const double read = count * depth * (rows + columns) * product.operandBytes;
  return std::max(seconds + kResultExposed * written / bandwidth,
                  memorySeconds(efficiency, rates, read + written));
}

double attentionSeconds(const Efficiency& efficiency, const DeviceRates& rates,
                        const AttentionWork& work) {
  const auto queries = static_cast<double>(work.queries), keys = static_cast<double>(work.keys),
             heads = static_cast<double>(work.batch) * static_cast<double>(work.heads),
             depth = static_cast<double>(work.depth), value = static_cast<double>(work.valueDepth);
  if (queries * keys * heads * (depth + value) <= 0) return 0;
  const AttentionEfficiency& reached = work.backward ? efficiency.backward : efficiency.forward;
  const double peak = work.wide ? rates.floatFlops : rates.halfFlops;
  const double rate = reached.share * peak / efficiency.processors;
  const double rows = efficiency.attentionRows;

  // The last queries see all keys; of a block's own keys, causal attention computes all.
  const double longest = blocks(keys, kKeyBlock) * kKeyBlock;
  double mean = longest;
  if (work.causal) mean = std::min(longest, std::max(longest - (queries - rows) / 2, rows));
  const double passes = std::max(
      waves(heads * blocks(queries, rows), efficiency.processors) * (mean + reached.keyLatency),
      longest + reached.keyLatency);
  // Scores from queries and keys, results from scores and values; backward the scores again, and
  // two products each for the gradients of the two.
  const double products = work.backward ? 2 * (3 * depth + 2 * value) : 2 * (depth + value);
  const double again = work.backward ? 2.5 : 1;
  const double computing = passes * rows * (products + again * reached.score) / rate;
  // Queries and results (backward with their gradients), keys and values.
  const double elements =
      (heads * queries + static_cast<double>(work.batch * work.keyHeads) * keys) * (depth + value);
  return std::max(computing, memorySeconds(efficiency, rates,
                                           (work.backward ? 2 : 1) * elements * work.elementBytes));
}

}  // namespace oriel
