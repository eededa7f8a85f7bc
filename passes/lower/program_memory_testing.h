// For tests of what programs need in memory.
#ifndef ORIEL_PASSES_LOWER_PROGRAM_MEMORY_TESTING_H_
#define ORIEL_PASSES_LOWER_PROGRAM_MEMORY_TESTING_H_

#include <string>

#include "gtest/gtest.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "mlir/Parser/Parser.h"
#include "passes/lower/program_memory.h"

namespace oriel {

class ProgramMemoryTest : public ::testing::Test {
 protected:
  ProgramMemoryTest() {
    mlir::DialectRegistry registry;
    registry.insert<ir::OrielDialect, mlir::func::FuncDialect>();
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  // Of the first program of the module.
  mlir::FailureOr<ProgramMemory> of(const std::string& text) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    EXPECT_TRUE(module_);
    return ProgramMemory::of(ir::programsOf(*module_).front());
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_PROGRAM_MEMORY_TESTING_H_
