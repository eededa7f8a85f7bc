// Functions that tests feed with random values: the .mlir files of tests/vjp and tests/sharding.
#ifndef ORIEL_TESTS_INTERPRETER_CASES_H_
#define ORIEL_TESTS_INTERPRETER_CASES_H_

#include <ostream>
#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "opcheck/derivative.h"

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

// Collects failures, as OnFailure hears them, each with the name of its op.
class Failures {
 public:
  void operator()(mlir::Operation* op, const std::string& what) {
    all_.push_back(op->getName().getStringRef().str() + " " + what);
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

// The .mlir files of a folder of the repository, sorted.
std::vector<std::string> CaseFiles(const std::string& folder);
// Their functions. Files that don't parse are left out: test CaseFiles for that.
std::vector<FunctionCase> FunctionCases(const std::string& folder);

}  // namespace oriel

#endif  // ORIEL_TESTS_INTERPRETER_CASES_H_
