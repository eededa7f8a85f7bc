#include "passes/strategize/schedule.h"

#include "mlir/IR/Builders.h"

namespace oriel {

namespace {

constexpr llvm::StringLiteral kLast("_last");

std::string withStage(const llvm::Twine& kind, llvm::StringRef stage) {
  return (kind + (stage.empty() ? "" : ".") + stage).str();
}

}  // namespace

std::vector<ScheduleEntry> accumulationSchedule(int64_t microbatches) {
  std::vector<ScheduleEntry> schedule;
  for (int64_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    schedule.push_back({"forward", microbatch});
    schedule.push_back({"backward", microbatch});
  }
  schedule.push_back({"update", 0});
  return schedule;
}

std::string lastSegment(llvm::StringRef plain) {
  auto [kind, stage] = plain.split('.');
  return withStage(kind + kLast, stage);
}

std::optional<std::string> plainSegment(llvm::StringRef last) {
  auto [kind, stage] = last.split('.');
  if (!kind.consume_back(kLast)) return std::nullopt;
  return withStage(kind, stage);
}

void setSchedule(mlir::ModuleOp module, const std::vector<ScheduleEntry>& schedule) {
  mlir::Builder builder(module.getContext());
  llvm::SmallVector<mlir::Attribute> entries;
  for (const ScheduleEntry& entry : schedule) {
    entries.push_back(builder.getArrayAttr(
        {builder.getStringAttr(entry.segment), builder.getI64IntegerAttr(entry.microbatch)}));
  }
  module->setAttr(kScheduleAttr, builder.getArrayAttr(entries));
}

mlir::FailureOr<std::vector<ScheduleEntry>> getSchedule(mlir::ModuleOp module) {
  std::vector<ScheduleEntry> schedule;
  mlir::Attribute attribute = module->getAttr(kScheduleAttr);
  if (!attribute) return schedule;
  auto entries = llvm::dyn_cast<mlir::ArrayAttr>(attribute);
  if (!entries) return module.emitError("the schedule is no list");
  for (mlir::Attribute entry : entries) {
    auto pair = llvm::dyn_cast<mlir::ArrayAttr>(entry);
    auto segment = pair && pair.size() == 2 ? llvm::dyn_cast<mlir::StringAttr>(pair[0]) : nullptr;
    auto microbatch = segment ? llvm::dyn_cast<mlir::IntegerAttr>(pair[1]) : nullptr;
    // Each has an entry of its own at least.
    if (!microbatch || microbatch.getInt() < 0 ||
        microbatch.getInt() >= static_cast<int64_t>(entries.size())) {
      return module.emitError("the schedule has the entry ")
             << entry << ", expected [segment, microbatch], with microbatches from 0 on";
    }
    schedule.push_back({segment.str(), microbatch.getInt()});
  }
  return schedule;
}

}  // namespace oriel
