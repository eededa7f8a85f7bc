#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_replace.h"
#include "runtime/base/files.h"
#include "runtime/base/status_testing.h"
#include "runtime/train/checkpoint/best_checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_index.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/checkpoint/checkpoint_writer.h"
#include "runtime/train/data_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TensorSpec F32(Shape shape) { return {DType::kF32, std::move(shape)}; }

// A tensor that the only rank has whole.
CheckpointSource Whole(const std::string& parameter, const std::string& slot, const Shape& shape,
                       float* data) {
  return {parameter,
          slot,
          DType::kF32,
          *TensorLayout::Create({}, {}, shape),
          HostAccess({DType::kF32, shape}, data),
          /*part=*/""};
}

class CheckpointTest : public ::testing::Test {
 protected:
  std::string Save(int64_t step) {
    progress_.step = step;
    const std::vector<CheckpointSource> sources = {Whole("w", "", {2, 3}, w_),
                                                   Whole("frozen", "", {1}, frozen_),
                                                   Whole("w", "exp_avg", {2, 3}, exp_avg_)};
    absl::StatusOr<std::string> path =
        WriteCheckpoint(save_dir_, {"toy", "toy.onnx", "0123"}, progress_, sources, nullptr);
    EXPECT_TRUE(path.ok()) << path.status();
    return *path;
  }

  TempFolder folder_;
  std::string save_dir_ = folder_ / "deep/ckpt";
  TrainingProgress progress_{0, {2, 7}, ~uint64_t{0}, false, 35, 8};
  float w_[6] = {1, 2, 3, 4, 5, 6}, frozen_[1] = {7}, exp_avg_[6] = {6, 5, 4, 3, 2, 1};
};

TEST_F(CheckpointTest, WhatIsWrittenIsRead) {
  const std::string path = Save(100);
  EXPECT_EQ(path, save_dir_ + "/step-00000100");
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(path));
  const TrainingProgress& progress = reader.index().progress;
  EXPECT_EQ(progress.step, 100);
  EXPECT_EQ(progress.position, (DataPosition{2, 7}));
  EXPECT_EQ(progress.seed, ~uint64_t{0});
  EXPECT_FALSE(progress.shuffle);
  EXPECT_EQ(progress.samples, 35);
  EXPECT_EQ(progress.global_batch, 8);
  EXPECT_EQ(reader.index().model.name, "toy");
  EXPECT_EQ(reader.index().fingerprint,
            FingerprintParameters({{"frozen", F32({1})}, {"w", F32({2, 3})}}));
  float target[6];
  ORIEL_ASSERT_OK(reader.ReadParameter("w", F32({2, 3}), WholeBox({2, 3}), target));
  EXPECT_THAT(target, ElementsAre(1, 2, 3, 4, 5, 6));
  ORIEL_ASSERT_OK(reader.ReadState("w", "exp_avg", F32({2, 3}), WholeBox({2, 3}), target));
  EXPECT_THAT(target, ElementsAre(6, 5, 4, 3, 2, 1));
  ORIEL_ASSERT_OK(reader.ReadParameter("frozen", F32({1}), WholeBox({1}), target));
}

// No temporary names are left, and the model is a plain safetensors file of all parameters.
TEST_F(CheckpointTest, FilesOfAFolder) {
  const std::string path = Save(1);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(save_dir_)) {
    names.push_back(entry.path().lexically_relative(save_dir_).string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_THAT(
      names, ElementsAre("step-00000001", "step-00000001/index.json",
                         "step-00000001/model.safetensors", "step-00000001/optimizer.safetensors"));
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile model,
                             SafetensorsFile::Open(path + "/model.safetensors"));
  EXPECT_EQ(model.tensors().size(), 2u);
}

TEST_F(CheckpointTest, SameStepAgainReplaces) {
  Save(5);
  w_[0] = -1;
  Save(5);
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(save_dir_));
  float target[6];
  ORIEL_ASSERT_OK(reader.ReadParameter("w", F32({2, 3}), WholeBox({2, 3}), target));
  EXPECT_EQ(target[0], -1);
}

// A save that was killed leaves a folder without index, or with a temporary name.
TEST_F(CheckpointTest, LatestIsTheHighestCompleteStep) {
  Save(9);
  Save(100);
  std::filesystem::create_directories(save_dir_ + "/step-00000200");
  std::filesystem::copy(save_dir_ + "/step-00000100", save_dir_ + "/.step-00000300.tmp");
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(save_dir_));
  EXPECT_EQ(reader.index().progress.step, 100);
}

TEST_F(CheckpointTest, OldOnesAreRemoved) {
  for (const int64_t step : {2, 9, 100, 101, 300}) Save(step);
  std::filesystem::create_directories(save_dir_ + "/step-00000001");  // has no index: not one
  std::filesystem::create_directories(save_dir_ + "/other");
  ORIEL_ASSERT_OK(RemoveOldCheckpoints(save_dir_, 101, 2));
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(save_dir_)) {
    left.insert(entry.path().filename());
  }
  EXPECT_THAT(left, ElementsAre("other", "step-00000001", "step-00000100", "step-00000101",
                                "step-00000300"));
  ORIEL_ASSERT_OK(RemoveOldCheckpoints(save_dir_, 101, 5));
  EXPECT_THAT(RemoveOldCheckpoints(folder_ / "none", 1, 1).message(), HasSubstr("none"));
}

TEST_F(CheckpointTest, TheBestIsThatOfTheLowestLoss) {
  for (const int64_t step : {2, 9, 100}) Save(step);
  EXPECT_FALSE(FindBestCheckpoint(save_dir_, 100)->has_value());
  for (const double loss : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_FALSE(*IsBestCheckpoint(save_dir_, {9, loss}));
  }
  EXPECT_TRUE(*IsBestCheckpoint(save_dir_, {9, 1.5}));
  ORIEL_ASSERT_OK(WriteBestCheckpoint(save_dir_, {9, 1.5}));
  EXPECT_FALSE(*IsBestCheckpoint(save_dir_, {100, 1.5}));
  EXPECT_FALSE(*IsBestCheckpoint(save_dir_, {100, std::nan("")}));
  EXPECT_TRUE(*IsBestCheckpoint(save_dir_, {100, 1.4}));
  ORIEL_ASSERT_OK(RemoveOldCheckpoints(save_dir_, 100, 1));
  EXPECT_EQ((*FindBestCheckpoint(save_dir_, 100))->step, 9);
  // Of a run that came farther than the one that begins at step 5.
  ORIEL_ASSERT_OK(ForgetLaterBest(save_dir_, 9));
  EXPECT_TRUE(FindBestCheckpoint(save_dir_, 100)->has_value());
  ORIEL_ASSERT_OK(ForgetLaterBest(save_dir_, 5));
  EXPECT_FALSE(FindBestCheckpoint(save_dir_, 100)->has_value());
  for (const char* text :
       {"", "{}", "[9]", R"({"step": -1, "eval_loss": 1})", R"({"step": 9, "eval_loss": "low"})"}) {
    std::ofstream(save_dir_ + "/best.json") << text;
    EXPECT_THAT(FindBestCheckpoint(save_dir_, 100),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("best.json: does not say")));
  }
}

TEST_F(CheckpointTest, OfADamagedOneTheOneBeforeIsNamed) {
  const std::string older = Save(9), damaged = Save(100);
  Truncate(damaged + "/model.safetensors", 1);
  EXPECT_THAT(CheckpointReader::Open(save_dir_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(damaged + "/model.safetensors"),
                             HasSubstr(older + " is the one before it: name it instead"))));
  EXPECT_THAT(CheckpointReader::Open(damaged).status().message(), Not(HasSubstr("one before it")));
  ORIEL_EXPECT_OK(CheckpointReader::Open(older).status());
}

// Overwrites four bytes at the end of a file.
void Damage(const std::string& path) {
  std::string bytes = ReadFileBytes(path);
  bytes.replace(bytes.size() - 4, 4, "\1\2\3\4");
  WriteFileBytes(path, bytes);
}

TEST_F(CheckpointTest, DamagedValues) {
  const std::string older = Save(9), path = Save(100);
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader sound, CheckpointReader::Open(save_dir_));
  ORIEL_EXPECT_OK(sound.CheckData(/*with_optimizer=*/true, 0, 1));
  Damage(path + "/optimizer.safetensors");
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(save_dir_));
  ORIEL_EXPECT_OK(reader.CheckData(/*with_optimizer=*/false, 0, 1));
  const auto is_damaged =
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr(path + "/optimizer.safetensors is damaged: exp_avg/w has"),
                     HasSubstr(older + " is the one before it")));
  EXPECT_THAT(reader.CheckData(/*with_optimizer=*/true, 0, 1), is_damaged);
  // Of 6 + 1 + 6 floats on two ranks, those of the optimizer begin at the seventh.
  ORIEL_EXPECT_OK(reader.CheckData(/*with_optimizer=*/true, 0, 2));
  EXPECT_THAT(reader.CheckData(/*with_optimizer=*/true, 1, 2), is_damaged);
}

// Each shard is looked at by one rank.
TEST_F(CheckpointTest, RanksShareTheCheck) {
  const std::string path = Save(1);
  Damage(path + "/model.safetensors");
  Damage(path + "/optimizer.safetensors");
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(path));
  for (const int64_t ranks : {1, 2, 3, 5, 13, 40}) {
    int found = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (!reader.CheckData(/*with_optimizer=*/true, rank, ranks).ok()) ++found;
    }
    EXPECT_GE(found, 1) << ranks;
    EXPECT_LE(found, 2) << ranks;
  }
}

TEST_F(CheckpointTest, NothingThere) {
  EXPECT_THAT(CheckpointReader::Open(save_dir_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no such checkpoint folder")));
  std::filesystem::create_directories(save_dir_);
  EXPECT_THAT(CheckpointReader::Open(save_dir_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("has neither index.json nor")));
}

TEST_F(CheckpointTest, FileOfTheIndexIsMissing) {
  std::filesystem::remove(Save(1) + "/optimizer.safetensors");
  EXPECT_THAT(
      CheckpointReader::Open(save_dir_),
      StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("incomplete or damaged checkpoint"),
                                                  HasSubstr("optimizer.safetensors"))));
}

TEST_F(CheckpointTest, TruncatedFile) {
  Truncate(Save(1) + "/model.safetensors", 1);
  EXPECT_THAT(CheckpointReader::Open(save_dir_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model.safetensors")));
}

TEST_F(CheckpointTest, DamagedIndex) {
  const std::string path = Save(1) + "/index.json";
  const std::string text = ReadFileBytes(path);
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseCheckpointIndex(text.substr(0, size), path).ok()) << size;
  }
  auto expect_refused = [&](const std::string& from, const std::string& to,
                            const std::string& message) {
    ASSERT_THAT(text, HasSubstr(from));
    EXPECT_THAT(
        ParseCheckpointIndex(absl::StrReplaceAll(text, {{from, to}}), path),
        StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(path), HasSubstr(message))));
  };
  expect_refused("\"version\": 1", "\"version\": 2", "version 2");
  expect_refused("\"epoch\": 2", "\"epoch\": -2", "members are missing");
  expect_refused("\"model.safetensors\"", "\"../model.safetensors\"", "plain name");
  expect_refused("\"F32\"", "\"F31\"", "F31");
  expect_refused("\"crc32\": \"", "\"crc32\": \"x", "crc32 is not one");
  // What is still sound in itself.
  for (const auto& [from, to] : std::map<std::string, std::string>{
           {"\"step\": 1", "\"step\": 3"}, {"\"shuffle\": false", "\"shuffle\": true"}}) {
    const std::string edited = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(edited, text);
    EXPECT_THAT(ParseCheckpointIndex(edited, path),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(path), HasSubstr("its checksum does not fit"))));
  }
}

// The index of a checkpoint with one parameter of shape [4, 2].
std::string IndexOfShards(const std::string& shards) {
  return absl::StrCat(
      R"({"format": "oriel-checkpoint", "version": 1, "step": 1,
          "data": {"epoch": 0, "batch": 0, "seed": 0, "shuffle": true, "samples": 1, "global_batch": 1},
          "model": {}, "optimizer_states": {}, "parameters": {"w": {"dtype": "F32", "shape": [4, 2],
          "shards": [)",
      shards, "]}}}");
}
std::string Shard(const std::string& offsets, const std::string& shape) {
  return absl::StrCat(R"({"file": "f", "name": "w", "offsets": [)", offsets, R"(], "shape": [)",
                      shape, "]}");
}

TEST(CheckpointIndexTest, ShardsCoverTheTensorOnce) {
  const std::string top = Shard("0, 0", "2, 2"), bottom = Shard("2, 0", "2, 2");
  ORIEL_EXPECT_OK(ParseCheckpointIndex(IndexOfShards(top + "," + bottom), "i.json").status());
  const std::pair<std::string, const char*> broken[] = {
      {"", "the shards have 0 of 8 elements"},
      {top, "the shards have 4 of 8 elements"},
      {top + "," + Shard("1, 0", "2, 2"), "shards overlap"},
      {top + "," + top, "shards overlap"},
      {top + "," + Shard("2, 0", "3, 2"), "is not inside [4, 2]"},
      {top + "," + Shard("9223372036854775807, 0", "2, 2"), "is not inside"},
      {top + "," + Shard("2, 0", "9223372036854775807, 2"), "is not inside"},
      {top + "," + Shard("2", "2"), "is not inside"},
      {top + "," + Shard("-2, 0", "2, 2"), "needs file, name, offsets and shape"},
      {top + "," + Shard("2, 0", "2, -2"), "needs file, name, offsets and shape"},
      {top + "," + Shard("18446744073709551616, 0", "2, 2"), "needs file, name, offsets"},
      {top + ", {}", "needs file, name, offsets and shape"},
  };
  for (const auto& [shards, message] : broken) {
    EXPECT_THAT(ParseCheckpointIndex(IndexOfShards(shards), "i.json"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("i.json: parameters: w: "), HasSubstr(message))));
  }
}

TEST(CheckpointIndexTest, NestedTooDeeplyIsNoIndex) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 1000000; ++i) text += open;
    EXPECT_THAT(ParseCheckpointIndex(text, "i.json"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not the index")));
  }
}

TEST_F(CheckpointTest, ModelOfTheSameParameters) {
  Save(1);
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(save_dir_));
  ORIEL_EXPECT_OK(reader.CheckModel("renamed", {{"w", F32({2, 3})}, {"frozen", F32({1})}}));
}

TEST_F(CheckpointTest, AnotherModelFile) {
  Save(1);
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(save_dir_));
  plan::Plan plan;
  plan.set_model_name("toy");
  EXPECT_EQ(reader.OtherModelFile(plan), "") << "a plan that was not compiled of a file";
  plan.mutable_provenance()->set_model_path("moved/toy.onnx");
  plan.mutable_provenance()->set_model_sha256("0123");
  EXPECT_EQ(reader.OtherModelFile(plan), "");
  plan.mutable_provenance()->set_model_sha256("4567");
  EXPECT_THAT(reader.OtherModelFile(plan),
              AllOf(HasSubstr("step-00000001 was trained with another model file, toy.onnx (sha256 "
                              "0123..)"),
                    HasSubstr("than the plan is of, moved/toy.onnx (4567..)")));
}

TEST_F(CheckpointTest, AnotherModel) {
  Save(1);
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(save_dir_));
  EXPECT_THAT(
      reader.CheckModel(
          "big",
          {{"w", F32({3, 2})}, {"a", F32({1})}, {"b", F32({1})}, {"c", F32({1})}, {"d", F32({1})}}),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("step-00000001: is a checkpoint of another model: it was saved for "
                               "toy, the plan is for big"),
                     HasSubstr("missing: a, b, c and 1 more"), HasSubstr("extra: frozen"),
                     HasSubstr("different: w (f32[2, 3], the plan has f32[3, 2])"))));
}

TEST_F(CheckpointTest, StateOfAnotherOptimizer) {
  Save(1);
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(save_dir_));
  float target[6];
  EXPECT_THAT(reader.ReadState("w", "exp_avg_sq", F32({2, 3}), WholeBox({2, 3}), target),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("optimizer state exp_avg_sq of w, as it was saved with another")));
}

// A tensor in three shards of different shapes.
TEST_F(CheckpointTest, ShardsAreAssembled) {
  const float left[4] = {1, 2, 4, 5}, top_right[1] = {3}, bottom_right[1] = {6};
  ORIEL_ASSERT_OK(WriteSafetensors(
      folder_ / "a.safetensors",
      std::vector<NamedTensor>{{"left", F32({2, 2}), left}, {"top", F32({1, 1}), top_right}}));
  ORIEL_ASSERT_OK(WriteSafetensors(
      folder_ / "b.safetensors", std::vector<NamedTensor>{{"bottom", F32({1, 1}), bottom_right}}));
  CheckpointIndex index;
  CheckpointTensor& w = index.parameters["w"];
  w.spec = F32({2, 3});
  w.shards = {{"a.safetensors", "left", {{0, 0}, {2, 2}}},
              {"a.safetensors", "top", {{0, 2}, {1, 1}}},
              {"b.safetensors", "bottom", {{1, 2}, {1, 1}}}};
  ORIEL_ASSERT_OK_AND_ASSIGN(std::string text, EncodeCheckpointIndex(index));
  WriteFileBytes(folder_ / "index.json", text);
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(folder_.path()));
  float target[6];
  ORIEL_ASSERT_OK(reader.ReadParameter("w", F32({2, 3}), WholeBox({2, 3}), target));
  EXPECT_THAT(target, ElementsAre(1, 2, 3, 4, 5, 6));

  // A box across all three.
  float middle[2];
  ORIEL_ASSERT_OK(reader.ReadParameter("w", F32({2, 3}), {{1, 1}, {1, 2}}, middle));
  EXPECT_THAT(middle, ElementsAre(5, 6));

  auto expect_refused = [&](const std::string& message) {
    ORIEL_ASSERT_OK_AND_ASSIGN(std::string broken, EncodeCheckpointIndex(index));
    EXPECT_THAT(ParseCheckpointIndex(broken, "index.json"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  w.shards[2].box.start = {0, 2};
  expect_refused("overlap");
  w.shards.pop_back();
  expect_refused("5 of 6 elements");
  w.shards[0].box.start = {0, 2};
  expect_refused("not inside");
}

TEST(FingerprintTest, DependsOnNamesTypesAndShapesOnly) {
  const std::string reference = FingerprintParameters({{"a", F32({2})}, {"b", F32({3})}});
  EXPECT_EQ(FingerprintParameters({{"b", F32({3})}, {"a", F32({2})}}), reference);
  EXPECT_NE(FingerprintParameters({{"a", F32({3})}, {"b", F32({2})}}), reference);
  EXPECT_NE(FingerprintParameters({{"a", F32({2})}}), reference);
  EXPECT_EQ(reference.size(), 16u);
}

TEST_F(CheckpointTest, DiskRefuses) {
  WriteFileBytes(folder_ / "file", "");
  EXPECT_THAT(WriteCheckpoint(folder_ / "file/ckpt", {"toy", "", ""}, progress_, {}, nullptr),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("file/ckpt")));
}

}  // namespace
}  // namespace oriel::runtime
