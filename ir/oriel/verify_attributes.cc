// What the attributes that passes write on segments and ops must look like (segment.h). That the
// values agree with each other is for the verifiers between phases.
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace oriel::ir {

namespace {

using mlir::ArrayAttr;
using mlir::Attribute;
using mlir::failure;
using mlir::IntegerAttr;
using mlir::LogicalResult;
using mlir::NamedAttribute;
using mlir::Operation;
using mlir::StringAttr;
using mlir::success;

// A list of numbers from 0 up to, but not, `end`.
bool areIndices(Attribute attribute, size_t end) {
  auto list = llvm::dyn_cast_if_present<ArrayAttr>(attribute);
  return list && llvm::all_of(list, [&](Attribute element) {
           auto number = llvm::dyn_cast<IntegerAttr>(element);
           return number && number.getType().isInteger(64) && number.getInt() >= 0 &&
                  number.getInt() < static_cast<int64_t>(end);
         });
}

template <typename Element>
bool areAll(Attribute attribute) {
  auto list = llvm::dyn_cast<ArrayAttr>(attribute);
  return list && llvm::all_of(list, llvm::IsaPred<Element>);
}

// The number of dimensions, -1 for what is no tensor.
int64_t rankOf(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tensor ? tensor.getRank() : -1;
}

bool isShardingOf(Attribute attribute, mlir::Type type) {
  auto sharding = llvm::dyn_cast_if_present<ShardingAttr>(attribute);
  return sharding && static_cast<int64_t>(sharding.getDims().size()) == rankOf(type);
}

LogicalResult refuse(Operation* op, NamedAttribute attribute, const llvm::Twine& expected) {
  return op->emitOpError("has ") << attribute.getName().getValue() << " " << attribute.getValue()
                                 << ", expected " << expected;
}

LogicalResult verifyShardings(Operation* op, NamedAttribute attribute) {
  auto list = llvm::dyn_cast<ArrayAttr>(attribute.getValue());
  const bool fits = list && list.size() == op->getNumResults() &&
                    llvm::all_of(llvm::zip_equal(list, op->getResultTypes()), [](const auto& pair) {
                      return isShardingOf(std::get<0>(pair), std::get<1>(pair));
                    });
  if (fits) return success();
  return refuse(op, attribute, "a sharding for each result, with as many dimensions");
}

// Axes for each factor of the op's rule, then axes over which pending sums pass, with the group of
// operands that is linear in them.
LogicalResult verifySplit(Operation* op, NamedAttribute attribute) {
  auto isPass = [](Attribute part) {
    auto pass = llvm::dyn_cast<ArrayAttr>(part);
    return pass && pass.size() == 2 && llvm::isa<StringAttr>(pass[0]) &&
           llvm::isa<IntegerAttr>(pass[1]);
  };
  auto list = llvm::dyn_cast<ArrayAttr>(attribute.getValue());
  if (!list ||
      !llvm::all_of(list, [&](Attribute p) { return areAll<StringAttr>(p) || isPass(p); })) {
    return refuse(op, attribute, "axes for each factor, and pairs of an axis and a group");
  }
  return success();
}

bool isFactor(Attribute attribute) {
  auto pair = llvm::dyn_cast<ArrayAttr>(attribute);
  auto size = pair && pair.size() == 2 ? llvm::dyn_cast<IntegerAttr>(pair[0]) : nullptr;
  auto kind = size ? llvm::dyn_cast<StringAttr>(pair[1]) : nullptr;
  return kind && size.getInt() >= 0 &&
         llvm::is_contained({"parallel", "sum", "max", "whole"}, kind.getValue());
}

// The factors of each dimension of a tensor; none at all where it is whole.
bool areDims(Attribute dims, mlir::Type type, size_t factors) {
  auto list = llvm::dyn_cast<ArrayAttr>(dims);
  return list && (list.empty() || static_cast<int64_t>(list.size()) == rankOf(type)) &&
         llvm::all_of(list, [&](Attribute dim) { return areIndices(dim, factors); });
}

// See passes/partition/local_rule.h.
LogicalResult verifyRule(Operation* op, NamedAttribute attribute) {
  auto rule = llvm::dyn_cast<mlir::DictionaryAttr>(attribute.getValue());
  auto part = [&](llvm::StringRef name) { return rule ? rule.getAs<ArrayAttr>(name) : nullptr; };
  ArrayAttr factors = part("factors"), operands = part("operands"), results = part("results"),
            linear = part("linear");
  if (!factors || !operands || !results || !linear) {
    return refuse(op, attribute, "lists named factors, linear, operands and results");
  }
  if (!llvm::all_of(factors, isFactor)) {
    return refuse(op, attribute, "factors with a size and parallel, sum, max or whole");
  }
  auto describes = [&](ArrayAttr list, mlir::TypeRange types, bool hasFirst) {
    return list.size() == types.size() &&
           llvm::all_of(llvm::zip_equal(list, types), [&](const auto& pair) {
             const auto& [dims, type] = pair;
             if (auto first = llvm::dyn_cast<IntegerAttr>(dims); first && hasFirst) {
               return first.getInt() >= 0 && first.getInt() < static_cast<int64_t>(factors.size());
             }
             return areDims(dims, type, factors.size());
           });
  };
  if (!describes(operands, op->getOperandTypes(), true) ||
      !describes(results, op->getResultTypes(), false)) {
    return refuse(op, attribute,
                  "for each operand and result its factors by dimension, or the factor whose "
                  "first index an operand is");
  }
  auto isGroup = [&](Attribute group) { return areIndices(group, operands.size()); };
  if (!llvm::all_of(linear, isGroup) ||
      (rule.contains("added") && !areIndices(rule.get("added"), operands.size()))) {
    return refuse(op, attribute, "groups of operands that are there");
  }
  return success();
}

bool isCount(Attribute attribute) {
  auto number = llvm::dyn_cast_if_present<IntegerAttr>(attribute);
  return number && number.getType().isInteger(64) && number.getInt() >= 0;
}

// {count = "input", per_sample = 1, rows = {input = 1, ..}}
bool areImagesOfOneKind(Attribute attribute) {
  auto images = llvm::dyn_cast<mlir::DictionaryAttr>(attribute);
  auto rows = images ? images.getAs<mlir::DictionaryAttr>("rows") : nullptr;
  return rows && images.getAs<StringAttr>("count") && isCount(images.get("per_sample")) &&
         llvm::all_of(rows, [](NamedAttribute input) { return isCount(input.getValue()); });
}

bool areImages(Attribute attribute) {
  auto kinds = llvm::dyn_cast<mlir::ArrayAttr>(attribute);
  return kinds && llvm::all_of(kinds, areImagesOfOneKind);
}

bool arePositions(Operation* op, Attribute attribute) {
  auto dims = llvm::dyn_cast<mlir::DenseI64ArrayAttr>(attribute);
  if (!dims || static_cast<size_t>(dims.size()) != op->getNumResults()) return false;
  return llvm::all_of(llvm::zip_equal(dims.asArrayRef(), op->getResultTypes()), [](auto both) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(std::get<1>(both));
    return std::get<0>(both) >= -1 && type && std::get<0>(both) < type.getRank();
  });
}

// Positions are the last dimension but one.
bool areSequenceTypes(Attribute attribute) {
  auto types = llvm::dyn_cast<mlir::ArrayAttr>(attribute);
  return types && llvm::all_of(types, [](Attribute element) {
           auto type = llvm::dyn_cast<mlir::TypeAttr>(element);
           auto tensor = type ? llvm::dyn_cast<mlir::RankedTensorType>(type.getValue()) : nullptr;
           return tensor && tensor.getRank() >= 2;
         });
}

// A number for each dimension of a parameter.
bool isOfParameter(Operation* op, Attribute attribute) {
  auto parameter = llvm::dyn_cast<ParameterOp>(op);
  auto numbers = llvm::dyn_cast<mlir::DenseI64ArrayAttr>(attribute);
  // Attributes of the dialect are verified before the op's own, of which one may be missing.
  return parameter && parameter.getTypeAttr() && numbers &&
         numbers.size() == rankOf(parameter.getType());
}

// Attributes of the dialect are verified before the op's own.
bool isUnitOfMax(Operation* op, Attribute attribute) {
  auto reduce = llvm::dyn_cast<ReduceMaxOp>(op);
  const bool isOneDim = reduce && reduce.getDimsAttr() && reduce.getDims().size() == 1;
  return llvm::isa<mlir::UnitAttr>(attribute) && (isOneDim || llvm::isa<MaxOp>(op));
}

// Of attributes that stand for themselves.
struct Form {
  llvm::StringLiteral name;
  bool (*fits)(Operation* op, Attribute attribute);
  llvm::StringLiteral expected;
};
constexpr Form kForms[] = {
    {"oriel.stages", [](Operation*, Attribute a) { return areAll<StringAttr>(a); },
     "a list of names"},
    {kLeftOutAttr, [](Operation*, Attribute a) { return areAll<StringAttr>(a); },
     "a list of names"},
    {"oriel.sequence_types", [](Operation*, Attribute a) { return areSequenceTypes(a); },
     "a list of types of tensors with two dimensions or more"},
    {"oriel.first_rank", [](Operation*, Attribute a) { return isCount(a); },
     "a 64-bit number from 0 on"},
    {kImagesAttr, [](Operation*, Attribute a) { return areImages(a); },
     "a list, of each kind `count`, the name of an input, `per_sample`, and the number of `rows` "
     "of each input"},
    {"oriel.positions", arePositions, "a dimension for each result, or -1"},
    {"oriel.whole", isOfParameter, "a number for each dimension of the parameter"},
    {"oriel.start", isOfParameter, "a number for each dimension of the parameter"},
    {kFirstOfEqualAttr, isUnitOfMax, "a unit, on a max, or a reduce_max of one dimension"},
};

// `role` reads the attributes that say what an argument or result stands for.
template <typename Role>
LogicalResult verifyOfSegment(Operation* op, NamedAttribute attribute, mlir::Type type,
                              llvm::StringRef what, unsigned index, Role role) {
  auto function = llvm::dyn_cast<mlir::func::FuncOp>(op);
  if (!function) return success();
  const llvm::StringRef name = attribute.getName();
  if (name == kShardingAttr && !isShardingOf(attribute.getValue(), type)) {
    return op->emitOpError() << "has " << name << " " << attribute.getValue() << " for " << what
                             << " " << index << ", expected a sharding with as many dimensions as "
                             << type;
  }
  if (name != kKindAttr) return success();
  if (!llvm::hasSingleElement(function.getBody())) {
    return op->emitOpError("a segment must have one block");
  }
  if (!llvm::isa<mlir::RankedTensorType>(type)) {
    return op->emitOpError() << "has type " << type << " for " << what << " " << index
                             << ", expected a tensor";
  }
  return role(function, index);
}

}  // namespace

LogicalResult OrielDialect::verifyOperationAttribute(Operation* op, NamedAttribute attribute) {
  const llvm::StringRef name = attribute.getName();
  if (name == kStreamAttr || name == kBucketAttr) return verifyStream(op, attribute);
  if (name == kShardingsAttr) return verifyShardings(op, attribute);
  if (name == kSplitAttr) return verifySplit(op, attribute);
  if (name == kRuleAttr) return verifyRule(op, attribute);
  for (const Form& form : kForms) {
    if (form.name == name && !form.fits(op, attribute.getValue())) {
      return refuse(op, attribute, form.expected);
    }
  }
  return success();
}

LogicalResult OrielDialect::verifyRegionArgAttribute(Operation* op, unsigned, unsigned index,
                                                     NamedAttribute attribute) {
  auto function = llvm::cast<mlir::FunctionOpInterface>(op);
  return verifyOfSegment(op, attribute, function.getArgumentTypes()[index], "argument", index,
                         argumentRole);
}

LogicalResult OrielDialect::verifyRegionResultAttribute(Operation* op, unsigned, unsigned index,
                                                        NamedAttribute attribute) {
  auto function = llvm::cast<mlir::FunctionOpInterface>(op);
  return verifyOfSegment(op, attribute, function.getResultTypes()[index], "result", index,
                         resultRole);
}

}  // namespace oriel::ir
