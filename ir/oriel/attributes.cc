// Parsing and printing of the dialect's attributes.
#include "ir/oriel/oriel.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/DialectImplementation.h"

namespace oriel::ir {

namespace {

using mlir::ArrayAttr;

// {a0, a1}
mlir::FailureOr<ArrayAttr> parseAxes(mlir::AsmParser& parser) {
  llvm::SmallVector<mlir::Attribute> axes;
  auto parseAxis = [&]() -> mlir::ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name)) return mlir::failure();
    axes.push_back(parser.getBuilder().getStringAttr(name));
    return mlir::success();
  };
  if (parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Braces, parseAxis)) {
    return mlir::failure();
  }
  return parser.getBuilder().getArrayAttr(axes);
}

void printAxes(mlir::AsmPrinter& printer, ArrayAttr axes) {
  printer << '{';
  llvm::interleaveComma(axes.getAsRange<mlir::StringAttr>(), printer, [&](mlir::StringAttr axis) {
    printer.printKeywordOrString(axis.getValue());
  });
  printer << '}';
}

}  // namespace

mlir::Attribute ShardingAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  llvm::SmallVector<mlir::Attribute> dims;
  auto parseDim = [&]() -> mlir::ParseResult {
    mlir::FailureOr<ArrayAttr> axes = parseAxes(parser);
    if (failed(axes)) return mlir::failure();
    dims.push_back(*axes);
    return mlir::success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Square, parseDim)) {
    return {};
  }
  ArrayAttr sum = parser.getBuilder().getArrayAttr({}), max = sum;
  for (auto [keyword, axes] : {std::pair("sum", &sum), std::pair("max", &max)}) {
    if (failed(parser.parseOptionalKeyword(keyword))) continue;
    mlir::FailureOr<ArrayAttr> parsed = parseAxes(parser);
    if (failed(parsed)) return {};
    *axes = *parsed;
  }
  if (parser.parseGreater()) return {};
  return parser.getChecked<ShardingAttr>(parser.getContext(),
                                         parser.getBuilder().getArrayAttr(dims), sum, max);
}

void ShardingAttr::print(mlir::AsmPrinter& printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims().getAsRange<ArrayAttr>(), printer,
                        [&](ArrayAttr axes) { printAxes(printer, axes); });
  printer << ']';
  for (auto [keyword, axes] : {std::pair("sum", getSum()), std::pair("max", getMax())}) {
    if (axes.empty()) continue;
    printer << ' ' << keyword << ' ';
    printAxes(printer, axes);
  }
  printer << '>';
}

mlir::LogicalResult ShardingAttr::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                         ArrayAttr dims, ArrayAttr sum, ArrayAttr max) {
  llvm::StringSet<> taken;
  auto take = [&](mlir::Attribute list) -> mlir::LogicalResult {
    auto axes = llvm::dyn_cast<ArrayAttr>(list);
    if (!axes) return emitError() << "has " << list << " where a list of axes belongs";
    for (mlir::Attribute axis : axes) {
      auto name = llvm::dyn_cast<mlir::StringAttr>(axis);
      if (!name) return emitError() << "has " << axis << " where the name of an axis belongs";
      if (!taken.insert(name.getValue()).second) {
        return emitError() << "uses the axis " << name.getValue() << " twice";
      }
    }
    return mlir::success();
  };
  for (mlir::Attribute axes : dims) {
    if (failed(take(axes))) return mlir::failure();
  }
  if (failed(take(sum))) return mlir::failure();
  return take(max);
}

}  // namespace oriel::ir
