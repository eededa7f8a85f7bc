// Cuts one segment into functions that run on different programs.
#ifndef ORIEL_PASSES_STAGE_SEGMENT_SPLIT_H_
#define ORIEL_PASSES_STAGE_SEGMENT_SPLIT_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/oriel/segment.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "passes/train/segment_builder.h"

namespace oriel {

// A function to make, "forward.2", and the program that it goes to.
struct SegmentPart {
  std::string name;
  int program;
};

// A value is computed in one part. Another part of the same program gets it as stash of the first
// part that has it; another program, once, by a channel - or computes it again where that moves
// fewer bytes than a few times its own (masks, positions, rotary tables). Ops are added in an order
// in which they could run on a single rank, and a rank does not wait for what it sends, so that no
// ranks wait for each other in a circle.
class SegmentSplit {
 public:
  // What is read as `role` from outside of the segment, in a part; null where an argument with
  // this role will do.
  using Import = llvm::function_ref<mlir::Value(const ir::ValueRole& role, int part)>;

  // Parts in the order in which a program runs them. `programs` are the modules that they go to.
  SegmentSplit(mlir::func::FuncOp segment, std::vector<SegmentPart> parts,
               llvm::ArrayRef<mlir::ModuleOp> programs);

  mlir::LogicalResult readRoles();
  // Of arguments of the segment.
  const ir::ValueRole& roleOf(mlir::Value argument) const { return roles_.at(argument); }
  // Whether the op is repeated in each part that uses it: made of constants and scalars of the
  // step, or a view or a wider copy of an argument.
  bool isFree(mlir::Operation* op) const;
  // To be called where ops have been erased since it was asked.
  void forgetFree() { free_.clear(); }

  // Adds the op to a part, with what its operands need.
  void add(mlir::Operation* op, int part, Import import);
  // The value in a part, brought there if need be.
  mlir::Value get(mlir::Value value, int part, Import import);
  // Only this part has the argument: others get it as they get values.
  void keepIn(mlir::BlockArgument argument, int part);
  // Makes `local` stand for the value in a part.
  void define(mlir::Value value, int part, mlir::Value local);
  // What the part of one program sends and the other one's gets.
  mlir::Value transfer(mlir::Value local, int from, int to, int64_t origin);
  // The part of the program that has the value first; -1 for none.
  int holder(mlir::Value value, int program) const;
  // The value, which a part of the program has, as stash of that part. Returns its name: this one,
  // or that under which it was stash already.
  std::string addStash(mlir::Value value, int program, const std::string& name);

  // Made when it is first asked for.
  SegmentBuilder& part(int index);
  // Of a part that is not made yet.
  void rename(int index, std::string name) { parts_[index].name = std::move(name); }
  bool hasPart(int index) const { return builders_[index] != nullptr; }
  // The programs with a part that has an argument of this role.
  std::set<int> readersOf(const ir::ValueRole& role) const;
  int programOf(int part) const { return parts_[part].program; }
  // To be called once, last.
  void finish(const llvm::StringMap<unsigned>& rank);

 private:
  mlir::Value bring(mlir::Value value, int part, Import import);
  mlir::Value clone(mlir::Operation* op, int part, unsigned result, Import import);
  bool isCheap(mlir::Value value) const;
  bool findIfFree(mlir::Operation* op) const;

  mlir::func::FuncOp segment_;
  std::vector<SegmentPart> parts_;
  std::vector<mlir::ModuleOp> programs_;
  std::vector<std::unique_ptr<SegmentBuilder>> builders_;
  llvm::DenseMap<mlir::Value, ir::ValueRole> roles_;
  std::vector<llvm::DenseMap<mlir::Value, mlir::Value>> local_;  // by part
  llvm::DenseMap<mlir::Value, int> home_;                        // the part that makes it
  std::vector<llvm::DenseMap<mlir::Value, int>> holders_;        // by program
  llvm::DenseMap<mlir::Value, std::string> stashNames_;
  mutable llvm::DenseMap<mlir::Operation*, bool> free_;  // what isFree() found
  int channels_ = 0;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_SEGMENT_SPLIT_H_
