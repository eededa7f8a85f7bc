#include "passes/strategize/placement_attribute.h"

#include "mlir/IR/Builders.h"

namespace oriel {

namespace {

constexpr char kGrids[] = "grids";
constexpr char kRanks[] = "ranks";
constexpr char kBlock[] = "block";

}  // namespace

void setRankPlaces(mlir::ModuleOp module, const RankPlaces& places) {
  if (places.areRanks()) return;
  mlir::Builder builder(module.getContext());
  auto named = [&](const char* name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  module->setAttr(kPlacementAttr, builder.getDictionaryAttr({named(kGrids, places.grids),
                                                             named(kRanks, places.ranks),
                                                             named(kBlock, places.block)}));
}

RankPlaces rankPlacesOf(mlir::Operation* op) {
  for (; op; op = op->getParentOp()) {
    auto attribute = op->getAttrOfType<mlir::DictionaryAttr>(kPlacementAttr);
    if (!attribute) continue;
    auto number = [&](const char* name) {
      auto value = attribute.getAs<mlir::IntegerAttr>(name);
      return value ? std::max<int64_t>(value.getInt(), 1) : 1;
    };
    const RankPlaces places{number(kGrids), number(kRanks), number(kBlock)};
    return places.ranks % places.block == 0 ? places : RankPlaces();
  }
  return RankPlaces();
}

}  // namespace oriel
