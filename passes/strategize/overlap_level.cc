#include "passes/strategize/overlap_level.h"

namespace oriel {

namespace {

constexpr llvm::StringLiteral kOverlapAttr("oriel.overlap");

}  // namespace

llvm::StringRef overlapLevelName(OverlapLevel level) {
  switch (level) {
    case OverlapLevel::kAsAsked:
      return "as_asked";
    case OverlapLevel::kSmallerBuckets:
      return "smaller_buckets";
    case OverlapLevel::kNothingAhead:
      return "nothing_ahead";
    case OverlapLevel::kOff:
      return "off";
  }
  return "";
}

std::optional<OverlapSizes> sizesAt(const Overlap& asked, OverlapLevel level) {
  constexpr int64_t kSmaller = 4;
  OverlapSizes sizes{asked};
  switch (level) {
    case OverlapLevel::kAsAsked:
      break;
    case OverlapLevel::kSmallerBuckets:
      sizes.parts = kSmaller;
      break;
    case OverlapLevel::kNothingAhead:
      sizes.asked.prefetch = 0;
      break;
    case OverlapLevel::kOff:
      return std::nullopt;
  }
  return sizes;
}

void setOverlapLevel(mlir::ModuleOp program, OverlapLevel level) {
  program->setAttr(kOverlapAttr,
                   mlir::StringAttr::get(program.getContext(), overlapLevelName(level)));
}

mlir::FailureOr<std::optional<OverlapLevel>> getOverlapLevel(mlir::ModuleOp program) {
  mlir::Attribute attribute = program->getAttr(kOverlapAttr);
  if (!attribute) return std::optional<OverlapLevel>();
  auto name = llvm::dyn_cast<mlir::StringAttr>(attribute);
  for (OverlapLevel level : kOverlapLevels) {
    if (name && name.getValue() == overlapLevelName(level)) return std::optional(level);
  }
  return program.emitError("has the overlap ") << attribute << ", which is no level of overlap";
}

}  // namespace oriel
