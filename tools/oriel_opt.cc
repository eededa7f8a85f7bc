// Runs passes on IR, as mlir-opt does; loads pass plugins. For tests of passes.
#include "driver/pipelines.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  oriel::registerOrielDialects(registry);
  oriel::registerOrielPasses();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Pass driver for the dialects of Oriel\n", registry));
}
