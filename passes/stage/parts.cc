#include "passes/stage/parts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/work.h"
#include "ir/oriel/location.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "passes/cost/op_time.h"
#include "passes/stage/layer_order.h"
#include "passes/stage/siamese_order.h"
#include "passes/stage/towers.h"
#include "passes/strategize/programs.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

using ParameterSet = llvm::SmallSetVector<Operation*, 4>;

ir::ParameterOp asParameter(Operation* op) { return llvm::cast<ir::ParameterOp>(op); }

int64_t elementsOf(ir::ParameterOp parameter) {
  return ir::elementCount(parameter.getTensorType().getShape());
}

// "a.b" of "a.b.weight", "MatMul_7" of itself.
std::string folderOf(llvm::StringRef name) {
  const auto [folder, last] = name.rsplit('.');
  return (last.empty() ? name : folder).str();
}

// With elements of f32 where they are floats.
mlir::Type inSinglePrecision(mlir::Type type) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  if (!tensor || !llvm::isa<mlir::FloatType>(tensor.getElementType())) return type;
  return tensor.clone(mlir::Float32Type::get(type.getContext()));
}

class PartFinder {
 public:
  PartFinder(mlir::func::FuncOp forward, const Strategy& strategy)
      : forward_(forward), strategy_(strategy), values_(readValues(forward)) {}

  ModelParts find(mlir::func::FuncOp backward) {
    readOps();
    makeSequence();
    findBlocks();
    placeGlue();
    ModelParts result{BlockNames(towerNames()),
                      std::vector<Part>(groups_.size()),
                      llvm::DenseMap<Operation*, int>(),
                      llvm::DenseMap<int64_t, int>(),
                      llvm::DenseMap<Operation*, int64_t>(),
                      {},
                      {}};
    for (const auto& [block, tower] : blocks_) {
      result.blockOps.emplace_back(order_.begin() + block.begin, order_.begin() + block.end);
      result.towerOf.push_back(tower);
    }
    placeAll(backward, &result);
    addNames(&result);
    return result;
  }

 private:
  // A part: places in the sequence.
  struct Group {
    int64_t block = -1;
    std::vector<int> places;
  };

  // Main ops depend on an input and on a parameter; parametersOf_ has what other ops depend on.
  void readOps() {
    for (Operation& op : forward_.getBody().front().without_terminator()) {
      ParameterSet parameters;
      bool dependsOnMain = false, fromInputs = false;
      for (Value operand : op.getOperands()) {
        for (Operation* parameter : parametersOf(operand)) parameters.insert(parameter);
        dependsOnMain |= isMain(operand.getDefiningOp());
        fromInputs |= values_.fromInputs.contains(operand);
      }
      if (dependsOnMain || (fromInputs && !parameters.empty())) {
        mainIndex_[&op] = static_cast<int>(main_.size());
        main_.push_back(&op);
      } else if (!parameters.empty()) {
        tableParameters_[&op] = std::move(parameters);
      }
    }
  }

  bool isMain(Operation* op) const { return op && mainIndex_.contains(op); }

  // Of a parameter, and of a value that depends on nothing but parameters and constants.
  ParameterSet parametersOf(Value value) const {
    ParameterSet parameters;
    if (auto found = values_.parameters.find(value); found != values_.parameters.end()) {
      parameters.insert(ir::ParameterOp(found->second));
    } else if (Operation* op = value.getDefiningOp()) {
      if (auto table = tableParameters_.find(op); table != tableParameters_.end()) {
        return table->second;
      }
    }
    return parameters;
  }

  ParameterSet parametersOf(Operation* op) const {
    ParameterSet parameters;
    for (Value operand : op->getOperands()) {
      for (Operation* parameter : parametersOf(operand)) parameters.insert(parameter);
    }
    return parameters;
  }

  bool isWeight(Value operand) const {
    auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
    return type && type.getRank() >= 2 && !parametersOf(operand).empty();
  }

  void makeSequence() {
    std::vector<std::vector<int>> operands(main_.size());
    for (auto [i, op] : llvm::enumerate(main_)) {
      for (Value operand : op->getOperands()) {
        auto found = mainIndex_.find(operand.getDefiningOp());
        if (found != mainIndex_.end()) operands[i].push_back(found->second);
      }
    }
    std::vector<int> place(main_.size());
    for (int index : siameseOrder(branchOps(operands), layerOrder(operands))) {
      place[index] = static_cast<int>(order_.size());
      order_.push_back(main_[index]);
      SequenceOp op = sequenceOp(main_[index]);
      for (int operand : operands[index]) op.operands.push_back(place[operand]);
      sequence_.push_back(std::move(op));
    }
    users_.resize(sequence_.size());
    for (auto [i, op] : llvm::enumerate(sequence_)) {
      for (int operand : op.operands) users_[operand].push_back(static_cast<int>(i));
    }
  }

  // What does not come from an input is the same for all branches, whose lengths may differ.
  // Attributes don't count: this is about an order alone.
  std::vector<BranchOp> branchOps(const std::vector<std::vector<int>>& operands) {
    std::map<std::vector<uintptr_t>, int> kinds;
    std::vector<BranchOp> ops;
    for (auto [i, op] : llvm::enumerate(main_)) {
      std::vector<uintptr_t> kind;
      auto add = [&](const void* part) { kind.push_back(reinterpret_cast<uintptr_t>(part)); };
      add(op->getName().getAsOpaquePointer());
      BranchOp& branchOp = ops.emplace_back();
      for (Value operand : op->getOperands()) {
        const bool isFixed = !values_.fromInputs.contains(operand);
        if (isFixed) {
          add(operand.getAsOpaquePointer());
          branchOp.hasWeight |= isWeight(operand) && ir::workFlops(op) > 0;
        } else {
          const RankedTensorType type = ir::tensorType(operand);
          add(type.getElementType().getAsOpaquePointer());
          kind.push_back(type.getRank());
        }
      }
      branchOp.operands = operands[i];
      branchOp.kind =
          kinds.try_emplace(std::move(kind), static_cast<int>(kinds.size())).first->second;
    }
    return ops;
  }

  // Attributes don't count: layers that differ in a window or a scale alone are layers all the
  // same. Nor does the precision of floats: a strategy counts blocks, whatever the recipe's
  // precision makes of the values between them.
  SequenceOp sequenceOp(Operation* op) {
    SequenceOp result;
    std::vector<uintptr_t> kind;
    auto add = [&](const void* part) { kind.push_back(reinterpret_cast<uintptr_t>(part)); };
    add(op->getName().getAsOpaquePointer());
    for (Value operand : op->getOperands()) {
      add(inSinglePrecision(operand.getType()).getAsOpaquePointer());
      kind.push_back(!parametersOf(operand).empty());
      result.hasWeight |= isWeight(operand);
    }
    for (Value value : op->getResults()) {
      const mlir::Type type = inSinglePrecision(value.getType());
      add(type.getAsOpaquePointer());
      if (llvm::any_of(value.getUsers(), [&](Operation* user) { return isMain(user); })) {
        result.bytes += ir::typeBytes(type);
      }
    }
    result.kind = static_cast<int64_t>(kinds_.try_emplace(kind, kinds_.size()).first->second);
    result.cost = times_.seconds(op);
    result.isConversion = isConversion(op);
    return result;
  }

  void findBlocks() {
    towers_ = findTowers(sequence_);
    for (auto [tower, blocks] : llvm::enumerate(towers_)) {
      for (const Block& block : blocks) blocks_.push_back({block, static_cast<int>(tower)});
    }
    llvm::sort(blocks_, [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
    blockOf_.assign(sequence_.size(), -1);
    for (auto [i, entry] : llvm::enumerate(blocks_)) {
      std::fill(blockOf_.begin() + entry.first.begin, blockOf_.begin() + entry.first.end,
                static_cast<int>(i));
    }
  }

  // Gap b is in front of block b, and the last one behind all blocks.
  void placeGlue() {
    const int blocks = static_cast<int>(blocks_.size()), size = static_cast<int>(sequence_.size());
    std::vector<int> last(size, -1), gap(size, -1);  // last block that the op depends on
    for (int i = 0; i < size; ++i) {
      last[i] = blockOf_[i];
      for (int operand : sequence_[i].operands) last[i] = std::max(last[i], last[operand]);
    }
    std::vector<std::vector<int>> gaps(blocks + 1);
    for (int i = size - 1; i >= 0; --i) {
      if (blockOf_[i] >= 0) {
        gap[i] = blockOf_[i];
        continue;
      }
      gap[i] = last[i] >= 0 ? last[i] + 1 : blocks;
      if (last[i] < 0) {
        for (int user : users_[i]) gap[i] = std::min(gap[i], gap[user]);
      }
      gaps[gap[i]].insert(gaps[gap[i]].begin(), i);
    }
    for (int b = 0; b <= blocks; ++b) {
      addGap(gaps[b]);
      if (b == blocks) break;
      groups_.push_back({b, {}});
      for (int i = blocks_[b].first.begin; i < blocks_[b].first.end; ++i) {
        groups_.back().places.push_back(i);
      }
    }
  }

  // Where at most one of the values that the ops of the gap make or read goes on to later ops, or
  // comes from outside to them.
  std::vector<std::vector<int>> segmentsOf(const std::vector<int>& gap) const {
    const int size = static_cast<int>(gap.size());
    std::map<int, int> index, lastRead;  // by place
    for (int i = 0; i < size; ++i) {
      index[gap[i]] = i;
      for (int operand : sequence_[gap[i]].operands) lastRead[operand] = i;
    }
    std::vector<int> live(size + 1, 0);
    auto add = [&](int from, int to) {  // at the cuts in front of `from` .. `to`
      if (from > to) return;
      ++live[from];
      if (to < size) --live[to + 1];
    };
    for (auto [value, read] : lastRead) {
      if (!index.count(value)) add(0, read);
    }
    for (int i = 0; i < size; ++i) {
      auto isOutside = [&](int user) { return !index.count(user); };
      const bool goesOn = llvm::any_of(users_[gap[i]], isOutside);
      auto read = lastRead.find(gap[i]);
      if (goesOn || read != lastRead.end()) add(i + 1, goesOn ? size : read->second);
    }
    std::vector<std::vector<int>> segments;
    for (int i = 0, count = 0; i < size; ++i) {
      count += live[i];
      if (segments.empty() || count <= 1) segments.emplace_back();
      segments.back().push_back(gap[i]);
    }
    return segments;
  }

  void addGap(const std::vector<int>& gap) {
    const size_t begin = groups_.size();
    std::optional<Group> group;
    bool hasWeight = false;
    for (const std::vector<int>& segment : segmentsOf(gap)) {
      const bool hasParameters =
          llvm::any_of(segment, [&](int place) { return !parametersOf(order_[place]).empty(); });
      if (!hasParameters && !group && begin > 0) {
        llvm::append_range(groups_[begin - 1].places, segment);
        continue;
      }
      if (group && hasWeight && hasParameters) {
        groups_.push_back(*std::move(group));
        group.reset();
        hasWeight = false;
      }
      if (!group) group.emplace();
      llvm::append_range(group->places, segment);
      hasWeight |= llvm::any_of(segment, [&](int place) { return sequence_[place].hasWeight; });
    }
    if (!group) return;
    if (!hasWeight && groups_.size() > begin) {
      llvm::append_range(groups_.back().places, group->places);
    } else {
      groups_.push_back(*std::move(group));
    }
  }

  ParameterSet parametersOf(const Group& group) const {
    ParameterSet parameters;
    for (int place : group.places) {
      for (Operation* parameter : parametersOf(order_[place])) parameters.insert(parameter);
    }
    return parameters;
  }

  // By block; numbers the groups' blocks where nothing repeats.
  std::vector<std::string> towerNames() {
    if (blocks_.empty()) {
      for (auto [i, group] : llvm::enumerate(groups_)) group.block = static_cast<int64_t>(i);
      return std::vector<std::string>(groups_.size(), "part");
    }
    std::vector<std::string> modules(blocks_.size());
    std::map<int, std::vector<std::string>> names;  // of parameters, by tower
    // What several blocks use (a mask, say) tells nothing of one.
    llvm::DenseMap<Operation*, int> uses;
    for (const Group& group : groups_) {
      for (Operation* op : parametersOf(group)) ++uses[op];
    }
    for (const Group& group : groups_) {
      if (group.block < 0) continue;
      std::optional<std::string> module;
      for (Operation* op : parametersOf(group)) {
        if (uses.lookup(op) > 1) continue;
        const std::string name = asParameter(op).getOnnxName().str();
        const Strategy::Module* own = moduleOf(strategy_, name);
        const std::string ownName = own ? own->name : "";
        module = !module || *module == ownName ? ownName : "";
        names[blocks_[group.block].second].push_back(name);
      }
      modules[group.block] = module.value_or("");
    }
    std::vector<std::string> result;
    for (auto [i, entry] : llvm::enumerate(blocks_)) {
      std::string name = modules[i].empty() ? commonPrefix(names[entry.second]) : modules[i];
      if (name.empty()) name = "tower" + std::to_string(entry.second);
      result.push_back(std::move(name));
    }
    return result;
  }

  // The part of every op. A value that only the backward reads counts as read by the op that the
  // reader is the backward of.
  void placeAll(mlir::func::FuncOp backward, ModelParts* result) {
    llvm::DenseMap<Operation*, int>& partOf = result->partOf;
    for (auto [i, group] : llvm::enumerate(groups_)) {
      for (int place : group.places) {
        partOf[order_[place]] = static_cast<int>(i);
        if (group.block >= 0) result->blockOf[order_[place]] = group.block;
        if (int64_t origin = ir::originOf(order_[place]); origin >= 0) {
          result->partOfOrigin[origin] = static_cast<int>(i);
        }
      }
    }
    const int last = std::max(static_cast<int>(groups_.size()) - 1, 0);
    llvm::StringMap<int> firstReader = readersOfStash(backward, *result);
    Operation* terminator = forward_.getBody().front().getTerminator();
    for (Operation& op : llvm::reverse(forward_.getBody().front().without_terminator())) {
      if (isMain(&op)) continue;
      int part = last;
      for (mlir::OpOperand& use : op.getUses()) {
        if (use.getOwner() != terminator) {
          part = std::min(part, partOf.lookup(use.getOwner()));
          continue;
        }
        mlir::FailureOr<ir::ValueRole> role = ir::resultRole(forward_, use.getOperandNumber());
        if (failed(role) || role->kind != ir::ValueKind::kStash) continue;
        auto reader = firstReader.find(role->ref);
        if (reader != firstReader.end()) part = std::min(part, reader->second);
      }
      partOf[&op] = part;
      if (int64_t origin = ir::originOf(&op); origin >= 0)
        result->partOfOrigin.try_emplace(origin, part);
    }
  }

  llvm::StringMap<int> readersOfStash(mlir::func::FuncOp backward, const ModelParts& model) const {
    llvm::StringMap<int> first;
    if (!backward) return first;
    for (mlir::BlockArgument argument : backward.getArguments()) {
      mlir::FailureOr<ir::ValueRole> role = ir::argumentRole(backward, argument.getArgNumber());
      if (failed(role) || role->kind != ir::ValueKind::kStash) continue;
      for (Operation* user : argument.getUsers()) {
        auto part = model.partOfOrigin.find(ir::originOf(user));
        if (part == model.partOfOrigin.end()) continue;
        auto [entry, isNew] = first.try_emplace(role->ref, part->second);
        if (!isNew) entry->second = std::min(entry->second, part->second);
      }
    }
    return first;
  }

  void addNames(ModelParts* result) {
    llvm::DenseSet<Operation*> counted;
    std::vector<std::pair<int64_t, std::string>> largest(groups_.size());
    auto count = [&](int part, const ParameterSet& parameters) {
      for (Operation* op : parameters) {
        const int64_t elements = elementsOf(asParameter(op));
        if (elements > largest[part].first) {
          largest[part] = {elements, folderOf(asParameter(op).getOnnxName())};
        }
        if (counted.insert(op).second) result->parts[part].parameters += elements;
      }
    };
    for (auto [i, group] : llvm::enumerate(groups_)) {
      count(static_cast<int>(i), parametersOf(group));
      Part& part = result->parts[i];
      part.block = group.block;
      part.name = part.block >= 0 && !blocks_.empty() ? result->names.nameOf(part.block)
                                                      : largest[i].second;
    }
  }

  mlir::func::FuncOp forward_;
  const Strategy& strategy_;
  const OpTimes times_{forward_};
  SegmentValues values_;
  std::vector<Operation*> main_;  // in program order
  llvm::DenseMap<Operation*, int> mainIndex_;
  llvm::DenseMap<Operation*, ParameterSet> tableParameters_;
  std::map<std::vector<uintptr_t>, size_t> kinds_;
  std::vector<Operation*> order_;  // main ops in layer order, as `sequence_`
  std::vector<SequenceOp> sequence_;
  std::vector<std::vector<int>> users_;
  std::vector<Tower> towers_;
  std::vector<std::pair<Block, int>> blocks_;  // with their tower, in order
  std::vector<int> blockOf_;                   // by place
  std::vector<Group> groups_;
};

}  // namespace

bool isConversion(Operation* op) {
  if (!op->hasTrait<ir::Pointwise>() || op->getNumOperands() != 1 || op->getNumResults() != 1) {
    return false;
  }
  const mlir::Type from = mlir::getElementTypeOrSelf(op->getOperand(0).getType());
  const mlir::Type to = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  return from != to && llvm::isa<mlir::FloatType>(from) && llvm::isa<mlir::FloatType>(to);
}

ModelParts findParts(mlir::func::FuncOp forward, mlir::func::FuncOp backward,
                     const Strategy& strategy) {
  return PartFinder(forward, strategy).find(backward);
}

void annotateBlocks(mlir::ModuleOp module, const ModelParts& model) {
  llvm::SmallVector<int64_t> blocks;
  for (const auto& [op, block] : model.blockOf) {
    const int64_t origin = ir::originOf(op);
    if (origin < 0) continue;
    if (origin >= static_cast<int64_t>(blocks.size())) blocks.resize(origin + 1, -1);
    blocks[origin] = block;
  }
  if (blocks.empty()) return;
  module->setAttr(kBlocksAttr, mlir::DenseI64ArrayAttr::get(module.getContext(), blocks));
}

}  // namespace oriel
