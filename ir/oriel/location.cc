#include "ir/oriel/location.h"

namespace oriel::ir {

std::string locationText(mlir::Location location) {
  auto node = llvm::dyn_cast<mlir::NameLoc>(location);
  if (!node) return "";
  auto module = llvm::dyn_cast<mlir::NameLoc>(node.getChildLoc());
  if (!module) return node.getName().str();
  return (node.getName().getValue() + " [" + module.getName().getValue() + "]").str();
}

std::string opText(mlir::Operation* op) {
  std::string place = locationText(op->getLoc());
  std::string name = op->getName().getStringRef().str();
  return place.empty() ? name : name + " of " + place;
}

}  // namespace oriel::ir
