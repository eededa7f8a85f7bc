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
  if (getOffset() % 64 != 0) {
    return emitOpError("has the offset ") << getOffset() << ", expected a multiple of 64";
  }
  if ((getKind() == "constant") != getValue().has_value()) {
    return emitOpError("of kind constant, and no other, has a value");
  }
  if (getValue() && getValue()->getShapedType() != type) {
    return emitOpError("has a value of type ") << getValue()->getShapedType();
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

}  // namespace

LogicalResult RunOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (!symbols.lookupSymbolIn<SegmentOp>(program, getSegmentAttr().getAttr())) {
    return emitOpError("names ") << getSegmentAttr() << ", which is no segment of the program";
  }
  return mlir::success();
}

LogicalResult LaunchOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  return verifyBuffers(*this, symbols);
}

LogicalResult CollectiveOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  if (getCollective() != "all_reduce") {
    return emitOpError("is of the unknown kind ") << getCollectiveAttr();
  }
  if (getReduction() != "sum" && getReduction() != "max") {
    return emitOpError("expects the reduction sum or max, got ") << getReductionAttr();
  }
  if (getInputsAttr().size() != getOutputsAttr().size()) {
    return emitOpError("has ") << getInputsAttr().size() << " inputs but "
                               << getOutputsAttr().size() << " outputs";
  }
  return verifyBuffers(*this, symbols);
}

LogicalResult CopyOp::verifySymbolUses(mlir::SymbolTableCollection& symbols) {
  if (getInputsAttr().size() != 1 || getOutputsAttr().size() != 1) {
    return emitOpError("copies one buffer to one buffer");
  }
  return verifyBuffers(*this, symbols);
}

}  // namespace oriel::exec
