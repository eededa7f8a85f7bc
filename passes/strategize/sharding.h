// Shardings as passes compute with them: axes are indices into the grid's atomic axes.
#ifndef ORIEL_PASSES_STRATEGIZE_SHARDING_H_
#define ORIEL_PASSES_STRATEGIZE_SHARDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/SmallVector.h"
#include "passes/strategize/grid.h"

namespace oriel {

using ir::kRuleAttr;
using ir::kSplitAttr;
// Of a received value: the sharding in which ops see it, where it arrives in another.
inline constexpr llvm::StringLiteral kViewAttr("oriel.view");

// The rule of any op: one that says nothing does not split.
ir::ShardingRule ruleOf(mlir::Operation* op);

// Of the module: the types of the values between layers that sequence parallelism keeps in pieces.
inline constexpr llvm::StringLiteral kSequenceTypes("oriel.sequence_types");

// Atomic axes by their place in the grid.
using AxisList = llvm::SmallVector<int, 2>;

// See ShardingAttr.
struct Sharding {
  llvm::SmallVector<AxisList, 4> dims;  // outermost axis first
  AxisList sum, max;                    // sorted

  static Sharding replicated(int64_t rank) {
    return {llvm::SmallVector<AxisList, 4>(rank), {}, {}};
  }

  bool isPending() const { return !sum.empty() || !max.empty(); }
  bool isReplicated() const;
  // Whether the axis cuts a dimension.
  bool cuts(int axis) const;
  bool uses(int axis) const;
  // The axes that cut dimensions, sorted.
  AxisList cutting() const;
  // The same cuts, nothing pending.
  Sharding reduced() const { return {dims, {}, {}}; }

  friend bool operator==(const Sharding& a, const Sharding& b) {
    return a.dims == b.dims && a.sum == b.sum && a.max == b.max;
  }
  friend bool operator!=(const Sharding& a, const Sharding& b) { return !(a == b); }
  friend bool operator<(const Sharding& a, const Sharding& b);
};

void insertSorted(AxisList& axes, int axis);

// Leaves dimensions whole that these axes cut.
void dropCuts(llvm::ArrayRef<int> axes, Sharding* sharding);

class AxisSizes;

// The sharding cut further over the axes: along the longest dimension that they divide, one that
// is not cut yet rather than one that is; if there is none, over fewer of them, which have as many
// ranks as can be.
Sharding cutFurther(const Sharding& sharding, llvm::ArrayRef<int64_t> shape, AxisList axes,
                    const AxisSizes& sizes);

// The sizes of a grid's axes, and what they make of tensors.
class AxisSizes {
 public:
  explicit AxisSizes(const Grid& grid);

  int64_t operator[](int axis) const { return sizes_[axis]; }
  int count() const { return static_cast<int>(sizes_.size()); }
  int64_t product(llvm::ArrayRef<int> axes) const;
  // The shape of one rank's piece. Every dimension divides.
  llvm::SmallVector<int64_t> local(llvm::ArrayRef<int64_t> shape, const Sharding& sharding) const;
  mlir::RankedTensorType local(mlir::RankedTensorType type, const Sharding& sharding) const;
  // Whether every dimension divides.
  bool divides(llvm::ArrayRef<int64_t> shape, const Sharding& sharding) const;

  const std::string& name(int axis) const { return names_[axis]; }
  // -1 if there is none.
  int find(llvm::StringRef name) const;
  AxisList findAll(llvm::ArrayRef<std::string> names) const;

  // Sharding as text, as the attribute prints it.
  std::string text(const Sharding& sharding) const;
  ir::ShardingAttr toAttr(mlir::MLIRContext* context, const Sharding& sharding) const;
  // Fails without a diagnostic if the attribute names an axis that the grid lacks, or has
  // another rank than the tensor, or does not divide it; `why` says what is wrong.
  mlir::FailureOr<Sharding> fromAttr(ir::ShardingAttr attribute, mlir::RankedTensorType type,
                                     std::string& why) const;
  mlir::ArrayAttr namesOf(mlir::MLIRContext* context, llvm::ArrayRef<int> axes) const;

 private:
  std::vector<int64_t> sizes_;
  std::vector<std::string> names_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_SHARDING_H_
