// The shardings in which a segment's values are at hand, and the cheapest way to another.
#ifndef ORIEL_PASSES_PROPAGATE_VERSIONS_H_
#define ORIEL_PASSES_PROPAGATE_VERSIONS_H_

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "passes/propagate/reshard.h"

namespace oriel {

// Propagation and partition go through a segment in the same order and ask for the same versions,
// so both find the same sources: one without local values, to know the cost, the other with.
class Versions {
 public:
  // Makes the value that a step gives of another one.
  using Emit = llvm::function_ref<mlir::Value(const ReshardStep&, mlir::Value)>;

  explicit Versions(ReshardPlanner& planner) : planner_(planner) {}

  void define(mlir::Value value, const Sharding& sharding, mlir::Value local = {});
  // With all versions: of a value that was defined to look ahead.
  void forget(mlir::Value value) { entries_.erase(value); }
  // Another version that is at hand, or the local value of one that had none.
  void set(mlir::Value value, const Sharding& sharding, mlir::Value local);
  // Null if there is no such version, or it has no local value.
  mlir::Value local(mlir::Value value, const Sharding& sharding) const;
  // Ops see the value in this sharding, which is made of the one that it is defined with when it
  // is first needed: a parameter is stored in one and used in another.
  void setView(mlir::Value value, const Sharding& view);

  bool isDefined(mlir::Value value) const { return entries_.contains(value); }
  bool hasView(mlir::Value value) const { return entries_.at(value).view.has_value(); }
  // The view, or what the value is defined with.
  const Sharding& seen(mlir::Value value) const;
  // In which to hand the value on to another segment: as ops see it; where that is pending, the
  // smallest pieces of the whole that are at hand, if there are any, so that no other segment
  // completes it once more.
  const Sharding& settled(mlir::Value value) const;
  const Sharding& defined(mlir::Value value) const {
    return entries_.at(value).versions.front().sharding;
  }
  // The cheapest way to the sharding. It begins at the view, which has to be made anyway.
  const Reshard& way(mlir::Value value, const Sharding& to) const;
  // Makes that version, and remembers it and those on the way to it.
  mlir::Value take(mlir::Value value, const Sharding& to, Emit emit);

 private:
  struct Version {
    Sharding sharding;
    mlir::Value local;
  };
  struct Entry {
    llvm::SmallVector<Version, 2> versions;
    std::optional<Sharding> view;
  };

  static const Version* find(const Entry& entry, const Sharding& sharding);
  const Version& source(mlir::Value value, const Entry& entry, const Sharding& to) const;

  ReshardPlanner& planner_;
  llvm::DenseMap<mlir::Value, Entry> entries_;
};

// Whether collectives lead from one to the other: nothing becomes pending.
bool canBecome(const Sharding& from, const Sharding& to);

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_VERSIONS_H_
