// Types of the plan as types of the runtime, and back.
#ifndef ORIEL_RUNTIME_PLAN_PLAN_TYPES_H_
#define ORIEL_RUNTIME_PLAN_PLAN_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// None for a value that this version does not know.
std::optional<DType> FromPlan(plan::DType dtype);
plan::DType ToPlan(DType dtype);

// Of a verified tensor.
TensorSpec FromPlan(const plan::Tensor& tensor);
// The plan and the weights beside it.
std::vector<std::string> FilesOfPlan(const plan::Plan& plan, const std::string& path);
plan::Tensor ToPlan(const TensorSpec& spec);

// Bytes of a tensor from a file that may hold anything. None if the dtype is unknown, a size
// is negative, there are too many dimensions, or the product is beyond what a machine holds.
std::optional<int64_t> CheckedBytes(const plan::Tensor& tensor);

// Whether a buffer of this kind holds its value between segments, so that no other buffer
// may use its memory.
bool IsPersistent(plan::BufferKind kind);
// Of a parameter, kept or of one step.
bool IsGradient(plan::BufferKind kind);

// Whether the runtime makes the value (random or constant); else a file has it, or nothing.
bool IsMade(const plan::InitialValue& initial);

// "parameter", "temporary", ..
std::string KindName(plan::BufferKind kind);
// "all_reduce", "all_gather", ..
std::string CollectiveName(plan::Collective::Kind kind);
// Whether it reduces, cuts its operand, joins pieces in its result.
bool Reduces(plan::Collective::Kind kind);
bool Cuts(plan::Collective::Kind kind);
bool Joins(plan::Collective::Kind kind);

// The kernel of a launch, the name of a collective, "copy", "slice_local", "wait", .. or "empty".
std::string InstructionName(const plan::Instruction& instruction);

// The segment that changes parameters, once a step.
inline constexpr char kUpdateSegment[] = "update";
inline bool IsUpdate(const plan::Segment& segment) { return segment.name() == kUpdateSegment; }
inline bool IsUpdate(const plan::ScheduleEntry& entry) { return entry.segment() == kUpdateSegment; }

// A grid's ranks and coordinates.
//
// Rank `first_rank + i` has the coordinates of `i` in row-major order over the axes, so the
// last axis runs fastest.
class GridLayout {
 public:
  // Of a verified grid.
  explicit GridLayout(const plan::Grid& grid);

  int64_t first_rank() const { return first_rank_; }
  int64_t size() const { return size_; }
  bool Contains(int64_t rank) const { return rank >= first_rank_ && rank - first_rank_ < size_; }
  // Ranks whose coordinates differ from `rank`'s only along `axes`, ascending. Axes that the
  // grid does not have are ignored.
  std::vector<int64_t> Group(int64_t rank, const std::vector<std::string>& axes) const;

  // A piece of what is cut over `axes`: piece `index` of `count`, which are numbered row-major
  // over the axes as they are listed. In the grid's order that is the rank's place in Group.
  struct Piece {
    int64_t index = 0;
    int64_t count = 1;
  };
  // The rank's. Axes that the grid does not have are ignored.
  Piece PieceOf(int64_t rank, const std::vector<std::string>& axes) const;

 private:
  int64_t first_rank_;
  int64_t size_ = 1;
  std::vector<std::string> names_;
  std::vector<int64_t> sizes_;
};

// The index of the grid that has a rank, or -1; and the grid, or null.
int GridIndexOf(const plan::Plan& plan, int64_t rank);
const plan::Grid* GridOfRank(const plan::Plan& plan, int64_t rank);
// The program that a rank runs, or null.
const plan::Program* ProgramOfRank(const plan::Plan& plan, int64_t rank);
// How a parameter is kept on a grid; null if the grid's program does not use it.
const plan::Placement* PlacementOn(const plan::Parameter& parameter, int grid);
// Whether the ranks of the grid step the parameter and write it to files.
bool IsHome(const plan::Parameter& parameter, int grid);

// The slot of the optimizer state that is a 16-bit parameter's own value in f32.
inline constexpr char kMasterSlot[] = "master";
// The master of a parameter, or null.
const plan::OptimizerState* MasterOf(const plan::Plan& plan, const plan::Parameter& parameter);
// Whether that is what the master has beyond the parameter, instead of all of it.
bool HasRemainder(const plan::Plan& plan, const plan::Parameter& parameter);

// The tensor that files have a parameter as, or as a part of (Parameter.part_of): its name, its
// shape, and with its type, that of the master if there is one.
const std::string& NameInFiles(const plan::Parameter& parameter);
Shape ShapeInFiles(const plan::Parameter& parameter);
TensorSpec FileSpec(const plan::Plan& plan, const plan::Parameter& parameter);

// "forward" of "forward.2".
std::string_view SegmentKind(std::string_view segment);
// Whether it runs for the last microbatch in place of another segment, whose kind PlainKind is:
// "backward" of "backward_last.2", "backward_weight" of "backward_weight_last". Of others
// PlainKind is their kind.
bool IsLast(std::string_view segment);
// Whether it is a backward or a part of one, for any microbatch.
bool IsBackward(std::string_view segment);
std::string_view PlainKind(std::string_view segment);
// "backward.2" of "backward_last.2". Others are themselves.
std::string PlainSegment(std::string_view segment);
// 2 of "forward.2"; none where no number is behind the dot, or one with needless zeros.
std::optional<int64_t> SegmentStage(std::string_view segment);
// Copies of a buffer, and where in the arena that of a microbatch (not below 0) begins.
int64_t CopiesOf(const plan::Buffer& buffer);
int64_t OffsetOf(const plan::Buffer& buffer, int64_t microbatch);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_PLAN_TYPES_H_
