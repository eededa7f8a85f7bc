#include "ir/exec/exec.h"

#include "ir/exec/exec_dialect.cc.inc"

#define GET_OP_CLASSES
#include "ir/exec/exec_ops.cc.inc"

namespace oriel::exec {

using mlir::LogicalResult;

void ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/exec/exec_ops.cc.inc"
      >();
}

LogicalResult BufferOp::verify() {
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(getType());
  if (!type || !type.hasStaticShape()) {
    return emitOpError("has the type ") << getType() << ", expected a static tensor";
  }
  if (getSharding() && static_cast<int64_t>(getSharding()->getDims().size()) != type.getRank()) {
    return emitOpError("has the sharding ") << *getSharding() << " of another rank than " << type;
  }
  llvm::SmallVector<int64_t> offsets(getCopyOffsets());
  offsets.push_back(getOffset());
  for (int64_t offset : offsets) {
    if (offset % 64 == 0) continue;
    return emitOpError("has the offset ") << offset << ", expected a multiple of 64";
  }
  if ((getKind() == "constant") != getValue().has_value()) {
    return emitOpError("of kind constant, and no other, has a value");
  }
  if (getValue() && getValue()->getShapedType() != type) {
    return emitOpError("has a value of type ") << getValue()->getShapedType();
  }
  return mlir::success();
}

static llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::ShapedType>(value.getType()).getShape();
}

// The shape that generated code goes along: the largest that one of its ops takes or makes.
static llvm::ArrayRef<int64_t> fullShape(GeneratedOp op) {
  llvm::ArrayRef<int64_t> full;
  for (mlir::Operation& inner : op.getBody().front()) {
    for (mlir::Value operand : inner.getOperands()) {
      llvm::ArrayRef<int64_t> shape = shapeOf(operand);
      const bool more =
          mlir::ShapedType::getNumElements(shape) > mlir::ShapedType::getNumElements(full);
      if (shape.size() > full.size() || (shape.size() == full.size() && more)) full = shape;
    }
  }
  return full;
}

// Whether values of this shape are one for each element, or for each row: dimensions at the end of
// `full` are 1 or left out.
static bool isOfRows(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> full) {
  while (!shape.empty() && shape.size() == full.size() && shape.back() == 1) {
    shape = shape.drop_back();
    full = full.drop_back();
  }
  return shape == full.take_front(shape.size());
}

llvm::StringRef GeneratedOp::getKernelName() { return kGeneratedKernel; }

// Each element of a result depends on that element of the operands of its shape alone, and code
// reads an element of all operands before it writes one. Where it reduces rows, whole rows are read
// before one is written; but one value for each row, without the rows' dimensions, may have the
// shape of an operand that goes along the columns.
bool GeneratedOp::mayOverwrite(unsigned result, unsigned) {
  return shapeOf(getOutputs()[result]).size() == fullShape(*this).size();
}

int64_t GeneratedOp::getFlops() {
  int64_t sum = 0;
  for (mlir::Operation& op : getBody().front()) {
    if (auto cost = llvm::dyn_cast<ir::CostOpInterface>(op)) sum += cost.getFlops();
  }
  return sum;
}

void YieldOp::build(mlir::OpBuilder&, mlir::OperationState&) {}

LogicalResult GeneratedOp::verifyRegions() {
  mlir::Block& block = getBody().front();
  if (block.getArgumentTypes() != getInputs().getTypes()) {
    return emitOpError("has a body that takes other types than its operands'");
  }
  mlir::Operation* terminator = block.getTerminator();
  if (terminator->getOperandTypes() != getOutputs().getTypes()) {
    return emitOpError("has a body that yields other types than its results'");
  }
  for (mlir::Type type : getOutputs().getTypes()) {
    if (!isOfRows(llvm::cast<mlir::ShapedType>(type).getShape(), fullShape(*this))) {
      return emitOpError("has results of different shapes");
    }
  }
  return mlir::success();
}

namespace {

// Every buffer that an instruction names stands in its program.
template <typename Instruction>
LogicalResult verifyBuffers(Instruction op, mlir::SymbolTableCollection& symbols) {
  auto program = op->template getParentOfType<ProgramOp>();
  for (mlir::ArrayAttr list : {op.getInputsAttr(), op.getOutputsAttr()}) {
    for (auto symbol : list.template getAsRange<mlir::FlatSymbolRefAttr>()) {
      if (!symbols.lookupSymbolIn<BufferOp>(program, symbol.getAttr())) {
        return op.emitOpError("names ") << symbol << ", which is no buffer of the program";
      }
    }
  }
  return mlir::success();
}

template <typename Instruction>
LogicalResult verifyOneToOne(Instruction op) {
  if (op.getInputsAttr().size() == 1 && op.getOutputsAttr().size() == 1) return mlir::success();
  return op.emitOpError("takes one buffer to one buffer, got ")
         << op.getInputsAttr().size() << " and " << op.getOutputsAttr().size();
}

// What a collective does, by its name.
struct CollectiveKind {
  llvm::StringLiteral name;
  bool reduces;
  bool cuts;
  bool joins;
};
constexpr CollectiveKind kCollectives[] = {
    {"all_reduce", true, false, false},
    {"all_gather", false, false, true},
    {"reduce_scatter", true, true, false},
    {"all_to_all", false, true, true},
};

}  // namespace

// What it starts it waits for, once.
LogicalResult SegmentOp::verifyRegions() {
  llvm::SmallVector<mlir::Operation*> instructions;
  llvm::SmallPtrSet<mlir::Operation*, 8> started;
  for (mlir::Operation& op : getBody().front()) {
    if (auto collective = llvm::dyn_cast<CollectiveOp>(op); collective && collective.getStream()) {
      started.insert(&op);
    } else if (auto wait = llvm::dyn_cast<WaitOp>(op)) {
      uint64_t index = wait.getCollective();
      if (index >= instructions.size() || !started.erase(instructions[index])) {
        return wait.emitOpError("waits for instruction ")
               << wait.getCollective() << ", which is no collective on its way";
      }
    }
    instructions.push_back(&op);
  }
  for (mlir::Operation* op : instructions) {
    if (started.contains(op)) {
      return op->emitOpError("is started, but the segment does not wait for it");
    }
  }
  return mlir::success();
}

LogicalResult RunOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (!symbols.lookupSymbolIn<SegmentOp>(program, getSegmentAttr().getAttr())) {
    return emitOpError("names ") << getSegmentAttr() << ", which is no segment of the program";
  }
  return mlir::success();
}

LogicalResult LaunchOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  if ((getKernel() == kGeneratedKernel) != getGenerated().has_value()) {
    return emitOpError("of the kernel \"generated\", and no other, names an exec.kernel");
  }
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (getGenerated() && !symbols.lookupSymbolIn<KernelOp>(program, getGeneratedAttr().getAttr())) {
    return emitOpError("names ") << getGeneratedAttr() << ", which is no kernel of the program";
  }
  return verifyBuffers(*this, symbols);
}

LogicalResult CollectiveOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  const auto* kind = llvm::find_if(
      kCollectives, [&](const CollectiveKind& known) { return known.name == getCollective(); });
  if (kind == std::end(kCollectives)) {
    return emitOpError("is of the unknown kind ") << getCollectiveAttr();
  }
  std::optional<llvm::StringRef> reduction = getReduction();
  if (reduction.has_value() != kind->reduces) {
    return emitOpError(kind->reduces ? "expects a reduction"
                                     : "reduces nothing, but has a reduction");
  }
  if (reduction && *reduction != "sum" && *reduction != "max") {
    return emitOpError("expects the reduction sum or max, got ") << getReductionAttr();
  }
  if (getSplitDims().has_value() != kind->cuts) {
    return emitOpError(kind->cuts ? "expects split_dims" : "cuts nothing, but has split_dims");
  }
  if (getConcatDims().has_value() != kind->joins) {
    return emitOpError(kind->joins ? "expects concat_dims" : "joins nothing, but has concat_dims");
  }
  size_t inputs = getInputsAttr().size();
  if (inputs != getOutputsAttr().size()) {
    return emitOpError("has ") << inputs << " inputs but " << getOutputsAttr().size() << " outputs";
  }
  for (std::optional<llvm::ArrayRef<int64_t>> dims : {getSplitDims(), getConcatDims()}) {
    if (!dims || dims->size() == inputs) continue;
    return emitOpError("has ") << inputs << " inputs, but dimensions for " << dims->size();
  }
  if (auto stream = static_cast<int64_t>(getStream()); stream < 0) {
    return emitOpError("is on the stream ") << stream;
  }
  return verifyBuffers(*this, symbols);
}

LogicalResult SliceOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  if (failed(verifyOneToOne(*this))) return mlir::failure();
  return verifyBuffers(*this, symbols);
}

LogicalResult CopyOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  if (failed(verifyOneToOne(*this))) return mlir::failure();
  return verifyBuffers(*this, symbols);
}

LogicalResult SendOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  if (getInputsAttr().size() != 1 || !getOutputsAttr().empty()) {
    return emitOpError("sends one buffer and makes none");
  }
  return verifyBuffers(*this, symbols);
}

LogicalResult ReceiveOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  if (!getInputsAttr().empty() || getOutputsAttr().size() != 1) {
    return emitOpError("receives one buffer and reads none");
  }
  return verifyBuffers(*this, symbols);
}

}  // namespace oriel::exec
