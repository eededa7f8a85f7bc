// Tensors that the ranks of grids keep in different ways, filled, saved and loaded.
#ifndef ORIEL_RUNTIME_TRAIN_MODEL_STATE_TESTING_H_
#define ORIEL_RUNTIME_TRAIN_MODEL_STATE_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/in_process.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/train/convert.h"
#include "runtime/train/data_testing.h"
#include "runtime/train/model_state.h"
#include "runtime/train/toy_executor_testing.h"

namespace oriel::runtime {

// How the ranks of a grid keep the tensors below; the rest is replicated.
struct Storage {
  std::vector<int64_t> grid;
  plan::Sharding matrix, matrix_state, cube;
  Shape padded_matrix = {12, 8}, padded_cube = {8, 6, 4};
  std::vector<std::string> kept = {"matrix", "bias", "cube"};  // parameters
  bool steps_matrix = true;                                    // and has its state
  bool mixed = false;  // parameters are bf16, the matrix has a master
  // Of the parameters that the matrix is in the plan, side by side, and to what they are padded.
  std::vector<std::pair<int64_t, int64_t>> columns = {};
  Shape groups = {};  // of the padded matrix
};
using Grids = std::vector<Storage>;

inline TrainingProgress AtStep(int64_t step) {
  TrainingProgress progress;
  progress.step = step;
  return progress;
}

// Two parameters from a file, a random one, and a state of the first.
class ModelStateTest : public ::testing::Test {
 protected:
  ModelStateTest() {
    for (float& value : matrix_) value = 1.001f * static_cast<float>(&value - matrix_ + 1);
    ORIEL_EXPECT_OK(
        WriteSafetensors(folder_ / "weights.safetensors",
                         std::vector<NamedTensor>{{"matrix", {DType::kF32, {12, 8}}, matrix_},
                                                  {"bias", {DType::kF32, {3}}, matrix_ + 7}}));
  }

  static plan::Plan MakePlan(const Storage& storage) {
    int64_t ranks = 1;
    for (const int64_t size : storage.grid) ranks *= size;
    PlanBuilder builder(ranks);
    plan::Plan& plan = builder.plan();
    plan.set_model_name("sharded");
    *plan.mutable_grids(0) = MakeGrid(storage.grid);
    const DType dtype = storage.mixed ? DType::kBF16 : DType::kF32;
    const auto local = [&](DType type, const Shape& shape, const plan::Sharding& sharding) {
      return TensorSpec{type, TensorLayout::Create(plan.grids(0), sharding, shape)->piece()};
    };
    const auto parameter = [&](const std::string& name, const Shape& shape,
                               const plan::Sharding& sharding,
                               const Shape& padded) -> plan::Parameter* {
      if (std::count(storage.kept.begin(), storage.kept.end(), name) == 0) return nullptr;
      builder.Parameter(name, local(dtype, padded, sharding));
      plan::Parameter* added = plan.mutable_parameters(plan.parameters_size() - 1);
      *added->mutable_global() = ToPlan(TensorSpec{dtype, shape});
      if (padded != shape) added->mutable_padded_shape()->Assign(padded.begin(), padded.end());
      *added->mutable_placements(0)->mutable_storage() = sharding;
      return added;
    };
    std::map<std::string, std::pair<Shape, Shape>> matrices = {
        {"matrix", {{12, 8}, storage.padded_matrix}}};  // and their shapes, the latter padded
    if (storage.columns.empty()) {
      plan::Parameter* matrix = parameter("matrix", {12, 8}, storage.matrix, storage.padded_matrix);
      if (matrix != nullptr) {
        matrix->mutable_padded_groups()->Assign(storage.groups.begin(), storage.groups.end());
      }
    } else {
      matrices.clear();
    }
    int64_t begin = 0;
    for (const auto& [columns, padded] : storage.columns) {
      const std::string name = absl::StrCat("matrix[:, ", begin, ":", begin + columns, "]");
      builder.Parameter(name, local(dtype, {12, padded}, storage.matrix));
      plan::Parameter* part = plan.mutable_parameters(plan.parameters_size() - 1);
      *part->mutable_global() = ToPlan(TensorSpec{dtype, {12, columns}});
      *part->mutable_placements(0)->mutable_storage() = storage.matrix;
      part->mutable_initial()->set_tensor("matrix");
      part->mutable_part_of()->set_tensor("matrix");
      for (const int64_t size : {12, 8}) part->mutable_part_of()->add_shape(size);
      for (const int64_t start : {int64_t{0}, begin}) part->mutable_part_of()->add_start(start);
      if (padded != columns) {
        for (const int64_t size : {int64_t{12}, padded}) part->add_padded_shape(size);
      }
      matrices[name] = {{12, columns}, {12, padded}};
      begin += columns;
    }
    parameter("bias", {3}, {}, {3});
    if (plan::Parameter* cube = parameter("cube", {8, 6, 4}, storage.cube, storage.padded_cube)) {
      cube->clear_initial();
      cube->mutable_initial()->mutable_normal()->set_deviation(1);
    }
    std::vector<std::string> slots;
    if (storage.steps_matrix) slots = {"exp_avg"};
    if (storage.steps_matrix && storage.mixed) slots.push_back("master");
    for (const std::string& slot : slots) {
      for (const auto& [name, shapes] : matrices) {
        const auto& [shape, padded] = shapes;
        builder.Buffer(plan::OPTIMIZER_STATE, name,
                       local(DType::kF32, padded, storage.matrix_state), slot);
        plan::OptimizerState* state = plan.add_optimizer_states();
        state->set_parameter(name);
        state->set_slot(slot);
        *state->mutable_global() = ToPlan(TensorSpec{DType::kF32, shape});
        *state->mutable_storage() = storage.matrix_state;
      }
    }
    for (plan::Buffer& buffer : *builder.program().mutable_buffers()) {
      // The executor keeps buffers by their names.
      buffer.set_name(absl::StrCat(buffer.name(), buffer.slot()));
    }
    return plan;
  }
  static plan::Plan MakePlan(const Grids& grids) {
    plan::Plan plan = MakePlan(grids[0]);
    for (size_t i = 1; i < grids.size(); ++i) {
      AppendGrid(MakePlan(grids[i]), &plan);
      if (!grids[i].steps_matrix || plan.parameters(0).name() != "matrix") continue;
      // The grid that steps it is its home.
      auto* placements = plan.mutable_parameters(0)->mutable_placements();
      placements->SwapElements(0, placements->size() - 1);
    }
    return plan;
  }

  // Calls `run` on every rank, each in a thread of its own.
  using RunRank = std::function<absl::Status(int64_t rank, ModelState& state, Communicator* world)>;
  std::vector<absl::Status> OnEachRank(const Grids& grids, const RunRank& run) {
    const plan::Plan plan = MakePlan(grids);
    std::vector<std::unique_ptr<Communicator>> world = MakeInProcessWorld(plan.world_size());
    std::vector<absl::Status> statuses(plan.world_size());
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < plan.world_size(); ++rank) {
      threads.emplace_back([&, rank, communicator = std::move(world[rank])] {
        ToyExecutor executor(plan, rank, nullptr, memory_);
        absl::StatusOr<ModelState> state = ModelState::Bind(plan, rank, executor);
        statuses[rank] = state.ok() ? run(rank, *state, communicator.get()) : state.status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  // The whole tensors, put together from what the ranks hold, by "NAME" or "NAME.SLOT". All copies
  // of a box must be the same.
  static constexpr float kUnknown = -1e30f;
  using Tensors = std::map<std::string, std::vector<float>>;
  static void Join(const ModelState& state, int64_t rank, Tensors& tensors) {
    for (const auto& [parameter, source] : state.held()) {
      const std::string name =
          source.slot.empty() ? source.parameter : absl::StrCat(source.parameter, ".", source.slot);
      const Box whole = WholeBox(source.layout.global()), box = source.layout.BoxOf(rank);
      const Box content = source.layout.ContentOf(rank);
      std::vector<float>& joined = tensors[name];
      if (joined.empty()) joined.resize(whole.num_elements(), kUnknown);
      std::vector<float> known(content.num_elements(), kUnknown), own(known);
      std::vector<float> held(box.num_elements(), kUnknown);
      CopyBox(whole, joined.data(), content, known.data(), sizeof(float));
      // Elements, for grids may cut a tensor in different ways.
      std::vector<char> stored(source.buffer.spec().bytes());
      ORIEL_EXPECT_OK(source.buffer.Read(stored.data()));
      ORIEL_EXPECT_OK(ConvertElements(source.dtype, stored.data(), DType::kF32, held.data(),
                                      static_cast<int64_t>(held.size())));
      CopyBox(box, held.data(), content, own.data(), sizeof(float));
      for (size_t i = 0; i < known.size(); ++i) {
        const bool joins = known[i] == kUnknown || known[i] == own[i];
        EXPECT_TRUE(joins) << name << " of rank " << rank << " is not that of others";
      }
      CopyBox(content, own.data(), whole, joined.data(), sizeof(float));
      std::fill(own.begin(), own.end(), 0.0f);
      CopyBox(content, own.data(), box, held.data(), sizeof(float));
      EXPECT_EQ(held, std::vector<float>(held.size())) << name << ": padding of rank " << rank;
    }
  }

  // What the ranks have after `fill`, joined; saved to folder_ / `save` unless it is empty.
  Tensors Run(const Grids& grids, const std::string& save,
              const std::function<absl::Status(ModelState& state)>& fill) {
    Tensors tensors;
    std::mutex mutex;
    const auto statuses =
        OnEachRank(grids, [&](int64_t rank, ModelState& state, Communicator* world) {
          ORIEL_RETURN_IF_ERROR(fill(state));
          if (!save.empty()) {
            ORIEL_RETURN_IF_ERROR(WriteCheckpoint(folder_ / save, {"sharded", "", ""}, AtStep(7),
                                                  state.sources(), world)
                                      .status());
          }
          std::lock_guard<std::mutex> lock(mutex);
          Join(state, rank, tensors);
          return absl::OkStatus();
        });
    for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
    return tensors;
  }

  Tensors Initialized(const Grids& grids, const std::string& save = "") {
    return Run(grids, save, [&](ModelState& state) {
      ORIEL_RETURN_IF_ERROR(state.Initialize(folder_.path(), 1));
      // The state begins as zeros; give it values that tell elements apart.
      for (const auto& [parameter, source] : state.held()) {
        if (source.slot != "exp_avg") continue;
        std::vector<float> values(96);
        for (size_t i = 0; i < values.size(); ++i) values[i] = -0.5f * static_cast<float>(i);
        if (source.layout.is_whole()) ORIEL_RETURN_IF_ERROR(source.buffer.Write(values.data()));
      }
      return absl::OkStatus();
    });
  }

  Tensors Restored(const Grids& grids, const std::string& from, const std::string& save = "") {
    return Run(grids, save, [&](ModelState& state) {
      ORIEL_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(folder_ / from));
      return state.Restore(reader, /*with_optimizer=*/true);
    });
  }

  std::vector<std::string> FilesOf(const std::string& save) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / save)) {
      if (!entry.is_directory()) names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  TempFolder folder_;
  ToyExecutor::Memory memory_ = ToyExecutor::Memory::kHost;  // of the ranks
  float matrix_[96];
};

inline const Grids kOne = {{{1}, {}, {}, {}}};
// As ZeRO-3 over both axes would be, and as tensor parallelism with ZeRO-1 would.
inline const Grids kFour = {
    {{2, 2}, MakeSharding({{"a0", "a1"}}), MakeSharding({{"a1"}, {"a0"}}), MakeSharding({{"a1"}})}};
inline const Grids kTwo = {
    {{2}, MakeSharding({{}, {"a0"}}), MakeSharding({{"a0"}}), MakeSharding({{}, {}, {"a0"}})}};
inline const Grids kEight = {{{2, 2, 2},
                              MakeSharding({{"a2"}, {"a0"}}),
                              MakeSharding({{"a0"}, {"a1", "a2"}}),
                              MakeSharding({{"a1"}, {"a2"}, {"a0"}})}};
// Ranks that divide neither 12 rows nor 4 columns: the last have nothing; and those that divide
// neither 8 columns nor 8 layers: the last has less.
inline const Grids kPadded = {{{8},
                               MakeSharding({{"a0"}}),
                               MakeSharding({{}, {"a0"}}),
                               MakeSharding({{}, {}, {"a0"}}),
                               {16, 8},
                               {8, 6, 8}}};
inline const Grids kPaddedWithin = {{{3},
                                     MakeSharding({{}, {"a0"}}),
                                     MakeSharding({{"a0"}}),
                                     MakeSharding({{"a0"}}),
                                     {12, 9},
                                     {9, 6, 4}}};

// Columns of the matrix are parameters of their own, each cut over the ranks.
inline const Grids kColumns = {{{2},
                                MakeSharding({{}, {"a0"}}),
                                MakeSharding({{"a0"}}),
                                MakeSharding({{"a0"}}),
                                {12, 8},
                                {8, 6, 4},
                                {"matrix", "bias", "cube"},
                                /*steps_matrix=*/true,
                                /*mixed=*/false,
                                /*columns=*/{{4, 4}, {2, 2}, {2, 2}}}};

// Four groups of three rows with one of padding each, over eight ranks.
inline Grids PaddedInGroups() {
  Grids grids = kPadded;
  grids[0].matrix_state = MakeSharding({{"a0"}});
  grids[0].groups = {4, 1};
  return grids;
}

// Columns that the ranks do not divide.
inline Grids PaddedColumns() {
  Grids grids = kColumns;
  grids[0].columns = {{5, 6}, {3, 4}};
  return grids;
}

// The matrix is kept on two grids; the last one steps it, which rank 0 is not of.
inline Grids OnStages() {
  Storage first = kTwo[0], last = kFour[0];
  first.kept = {"matrix", "bias"};
  first.steps_matrix = false;
  last.kept = {"matrix", "cube"};
  return {first, last};
}
// Nothing on the first grid and on the last one; one rank between them has the cube.
inline Grids OnSomeOfFourGrids() {
  Storage nothing = kTwo[0], cube = kOne[0], rest = kPaddedWithin[0];
  nothing.kept = {};
  cube.kept = {"cube"};
  rest.kept = {"bias", "matrix"};
  nothing.steps_matrix = cube.steps_matrix = false;
  return {nothing, cube, rest, nothing};
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_MODEL_STATE_TESTING_H_
