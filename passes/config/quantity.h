// Sizes in YAML and on command lines: values with a unit, as "450 GB/s", "989 TFLOP/s", "5 us",
// "16 GiB", and how large a count of ranks may be.
#ifndef ORIEL_PASSES_CONFIG_QUANTITY_H_
#define ORIEL_PASSES_CONFIG_QUANTITY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/config/yaml_reader.h"

namespace oriel {

// Of a mesh, a pipeline, a node.
inline constexpr int64_t kMaxRanks = int64_t{1} << 20;

// The bytes in "16 GiB", "1.5 GB", "800 MB", "4096"; none for another text, for 1 to 1023 without
// a unit (who writes 25 means MiB), and for more than can be addressed.
std::optional<int64_t> bytesIn(const std::string& text);
// For messages about what bytesIn() refuses.
inline constexpr char kByteUnits[] =
    "units are B, KB, KiB, MB, MiB, GB, GiB, TB, TiB, and a number below 1024 needs one";

struct Unit {
  const char* name;
  double factor;  // to bytes, operations and seconds
};

// What a value is measured in, with an example.
struct Quantity {
  const char* example;
  std::vector<Unit> units;
};

const Quantity& bytesPerSecond();
const Quantity& flopsPerSecond();
const Quantity& seconds();

// Above 0, else the map fails; an absent key gives the fallback.
double readQuantity(YamlMap& map, const std::string& key, const Quantity& quantity,
                    double fallback);

}  // namespace oriel

#endif  // ORIEL_PASSES_CONFIG_QUANTITY_H_
