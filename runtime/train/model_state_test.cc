#include "runtime/train/model_state.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/float16.h"
#include "runtime/train/model_state_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(ModelStateTest, InitialValuesAreTheSameForAllShardings) {
  const Tensors expected = Initialized(kOne);
  EXPECT_EQ(expected.at("matrix"), std::vector<float>(matrix_, matrix_ + 96));
  for (const Grids& grids : {kFour, kTwo, kEight, kPadded, kPaddedWithin, kColumns, PaddedColumns(),
                             OnStages(), OnSomeOfFourGrids()}) {
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
  EXPECT_EQ(Restored(PaddedColumns(), "columns", "padded columns"), expected);
  EXPECT_EQ(Restored(PaddedInGroups(), "padded columns", "padded groups"), expected);
  EXPECT_EQ(Restored(OnStages(), "padded groups", "stages"), expected);
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
  for (const Grids& grids : {kColumns, PaddedColumns(), PaddedInGroups()}) {
    EXPECT_EQ(dump("columns.safetensors", ToyExecutor::Memory::kDevice, grids),
              dump("host.safetensors", ToyExecutor::Memory::kHost));
  }
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
                             PaddedColumns(), PaddedInGroups(), OnStages(), OnSomeOfFourGrids()}) {
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
  EXPECT_EQ(Restored(Mixed(PaddedColumns()), "stages", "columns"), mixed);

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

// Values and masters, whatever the sharding and precision; not the optimizer's states.
TEST_F(ModelStateTest, WeightsAreTakenWithoutTheOptimizer) {
  const Tensors saved = Initialized(kOne, "saved");
  const std::vector<float> zeros(96);
  ORIEL_ASSERT_OK(
      WriteSafetensors(folder_ / "weights.safetensors",
                       std::vector<NamedTensor>{{"matrix", {DType::kF32, {12, 8}}, zeros.data()},
                                                {"bias", {DType::kF32, {3}}, zeros.data()}}));
  const auto taken = [&](const Grids& grids) {
    return Run(grids, "", [&](ModelState& state) {
      ORIEL_RETURN_IF_ERROR(state.Initialize(folder_.path(), 1));
      ORIEL_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(folder_ / "saved"));
      ORIEL_ASSIGN_OR_RETURN(const WeightsTaken found, state.TakeWeights(reader));
      EXPECT_EQ(found.taken, 3);
      EXPECT_THAT(found.missing, IsEmpty());
      EXPECT_THAT(found.unused, IsEmpty());
      return absl::OkStatus();
    });
  };
  for (const Grids& grids : {kOne, kFour, kPadded, kPaddedWithin, kColumns, PaddedColumns(),
                             PaddedInGroups(), OnStages()}) {
    const Tensors tensors = taken(grids);
    for (const char* name : {"matrix", "bias", "cube"}) {
      EXPECT_EQ(tensors.at(name), saved.at(name)) << name;
    }
    EXPECT_EQ(tensors.at("matrix.exp_avg"), zeros);
  }
  const Tensors mixed = taken(Mixed(kFour));
  EXPECT_EQ(mixed.at("matrix.master"), saved.at("matrix"));
  EXPECT_EQ(mixed.at("matrix"), Rounded(saved.at("matrix")));
}

// Of a checkpoint of another model, what both have.
TEST_F(ModelStateTest, WeightsThatAreMissingOrUnusedAreNamed) {
  Storage bias = kOne[0], cube = kOne[0];
  bias.kept = {"bias"};
  cube.kept = {"cube"};
  bias.steps_matrix = cube.steps_matrix = false;
  Initialized(kOne, "all");
  Initialized({bias}, "bias");
  const auto take = [&](const Grids& grids, const std::string& from, WeightsTaken* found) {
    absl::Status status;
    Run(grids, "", [&](ModelState& state) {
      ORIEL_RETURN_IF_ERROR(state.Initialize(folder_.path(), 1));
      ORIEL_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(folder_ / from));
      absl::StatusOr<WeightsTaken> taken = state.TakeWeights(reader);
      status = taken.status();
      if (taken.ok()) *found = *taken;
      return absl::OkStatus();
    });
    return status;
  };
  WeightsTaken found;
  ORIEL_EXPECT_OK(take({bias}, "all", &found));
  EXPECT_EQ(found.taken, 1);
  EXPECT_THAT(found.missing, IsEmpty());
  EXPECT_THAT(found.unused, ElementsAre("cube", "matrix"));
  ORIEL_EXPECT_OK(take(kOne, "bias", &found));
  EXPECT_EQ(found.taken, 1);
  EXPECT_THAT(found.missing, UnorderedElementsAre("matrix", "cube"));
  EXPECT_THAT(found.unused, IsEmpty());

  const absl::Status none = take({cube}, "bias", &found);
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("has none of the plan's parameters: it has bias, the plan cube"));
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
        return WriteCheckpoint(folder_ / "save", {"sharded", "", ""}, AtStep(7), sources, world)
            .status();
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
    return WriteCheckpoint(folder_ / "save", {"sharded", "", ""}, AtStep(8), state.sources(), world)
        .status();
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
    return WriteCheckpoint(folder_ / "save", {"sharded", "", ""}, AtStep(8), state.sources(), world)
        .status();
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
