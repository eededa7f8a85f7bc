// Storage of the values of segment functions: which values share bytes, and from
// which instruction to which the bytes are in use.
//
// Time is counted over all segments, one after the other: an op has one tick, and
// the end of a segment another.
#ifndef ORIEL_PASSES_LOWER_STORAGE_H_
#define ORIEL_PASSES_LOWER_STORAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {

// Ticks of a segment from which to which a storage is in use there, both included.
struct StorageUse {
  size_t segment = 0;  // of those that are assigned, in order
  int64_t begin = 0, end = 0;
};

// Bytes of the arena. One that is persistent is in use for the whole program; a stash value that
// is, because microbatches are in flight, by one of them from `begin` to `end`.
struct Storage {
  int64_t bytes = 0;           // of one copy
  int64_t slots = 1;           // copies, for the microbatches in flight
  bool transfer = false;       // what is sent or received
  int64_t begin = 0, end = 0;  // ticks, both included
  // Where it is not in use in between: what runs for the last microbatch has a time of its own
  // behind what it takes the place of. Empty if it ends before it begins.
  int64_t gapBegin = 0, gapEnd = -1;
  bool persistent = false;
  std::vector<StorageUse> uses;       // in the order of the segments
  std::optional<ir::ValueRole> role;  // none: a constant or a temporary
  mlir::ElementsAttr constant;
  mlir::RankedTensorType type;  // of the value that it was made for
  ir::ShardingAttr sharding;    // likewise; null for none

  bool isStash() const { return role && role->kind == ir::ValueKind::kStash; }
  bool isGradient() const { return role && role->kind == ir::ValueKind::kGradient; }
  // Of all copies, each a multiple of kArenaAlignment.
  int64_t totalBytes() const;
};

using StorageId = int;

// How many microbatches a program has in flight.
struct MicrobatchesInFlight {
  // A step runs one backward. What that sets of gradients, and no more adds to, is handed to the
  // update as the stash is to a backward: its memory serves others outside of its life.
  bool oneBackward = false;
  // Of the stash values; none: those of a program that runs forward and backward in turn, so that
  // a stash value's memory serves others outside of its life.
  std::optional<llvm::StringMap<int64_t>> stash;
  // Of what is sent and received by segments that run for each microbatch: while one is in use,
  // another one travels.
  int64_t transfers = 1;
};

// What `return` has to do for a result that was not computed in its place. A source that
// has no storage is a constant with a fill value.
struct ResultMove {
  StorageId target;
  mlir::Value source;
};

class StorageAssignment {
 public:
  // Assigns storage in `segments`, which run in this order. Fails with a diagnostic for
  // roles that don't agree between segments.
  mlir::LogicalResult run(llvm::ArrayRef<mlir::func::FuncOp> segments,
                          MicrobatchesInFlight inFlight = {});

  const std::vector<Storage>& storages() const { return storages_; }
  // Rounds up the bytes of each copy to a multiple of `alignment`, so that all lie at multiples.
  void align(int64_t alignment);
  void setSlots(StorageId storage, int64_t slots) { storages_[storage].slots = slots; }
  // The storage of an argument or of an op's result. None for a constant that only
  // fills results.
  std::optional<StorageId> storageOf(mlir::Value value) const;
  // Whether it lies where stash was that nothing reads any more.
  bool isOverStash(mlir::Value value) const { return overStash_.contains(value); }
  // What is sent is copied there.
  StorageId sentFrom(mlir::Operation* send) const { return sent_.lookup(send); }
  // In order, at the end of the segment.
  llvm::ArrayRef<ResultMove> movesOf(mlir::func::FuncOp segment) const;

 private:
  struct SegmentState;

  mlir::LogicalResult noteReader(mlir::func::FuncOp segment);
  mlir::LogicalResult runSegment(mlir::func::FuncOp segment);
  mlir::LogicalResult assignArguments(SegmentState& state);
  void computeLastUses(SegmentState& state);
  mlir::LogicalResult findTargets(SegmentState& state);
  void assignOp(SegmentState& state, mlir::Operation& op);
  // Where the operands of an op lie, and those of its results that have a place already.
  struct OpStorages {
    llvm::SmallVector<std::optional<StorageId>> ofOperands;
    llvm::DenseMap<StorageId, llvm::SmallVector<unsigned, 2>> operands;  // by number
    llvm::DenseSet<StorageId> results;
  };
  void assignResult(SegmentState& state, mlir::OpResult result, const OpStorages& storages);
  mlir::LogicalResult finishSegment(SegmentState& state);
  bool isFresh(const ir::ValueRole& role) const;
  bool isFree(const SegmentState& state, StorageId storage) const;
  StorageId create(mlir::Value value, std::optional<ir::ValueRole> role, bool persistent);
  StorageId createTransfer(mlir::Value value, mlir::StringAttr channel, mlir::Operation* op);
  void leaveGap(mlir::func::FuncOp segment, Storage& storage) const;
  void becomeStash(StorageId storage, const std::string& ref);
  void hold(SegmentState& state, mlir::Value value, StorageId storage);
  void holdUntil(SegmentState& state, StorageId storage, int64_t tick);
  mlir::FailureOr<StorageId> persistentStorage(mlir::Value value, const ir::ValueRole& role,
                                               mlir::Operation* user);

  std::vector<Storage> storages_;
  llvm::DenseMap<mlir::Value, StorageId> storageOfValue_;
  llvm::DenseSet<mlir::Value> overStash_;
  llvm::StringMap<std::string> lastReader_;  // the plain segment, by the stash's name
  llvm::StringMap<StorageId> byRole_;
  llvm::DenseMap<mlir::Attribute, StorageId> constants_;
  llvm::DenseMap<mlir::Operation*, std::vector<ResultMove>> moves_;
  llvm::DenseMap<mlir::Operation*, StorageId> sent_;
  llvm::DenseMap<mlir::StringAttr, StorageId> transfers_;  // by channel
  size_t segment_ = 0;                                     // that is assigned now
  llvm::StringMap<int64_t> segmentBegin_;                  // ticks
  MicrobatchesInFlight inFlight_;
  int64_t now_ = 0;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_STORAGE_H_
