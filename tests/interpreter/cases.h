// Functions that tests feed with random values: the .mlir files of tests/vjp and tests/sharding.
// `test.low`, `test.high` of an argument bound its random elements (default -2 and 2).
#ifndef ORIEL_TESTS_INTERPRETER_CASES_H_
#define ORIEL_TESTS_INTERPRETER_CASES_H_

#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/train/vjp_function.h"
#include "tests/interpreter/interpreter.h"

namespace oriel {

struct FunctionCase {
  std::string path, function;

  // "linear_matmul_nn": the file's stem and the function
  std::string name() const;
  friend std::ostream& operator<<(std::ostream& out, const FunctionCase& test) {
    return out << "@" << test.function << " of " << test.path;
  }
};

// A context with the dialects that the cases use, the same for the whole test.
mlir::MLIRContext& CaseContext();
mlir::OwningOpRef<mlir::ModuleOp> ParseCases(const std::string& path);

// The .mlir files of a folder of the repository, sorted.
std::vector<std::string> CaseFiles(const std::string& folder);
// Their functions. Files that don't parse are left out: test CaseFiles for that.
std::vector<FunctionCase> FunctionCases(const std::string& folder);

double NumberOr(mlir::Attribute attribute, double fallback);
HostTensor RandomTensor(mlir::Type type, double low, double high, std::mt19937* random);
// Within the bounds that the arguments' attributes say.
std::vector<HostTensor> RandomArguments(mlir::func::FuncOp function, std::mt19937* random);
std::vector<const HostTensor*> Pointers(const std::vector<HostTensor>& tensors);

// Values of the function, inner ones too, for these arguments.
absl::StatusOr<std::vector<HostTensor>> ValuesOf(mlir::func::FuncOp function,
                                                 llvm::ArrayRef<mlir::Value> values,
                                                 const std::vector<HostTensor>& arguments);
// The arguments of a vjp function: what it captures, then these cotangents.
absl::StatusOr<std::vector<HostTensor>> VjpArguments(mlir::func::FuncOp function,
                                                     const VjpFunction& vjp,
                                                     const std::vector<HostTensor>& arguments,
                                                     const std::vector<HostTensor>& cotangents);

}  // namespace oriel

#endif  // ORIEL_TESTS_INTERPRETER_CASES_H_
