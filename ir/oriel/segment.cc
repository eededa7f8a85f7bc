#include "ir/oriel/segment.h"

#include <optional>

namespace oriel::ir {
namespace {

using mlir::DictionaryAttr;
using mlir::FailureOr;
using mlir::StringAttr;
using mlir::func::FuncOp;

constexpr llvm::StringLiteral kRef = "oriel.ref";
constexpr llvm::StringLiteral kSlot = "oriel.slot";

constexpr std::pair<ValueKind, llvm::StringLiteral> kKinds[] = {
    {ValueKind::kParameter, "parameter"}, {ValueKind::kOptimizerState, "optimizer_state"},
    {ValueKind::kGradient, "gradient"},   {ValueKind::kAccumulator, "accumulator"},
    {ValueKind::kInput, "input"},         {ValueKind::kScalar, "scalar"},
    {ValueKind::kStash, "stash"},         {ValueKind::kOutput, "output"},
};

std::optional<ValueKind> parseKind(llvm::StringRef text) {
  for (const auto& [kind, name] : kKinds) {
    if (name == text) return kind;
  }
  return std::nullopt;
}

// `what` is "argument" or "result".
FailureOr<ValueRole> readRole(FuncOp segment, llvm::StringRef what, unsigned index,
                              DictionaryAttr attributes) {
  auto refuse = [&]() -> mlir::InFlightDiagnostic {
    return segment.emitError() << what << " " << index << " of @" << segment.getSymName() << " ";
  };
  auto text = [&](llvm::StringRef name) {
    return attributes ? attributes.getAs<StringAttr>(name) : StringAttr();
  };
  StringAttr kindText = text(kKindAttr);
  if (!kindText) return refuse() << "lacks the string attribute " << kKindAttr;
  std::optional<ValueKind> kind = parseKind(kindText.getValue());
  if (!kind) {
    auto diagnostic = refuse() << "has the unknown " << kKindAttr << " " << kindText
                               << ", known are";
    for (const auto& entry : kKinds) diagnostic << " " << entry.second;
    return diagnostic;
  }
  StringAttr ref = text(kRef);
  if (!ref || ref.empty()) return refuse() << "lacks the string attribute " << kRef;
  StringAttr slot = text(kSlot);
  if ((*kind == ValueKind::kOptimizerState) != static_cast<bool>(slot)) {
    return refuse() << "of kind " << kindText << (slot ? " has" : " lacks")
                    << " the string attribute " << kSlot
                    << ", which optimizer states have and nothing else";
  }
  return ValueRole{*kind, ref.str(), slot ? slot.str() : std::string()};
}

// `old` less the role, and `role` instead.
DictionaryAttr withRole(mlir::MLIRContext* context, DictionaryAttr old, const ValueRole& role) {
  mlir::NamedAttrList attributes(old);
  for (llvm::StringRef name : {kKindAttr, kRef, kSlot}) attributes.erase(name);
  attributes.append(roleAttributes(context, role));
  return attributes.getDictionary(context);
}

}  // namespace

llvm::StringRef stringifyValueKind(ValueKind kind) {
  for (const auto& entry : kKinds) {
    if (entry.first == kind) return entry.second;
  }
  llvm_unreachable("every kind has a name");
}

DictionaryAttr roleAttributes(mlir::MLIRContext* context, const ValueRole& role) {
  mlir::NamedAttrList attributes;
  attributes.append(kKindAttr, StringAttr::get(context, stringifyValueKind(role.kind)));
  attributes.append(kRef, StringAttr::get(context, role.ref));
  if (role.kind == ValueKind::kOptimizerState) {
    attributes.append(kSlot, StringAttr::get(context, role.slot));
  }
  return attributes.getDictionary(context);
}

void setArgumentRoles(FuncOp segment, llvm::ArrayRef<ValueRole> roles) {
  llvm::SmallVector<DictionaryAttr> attributes;
  for (auto [i, role] : llvm::enumerate(roles)) {
    attributes.push_back(withRole(segment.getContext(), segment.getArgAttrDict(i), role));
  }
  segment.setAllArgAttrs(attributes);
}

void setResultRoles(FuncOp segment, llvm::ArrayRef<ValueRole> roles) {
  llvm::SmallVector<DictionaryAttr> attributes;
  for (auto [i, role] : llvm::enumerate(roles)) {
    attributes.push_back(withRole(segment.getContext(), segment.getResultAttrDict(i), role));
  }
  segment.setAllResultAttrs(attributes);
}

FailureOr<ValueRole> argumentRole(FuncOp segment, unsigned index) {
  return readRole(segment, "argument", index, segment.getArgAttrDict(index));
}

FailureOr<ValueRole> resultRole(FuncOp segment, unsigned index) {
  return readRole(segment, "result", index, segment.getResultAttrDict(index));
}

bool isParameter(mlir::BlockArgument argument) {
  auto function = llvm::dyn_cast_or_null<FuncOp>(argument.getOwner()->getParentOp());
  if (!function) return false;
  auto kind = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kKindAttr);
  return kind && kind.getValue() == stringifyValueKind(ValueKind::kParameter);
}

FailureOr<std::vector<std::string>> inputNames(FuncOp segment) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
    FailureOr<ValueRole> role = argumentRole(segment, i);
    if (failed(role)) return mlir::failure();
    if (role->kind == ValueKind::kInput) names.push_back(role->ref);
  }
  return names;
}

FuncOp mainOfOneBlock(mlir::ModuleOp module) {
  auto main = module.lookupSymbol<FuncOp>("main");
  return main && main.getBody().hasOneBlock() ? main : FuncOp();
}

llvm::SmallVector<mlir::ModuleOp> programsOf(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::ModuleOp> programs(module.getOps<mlir::ModuleOp>());
  if (programs.empty()) programs.push_back(module);
  return programs;
}

llvm::StringRef segmentKind(FuncOp segment) { return segment.getSymName().split('.').first; }

bool isUpdate(FuncOp segment) { return segmentKind(segment) == "update"; }

bool isBackward(FuncOp segment) { return segmentKind(segment).starts_with("backward"); }

llvm::SmallVector<FuncOp> segmentsOfKind(mlir::ModuleOp program, llvm::StringRef kind) {
  llvm::SmallVector<FuncOp> segments;
  for (FuncOp segment : program.getOps<FuncOp>()) {
    if (segmentKind(segment) == kind && !segment.isDeclaration()) segments.push_back(segment);
  }
  return segments;
}

ShardingAttr shardingOf(mlir::Value value) {
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
    auto segment = llvm::dyn_cast<FuncOp>(argument.getOwner()->getParentOp());
    if (!segment) return {};
    return segment.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(), kShardingAttr);
  }
  auto result = llvm::cast<mlir::OpResult>(value);
  auto shardings = result.getOwner()->getAttrOfType<mlir::ArrayAttr>(kShardingsAttr);
  if (!shardings || shardings.size() <= result.getResultNumber()) return {};
  return llvm::dyn_cast<ShardingAttr>(shardings[result.getResultNumber()]);
}

}  // namespace oriel::ir
