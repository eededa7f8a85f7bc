// An efficiency within another document: the cluster's.
#ifndef ORIEL_PASSES_COST_EFFICIENCY_YAML_H_
#define ORIEL_PASSES_COST_EFFICIENCY_YAML_H_

#include <string>

#include "passes/config/yaml_reader.h"
#include "passes/cost/efficiency.h"

namespace oriel {

// The mapping that stands at `path` of the document, which keeps the error.
Efficiency readEfficiency(YamlDocument* document, const YAML::Node& node, const std::string& path);

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_EFFICIENCY_YAML_H_
