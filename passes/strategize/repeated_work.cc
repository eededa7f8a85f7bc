#include "passes/strategize/repeated_work.h"

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/work.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/StringExtras.h"
#include "passes/strategize/name_pattern.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

namespace {

// In floating-point operations of products and attention.
class RepeatedWork {
 public:
  // `ranks` of the axis share the op, or each of them does all of it.
  void add(mlir::Operation* op, int64_t ranks, bool isSplit) {
    const double work = ir::workFlops(op);
    all_ += work;
    if (isSplit) return;
    repeated_ += work;
    if (work <= most_) return;
    most_ = work;
    largest_ = op;
    ranks_ = ranks;
  }

  // Of all that was added: 0 to 1, and 0 of nothing.
  double share() const { return all_ > 0 ? repeated_ / all_ : 0; }
  long percent() const { return std::lround(100 * share()); }
  // Of what is not split; null for none.
  mlir::Operation* largest() const { return largest_; }
  int64_t ranksOfLargest() const { return ranks_; }

 private:
  double all_ = 0, repeated_ = 0, most_ = 0;
  mlir::Operation* largest_ = nullptr;
  int64_t ranks_ = 1;
};

// Whether it moves elements of one operand, or changes their type, without arithmetic.
bool onlyMoves(mlir::Operation* op) {
  auto precise = llvm::dyn_cast<ir::PrecisionOpInterface>(op);
  return precise && precise.getPrecision() == ir::Precision::kMove && op->getNumOperands() == 1;
}

// The parameter that a value is, moved perhaps; null for another one.
ir::ParameterOp parameterOf(mlir::Value value, const SegmentValues& values) {
  while (mlir::Operation* op = value.getDefiningOp()) {
    if (!onlyMoves(op)) return {};
    value = op->getOperand(0);
  }
  return values.parameters.lookup(value);
}

// Names of parameters by the work with them, those of all layers together.
class WorkByName {
 public:
  void add(mlir::Operation* op, const SegmentValues& values) {
    for (mlir::Value operand : op->getOperands()) {
      ir::ParameterOp parameter = parameterOf(operand, values);
      if (!parameter) continue;
      llvm::StringRef name = parameter.getOnnxName();
      Pattern& pattern = patterns_[inAllLayers(name)];
      pattern.flops += ir::workFlops(op);
      pattern.names.insert(name);
      break;  // the others, as biases, are what the work is not with
    }
  }

  // "a.*.weight" (12), "b.weight" and 3 more: the most work first.
  std::string text() const {
    constexpr size_t kMax = 8;
    std::vector<const std::pair<const std::string, Pattern>*> sorted;
    for (const auto& entry : patterns_) sorted.push_back(&entry);
    llvm::stable_sort(
        sorted, [](const auto* a, const auto* b) { return a->second.flops > b->second.flops; });
    std::vector<std::string> parts;
    for (const auto* entry : llvm::ArrayRef(sorted).take_front(kMax)) {
      const size_t count = entry->second.names.size();
      parts.push_back("\"" + entry->first + "\"");
      if (count > 1) parts.back() += " (" + std::to_string(count) + ")";
    }
    std::string text = llvm::join(parts, ", ");
    if (sorted.size() > kMax) text += " and " + std::to_string(sorted.size() - kMax) + " more";
    return text;
  }

 private:
  struct Pattern {
    double flops = 0;
    std::set<llvm::StringRef> names;
  };

  std::map<std::string, Pattern> patterns_;
};

// Ranks along a mesh axis of the module whose parameter the op uses; 1 for an op without.
int64_t ranksWithParameter(const Grid& grid, mlir::Operation* op, llvm::StringRef axis,
                           const SegmentValues& values) {
  for (mlir::Value operand : op->getOperands()) {
    ir::ParameterOp parameter = parameterOf(operand, values);
    if (parameter) return grid.meshAxisSize(axis, parameter.getModule());
  }
  return 1;
}

// What sequence parallelism has in pieces along positions.
llvm::DenseMap<mlir::Value, PositionsOfValue> inPieces(
    mlir::func::FuncOp forward, llvm::ArrayRef<TensorBlock> blocks,
    const llvm::DenseSet<mlir::Type>& sequenceTypes) {
  if (sequenceTypes.empty()) return {};
  Positions made;
  for (const TensorBlock& block : blocks) {
    for (mlir::Value result : block.reduction->getResults()) {
      if (sequenceTypes.contains(result.getType())) {
        made.dims.insert({result, ir::rankOf(result) - 2});
      }
    }
  }
  return positionsBehind(forward, made, /*dataRanks=*/1);
}

// Whose work it is a part of, where a program is not all, nor all of it has the axis.
std::string withParameters(mlir::ModuleOp program, const Grid& grid, llvm::StringRef axis) {
  std::string text = " % of the work with parameters";
  if (!grid.modules.empty()) text += (" on meshes with " + axis).str();
  if (program->getParentOp()) text += " in its stage";
  return text;
}

}  // namespace

void warnOfWholePositions(mlir::ModuleOp module, const Grid& grid, const Positions& positions) {
  constexpr double kWorthIt = 0.1;
  RepeatedWork whole;
  RepeatedWork odd;          // that has positions, but a number of them that cp does not divide
  int64_t oddPositions = 0;  // of the largest of these
  for (mlir::func::FuncOp forward : ir::segmentsOfKind(module, "forward")) {
    const SegmentValues values = readValues(forward);
    std::map<int64_t, llvm::DenseMap<mlir::Value, PositionsOfValue>> byDataRanks;
    for (mlir::Operation& op : forward.getBody().front().without_terminator()) {
      const int64_t ranks = ranksWithParameter(grid, &op, "cp", values);
      if (ranks == 1 || ir::workFlops(&op) == 0) continue;
      const int64_t dataRanks = ranksWithParameter(grid, &op, "dp", values) *
                                ranksWithParameter(grid, &op, "fsdp", values);
      auto [found, isNew] = byDataRanks.try_emplace(dataRanks);
      if (isNew) found->second = positionsBehind(forward, positions, dataRanks);
      // A loss with its layer sums the positions of what that takes.
      const bool isSum = ir::rankOf(op.getResult(0)) == 0;
      const mlir::Value of = isSum ? op.getOperand(0) : op.getResult(0);
      const int64_t count = found->second.lookup(of).count;
      whole.add(&op, ranks, count > 0 && count % ranks == 0);
      odd.add(&op, ranks, count % ranks == 0);
      if (odd.largest() == &op) oddPositions = count;
    }
  }
  if (whole.share() <= kWorthIt) return;
  if (2 * odd.share() > whole.share()) {
    odd.largest()->emitWarning("has ")
        << oddPositions << " positions, which cp = " << odd.ranksOfLargest()
        << " does not divide, like " << odd.percent() << withParameters(module, grid, "cp")
        << ": each rank of cp does all of that. Choose another cp, "
        << "or pad the sequence";
    return;
  }
  whole.largest()->emitWarning("has no positions that cp divides, as ")
      << whole.percent() << withParameters(module, grid, "cp") << ": each rank of cp does "
      << "all of that. A tower in front of the positions can have a mesh of its own "
      << "(`modules` of the strategy); several samples in one row of positions are apart with "
      << "`batch.micro: 1` for each data-parallel rank";
}

void warnOfUnsplit(mlir::ModuleOp module, const Grid& grid,
                   llvm::function_ref<bool(const std::string&)> isKnown,
                   llvm::ArrayRef<TensorBlock> blocks,
                   const llvm::DenseSet<mlir::Type>& sequenceTypes) {
  constexpr double kWorthIt = 0.25;
  RepeatedWork work;
  WorkByName whole;
  for (mlir::func::FuncOp forward : ir::segmentsOfKind(module, "forward")) {
    const SegmentValues values = readValues(forward);
    const auto pieces = inPieces(forward, blocks, sequenceTypes);
    for (mlir::Operation& op : forward.getBody().front().without_terminator()) {
      const int64_t ranks = ranksWithParameter(grid, &op, "tp", values);
      if (ranks == 1) continue;
      auto isInPieces = [&](mlir::Value result) { return pieces.contains(result); };
      const bool isSplit = llvm::any_of(op.getResults(), isInPieces) ||
                           llvm::any_of(op.getOperands(), [&](mlir::Value operand) {
                             ir::ParameterOp parameter = parameterOf(operand, values);
                             return parameter && isKnown(parameter.getSymName().str());
                           });
      work.add(&op, ranks, isSplit);
      if (!isSplit && ir::workFlops(&op) > 0) whole.add(&op, values);
    }
  }
  if (work.share() <= kWorthIt) return;
  work.largest()->emitWarning("is not split over tp = ")
      << work.ranksOfLargest() << ", as " << work.percent() << withParameters(module, grid, "tp")
      << ": each of the ranks does all of that, with " << whole.text()
      << ". `--explain-sharding` says why; a smaller tp and more dp may be faster";
}

}  // namespace oriel
