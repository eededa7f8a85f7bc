// Values with a unit in YAML: "450 GB/s", "989 TFLOP/s", "5 us".
#ifndef ORIEL_PASSES_CONFIG_QUANTITY_H_
#define ORIEL_PASSES_CONFIG_QUANTITY_H_

#include <string>
#include <vector>

#include "passes/config/yaml_reader.h"

namespace oriel {

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
