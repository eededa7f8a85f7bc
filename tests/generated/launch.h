// A function's generated code, made and run as a plan's.
#ifndef ORIEL_TESTS_GENERATED_LAUNCH_H_
#define ORIEL_TESTS_GENERATED_LAUNCH_H_

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ir/exec/exec.h"
#include "kernels/kernel.h"
#include "passes/generate/code.h"
#include "tests/interpreter/cases.h"

namespace oriel {

struct Launch {
  exec::KernelOp kernel;
  kernels::KernelSpec spec;
  llvm::SmallVector<unsigned> arguments;  // of the function: the launch's operands
  llvm::SmallVector<unsigned> results;    // of the launch: the function's
  llvm::SmallVector<bool> overwrites;     // by result: whether it may lie where an operand was

  // The launch with its code for the target; nullopt, and a failure of the test, if it can't be
  // compiled.
  std::optional<kernels::KernelSpec> specFor(const std::string& target) const;
  // Null, and a failure of the test, if it can't be made.
  kernels::KernelFn prepare(const std::string& target, int threads) const;
};

// Of a function that becomes one launch by form-generated; nullopt, and a failure of the test, if
// it becomes something else.
std::optional<Launch> launchOf(mlir::func::FuncOp function, mlir::ModuleOp module);

// Those of hostTargets() that this processor runs.
std::vector<std::string> targetsOfThisProcessor();

// Half are numbers of a usual size, for sums of which bits are lost on both sides; the others are
// random bits: numbers of all sizes, infinities, NaN.
HostTensor randomBits(mlir::Type type, std::mt19937_64* random);

// What differs, if anything does but which NaN a NaN is.
std::string differenceInBits(const HostTensor& actual, const HostTensor& expected);

}  // namespace oriel

#endif  // ORIEL_TESTS_GENERATED_LAUNCH_H_
