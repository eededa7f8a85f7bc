#include "runtime/train/model_state.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/float16.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/in_process.h"
#include "runtime/plan/plan_builder.h"
#include "runtime/train/convert.h"
#include "runtime/train/test_data.h"
#include "runtime/train/toy_executor.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// How the ranks of a grid keep the tensors below; the rest is replicated.
struct Storage {
  std::vector<int64_t> grid;
  plan::Sharding matrix, matrix_state, cube;
  Shape padded_matrix = {12, 8}, padded_cube = {8, 6, 4};
  std::vector<std::string> kept = {"matrix", "bias", "cube"};  // parameters
  bool steps_matrix = true;                                    // and has its state
  bool mixed = false;  // parameters are bf16, the matrix has a master
  // Of the parameters that the matrix is in the plan, side by side; not if it is padded.
  std::vector<int64_t> columns = {};
};
using Grids = std::vector<Storage>;

TrainingProgress AtStep(int64_t step) {
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
    std::map<std::string, Shape> matrices = {
        {"matrix", storage.padded_matrix}};  // and their shapes
    if (storage.columns.empty()) {
      parameter("matrix", {12, 8}, storage.matrix, storage.padded_matrix);
    } else {
      matrices.clear();
    }
    int64_t begin = 0;
    for (const int64_t columns : storage.columns) {
      const std::string name = absl::StrCat("matrix[:, ", begin, ":", begin + columns, "]");
      builder.Parameter(name, local(dtype, {12, columns}, storage.matrix));
      plan::Parameter* part = plan.mutable_parameters(plan.parameters_size() - 1);
      *part->mutable_global() = ToPlan(TensorSpec{dtype, {12, columns}});
      *part->mutable_placements(0)->mutable_storage() = storage.matrix;
      part->mutable_initial()->set_tensor("matrix");
      part->mutable_part_of()->set_tensor("matrix");
      for (const int64_t size : {12, 8}) part->mutable_part_of()->add_shape(size);
      for (const int64_t start : {int64_t{0}, begin}) part->mutable_part_of()->add_start(start);
      matrices[name] = {12, columns};
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
      for (const auto& [name, padded] : matrices) {
        builder.Buffer(plan::OPTIMIZER_STATE, name,
                       local(DType::kF32, padded, storage.matrix_state), slot);
        plan::OptimizerState* state = plan.add_optimizer_states();
        state->set_parameter(name);
        state->set_slot(slot);
        *state->mutable_global() =
            ToPlan(TensorSpec{DType::kF32, storage.columns.empty() ? Shape{12, 8} : padded});
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
      std::vector<float>& joined = tensors[name];
      if (joined.empty()) joined.resize(whole.num_elements(), kUnknown);
      std::vector<float> known(box.num_elements(), kUnknown), held(known);
      CopyBox(whole, joined.data(), box, known.data(), sizeof(float));
      // Elements, for grids may cut a tensor in different ways.
      std::vector<char> stored(source.buffer.spec().bytes());
      ORIEL_EXPECT_OK(source.buffer.Read(stored.data()));
      ORIEL_EXPECT_OK(ConvertElements(source.dtype, stored.data(), DType::kF32, held.data(),
                                      static_cast<int64_t>(held.size())));
      for (size_t i = 0; i < known.size(); ++i) {
        const bool joins = known[i] == kUnknown || known[i] == held[i];
        EXPECT_TRUE(joins) << name << " of rank " << rank << " is not that of others";
      }
      CopyBox(box, held.data(), whole, joined.data(), sizeof(float));
    }
  }

  // What the ranks have after `fill`, joined; saved to folder_ / `save` unless it is empty.
  Tensors Run(const Grids& grids, const std::string& save,
              const std::function<absl::Status(ModelState& state)>& fill) {
    Tensors tensors;
    std::mutex mutex;
    const auto statuses = OnEachRank(grids, [&](int64_t rank, ModelState& state,
                                                Communicator* world) {
      ORIEL_RETURN_IF_ERROR(fill(state));
      if (!save.empty()) {
        ORIEL_RETURN_IF_ERROR(
            WriteCheckpoint(folder_ / save, "sharded", AtStep(7), state.sources(), world).status());
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

const Grids kOne = {{{1}, {}, {}, {}}};
// As ZeRO-3 over both axes would be, and as tensor parallelism with ZeRO-1 would.
const Grids kFour = {
    {{2, 2}, MakeSharding({{"a0", "a1"}}), MakeSharding({{"a1"}, {"a0"}}), MakeSharding({{"a1"}})}};
const Grids kTwo = {
    {{2}, MakeSharding({{}, {"a0"}}), MakeSharding({{"a0"}}), MakeSharding({{}, {}, {"a0"}})}};
const Grids kEight = {{{2, 2, 2},
                       MakeSharding({{"a2"}, {"a0"}}),
                       MakeSharding({{"a0"}, {"a1", "a2"}}),
                       MakeSharding({{"a1"}, {"a2"}, {"a0"}})}};
// Ranks that divide neither 12 rows nor 4 columns: the last have nothing; and those that divide
// neither 8 columns nor 8 layers: the last has less.
const Grids kPadded = {{{8},
                        MakeSharding({{"a0"}}),
                        MakeSharding({{}, {"a0"}}),
                        MakeSharding({{}, {}, {"a0"}}),
                        {16, 8},
                        {8, 6, 8}}};
const Grids kPaddedWithin = {{{3},
                              MakeSharding({{}, {"a0"}}),
                              MakeSharding({{"a0"}}),
                              MakeSharding({{"a0"}}),
                              {12, 9},
                              {9, 6, 4}}};

// Columns of the matrix are parameters of their own, each cut over the ranks.
const Grids kColumns = {{{2},
                         MakeSharding({{}, {"a0"}}),
                         MakeSharding({{"a0"}}),
                         MakeSharding({{"a0"}}),
                         {12, 8},
                         {8, 6, 4},
                         {"matrix", "bias", "cube"},
                         /*steps_matrix=*/true,
                         /*mixed=*/false,
                         /*columns=*/{4, 2, 2}}};

// The matrix is kept on two grids; the last one steps it, which rank 0 is not of.
Grids OnStages() {
  Storage first = kTwo[0], last = kFour[0];
  first.kept = {"matrix", "bias"};
  first.steps_matrix = false;
  last.kept = {"matrix", "cube"};
  return {first, last};
}
// Nothing on the first grid and on the last one; one rank between them has the cube.
Grids OnSomeOfFourGrids() {
  Storage nothing = kTwo[0], cube = kOne[0], rest = kPaddedWithin[0];
  nothing.kept = {};
  cube.kept = {"cube"};
  rest.kept = {"bias", "matrix"};
  nothing.steps_matrix = cube.steps_matrix = false;
  return {nothing, cube, rest, nothing};
}

TEST_F(ModelStateTest, InitialValuesAreTheSameForAllShardings) {
  const Tensors expected = Initialized(kOne);
  EXPECT_EQ(expected.at("matrix"), std::vector<float>(matrix_, matrix_ + 96));
  for (const Grids& grids :
       {kFour, kTwo, kEight, kPadded, kPaddedWithin, kColumns, OnStages(), OnSomeOfFourGrids()}) {
    const Tensors tensors = Initialized(grids);
    for (const char* name : {"matrix", "bias", "cube"}) {
      EXPECT_EQ(tensors.at(name), expected.at(name)) << name;
    }
  }
}

TEST_F(ModelStateTest, CheckpointsGoFromAnyShardingToAnyOther) {
  const Tensors expected = Initialized(kOne, "one");
  EXPECT_EQ(expected.at("matrix.exp_avg")[95], -47.5f);
  EXPECT_EQ(Restored(kFour, "one", "four"), expected);
  EXPECT_EQ(Restored(kTwo, "four", "two"), expected);
  EXPECT_EQ(Restored(kEight, "two", "eight"), expected);
  EXPECT_EQ(Restored(kFour, "eight", "four again"), expected);
  EXPECT_EQ(Restored(kPadded, "four again", "padded"), expected);
  EXPECT_EQ(Restored(kPaddedWithin, "padded", "padded within"), expected);
  EXPECT_EQ(Restored(kColumns, "padded within", "columns"), expected);
  EXPECT_EQ(Restored(OnStages(), "columns", "stages"), expected);
  EXPECT_EQ(Restored(OnSomeOfFourGrids(), "stages", "four grids"), expected);
  EXPECT_EQ(Restored(kOne, "four grids", "one again"), expected);
  for (const char* file : {"index.json", "model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(ReadFileBytes(folder_ / absl::StrCat("one again/step-00000007/", file)),
              ReadFileBytes(folder_ / absl::StrCat("one/step-00000007/", file)));
  }
}

// Of devices, whose memory the host can't see, the same is read and written.
TEST_F(ModelStateTest, DevicesAreFilledAndSavedLikeTheHost) {
  const Tensors expected = Initialized(kOne, "host");
  memory_ = ToyExecutor::Memory::kDevice;
  for (const Grids& grids : {kOne, kFour, kPadded, kPaddedWithin, OnStages()}) {
    const Tensors tensors = Initialized(grids);
    for (const char* name : {"matrix", "bias", "cube"}) {
      EXPECT_EQ(tensors.at(name), expected.at(name)) << name;
    }
    EXPECT_EQ(Restored(grids, "host", "devices"), expected);
    EXPECT_EQ(Restored(kOne, "devices", "device"), expected);
    EXPECT_EQ(ReadFileBytes(folder_ / "device/step-00000007/model.safetensors"),
              ReadFileBytes(folder_ / "host/step-00000007/model.safetensors"));
  }
  const auto dump = [&](const std::string& name, ToyExecutor::Memory memory,
                        const Grids& grids = kPadded) {
    memory_ = memory;
    OnEachRank(grids, [&](int64_t, ModelState& state, Communicator* world) -> absl::Status {
      ORIEL_RETURN_IF_ERROR(state.Initialize(folder_.path(), 1));
      return state.DumpParameters(folder_ / name, world);
    });
    return ReadFileBytes(folder_ / name);
  };
  EXPECT_EQ(dump("devices.safetensors", ToyExecutor::Memory::kDevice),
            dump("host.safetensors", ToyExecutor::Memory::kHost));
  EXPECT_EQ(dump("columns.safetensors", ToyExecutor::Memory::kDevice, kColumns),
            dump("host.safetensors", ToyExecutor::Memory::kHost));
}

Grids Mixed(Grids grids) {
  for (Storage& storage : grids) storage.mixed = true;
  return grids;
}
std::vector<float> Rounded(std::vector<float> values) {
  for (float& value : values) value = BFloat16ToFloat(FloatToBFloat16(value));
  return values;
}

// Wherever the parameter is kept; the master is at home only.
TEST_F(ModelStateTest, MastersBeginWithWhatParametersRound) {
  const Tensors expected = Initialized(kOne);
  EXPECT_NE(Rounded(expected.at("matrix")), expected.at("matrix"));
  for (const Grids& grids : {kOne, kFour, kTwo, kEight, kPadded, kPaddedWithin, kColumns,
                             OnStages(), OnSomeOfFourGrids()}) {
    const Tensors tensors = Initialized(Mixed(grids));
    EXPECT_EQ(tensors.at("matrix.master"), expected.at("matrix"));
    for (const char* name : {"matrix", "bias", "cube"}) {
      EXPECT_EQ(tensors.at(name), Rounded(expected.at(name))) << name;
    }
  }
}

TEST_F(ModelStateTest, CheckpointsGoFromF32ToMixedPrecisionAndBack) {
  const Tensors expected = Initialized(kOne, "f32");
  const Tensors mixed = Restored(Mixed(kFour), "f32", "mixed");
  EXPECT_EQ(mixed.at("matrix.master"), expected.at("matrix"));
  EXPECT_EQ(mixed.at("matrix"), Rounded(expected.at("matrix")));
  EXPECT_EQ(mixed.at("matrix.exp_avg"), expected.at("matrix.exp_avg"));
  EXPECT_EQ(Restored(Mixed(OnStages()), "mixed", "stages"), mixed);
  EXPECT_EQ(Restored(Mixed(kColumns), "stages", "columns"), mixed);

  const Tensors back = Restored(kTwo, "columns");
  EXPECT_EQ(back.at("matrix"), expected.at("matrix"));
  EXPECT_EQ(back.at("matrix.exp_avg"), expected.at("matrix.exp_avg"));
  EXPECT_EQ(back.count("matrix.master"), 0u);
  // Frozen ones are saved as they are.
  EXPECT_EQ(back.at("bias"), Rounded(expected.at("bias")));
}

TEST_F(ModelStateTest, MasterIsSavedAsTheParameter) {
  Initialized(Mixed(kFour), "save");
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(folder_ / "save"));
  EXPECT_EQ(reader.index().parameters.at("matrix").spec, (TensorSpec{DType::kF32, {12, 8}}));
  EXPECT_EQ(reader.index().parameters.at("bias").spec, (TensorSpec{DType::kBF16, {3}}));
  EXPECT_EQ(reader.index().optimizer_states.at("matrix").size(), 1u);
  EXPECT_EQ(reader.index().optimizer_states.at("matrix").count("exp_avg"), 1u);
}

// Whatever is read, the padding stays as it began.
TEST_F(ModelStateTest, PaddingStaysZero) {
  Initialized(kOne, "one");
  int64_t zeros = 0;
  std::mutex mutex;
  const auto statuses = OnEachRank(kPadded, [&](int64_t rank, ModelState& state, Communicator*) {
    ORIEL_RETURN_IF_ERROR(state.Initialize(folder_.path(), 1));
    ORIEL_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(folder_ / "one"));
    ORIEL_RETURN_IF_ERROR(state.Restore(reader, /*with_optimizer=*/false));
    const CheckpointSource& matrix = state.sources()[0];
    const int64_t rows = matrix.layout.ContentOf(rank).size[0];
    std::lock_guard<std::mutex> lock(mutex);
    float values[16];
    ORIEL_RETURN_IF_ERROR(matrix.buffer.Read(values));
    zeros += std::count(values + rows * 8, values + 16, 0.0f);
    return absl::OkStatus();
  });
  for (const absl::Status& status : statuses) ORIEL_EXPECT_OK(status);
  EXPECT_EQ(zeros, 4 * 8);
}

// Of copies only one is written, and a rank that has nothing of its own writes no file.
TEST_F(ModelStateTest, EachElementIsSavedOnce) {
  Grids grids = kFour;
  grids[0].matrix_state = {};
  Initialized(grids, "save");
  EXPECT_THAT(FilesOf("save"),
              ElementsAre("index.json", "model-rank00000.safetensors",
                          "model-rank00001.safetensors", "model-rank00002.safetensors",
                          "model-rank00003.safetensors", "optimizer.safetensors"));
  int64_t elements = 0;
  for (int rank = 0; rank < 4; ++rank) {
    ORIEL_ASSERT_OK_AND_ASSIGN(
        SafetensorsFile file,
        SafetensorsFile::Open(
            folder_ / absl::StrCat("save/step-00000007/model-rank0000", rank, ".safetensors")));
    for (const auto& [name, view] : file.tensors()) elements += view.spec.num_elements();
    EXPECT_EQ(file.tensors().count("bias"), rank == 0 ? 1u : 0u);
    EXPECT_EQ(file.tensors().count("cube"), rank < 2 ? 1u : 0u);
  }
  EXPECT_EQ(elements, 96 + 3 + 192);

  grids[0].matrix = {};
  Initialized(grids, "two files");
  EXPECT_THAT(FilesOf("two files"),
              ElementsAre("index.json", "model-rank00000.safetensors",
                          "model-rank00001.safetensors", "optimizer.safetensors"));
}

// A parameter on two grids is written by its home only.
TEST_F(ModelStateTest, EachGridSavesWhatItSteps) {
  Grids grids = OnStages();
  grids[1].cube = {};
  Initialized(grids, "save");
  EXPECT_THAT(FilesOf("save"),
              ElementsAre("index.json", "model-rank00000.safetensors",
                          "model-rank00002.safetensors", "model-rank00003.safetensors",
                          "model-rank00004.safetensors", "model-rank00005.safetensors",
                          "optimizer-rank00002.safetensors", "optimizer-rank00003.safetensors",
                          "optimizer-rank00004.safetensors", "optimizer-rank00005.safetensors"));
  const std::map<std::string, std::vector<int>> owners = {
      {"bias", {0}}, {"cube", {2}}, {"matrix", {2, 3, 4, 5}}};
  for (const int rank : {0, 2, 3, 4, 5}) {
    ORIEL_ASSERT_OK_AND_ASSIGN(
        SafetensorsFile file,
        SafetensorsFile::Open(
            folder_ / absl::StrCat("save/step-00000007/model-rank0000", rank, ".safetensors")));
    for (const auto& [name, ranks] : owners) {
      EXPECT_EQ(file.tensors().count(name), std::count(ranks.begin(), ranks.end(), rank)) << name;
    }
  }
}

TEST_F(ModelStateTest, DumpHasWholeParameters) {
  const Tensors expected = Initialized(kOne);
  for (const Grids& grids :
       {kOne, kFour, kTwo, kEight, kPadded, kPaddedWithin, OnStages(), OnSomeOfFourGrids()}) {
    const auto statuses = OnEachRank(grids, [&](int64_t, ModelState& state, Communicator* world) {
      ORIEL_RETURN_IF_ERROR(state.Initialize(folder_.path(), 1));
      return state.DumpParameters(folder_ / "dump.safetensors", world);
    });
    for (const absl::Status& status : statuses) ORIEL_EXPECT_OK(status);
    ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file,
                               SafetensorsFile::Open(folder_ / "dump.safetensors"));
    EXPECT_EQ(file.tensors().size(), 3u);
    for (const auto& [name, view] : file.tensors()) {
      std::vector<float> values(view.spec.num_elements());
      std::memcpy(values.data(), view.data, view.spec.bytes());
      EXPECT_EQ(values, expected.at(name)) << name;
    }
  }
}

TEST_F(ModelStateTest, DumpHasMasters) {
  const Tensors expected = Initialized(kOne);
  const auto statuses =
      OnEachRank(Mixed(OnStages()), [&](int64_t, ModelState& state, Communicator* world) {
        ORIEL_RETURN_IF_ERROR(state.Initialize(folder_.path(), 1));
        return state.DumpParameters(folder_ / "dump.safetensors", world);
      });
  for (const absl::Status& status : statuses) ORIEL_EXPECT_OK(status);
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file,
                             SafetensorsFile::Open(folder_ / "dump.safetensors"));
  std::vector<float> matrix(96);
  ORIEL_ASSERT_OK(file.Read("matrix", {DType::kF32, {12, 8}}, matrix.data()));
  EXPECT_EQ(matrix, expected.at("matrix"));
  EXPECT_EQ(file.tensors().at("matrix").spec.dtype, DType::kF32);
}

TEST_F(ModelStateTest, DamagedPiecesAreNamed) {
  Initialized(kFour, "save");
  const std::string piece = folder_ / "save/step-00000007/model-rank00002.safetensors";
  const std::string bytes = ReadFileBytes(piece);
  Truncate(piece, 1);
  EXPECT_THAT(CheckpointReader::Open(folder_ / "save"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("incomplete or damaged checkpoint"),
                             HasSubstr("model-rank00002.safetensors"), HasSubstr("truncated"))));
  std::filesystem::remove(piece);
  EXPECT_THAT(
      CheckpointReader::Open(folder_ / "save"),
      StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("incomplete or damaged checkpoint"),
                                                  HasSubstr("model-rank00002.safetensors"))));
  // Another file under its name.
  std::filesystem::copy(folder_ / "save/step-00000007/optimizer-rank00002.safetensors", piece);
  EXPECT_THAT(CheckpointReader::Open(folder_ / "save"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("has no tensor \"matrix\"")));
  WriteFileBytes(piece, bytes);
  ORIEL_EXPECT_OK(CheckpointReader::Open(folder_ / "save").status());
}

// A rank that can't write its part, here for two tensors of one name: nothing appears.
TEST_F(ModelStateTest, PartThatCannotBeWrittenLeavesNothing) {
  std::filesystem::create_directories(folder_ / "save");
  const auto statuses =
      OnEachRank(kFour, [&](int64_t rank, ModelState& state, Communicator* world) {
        std::vector<CheckpointSource> sources = state.sources();
        if (rank == 3) sources.push_back(sources[0]);
        return WriteCheckpoint(folder_ / "save", "sharded", AtStep(7), sources, world).status();
      });
  EXPECT_THAT(statuses[3], StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("two tensors have the name \"matrix\"")));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(statuses[rank],
                StatusIs(absl::StatusCode::kAborted, HasSubstr("another rank could not write")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "save"));
}

// The disk takes the small parts only, those of ranks 2 and 3: here by a limit to the size of
// files.
TEST_F(ModelStateTest, FullDiskLeavesTheCheckpointBefore) {
  Initialized(kFour, "save");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  const auto statuses = OnEachRank(kFour, [&](int64_t rank, ModelState& state,
                                              Communicator* world) {
    if (rank == 0) {
      rlimit limit = before;
      limit.rlim_cur = 400;
      EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    }
    return WriteCheckpoint(folder_ / "save", "sharded", AtStep(8), state.sources(), world).status();
  });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(statuses[rank], StatusIs(absl::StatusCode::kInternal,
                                         AllOf(HasSubstr("model-rank0000"), HasSubstr("write"))));
  }
  for (const int rank : {2, 3}) EXPECT_TRUE(absl::IsAborted(statuses[rank])) << statuses[rank];
  EXPECT_EQ(FilesOf("save").size(), 9u);  // of step 7
  Restored(kTwo, "save");
}

TEST_F(ModelStateTest, RankThatIsGoneLeavesTheCheckpointBefore) {
  Initialized(kFour, "save");
  const auto statuses = OnEachRank(kFour, [&](int64_t rank, ModelState& state,
                                              Communicator* world) {
    if (rank == 2) return absl::OkStatus();
    return WriteCheckpoint(folder_ / "save", "sharded", AtStep(8), state.sources(), world).status();
  });
  for (const int rank : {0, 1, 3}) EXPECT_TRUE(absl::IsAborted(statuses[rank])) << statuses[rank];
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "save")) {
    EXPECT_EQ(entry.path().filename(), "step-00000007");
  }
  Restored(kTwo, "save");
}

TEST_F(ModelStateTest, WhatIsKeptNowhere) {
  plan::Plan plan = MakePlan(kOne);
  ToyExecutor executor(plan, 0, nullptr);
  plan.mutable_optimizer_states(0)->set_parameter("none");
  EXPECT_THAT(ModelState::Bind(plan, 0, executor),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("an optimizer state of none, but no such parameter")));
  plan.mutable_parameters(1)->clear_placements();
  EXPECT_THAT(ModelState::Bind(plan, 0, executor),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bias is kept on no grid")));
}

TEST_F(ModelStateTest, BufferThatIsNotTheRanksBox) {
  plan::Plan plan = MakePlan(kFour);
  plan.mutable_programs(0)->mutable_buffers(0)->mutable_local()->set_shape(0, 6);
  ToyExecutor executor(plan, 0, nullptr);
  EXPECT_THAT(ModelState::Bind(plan, 0, executor),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("matrix: the rank's buffer is f32[6, 8], its part of f32[12, 8] "
                                 "is f32[3, 8]")));
  EXPECT_THAT(ModelState::Bind(plan, 4, executor),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no grid with rank 4")));
}

}  // namespace
}  // namespace oriel::runtime
