#include "passes/lower/fused_rules.h"

#include "mlir/IR/Builders.h"

namespace oriel {

using mlir::ArrayAttr;
using mlir::Attribute;
using mlir::DictionaryAttr;

namespace {

using Attributes = llvm::SmallVector<Attribute>;

// The rule with another list of the name.
DictionaryAttr with(DictionaryAttr rule, llvm::StringRef name, llvm::ArrayRef<Attribute> list) {
  mlir::NamedAttrList result(rule);
  result.set(name, ArrayAttr::get(rule.getContext(), list));
  return result.getDictionary(rule.getContext());
}

bool isIn(ArrayAttr group, int64_t operand) {
  return llvm::any_of(group, [&](Attribute member) {
    return llvm::cast<mlir::IntegerAttr>(member).getInt() == operand;
  });
}

}  // namespace

Attributes ruleList(DictionaryAttr rule, llvm::StringRef name) {
  return Attributes(rule.getAs<ArrayAttr>(name).getValue());
}

DictionaryAttr withAddend(DictionaryAttr rule) {
  mlir::Builder builder(rule.getContext());
  Attributes operands = ruleList(rule, "operands"), linear;
  const auto addend = static_cast<int64_t>(operands.size());
  operands.push_back(ruleList(rule, "results")[0]);
  for (Attribute group : ruleList(rule, "linear")) {
    Attributes members(llvm::cast<ArrayAttr>(group).getValue());
    members.push_back(builder.getI64IntegerAttr(addend));
    linear.push_back(builder.getArrayAttr(members));
  }
  rule = with(with(rule, "operands", operands), "linear", linear);
  return with(rule, "added", {builder.getI64IntegerAttr(addend)});
}

DictionaryAttr withSummands(DictionaryAttr rule) {
  Attributes operands = ruleList(rule, "operands"), results = ruleList(rule, "results");
  results.push_back(operands[0]);
  operands.insert(operands.begin(), operands[0]);
  return with(with(rule, "operands", operands), "results", results);
}

DictionaryAttr withActivation(DictionaryAttr rule, unsigned results) {
  const Attributes all(results, ruleList(rule, "results")[0]);
  return with(with(rule, "results", all), "linear", {});
}

DictionaryAttr withFactor(DictionaryAttr rule) {
  Attributes operands = ruleList(rule, "operands");
  operands.push_back(ruleList(rule, "results")[0]);
  return with(rule, "operands", operands);
}

DictionaryAttr withBiasGrad(DictionaryAttr rule) {
  constexpr int64_t kCotangent = 1;
  Attributes results = ruleList(rule, "results"), linear = ruleList(rule, "linear");
  auto cotangent = llvm::dyn_cast<ArrayAttr>(ruleList(rule, "operands")[kCotangent]);
  const bool isWhole = !cotangent || cotangent.empty();
  results.push_back(isWhole ? ArrayAttr::get(rule.getContext(), {})
                            : ArrayAttr::get(rule.getContext(), {cotangent.getValue().back()}));
  llvm::erase_if(linear,
                 [](Attribute group) { return !isIn(llvm::cast<ArrayAttr>(group), kCotangent); });
  return with(with(rule, "results", results), "linear", linear);
}

}  // namespace oriel
