// What `oriel --load-plugin` and `oriel-opt --load-plugin` learn from this library.
#include "driver/plugin.h"

#include "frontend/node_importer.h"
#include "snake.h"

namespace {

// com.acme::Snake(x, alpha), since version 1 of the domain.
mlir::LogicalResult importSnake(oriel::NodeImporter& n) {
  return n.replace(n.create<acme::SnakeOp>(n.operand(0), n.operand(1)));
}

}  // namespace

ORIEL_COMPILER_PLUGIN(registry) {
  registry.dialects.insert<acme::AcmeDialect>();
  registry.ops.add("Snake", 1, importSnake, "com.acme");
  acme::registerRaiseSnake();
}
