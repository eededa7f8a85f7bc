#include "runtime/plan/plan_types.h"

#include <algorithm>
#include <set>

#include "runtime/base/files.h"

namespace oriel::runtime {
namespace {

// Bounds on what a plan may claim: far above real sizes, far below an overflow of int64.
// The compiler's 2^44 elements of 8 bytes (kMaxElements) are as many.
constexpr int64_t kMaxTensorBytes = int64_t{1} << 47;
constexpr int kMaxRank = 32;

}  // namespace

std::optional<DType> FromPlan(plan::DType dtype) {
  switch (dtype) {
    case plan::F32:
      return DType::kF32;
    case plan::F64:
      return DType::kF64;
    case plan::F16:
      return DType::kF16;
    case plan::BF16:
      return DType::kBF16;
    case plan::I64:
      return DType::kI64;
    case plan::I32:
      return DType::kI32;
    case plan::I16:
      return DType::kI16;
    case plan::I8:
      return DType::kI8;
    case plan::U8:
      return DType::kU8;
    case plan::BOOL:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

plan::DType ToPlan(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return plan::F32;
    case DType::kF64:
      return plan::F64;
    case DType::kF16:
      return plan::F16;
    case DType::kBF16:
      return plan::BF16;
    case DType::kI64:
      return plan::I64;
    case DType::kI32:
      return plan::I32;
    case DType::kI16:
      return plan::I16;
    case DType::kI8:
      return plan::I8;
    case DType::kU8:
      return plan::U8;
    case DType::kBool:
      return plan::BOOL;
  }
  return plan::DTYPE_UNSPECIFIED;
}

TensorSpec FromPlan(const plan::Tensor& tensor) {
  TensorSpec spec;
  spec.dtype = FromPlan(tensor.dtype()).value_or(DType::kU8);
  spec.shape.assign(tensor.shape().begin(), tensor.shape().end());
  return spec;
}

plan::Tensor ToPlan(const TensorSpec& spec) {
  plan::Tensor tensor;
  tensor.set_dtype(ToPlan(spec.dtype));
  tensor.mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
  return tensor;
}

std::optional<int64_t> CheckedBytes(const plan::Tensor& tensor) {
  const std::optional<DType> dtype = FromPlan(tensor.dtype());
  if (!dtype || tensor.shape_size() > kMaxRank) return std::nullopt;
  int64_t bytes = DTypeBytes(*dtype);
  for (const int64_t size : tensor.shape()) {
    // A zero does not excuse another size that is out of bounds.
    if (size < 0 || size > kMaxTensorBytes) return std::nullopt;
    if (size > 0 && bytes > kMaxTensorBytes / size) return std::nullopt;
    bytes *= size;
  }
  return bytes;
}

bool IsPersistent(plan::BufferKind kind) {
  switch (kind) {
    case plan::PARAMETER:
    case plan::OPTIMIZER_STATE:
    case plan::GRADIENT:
    case plan::ACCUMULATOR:
    case plan::INPUT:
    case plan::SCALAR:
    case plan::CONSTANT:
    case plan::TRANSFER:
      return true;
    default:
      return false;
  }
}

bool IsGradient(plan::BufferKind kind) {
  return kind == plan::GRADIENT || kind == plan::STEP_GRADIENT;
}

bool IsMade(const plan::InitialValue& initial) {
  return initial.has_constant() || initial.has_normal() || initial.has_uniform();
}

std::string KindName(plan::BufferKind kind) {
  switch (kind) {
    case plan::PARAMETER:
      return "parameter";
    case plan::OPTIMIZER_STATE:
      return "optimizer_state";
    case plan::GRADIENT:
    case plan::STEP_GRADIENT:
      return "gradient";
    case plan::ACCUMULATOR:
      return "accumulator";
    case plan::INPUT:
      return "input";
    case plan::SCALAR:
      return "scalar";
    case plan::CONSTANT:
      return "constant";
    case plan::STASH:
      return "stash";
    case plan::TEMPORARY:
      return "temporary";
    case plan::OUTPUT:
      return "output";
    case plan::TRANSFER:
      return "transfer";
    default:
      return "kind " + std::to_string(static_cast<int>(kind));
  }
}

std::string CollectiveName(plan::Collective::Kind kind) {
  switch (kind) {
    case plan::Collective::ALL_REDUCE:
      return "all_reduce";
    case plan::Collective::ALL_GATHER:
      return "all_gather";
    case plan::Collective::REDUCE_SCATTER:
      return "reduce_scatter";
    case plan::Collective::ALL_TO_ALL:
      return "all_to_all";
    default:
      return "collective " + std::to_string(static_cast<int>(kind));
  }
}

bool Reduces(plan::Collective::Kind kind) {
  return kind == plan::Collective::ALL_REDUCE || kind == plan::Collective::REDUCE_SCATTER;
}

bool Cuts(plan::Collective::Kind kind) {
  return kind == plan::Collective::REDUCE_SCATTER || kind == plan::Collective::ALL_TO_ALL;
}

bool Joins(plan::Collective::Kind kind) {
  return kind == plan::Collective::ALL_GATHER || kind == plan::Collective::ALL_TO_ALL;
}

std::string InstructionName(const plan::Instruction& instruction) {
  switch (instruction.kind_case()) {
    case plan::Instruction::kLaunch:
      return instruction.launch().kernel();
    case plan::Instruction::kCollective:
      return CollectiveName(instruction.collective().kind());
    case plan::Instruction::kCopy:
      return "copy";
    case plan::Instruction::kSlice:
      return "slice_local";
    case plan::Instruction::kSend:
      return "send";
    case plan::Instruction::kReceive:
      return "receive";
    case plan::Instruction::kWait:
      return "wait";
    case plan::Instruction::KIND_NOT_SET:
      break;
  }
  return "empty";
}

GridLayout::GridLayout(const plan::Grid& grid) : first_rank_(grid.first_rank()) {
  for (const plan::AtomicAxis& axis : grid.axes()) {
    names_.push_back(axis.name());
    sizes_.push_back(axis.size());
    size_ *= axis.size();
  }
}

std::vector<int64_t> GridLayout::Group(int64_t rank, const std::vector<std::string>& axes) const {
  // Starts with the rank's index with the group's coordinates set to 0, then walks each axis.
  int64_t origin = 0;
  std::vector<int64_t> offsets = {0};
  int64_t rest = rank - first_rank_;
  int64_t stride = 1;
  for (int axis = static_cast<int>(sizes_.size()) - 1; axis >= 0; --axis) {
    const int64_t coordinate = rest % sizes_[axis];
    rest /= sizes_[axis];
    if (std::find(axes.begin(), axes.end(), names_[axis]) == axes.end()) {
      origin += coordinate * stride;
    } else {
      const size_t known = offsets.size();
      for (int64_t i = 1; i < sizes_[axis]; ++i) {
        for (size_t j = 0; j < known; ++j) offsets.push_back(offsets[j] + i * stride);
      }
    }
    stride *= sizes_[axis];
  }
  for (int64_t& offset : offsets) offset += first_rank_ + origin;
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

GridLayout::Piece GridLayout::PieceOf(int64_t rank, const std::vector<std::string>& axes) const {
  Piece piece;
  for (const std::string& name : axes) {
    int64_t rest = rank - first_rank_;
    for (size_t axis = sizes_.size(); axis-- > 0; rest /= sizes_[axis]) {
      if (names_[axis] != name) continue;
      piece.index = piece.index * sizes_[axis] + rest % sizes_[axis];
      piece.count *= sizes_[axis];
    }
  }
  return piece;
}

int GridIndexOf(const plan::Plan& plan, int64_t rank) {
  for (int i = 0; i < plan.grids_size(); ++i) {
    if (GridLayout(plan.grids(i)).Contains(rank)) return i;
  }
  return -1;
}

const plan::Grid* GridOfRank(const plan::Plan& plan, int64_t rank) {
  const int index = GridIndexOf(plan, rank);
  return index < 0 ? nullptr : &plan.grids(index);
}

const plan::Program* ProgramOfRank(const plan::Plan& plan, int64_t rank) {
  for (const plan::Program& program : plan.programs()) {
    if (rank >= program.first_rank() && rank - program.first_rank() < program.rank_count()) {
      return &program;
    }
  }
  return nullptr;
}

const plan::Placement* PlacementOn(const plan::Parameter& parameter, int grid) {
  for (const plan::Placement& placement : parameter.placements()) {
    if (placement.grid() == grid) return &placement;
  }
  return nullptr;
}

bool IsHome(const plan::Parameter& parameter, int grid) {
  return !parameter.placements().empty() && parameter.placements(0).grid() == grid;
}

const plan::OptimizerState* MasterOf(const plan::Plan& plan, const plan::Parameter& parameter) {
  for (const plan::OptimizerState& state : plan.optimizer_states()) {
    if (state.slot() == kMasterSlot && state.parameter() == parameter.name()) return &state;
  }
  return nullptr;
}

bool HasRemainder(const plan::Plan& plan, const plan::Parameter& parameter) {
  const plan::OptimizerState* master = MasterOf(plan, parameter);
  return master != nullptr && master->global().dtype() == plan::I16;
}

const std::string& NameInFiles(const plan::Parameter& parameter) {
  return parameter.has_part_of() ? parameter.part_of().tensor() : parameter.name();
}

Shape ShapeInFiles(const plan::Parameter& parameter) {
  const auto& shape =
      parameter.has_part_of() ? parameter.part_of().shape() : parameter.global().shape();
  return {shape.begin(), shape.end()};
}

TensorSpec FileSpec(const plan::Plan& plan, const plan::Parameter& parameter) {
  const plan::OptimizerState* master = MasterOf(plan, parameter);
  TensorSpec spec = FromPlan(master == nullptr ? parameter.global() : master->global());
  spec.shape = ShapeInFiles(parameter);
  if (HasRemainder(plan, parameter)) spec.dtype = DType::kF32;
  return spec;
}

std::string_view SegmentKind(std::string_view segment) {
  return segment.substr(0, segment.find('.'));
}

bool IsBackward(std::string_view segment) {
  constexpr std::string_view kPrefix = "backward";
  return segment.substr(0, kPrefix.size()) == kPrefix;
}

bool IsLast(std::string_view segment) {
  const std::string_view kind = SegmentKind(segment);
  return kind == "backward_last" || kind == "backward_input_last" || kind == "backward_weight_last";
}

std::string_view PlainKind(std::string_view segment) {
  constexpr std::string_view kSuffix = "_last";
  std::string_view kind = SegmentKind(segment);
  if (IsLast(segment)) kind.remove_suffix(kSuffix.size());
  return kind;
}

std::string PlainSegment(std::string_view segment) {
  return std::string(PlainKind(segment)).append(segment.substr(SegmentKind(segment).size()));
}

std::optional<int64_t> SegmentStage(std::string_view segment) {
  const size_t dot = segment.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view digits = segment.substr(dot + 1);
  constexpr size_t kMaxDigits = 9;
  if (digits.empty() || digits.size() > kMaxDigits || (digits[0] == '0' && digits.size() > 1)) {
    return std::nullopt;
  }
  int64_t stage = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    stage = stage * 10 + (digit - '0');
  }
  return stage;
}

int64_t CopiesOf(const plan::Buffer& buffer) { return 1 + buffer.copy_offsets_size(); }

int64_t OffsetOf(const plan::Buffer& buffer, int64_t microbatch) {
  const auto copy = static_cast<int>(microbatch % CopiesOf(buffer));
  return copy == 0 ? buffer.offset() : buffer.copy_offsets(copy - 1);
}

std::vector<std::string> FilesOfPlan(const plan::Plan& plan, const std::string& path) {
  std::set<std::string> weights;
  for (const plan::Parameter& parameter : plan.parameters()) {
    const std::string& file = parameter.initial().file();
    if (!file.empty()) weights.insert(JoinPath(FolderOf(path), file));
  }
  std::vector<std::string> files(weights.begin(), weights.end());
  files.push_back(path);
  return files;
}

}  // namespace oriel::runtime
