// Roles of the arguments and results of segment functions.
//
// A segment is a func.func named forward, backward, update or eval (before the
// train phase there is one, "main"). Where the stage phase has made several pipeline stages, each
// group of ranks has its own program, a nested module, and all segments but update end in the
// number of a stage: forward.2. What each argument and result stands for is
// said by three discardable attributes, the same triple that the plan's buffers have:
//
//   oriel.kind  "parameter" "optimizer_state" "gradient" "accumulator" "input"
//               "scalar" "stash" "output"
//   oriel.ref   a parameter's symbol (parameter, optimizer_state, gradient), else a name
//   oriel.slot  of an optimizer state: "exp_avg", "exp_avg_sq", "momentum_buffer"
//
// Once propagate has run, they have `oriel.sharding` too (a ShardingAttr), and ops
// `oriel.shardings`, an array with the sharding of each result.
//
// A result with the kind parameter, optimizer_state, gradient or accumulator is the
// new value of what the argument with the same triple holds.
#ifndef ORIEL_IR_ORIEL_SEGMENT_H_
#define ORIEL_IR_ORIEL_SEGMENT_H_

#include <string>
#include <tuple>
#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace oriel::ir {

inline constexpr llvm::StringLiteral kKindAttr("oriel.kind");
inline constexpr llvm::StringLiteral kShardingAttr("oriel.sharding");
inline constexpr llvm::StringLiteral kShardingsAttr("oriel.shardings");
// How an op is cut: axes for each factor of its rule (passes/propagate/op_split.h), and the rule of
// a local op, which partition writes for the plan (passes/partition/local_rule.h).
inline constexpr llvm::StringLiteral kSplitAttr("oriel.split");
inline constexpr llvm::StringLiteral kRuleAttr("oriel.rule");
// Of the module: the name of the input that has random bits of each sample, if there is one.
inline constexpr llvm::StringLiteral kSampleBitsAttr("oriel.sample_bits");
// Of the module: the kinds of images that the model takes features of. Each has `count`, the name
// of the input that counts a sample's images, `per_sample`, how many there are at most, and `rows`:
// by input, the rows of an image.
inline constexpr llvm::StringLiteral kImagesAttr("oriel.images");
// Of the module: ONNX names of parameters that it no longer has, for training does not need them.
inline constexpr llvm::StringLiteral kLeftOutAttr("oriel.left_out");

enum class ValueKind {
  kParameter,
  kOptimizerState,
  kGradient,
  kAccumulator,
  kInput,
  kScalar,
  kStash,
  kOutput,
};

struct ValueRole {
  ValueKind kind;
  std::string ref;   // symbol name, or name
  std::string slot;  // of an optimizer state

  bool isParameterBound() const {
    return kind == ValueKind::kParameter || kind == ValueKind::kOptimizerState ||
           kind == ValueKind::kGradient;
  }
  friend bool operator==(const ValueRole& a, const ValueRole& b) {
    return a.kind == b.kind && a.ref == b.ref && a.slot == b.slot;
  }
  friend bool operator<(const ValueRole& a, const ValueRole& b) {
    return std::tie(a.kind, a.ref, a.slot) < std::tie(b.kind, b.ref, b.slot);
  }
};

llvm::StringRef stringifyValueKind(ValueKind kind);

// The attribute dictionary of an argument or result with this role.
mlir::DictionaryAttr roleAttributes(mlir::MLIRContext* context, const ValueRole& role);
// Set the roles of all arguments, or of all results, and keep other attributes. All at once: MLIR
// keeps every list of attributes that ever was, so one by one takes memory by the square.
void setArgumentRoles(mlir::func::FuncOp segment, llvm::ArrayRef<ValueRole> roles);
void setResultRoles(mlir::func::FuncOp segment, llvm::ArrayRef<ValueRole> roles);
// Fails with a diagnostic that names the argument or result and what is wrong with its
// attributes.
mlir::FailureOr<ValueRole> argumentRole(mlir::func::FuncOp segment, unsigned index);
mlir::FailureOr<ValueRole> resultRole(mlir::func::FuncOp segment, unsigned index);

// Whether this is an argument of a function that stands for a parameter.
bool isParameter(mlir::BlockArgument argument);
// Names of the inputs among the arguments; fails as argumentRole does.
mlir::FailureOr<std::vector<std::string>> inputNames(mlir::func::FuncOp segment);

// @main, if it is there and has one block; `train` says what is wrong with one that it can't read.
mlir::func::FuncOp mainOfOneBlock(mlir::ModuleOp module);
// The programs of a module: its nested modules, or itself if it has none.
llvm::SmallVector<mlir::ModuleOp> programsOf(mlir::ModuleOp module);
// "forward" of @forward.2.
llvm::StringRef segmentKind(mlir::func::FuncOp segment);
bool isUpdate(mlir::func::FuncOp segment);
// Also one that makes a part of the gradients (`backward_weight`).
bool isBackward(mlir::func::FuncOp segment);
// The segments of a program of this kind, in order.
llvm::SmallVector<mlir::func::FuncOp> segmentsOfKind(mlir::ModuleOp program, llvm::StringRef kind);

// The sharding of a segment's argument or of an op's result; null if it has none.
ShardingAttr shardingOf(mlir::Value value);

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_SEGMENT_H_
