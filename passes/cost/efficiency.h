// How much of a device's peak rates is reached, by shape (docs/cost_model.md): a few numbers per
// silicon, one form for all.
#ifndef ORIEL_PASSES_COST_EFFICIENCY_H_
#define ORIEL_PASSES_COST_EFFICIENCY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel {

// At most; per second.
struct DeviceRates {
  double halfFlops;   // where no operand is wider than 16 bits
  double floatFlops;  // elsewhere
  double bytes;
};

// Of fused attention in one direction.
struct AttentionEfficiency {
  double share = 0.6;       // of the peak rate, by products of long sequences and deep heads
  double score = 100;       // what a score costs beside its products, in operations as deep
  double keyLatency = 200;  // of a block of queries, in keys
};

struct Efficiency {
  std::string name = "generic";
  double processors = 128;     // that tiles are spread over
  double halfShare = 0.7;      // of the peak rate, by large and deep products
  double floatShare = 0.7;     // the same of 32-bit operands
  double depthLatency = 180;   // of a tile, in steps of depth
  double tile = 1;             // sides of tiles, of those of GPUs' libraries (256 down to 64)
  double attentionRows = 128;  // queries of a block
  AttentionEfficiency forward, backward;
  double memoryShare = 0.85;  // of the memory's bandwidth, by large tensors
  double memoryRamp = 4e-6;   // seconds until it is reached
  double kernelFloor = 4e-6;  // seconds that a kernel takes at least, from launch to launch
  double overlap = 1;         // the part of communication beside computing that costs nothing
};

// [rows x depth] * [depth x columns], `count` of them at once.
struct MatrixProduct {
  int64_t count = 1, rows = 1, columns = 1, depth = 1;
  bool wide = false;                         // operands of 32 bits
  double operandBytes = 2, resultBytes = 2;  // of an element; twice where it is added to
};

// Fused attention: no scores in memory. `backward`: both the queries' gradient and those of keys
// and values, from scores computed again.
struct AttentionWork {
  int64_t batch = 1, heads = 1, keyHeads = 1, queries = 1, keys = 1, depth = 1, valueDepth = 1;
  bool causal = false, backward = false, wide = false;
  double elementBytes = 2;
};

// Seconds on a device, without the kernel's floor.
double productSeconds(const Efficiency& efficiency, const DeviceRates& rates,
                      const MatrixProduct& product);
double attentionSeconds(const Efficiency& efficiency, const DeviceRates& rates,
                        const AttentionWork& work);
// What reads and writes so many bytes once, in order.
double memorySeconds(const Efficiency& efficiency, const DeviceRates& rates, double bytes);

// The numbers by name, as in the file ("attention.forward.share"), for those who carry them.
struct EfficiencyNumber {
  const char* name;
  double* value;
};
std::vector<EfficiencyNumber> efficiencyNumbers(Efficiency& efficiency);

// `name` stands for the file in messages. InvalidArgument, with line and column, for another text.
absl::StatusOr<Efficiency> readEfficiencyText(const std::string& text, const std::string& name);
// A file, or one that Oriel knows ("h100"). NotFound for one that is not there.
absl::StatusOr<Efficiency> findEfficiency(const std::string& fileOrName);
// Of a device that a cluster names ("H100-SXM5-80GB"): by the start of its name, else generic.
Efficiency efficiencyOfDevice(const std::string& device);

// The names that findEfficiency() knows, and the text that is behind one.
std::vector<std::string> efficiencyPresets();
std::optional<std::string> efficiencyPresetText(const std::string& name);

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_EFFICIENCY_H_
