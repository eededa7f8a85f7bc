// Grids, rank ranges, parameters, channels, inputs and batch sizes.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "runtime/plan/device.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kMaxRanks = int64_t{1} << 24;
constexpr int kMaxGrids = 4096;  // and programs: one per rank class
constexpr int kMaxAxes = 64;     // of a grid; each is looked at for every buffer
// A message's tag is the index of its channel; the last tag is the training services'.
constexpr int kMaxChannels = (1 << 15) - 1;
constexpr size_t kMaxParts = 1024;  // of a parameter; each is looked at with each
constexpr int64_t kMaxBatch = int64_t{1} << 40;

struct RankRange {
  int64_t first;
  int64_t count;
  std::string name;
};

// The ranges cover [0, world_size) once.
void VerifyCoverage(std::vector<RankRange> ranges, int64_t world_size, Problems& problems) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RankRange& a, const RankRange& b) { return a.first < b.first; });
  int64_t next = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const RankRange& range = ranges[i];
    if (range.first > next) {
      problems.Add("rank ", next, " is in no ", range.name.substr(0, range.name.find(' ')));
    } else if (range.first < next) {
      problems.Add("rank ", range.first, " is in ", ranges[i - 1].name, " and in ", range.name);
    }
    next = std::max(next, range.first + range.count);
  }
  if (next < world_size) {
    problems.Add("rank ", next, " is in no ",
                 ranges.empty() ? "grid" : ranges[0].name.substr(0, ranges[0].name.find(' ')));
  } else if (next > world_size) {
    problems.Add("rank ", next - 1, " of ", ranges.back().name, " is beyond the world of ",
                 world_size, " ranks");
  }
}

// Ranks of a grid, or none.
std::optional<int64_t> VerifyGrid(const plan::Grid& grid, const std::string& name,
                                  Problems& problems) {
  if (grid.axes_size() > kMaxAxes) {
    problems.Add(name, " has ", grid.axes_size(), " axes, more than ", kMaxAxes);
    return std::nullopt;
  }
  int64_t ranks = 1;
  std::set<std::string> axes;
  for (const auto& axis : grid.axes()) {
    if (axis.name().empty() || !axes.insert(axis.name()).second) {
      problems.Add(name, ": the axis '", axis.name(), "' is not a name of its own");
    }
    if (axis.size() < 1 || axis.size() > kMaxRanks || ranks > kMaxRanks / axis.size()) {
      problems.Add(name, ": the axis '", axis.name(), "' has the size ", axis.size());
      return std::nullopt;
    }
    ranks *= axis.size();
  }
  std::set<std::pair<std::string, std::string>> used;
  for (const auto& mesh : grid.mesh()) {
    for (const std::string& axis : mesh.axes()) {
      if (axes.count(axis) == 0) {
        problems.Add(name, ": the mesh axis '", mesh.name(), "' names the unknown axis '", axis,
                     "'");
      }
      if (!used.insert({mesh.module(), axis}).second) {
        problems.Add(name, ": the axis '", axis, "' is in two mesh axes of module '", mesh.module(),
                     "'");
      }
    }
  }
  if (grid.first_rank() < 0 || grid.first_rank() > kMaxRanks) {
    problems.Add(name, ": its first rank is ", grid.first_rank());
    return std::nullopt;
  }
  return ranks;
}

// Grids that take turns are alike.
void VerifyPlacement(const plan::Plan& plan, const std::vector<RankRange>& grids,
                     Problems& problems) {
  const int64_t block = plan.placement_block();
  if (block == 0) return;
  if (block < 0 || grids.size() < 2) {
    return problems.Add("the placement block is ", block, ", of ", grids.size(),
                        grids.size() == 1 ? " grid" : " grids");
  }
  for (const RankRange& grid : grids) {
    if (grid.count == grids.front().count && grid.count % block == 0) continue;
    return problems.Add("the placement block is ", block, ", but ", grid.name, " has ", grid.count,
                        " ranks: it must divide them, and all grids have as many");
  }
}

void VerifyRanks(const plan::Plan& plan, Problems& problems) {
  if (plan.world_size() < 1 || plan.world_size() > kMaxRanks) {
    return problems.Add("the world size is ", plan.world_size());
  }
  if (plan.grids_size() > kMaxGrids || plan.programs_size() > kMaxGrids) {
    return problems.Add("there are ", plan.grids_size(), " grids and ", plan.programs_size(),
                        " programs, more than ", kMaxGrids);
  }
  std::vector<RankRange> grids;
  for (int i = 0; i < plan.grids_size(); ++i) {
    const std::string name = absl::StrCat("grid ", i);
    const auto ranks = VerifyGrid(plan.grids(i), name, problems);
    if (!ranks) return;
    grids.push_back({plan.grids(i).first_rank(), *ranks, name});
  }
  VerifyCoverage(grids, plan.world_size(), problems);
  VerifyPlacement(plan, grids, problems);
  std::vector<RankRange> programs;
  for (int i = 0; i < plan.programs_size(); ++i) {
    const auto& program = plan.programs(i);
    const std::string name = absl::StrCat("program ", i);
    if (program.first_rank() < 0 || program.first_rank() > kMaxRanks || program.rank_count() < 1 ||
        program.rank_count() > kMaxRanks) {
      return problems.Add(name, " has ", program.rank_count(), " ranks from ", program.first_rank(),
                          " on");
    }
    programs.push_back({program.first_rank(), program.rank_count(), name});
  }
  if (programs.empty()) return problems.Add("there is no program");
  VerifyCoverage(programs, plan.world_size(), problems);
  if (!problems.empty()) return;
  for (int i = 0; i < plan.programs_size(); ++i) {
    if (GridOf(plan, plan.programs(i)) == nullptr) {
      problems.Add("program ", i, " has ranks of several grids");
    }
  }
  if (problems.empty() && plan.grids_size() > 1 && plan.programs_size() > plan.grids_size()) {
    problems.Add("there are ", plan.grids_size(), " grids and ", plan.programs_size(),
                 " programs; the ranks of each of several grids run one");
  }
}

void VerifyTensor(const plan::Tensor& tensor, const std::string& name, Problems& problems) {
  if (!CheckedBytes(tensor)) {
    problems.Add(name, " has an unknown type or an impossible shape");
  }
}

// On the first grid that has the axes; grids are verified.
void VerifyStorage(const plan::Grid& grid, const plan::Tensor& global, const Shape& padded,
                   const Shape& groups, const plan::Sharding& sharding, const std::string& name,
                   Problems& problems) {
  if (!sharding.partial().empty() || !sharding.partial_max().empty()) {
    problems.Add(name, ": its storage is a pending reduction");
  }
  const auto layout =
      TensorLayout::CreatePadded(grid, sharding, FromPlan(global).shape, padded, groups);
  if (!layout.ok()) problems.Add(name, ": ", layout.status().message());
}

// Each on another grid.
void VerifyPlacements(const plan::Plan& plan, const plan::Parameter& parameter,
                      const std::string& name, Problems& problems) {
  if (parameter.placements().empty()) problems.Add(name, " is on no grid");
  std::set<int> grids;
  for (const auto& placement : parameter.placements()) {
    if (placement.grid() < 0 || placement.grid() >= plan.grids_size()) {
      problems.Add(name, " is on grid ", placement.grid(), " of ", plan.grids_size());
    } else if (!grids.insert(placement.grid()).second) {
      problems.Add(name, " is on grid ", placement.grid(), " twice");
    } else {
      VerifyStorage(plan.grids(placement.grid()), parameter.global(), PaddedShape(parameter),
                    PaddedGroups(parameter), placement.storage(), name, problems);
    }
  }
}

// Padding is there for ranks to divide a dimension, or what it is made of (heads): it is less than
// one such part for each.
void VerifyPadding(const plan::Plan& plan, const plan::Parameter& parameter,
                   const std::string& name, Problems& problems) {
  if (parameter.padded_shape().empty() && !parameter.padded_groups().empty()) {
    problems.Add(name, " has groups, but no padding");
  }
  if (parameter.padded_shape().empty() || !CheckedBytes(parameter.global())) return;
  const Shape shape = FromPlan(parameter.global()).shape, padded = PaddedShape(parameter);
  bool fits = shape.size() == padded.size();
  for (size_t dim = 0; fits && dim < shape.size(); ++dim) {
    fits = padded[dim] >= shape[dim];
    if (!fits || padded[dim] == shape[dim]) continue;
    fits = (padded[dim] - shape[dim]) / plan.world_size() < shape[dim];
  }
  if (!fits) {
    return problems.Add(name, " of the shape ", ShapeToString(shape), " is padded to ",
                        ShapeToString(padded), " for ", plan.world_size(), " ranks");
  }
  plan::Tensor tensor = parameter.global();
  *tensor.mutable_shape() = parameter.padded_shape();
  VerifyTensor(tensor, name, problems);
}

// Boxes make up a tensor if they lie in it, no two overlap, and they have as many elements.
void VerifyBoxes(const std::string& name, const Shape& shape,
                 const std::vector<const plan::Parameter*>& parts, Problems& problems) {
  std::vector<Box> boxes;
  int64_t missing = NumElements(shape);
  for (const plan::Parameter* part : parts) {
    const auto& start = part->part_of().start();
    const Box box{{start.begin(), start.end()}, FromPlan(part->global()).shape};
    bool fits = box.start.size() == shape.size() && box.size.size() == shape.size();
    for (size_t dim = 0; fits && dim < shape.size(); ++dim) {
      fits =
          box.size[dim] > 0 && box.start[dim] >= 0 && box.start[dim] <= shape[dim] - box.size[dim];
    }
    if (!fits) {
      return problems.Add(name, ": '", part->name(), "' is ", box.ToString(), ", not within ",
                          ShapeToString(shape));
    }
    for (const Box& other : boxes) {
      if (Intersect(box, other).num_elements() > 0) {
        return problems.Add(name, ": ", box.ToString(), " and ", other.ToString(), " overlap");
      }
    }
    boxes.push_back(box);
    missing -= box.num_elements();
  }
  if (missing != 0) {
    problems.Add(name, " lack ", missing, " of ", NumElements(shape), " elements");
  }
}

// Parts are treated alike, for files have one tensor of each kind.
void VerifyParts(const plan::Plan& plan, Problems& problems) {
  std::map<std::string, std::vector<const plan::Parameter*>> tensors;
  for (const auto& parameter : plan.parameters()) {
    if (parameter.has_part_of()) tensors[parameter.part_of().tensor()].push_back(&parameter);
  }
  if (tensors.empty()) return;
  for (const auto& parameter : plan.parameters()) {
    if (!parameter.has_part_of() && tensors.count(parameter.name()) > 0) {
      problems.Add("parameter '", parameter.name(), "' is there whole and in parts");
    }
  }
  std::map<std::string, std::set<std::string>> slots;
  for (const auto& state : plan.optimizer_states()) slots[state.parameter()].insert(state.slot());
  for (const auto& [tensor, parts] : tensors) {
    const std::string name = absl::StrCat("the parts of '", tensor, "'");
    const plan::Parameter& first = *parts.front();
    const Shape shape = ShapeInFiles(first);
    plan::Tensor whole = first.global();
    *whole.mutable_shape() = first.part_of().shape();
    VerifyTensor(whole, name, problems);
    if (tensor.empty()) problems.Add(name, " have no name in files");
    if (parts.size() > kMaxParts) {
      problems.Add(name, " are ", parts.size(), ", more than ", kMaxParts);
    }
    if (!CheckedBytes(whole) || parts.size() > kMaxParts) continue;
    for (const plan::Parameter* part : parts) {
      const char* differs = ShapeInFiles(*part) != shape                 ? "of another shape"
                            : part->global().dtype() != whole.dtype()    ? "of another type"
                            : part->trainable() != first.trainable()     ? "frozen"
                            : slots[part->name()] != slots[first.name()] ? "stepped otherwise"
                                                                         : nullptr;
      if (differs != nullptr) {
        problems.Add(name, ": one of '", part->name(), "' and '", first.name(), "' is ", differs);
      }
    }
    VerifyBoxes(name, shape, parts, problems);
  }
}

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

// Whether the runtime, which computes in f32, can represent the numbers.
bool AreFloats(std::initializer_list<double> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) {
    return std::isfinite(number) && std::isfinite(static_cast<float>(number));
  });
}

void VerifyInitialValue(const plan::Parameter& parameter, const std::string& name,
                        Problems& problems) {
  const auto& initial = parameter.initial();
  const auto& normal = initial.normal();
  const auto& uniform = initial.uniform();
  if (IsMade(initial) && !IsFloat(FromPlan(parameter.global()).dtype)) {
    problems.Add(name, ": its initial value is to be made, but it is no float");
  }
  switch (initial.value_case()) {
    case plan::InitialValue::kConstant:
      if (AreFloats({initial.constant()})) return;
      return problems.Add(name, ": its initial constant is ", initial.constant());
    case plan::InitialValue::kNormal:
      if (AreFloats({normal.mean(), normal.deviation()}) && normal.deviation() >= 0) return;
      return problems.Add(name, ": its initial values have the mean ", normal.mean(),
                          " and the deviation ", normal.deviation());
    case plan::InitialValue::kUniform:
      if (AreFloats({uniform.low(), uniform.high(), uniform.high() - uniform.low()}) &&
          static_cast<float>(uniform.low()) < static_cast<float>(uniform.high())) {
        return;
      }
      return problems.Add(name, ": its initial values are from ", uniform.low(), " to ",
                          uniform.high());
    case plan::InitialValue::kTensor:
    case plan::InitialValue::VALUE_NOT_SET:
      break;
  }
  if (initial.file().empty() && initial.tensor().empty()) return;
  if (!IsPlainFileName(initial.file())) {
    problems.Add(name, ": its initial value is in '", initial.file(),
                 "', which is not the plain name of a file beside the plan");
  }
  if (initial.tensor().empty()) problems.Add(name, ": its initial value has no tensor name");
}

bool Is16Bit(plan::DType dtype) { return dtype == plan::F16 || dtype == plan::BF16; }

// A 16-bit parameter that gradients are summed for is stepped in f32: an update smaller than half
// of its rounding would be lost.
void VerifyMasters(const plan::Plan& plan, Problems& problems) {
  std::set<std::string> stepped;
  for (const auto& program : plan.programs()) {
    for (const auto& buffer : program.buffers()) {
      if (IsGradient(buffer.kind())) stepped.insert(buffer.ref());
    }
  }
  for (const auto& parameter : plan.parameters()) {
    const std::string name = absl::StrCat("parameter '", parameter.name(), "'");
    const plan::OptimizerState* master = MasterOf(plan, parameter);
    const bool narrow = Is16Bit(parameter.global().dtype());
    if (master == nullptr) {
      if (narrow && stepped.count(parameter.name()) > 0) {
        problems.Add(name, " is ", FromPlan(parameter.global()).ToString(),
                     " and has a gradient, but no f32 master");
      }
      continue;
    }
    if (!narrow) problems.Add(name, " has a master, but is not of 16 bits");
    const bool remainder = HasRemainder(plan, parameter);
    const TensorSpec expected{remainder ? DType::kI16 : DType::kF32,
                              FromPlan(parameter.global()).shape};
    const TensorSpec spec = FromPlan(master->global());
    if (spec != expected) {
      problems.Add(name, " has the master ", spec.ToString(), ", expected ", expected.ToString());
    }
    if (!remainder) continue;
    if (parameter.global().dtype() != plan::BF16) {
      problems.Add(name, " has a remainder, but is not bf16");
    }
    if (parameter.placements_size() > 0 &&
        !SameSharding(master->storage(), parameter.placements(0).storage())) {
      problems.Add(name, " and its remainder are not stored alike");
    }
  }
}

void VerifyParameters(const plan::Plan& plan, Problems& problems) {
  std::map<std::string, const plan::Parameter*> parameters;
  for (const auto& parameter : plan.parameters()) {
    const std::string name = absl::StrCat("parameter '", parameter.name(), "'");
    if (parameter.name().empty()) problems.Add("a parameter has no name");
    if (!parameters.emplace(parameter.name(), &parameter).second) {
      problems.Add(name, " is there twice");
    }
    VerifyTensor(parameter.global(), name, problems);
    VerifyPadding(plan, parameter, name, problems);
    VerifyPlacements(plan, parameter, name, problems);
    VerifyInitialValue(parameter, name, problems);
  }
  std::set<std::pair<std::string, std::string>> states;
  for (const auto& state : plan.optimizer_states()) {
    const std::string name =
        absl::StrCat("optimizer state ", state.slot(), " of '", state.parameter(), "'");
    const auto found = parameters.find(state.parameter());
    if (found == parameters.end()) {
      problems.Add(name, ": there is no such parameter");
    } else if (!found->second->trainable()) {
      problems.Add(name, ": the parameter is frozen");
    }
    if (!states.insert({state.parameter(), state.slot()}).second) {
      problems.Add(name, " is there twice");
    }
    VerifyTensor(state.global(), name, problems);
    if (found == parameters.end() || found->second->placements().empty()) continue;
    const int home = found->second->placements(0).grid();
    if (home < 0 || home >= plan.grids_size()) continue;
    VerifyStorage(plan.grids(home), state.global(), PaddedShape(*found->second),
                  PaddedGroups(*found->second), state.storage(), name, problems);
  }
}

// Between grids; what is sent is on the ranks of one as it is on those of the other.
void VerifyChannels(const plan::Plan& plan, Problems& problems) {
  if (plan.channels_size() > kMaxChannels) {
    return problems.Add("there are ", plan.channels_size(), " channels, more than ", kMaxChannels);
  }
  std::set<std::string> names;
  for (const auto& channel : plan.channels()) {
    const std::string name = absl::StrCat("channel '", channel.name(), "'");
    if (channel.name().empty() || !names.insert(channel.name()).second) {
      problems.Add(name, ": not a name of its own");
    }
    const auto bytes = CheckedBytes(channel.global());
    VerifyTensor(channel.global(), name, problems);
    if (bytes && *bytes == 0) problems.Add(name, " carries a tensor without elements");
    bool known = true;
    for (const int grid : {channel.source_grid(), channel.target_grid()}) {
      if (grid >= 0 && grid < plan.grids_size()) continue;
      problems.Add(name, " is of grid ", grid, " of ", plan.grids_size());
      known = false;
    }
    if (!known || !bytes) continue;
    if (channel.source_grid() == channel.target_grid()) {
      problems.Add(name, " goes from grid ", channel.source_grid(), " to itself");
    }
    const Shape shape = FromPlan(channel.global()).shape;
    VerifyStorage(plan.grids(channel.source_grid()), channel.global(), shape, /*groups=*/{},
                  channel.source(), absl::StrCat(name, ", where it is sent"), problems);
    VerifyStorage(plan.grids(channel.target_grid()), channel.global(), shape, /*groups=*/{},
                  channel.target(), absl::StrCat(name, ", where it is received"), problems);
  }
}

// As runtime/train/data/batch_layout.h reads them.
bool ImagesFit(const plan::Input& input, int64_t samples) {
  const auto& images = input.images();
  const auto& shape = input.microbatch().shape();
  if (images.per_sample() < 1 || images.rows() < 1 || shape.empty()) return false;
  const bool behind = shape.size() > 1 && shape[0] == samples;
  for (const int64_t rows : {shape[0] / samples, behind ? shape[1] : 0}) {
    if (rows / images.per_sample() == images.rows() && rows % images.per_sample() == 0) return true;
  }
  return false;
}

void VerifyBatch(const plan::Plan& plan, Problems& problems) {
  const auto& training = plan.training();
  const int64_t factors[] = {training.micro_batch(), training.microbatches(),
                             training.data_parallel()};
  int64_t product = 1;
  bool valid = true;
  for (const int64_t factor : factors) {
    valid = valid && factor >= 1 && factor <= kMaxBatch / product;
    if (valid) product *= factor;
  }
  if (!valid || product != training.global_batch()) {
    problems.Add("the global batch of ", training.global_batch(), " is not ",
                 training.micro_batch(), " samples x ", training.microbatches(), " microbatches x ",
                 training.data_parallel(), " data-parallel ranks");
  }
  if (training.steps() < 0) problems.Add("the number of steps is ", training.steps());
  if (training.label_shift() < 0) problems.Add("the label shift is ", training.label_shift());
  const auto& rate = training.learning_rate();
  if (!std::isfinite(rate.peak()) || !std::isfinite(rate.final_ratio()) ||
      rate.warmup_steps() < 0 || rate.total_steps() < 0 || rate.hold_steps() < 0) {
    problems.Add("the learning-rate schedule has a number that is negative or not finite");
  }
  std::set<std::string> names;
  for (const auto& input : plan.inputs()) {
    const std::string name = absl::StrCat("input '", input.name(), "'");
    if (input.name().empty() || !names.insert(input.name()).second) {
      problems.Add(name, ": not a name of its own");
    }
    VerifyTensor(input.microbatch(), name, problems);
    // Several rows per sample (images) come one behind the other.
    const auto& shape = input.microbatch().shape();
    const int64_t samples = valid ? training.micro_batch() * training.data_parallel() : 1;
    if (input.has_images() && !ImagesFit(input, samples)) {
      problems.Add(name, ": ", input.images().per_sample(), " images of ", input.images().rows(),
                   " rows for each of ", samples, " samples don't fit its shape");
    }
    const std::string& count = input.images().count();
    const auto is_count = [&](const plan::Input& other) {
      return other.name() == count && other.image_count();
    };
    if (input.has_images() && count.empty() &&
        std::count_if(plan.inputs().begin(), plan.inputs().end(),
                      [](const plan::Input& other) { return other.image_count(); }) > 1) {
      problems.Add(name, ": its images may be counted by any of several inputs");
    }
    if (!count.empty() && std::none_of(plan.inputs().begin(), plan.inputs().end(), is_count)) {
      problems.Add(name, ": its images are counted by '", count, "', which counts none");
    }
    if (input.image_count() &&
        (input.microbatch().dtype() != plan::I64 || shape.size() != 1 || shape[0] != samples)) {
      problems.Add(name, ": it counts images, but is not i64[", samples, "]");
    }
    if (input.sample_bits() &&
        (input.microbatch().dtype() != plan::I64 || shape.size() != 1 || shape[0] != samples)) {
      problems.Add(name, ": it holds bits of samples, but is not i64[", samples, "]");
    }
    if (shape.empty() || shape[0] == 0 || shape[0] % samples != 0) {
      problems.Add(name, ": its first dimension is not a multiple of the microbatch's ", samples,
                   " samples");
    }
  }
}

// What can be seen of generated kernels without running them: they are for whole results, and have
// code. What the code does is not checked.
void VerifyGenerated(const plan::Plan& plan, Problems& problems) {
  constexpr size_t kMaxCode = size_t{64} << 20;
  constexpr int64_t kMaxBlockUnits = 256;  // one for each thread
  std::set<std::string> names;
  for (const auto& kernel : plan.generated()) {
    const std::string name = absl::StrCat("the generated kernel '", kernel.name(), "'");
    if (kernel.name().empty() || !names.insert(kernel.name()).second) {
      problems.Add(name, " has no name of its own");
    }
    if (kernel.results().empty()) problems.Add(name, " has no result");
    for (const auto* tensors : {&kernel.operands(), &kernel.results()}) {
      for (const auto& tensor : *tensors) {
        if (!CheckedBytes(tensor)) problems.Add(name, " is for an impossible tensor");
      }
    }
    if (!problems.empty()) return;
    for (const auto& result : kernel.results()) {
      const int64_t elements = FromPlan(result).num_elements();
      if (kernel.units() < 1 || kernel.unit_elements() < 1 || elements % kernel.units() != 0 ||
          (elements / kernel.units() != kernel.unit_elements() &&
           (kernel.block_units() == 0 || elements != kernel.units()))) {
        problems.Add(name, " computes ", kernel.units(), " units of ", kernel.unit_elements(),
                     " elements, but has a result of ", elements);
      }
    }
    if (kernel.block_units() < 0 || kernel.block_units() > kMaxBlockUnits) {
      problems.Add(name, " computes ", kernel.block_units(), " units with a block of CUDA");
    }
    const int64_t elements = FromPlan(kernel.results(0)).num_elements();
    if (kernel.thread_elements() < 0 ||
        (kernel.thread_elements() > 1 &&
         (kernel.block_units() > 0 || elements % kernel.thread_elements() != 0))) {
      problems.Add(name, " computes ", kernel.thread_elements(),
                   " elements with a thread of CUDA, of ", elements);
    }
    std::set<std::string> targets;
    for (const auto& image : kernel.images()) {
      if (image.target().empty() || !targets.insert(image.target()).second) {
        problems.Add(name, " has code for '", image.target(), "' twice, or for no target");
      }
      const size_t size = image.code().size();
      if (size == 0 || size > kMaxCode || image.entry() < 0 ||
          image.entry() >= static_cast<int64_t>(size)) {
        problems.Add(name, " has ", size, " bytes of code for '", image.target(),
                     "', which is none or too much, or begins outside of it");
      }
    }
    if (targets.empty()) problems.Add(name, " has no code");
  }
}

}  // namespace

void VerifyTables(const plan::Plan& plan, Problems& problems) {
  if (!IsDevice(plan.device())) {
    problems.Add("the plan is for the device '", DeviceText(plan.device()),
                 "', which this version does not know");
  }
  VerifyRanks(plan, problems);
  // Shardings are checked against grids, so those have to be right.
  if (!problems.empty()) return;
  VerifyParameters(plan, problems);
  VerifyParts(plan, problems);
  VerifyMasters(plan, problems);
  VerifyChannels(plan, problems);
  VerifyBatch(plan, problems);
  VerifyGenerated(plan, problems);
}

}  // namespace oriel::runtime
