#include "ir/oriel/location.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace oriel::ir {

std::string locationText(mlir::Location location) {
  auto node = llvm::dyn_cast<mlir::NameLoc>(location);
  if (!node) return "";
  auto module = llvm::dyn_cast<mlir::NameLoc>(node.getChildLoc());
  if (!module) return node.getName().str();
  return (node.getName().getValue() + " [" + module.getName().getValue() + "]").str();
}

int64_t originOf(mlir::Operation* op) {
  auto origin = op->getAttrOfType<mlir::IntegerAttr>("origin");
  return origin ? origin.getInt() : -1;
}

std::string opText(mlir::Operation* op) {
  std::string place = locationText(op->getLoc());
  std::string name = op->getName().getStringRef().str();
  return place.empty() ? name : name + " of " + place;
}

}  // namespace oriel::ir
