#include "frontend/model_parts.h"

#include <set>

#include "frontend/node_location.h"
#include "ir/oriel/oriel.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace oriel {
namespace {

using mlir::Operation;
using mlir::Value;

using Ops = llvm::SetVector<Operation*>;

// Adds the ops that the value depends on.
void collectSlice(Value root, Ops& ops) {
  llvm::SmallVector<Value> pending{root};
  while (!pending.empty()) {
    Operation* op = pending.pop_back_val().getDefiningOp();
    if (op && ops.insert(op)) {
      llvm::append_range(pending, op->getOperands());
    }
  }
}

bool isAttention(Operation* op) { return llvm::isa<ir::SoftmaxOp, ir::AttentionOp>(op); }

// "a.b" for "a.b.c": the first `depth` components of a dotted name.
llvm::StringRef leading(llvm::StringRef name, int depth) {
  size_t end = 0;
  for (; depth > 0 && end != llvm::StringRef::npos; --depth) {
    end = name.find('.', end == 0 ? 0 : end + 1);
  }
  return name.substr(0, end);
}

// How many leading components all names share; the last component of a name does not count.
int sharedDepth(const std::set<std::string>& names) {
  int depth = 0;
  for (int next = 1;; ++next) {
    std::set<llvm::StringRef> prefixes;
    for (const std::string& name : names) {
      if (leading(name, next) == name) {
        return depth;
      }
      prefixes.insert(leading(name, next));
    }
    if (prefixes.size() != 1) {
      return depth;
    }
    depth = next;
  }
}

// Shortest prefixes that cover the names of a part and none of the others'.
std::string labelOf(const std::set<std::string>& names, const std::set<std::string>& others) {
  std::set<std::string> prefixes;
  for (const std::string& name : names) {
    int depth = others.empty() ? std::max(1, sharedDepth(names)) : 1;
    auto isTaken = [&](llvm::StringRef prefix) {
      return llvm::any_of(others, [&](llvm::StringRef other) {
        return other == prefix || other.starts_with((prefix + ".").str());
      });
    };
    while (isTaken(leading(name, depth)) && leading(name, depth) != name) {
      ++depth;
    }
    prefixes.insert(leading(name, depth).str());
  }
  return llvm::join(prefixes, ", ");
}

class PartFinder {
 public:
  PartFinder(mlir::func::FuncOp main, const llvm::DenseMap<Value, std::string>& parameters)
      : main_(main), parameters_(parameters) {}

  std::vector<ModelPart> run();

 private:
  struct Part {
    std::string kind;
    llvm::DenseSet<Operation*> ops;
    std::set<std::string> names;  // of where its parameters are read, see nameOf
    std::vector<Value> parameters;
  };

  void splitFeatures(Value features);
  void take(Part& part, Operation* op);
  // What a use of a parameter is called: by the module that reads it, where that is known, since
  // an exporter may give the parameter itself any name. Empty for other operands.
  std::string nameOf(mlir::OpOperand& operand) const;
  ModelPart describe(const Part& part) const;

  mlir::func::FuncOp main_;
  const llvm::DenseMap<Value, std::string>& parameters_;
  llvm::DenseSet<Operation*> taken_;
  llvm::DenseSet<Value> counted_;  // a tied parameter belongs to the first part that reads it
  std::vector<Part> parts_;
};

std::string PartFinder::nameOf(mlir::OpOperand& operand) const {
  auto parameter = parameters_.find(operand.get());
  if (parameter == parameters_.end()) {
    return "";
  }
  std::string module = modulePathOf(operand.getOwner()->getLoc());
  return module.empty() ? parameter->second : module + ".parameter";
}

void PartFinder::take(Part& part, Operation* op) {
  if (llvm::isa<ir::ConstantOp>(op) || !taken_.insert(op).second) {
    return;
  }
  part.ops.insert(op);
  for (mlir::OpOperand& operand : op->getOpOperands()) {
    if (std::string name = nameOf(operand); !name.empty()) {
      part.names.insert(name);
      if (counted_.insert(operand.get()).second) {
        part.parameters.push_back(operand.get());
      }
    }
  }
}

// Vision and projector. Uses of parameters are grouped by the first component in which their names
// differ; the projector is the groups that no attention depends on.
void PartFinder::splitFeatures(Value features) {
  Ops slice;
  collectSlice(features, slice);
  std::set<std::string> names;
  Ops attended;
  for (Operation* op : slice) {
    for (mlir::OpOperand& operand : op->getOpOperands()) {
      if (std::string name = nameOf(operand); !name.empty()) {
        names.insert(name);
      }
    }
    if (isAttention(op)) {
      collectSlice(op->getResult(0), attended);
    }
  }
  int depth = sharedDepth(names) + 1;
  std::set<std::string> visionGroups;
  for (Operation* op : attended) {
    for (mlir::OpOperand& operand : op->getOpOperands()) {
      if (std::string name = nameOf(operand); !name.empty()) {
        visionGroups.insert(leading(name, depth).str());
      }
    }
  }
  Part vision{"vision", {}, {}, {}}, projector{"projector", {}, {}, {}};
  llvm::DenseSet<Operation*> projected;
  main_.walk([&](Operation* op) {  // in order, so that dependence is known from the operands
    if (!slice.contains(op)) {
      return;
    }
    bool depends = llvm::any_of(op->getOpOperands(), [&](mlir::OpOperand& operand) {
      std::string name = nameOf(operand);
      return projected.contains(operand.get().getDefiningOp()) ||
             (!name.empty() && !visionGroups.empty() &&
              !visionGroups.count(leading(name, depth).str()));
    });
    if (depends) {
      projected.insert(op);
    }
    take(depends ? projector : vision, op);
  });
  if (!vision.ops.empty()) {
    parts_.push_back(std::move(vision));
  }
  if (!projector.ops.empty()) {
    parts_.push_back(std::move(projector));
  }
}

ModelPart PartFinder::describe(const Part& part) const {
  ModelPart described;
  std::set<std::string> others;
  for (const Part& other : parts_) {
    if (&other != &part) {
      others.insert(other.names.begin(), other.names.end());
    }
  }
  described.kind = part.kind;
  described.label = labelOf(part.names, others);
  described.ops = static_cast<int64_t>(part.ops.size());
  for (Value parameter : part.parameters) {
    auto type = llvm::cast<mlir::RankedTensorType>(parameter.getType());
    described.parameters += type.getNumElements();
    described.parameterBytes += ir::typeBytes(type);
  }
  for (Operation* op : part.ops) {
    if (auto cost = llvm::dyn_cast<ir::CostOpInterface>(op)) {
      described.flops += static_cast<double>(cost.getFlops());
    }
  }
  return described;
}

std::vector<ModelPart> PartFinder::run() {
  main_.walk([&](Operation* op) {
    if (auto scatter = llvm::dyn_cast<ir::MaskedScatterOp>(op)) {
      splitFeatures(scatter.getSource());
    } else if (auto merge = llvm::dyn_cast<ir::MergeFeaturesOp>(op)) {
      splitFeatures(merge.getFeatures());
    }
  });
  bool hasMerge = !parts_.empty(), embedsTokens = false;
  Part rest{"language", {}, {}, {}};
  main_.walk([&](Operation* op) {
    if (!llvm::isa_and_nonnull<mlir::func::FuncDialect>(op->getDialect())) {
      take(rest, op);
    }
    if (auto gather = llvm::dyn_cast<ir::GatherOp>(op)) {
      embedsTokens |= parameters_.contains(gather.getInput()) &&
                      !gather.getIndices().getDefiningOp<ir::ConstantOp>();
    }
  });
  if (!hasMerge && !embedsTokens) {
    rest.kind = "vision";
  }
  parts_.push_back(std::move(rest));
  std::vector<ModelPart> described;
  for (const Part& part : parts_) {
    described.push_back(describe(part));
  }
  return described;
}

}  // namespace

std::vector<ModelPart> findParts(mlir::func::FuncOp main,
                                 const llvm::DenseMap<Value, std::string>& parameters) {
  return PartFinder(main, parameters).run();
}

}  // namespace oriel
