// A reference interpreter: executes a function's ops, one after the other, through the host
// kernels. It knows no op: what to run is what KernelOpInterface says.
//
//   auto f = oriel::Interpreter::create(function);
//   auto results = f->run({&x, &w});
#ifndef ORIEL_OPCHECK_INTERPRETER_H_
#define ORIEL_OPCHECK_INTERPRETER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/base/tensor.h"

namespace oriel {

// A dense tensor with memory of its own, aligned for kernels.
class HostTensor {
 public:
  HostTensor() = default;
  explicit HostTensor(runtime::TensorSpec spec);
  // Converts `values`, which are as many as the spec has elements.
  HostTensor(runtime::TensorSpec spec, const std::vector<double>& values);

  const runtime::TensorSpec& spec() const { return spec_; }
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  // One element; of f32, f64, bf16, i64, i32 or bool.
  double get(int64_t index) const;
  void set(int64_t index, double value);
  HostTensor copy() const;

 private:
  struct Free {
    void operator()(void* data) const;
  };
  runtime::TensorSpec spec_;
  std::unique_ptr<void, Free> data_;
};

// The spec of a value; InvalidArgument for what is not a static tensor of numbers.
absl::StatusOr<runtime::TensorSpec> specOf(mlir::Type type);

class Interpreter {
 public:
  // Prepares a kernel for each op of the function's only block. The status names an op that
  // has none, or that its kernel refuses.
  static absl::StatusOr<Interpreter> create(mlir::func::FuncOp function);

  // Runs the function. `arguments` have the function's argument types. The results are copies.
  absl::StatusOr<std::vector<HostTensor>> run(const std::vector<const HostTensor*>& arguments);

 private:
  struct Step {
    kernels::KernelFn kernel;
    std::vector<int> operands, results;  // slots
    std::string op;
  };
  absl::Status addOp(mlir::Operation& op);
  absl::Status addConstant(mlir::Operation& op);
  absl::StatusOr<int> addSlot(mlir::Value value);

  std::vector<HostTensor> slots_;
  llvm::DenseMap<mlir::Value, int> slot_of_;
  std::vector<Step> steps_;
  std::vector<int> arguments_, results_;  // slots
};

}  // namespace oriel

#endif  // ORIEL_OPCHECK_INTERPRETER_H_
