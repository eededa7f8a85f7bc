// The compiler's vocabulary: what Oriel itself knows, and what plugins add.
#ifndef ORIEL_DRIVER_VOCABULARY_H_
#define ORIEL_DRIVER_VOCABULARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "frontend/op_registry.h"
#include "mlir/IR/DialectRegistry.h"

namespace oriel {

struct Vocabulary {
  // Oriel's own. Its passes are registered too.
  Vocabulary();

  // Loads a plugin (driver/plugin.h). What it registers stays for the life of the process.
  absl::Status loadPlugin(const std::string& file);

  mlir::DialectRegistry dialects;
  OpRegistry ops;
  std::vector<std::string> plugins;  // their files
};

}  // namespace oriel

#endif  // ORIEL_DRIVER_VOCABULARY_H_
