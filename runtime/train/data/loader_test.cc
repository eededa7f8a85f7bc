#include "runtime/train/data/loader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/train/data_testing.h"
#include "runtime/train/toy_executor_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const ShardIndex> ReadIndex(const std::string& folder) {
  absl::StatusOr<ShardIndex> index = ShardIndex::Read(folder);
  EXPECT_TRUE(index.ok()) << index.status();
  return std::make_shared<const ShardIndex>(*std::move(index));
}

BatchLayout Layout(int64_t ranks, int64_t rank, int64_t global_batch, int64_t micro_batch) {
  absl::StatusOr<BatchLayout> layout =
      TrainingLayout(MakeToyPlan(ranks, global_batch, micro_batch, 1), rank);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return *layout;
}

// The first value of each x of a microbatch: the sample's number.
std::vector<int64_t> Numbers(const Batch& batch, int64_t microbatch) {
  const std::vector<char>& bytes = batch.data[microbatch][0];
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < bytes.size(); i += 3 * sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    numbers.push_back(static_cast<int64_t>(value));
  }
  return numbers;
}

TEST(BatchLayoutTest, NumbersThatDisagree) {
  plan::Plan plan = MakeToyPlan(2, 8, 2, 1);
  plan.mutable_training()->set_data_parallel(4);
  EXPECT_THAT(TrainingLayout(plan, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("batch sizes disagree")));
  EXPECT_THAT(TrainingLayout(MakeToyPlan(2, 8, 2, 1), 2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no grid with rank 2")));
}

// The axes that cut the inputs' first dimension, in their order, say which samples a rank reads;
// ranks that differ on others read the same.
TEST(BatchLayoutTest, SamplesFollowTheInputsShardings) {
  plan::Plan plan = MakeToyPlan(4, 8, 2, 1);
  *plan.mutable_grids(0) = MakeGrid({2, 3, 2});
  plan.set_world_size(12);
  plan.mutable_programs(0)->set_rank_count(12);
  for (plan::Buffer& buffer : *plan.mutable_programs(0)->mutable_buffers()) {
    if (buffer.kind() == plan::INPUT) SplitBySamples(plan.grids(0), {"a2", "a0"}, &buffer);
  }
  for (int64_t rank = 0; rank < 12; ++rank) {
    const int64_t i0 = rank / 6, i1 = rank / 2 % 3, i2 = rank % 2;
    ORIEL_ASSERT_OK_AND_ASSIGN(BatchLayout layout, TrainingLayout(plan, rank));
    EXPECT_EQ(layout.data_parallel, 4);
    EXPECT_EQ(layout.data_rank, i2 * 2 + i0);
    EXPECT_EQ(layout.first_copy, i1 == 0);
  }
  plan::Buffer* labels = nullptr;
  for (plan::Buffer& buffer : *plan.mutable_programs(0)->mutable_buffers()) {
    if (buffer.kind() == plan::INPUT && buffer.ref() == "labels") labels = &buffer;
  }
  *labels->mutable_sharding() = MakeSharding({{"a0", "a2"}});
  EXPECT_THAT(TrainingLayout(plan, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the samples of input 'x' are split over the axes [a2, a0], "
                                 "those of 'labels' over [a0, a2]")));
  *labels->mutable_sharding() = MakeSharding({{"a2", "a0"}, {"a1"}});
  EXPECT_THAT(TrainingLayout(plan, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 'labels' is split along dimension 1, not by samples")));
}

// 4 ranks that use x, 2 that use the labels, 3 that use neither; 4 samples per microbatch.
TEST(BatchLayoutTest, GridsCutAMicrobatchIntoTheirOwnShares) {
  plan::Plan plan = MakeTwoGridToyPlan(4, 2, 16, 2, 1);
  AppendGrid(PlanBuilder(3).plan(), &plan);
  for (int64_t rank = 0; rank < 9; ++rank) {
    ORIEL_ASSERT_OK_AND_ASSIGN(BatchLayout layout, TrainingLayout(plan, rank));
    const int64_t shares = rank < 4 ? 4 : rank < 6 ? 2 : 1;
    const int64_t share = rank < 4 ? rank : rank < 6 ? rank - 4 : 0;
    EXPECT_EQ(layout.global_batch(), 16);
    EXPECT_EQ(layout.microbatches, 4);
    EXPECT_EQ(layout.data_parallel, shares);
    EXPECT_EQ(layout.first_place(1), 4 + share * 4 / shares);
    EXPECT_EQ(layout.first_copy, rank < 7);
    EXPECT_EQ(layout.inputs[0].used, rank < 4);
    EXPECT_EQ(layout.inputs[1].used, rank == 4 || rank == 5);
    EXPECT_THAT(layout.inputs[0].sample.shape, ElementsAre(3));
    EXPECT_THAT(layout.inputs[0].microbatch.shape, ElementsAre(4 / shares, 3));
  }
  plan.mutable_training()->set_micro_batch(3);
  plan.mutable_training()->set_global_batch(24);
  EXPECT_THAT(TrainingLayout(plan, 0), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("the inputs are split over 4")));
}

// Several rows of an input per sample keep their dimension.
TEST(BatchLayoutTest, RowsPerSample) {
  plan::Plan plan = MakeToyPlan(1, 2, 2, 1);
  plan.mutable_inputs(0)->mutable_microbatch()->set_shape(0, 8);
  ORIEL_ASSERT_OK_AND_ASSIGN(BatchLayout layout, TrainingLayout(plan, 0));
  EXPECT_THAT(layout.inputs[0].sample.shape, ElementsAre(4, 3));
  EXPECT_THAT(layout.inputs[1].sample.shape, ElementsAre(2));
  plan.mutable_inputs(0)->mutable_microbatch()->set_shape(0, 3);
  EXPECT_THAT(TrainingLayout(plan, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input x is f32[3, 3]")));
}

class LoaderTest : public ::testing::Test {
 protected:
  // The samples of the first batches, in the order of their places, read by all ranks.
  std::vector<std::vector<int64_t>> Collect(int64_t ranks, int64_t micro_batch, int64_t batches,
                                            const Loader::Options& options) {
    std::vector<std::vector<int64_t>> collected(batches, std::vector<int64_t>(8));
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const BatchLayout layout = Layout(ranks, rank, 8, micro_batch);
      absl::StatusOr<std::unique_ptr<Loader>> loader = Loader::Create(index_, layout, options);
      EXPECT_TRUE(loader.ok()) << loader.status();
      for (int64_t b = 0; b < batches; ++b) {
        absl::StatusOr<std::unique_ptr<Batch>> batch = (*loader)->Next();
        EXPECT_TRUE(batch.ok()) << batch.status();
        for (int64_t m = 0; m < layout.microbatches; ++m) {
          const std::vector<int64_t> numbers = Numbers(**batch, m);
          EXPECT_EQ(numbers, (*batch)->samples[m]);
          std::copy(numbers.begin(), numbers.end(), collected[b].begin() + layout.first_place(m));
        }
      }
    }
    return collected;
  }

  void SetUp() override {
    WriteCountingShards(folder_ / "train", 35, 10);
    index_ = ReadIndex(folder_ / "train");
  }

  TempFolder folder_;
  std::shared_ptr<const ShardIndex> index_;
};

// 35 samples make 4 batches of 8; nine batches reach into the third epoch.
TEST_F(LoaderTest, BatchesDoNotDependOnRanksOrMicrobatches) {
  Loader::Options options;
  options.seed = 3;
  const auto reference = Collect(1, 8, 9, options);
  EXPECT_EQ(Collect(1, 2, 9, options), reference);
  EXPECT_EQ(Collect(2, 4, 9, options), reference);
  EXPECT_EQ(Collect(4, 1, 9, options), reference);
  EXPECT_EQ(Collect(4, 2, 9, options), reference);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::set<int64_t> seen;
    for (int64_t b = 0; b < 4; ++b) {
      seen.insert(reference[epoch * 4 + b].begin(), reference[epoch * 4 + b].end());
    }
    EXPECT_EQ(seen.size(), 32u);
  }
  options.seed = 4;
  EXPECT_NE(Collect(1, 8, 9, options), reference);
}

TEST_F(LoaderTest, ResumesAtAnyPosition) {
  Loader::Options options;
  const auto all = Collect(2, 2, 9, options);
  options.start = {1, 2};
  EXPECT_EQ(Collect(2, 2, 3, options), (std::vector<std::vector<int64_t>>{all[6], all[7], all[8]}));
}

TEST_F(LoaderTest, WithoutShuffle) {
  Loader::Options options;
  options.shuffle = false;
  EXPECT_THAT(Collect(2, 2, 2, options)[1], ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
}

// A rank that uses no input knows which samples a batch holds, but opens no shard.
TEST_F(LoaderTest, WhatIsNotUsedIsNotRead) {
  plan::Plan plan = MakeTwoGridToyPlan(1, 2, 8, 4, 1);
  AppendGrid(PlanBuilder(1).plan(), &plan);
  const auto first = [&](int64_t rank) -> absl::StatusOr<std::unique_ptr<Batch>> {
    Loader::Options options;
    options.shuffle = options.drop_last = false;
    options.start = {0, 4};
    ORIEL_ASSIGN_OR_RETURN(BatchLayout layout, TrainingLayout(plan, rank));
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Loader> loader,
                           Loader::Create(index_, std::move(layout), options));
    return loader->Next();
  };
  ORIEL_ASSERT_OK_AND_ASSIGN(auto labels, first(1));
  EXPECT_THAT(labels->samples[0], ElementsAre(32, 33));
  EXPECT_TRUE(labels->data[0][0].empty());
  EXPECT_EQ(labels->data[0][1].size(), 2 * 2 * sizeof(int64_t));
  ORIEL_ASSERT_OK_AND_ASSIGN(auto x, first(0));
  EXPECT_EQ(x->data[0][0].size(), 4 * 3 * sizeof(float));
  EXPECT_TRUE(x->data[0][1].empty());
  std::filesystem::remove_all(folder_ / "train");
  EXPECT_THAT(first(0), StatusIs(absl::StatusCode::kNotFound, HasSubstr("shard")));
  ORIEL_ASSERT_OK_AND_ASSIGN(auto nothing, first(3));
  EXPECT_THAT(nothing->samples[0], ElementsAre(32, 33, 34, -1));
  EXPECT_THAT(nothing->samples[1], ElementsAre(-1, -1, -1, -1));
  EXPECT_EQ(nothing->position, x->position);
  EXPECT_TRUE(nothing->data[0][0].empty() && nothing->data[0][1].empty());
}

TEST_F(LoaderTest, EvaluationPadsWithMaskedLabels) {
  Loader::Options options;
  options.shuffle = options.drop_last = false;
  options.start = {0, 4};
  options.batches = 1;
  ORIEL_ASSERT_OK_AND_ASSIGN(auto loader, Loader::Create(index_, Layout(1, 0, 8, 8), options));
  ORIEL_ASSERT_OK_AND_ASSIGN(auto batch, loader->Next());
  EXPECT_THAT(batch->samples[0], ElementsAre(32, 33, 34, -1, -1, -1, -1, -1));
  EXPECT_THAT(Numbers(*batch, 0), ElementsAre(32, 33, 34, 34, 34, 34, 34, 34));
  int64_t labels[16];
  std::memcpy(labels, batch->data[0][1].data(), sizeof labels);
  EXPECT_EQ(labels[4], 34);
  EXPECT_EQ(labels[6], -100);
  EXPECT_EQ(labels[15], -100);
  EXPECT_THAT(loader->Next(), StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("no more")));
}

TEST_F(LoaderTest, FewerSamplesThanABatch) {
  EXPECT_THAT(Loader::Create(index_, Layout(1, 0, 40, 8), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("35 samples don't make one batch of 40")));
}

TEST_F(LoaderTest, PositionBeyondTheEpoch) {
  Loader::Options options;
  options.start = {0, 4};
  EXPECT_THAT(Loader::Create(index_, Layout(1, 0, 8, 8), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no batch 4")));
}

// Shards whose second sample is not what the plan expects.
class BadSampleTest : public ::testing::Test {
 protected:
  void ExpectError(const TarMembers& bad_sample, const std::string& message) {
    TarMembers members = {{"0.x.npy", x_}, {"0.labels.npy", labels_}};
    members.insert(members.end(), bad_sample.begin(), bad_sample.end());
    WriteTar(folder_ / "shard-0003.tar", members);
    Loader::Options options;
    options.shuffle = false;
    auto loader = Loader::Create(ReadIndex(folder_.path()), Layout(1, 0, 1, 1), options);
    ORIEL_ASSERT_OK(loader);
    ORIEL_EXPECT_OK((*loader)->Next());
    for (int repeat = 0; repeat < 2; ++repeat) {
      absl::Status status = (*loader)->Next().status();
      EXPECT_EQ(std::string(status.message()),
                absl::StrCat(folder_ / "shard-0003.tar", ": sample 000123: ", message));
    }
  }

  TempFolder folder_;
  const std::string x_ = NpyBytes({3}, std::vector<float>{1, 2, 3});
  const std::string labels_ = NpyBytes({2}, std::vector<int64_t>{1, 2});
};

TEST_F(BadSampleTest, Shape) {
  ExpectError({{"000123.x.npy", NpyBytes({3, 1}, std::vector<float>{1, 2, 3})},
               {"000123.labels.npy", labels_}},
              "x has shape [3, 1], the plan expects [3] (recipe inputs / model input x)");
}

TEST_F(BadSampleTest, DType) {
  ExpectError(
      {{"000123.x.npy", x_}, {"000123.labels.npy", NpyBytes({2}, std::vector<float>{1, 2})}},
      "labels has dtype f32, the plan expects i64 (recipe inputs / model input labels); "
      "that conversion would lose values");
}

TEST_F(BadSampleTest, MissingMember) {
  ExpectError({{"000123.x.npy", x_}, {"000123.label.npy", labels_}},
              "has no labels.npy, which the plan expects (recipe inputs / model input labels); "
              "the sample holds x, label");
}

TEST_F(BadSampleTest, TruncatedArray) {
  ExpectError({{"000123.x.npy", x_.substr(0, x_.size() - 4)}, {"000123.labels.npy", labels_}},
              "x is truncated: f32[3] does not take the 8 bytes of data");
}

TEST_F(BadSampleTest, NotAnArray) {
  ExpectError({{"000123.x.npy", "JFIF"}, {"000123.labels.npy", labels_}}, "x is not an .npy array");
}

// Bits of the samples' places, in whichever microbatch and on whichever rank they are; no member of
// the data has them.
TEST(SampleBitsTest, AreOfPlacesAndNotOfShares) {
  TempFolder folder;
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 8; ++i) {
    members.push_back({std::to_string(i) + ".x.npy", NpyBytes({3}, std::vector<float>(3))});
    members.push_back({std::to_string(i) + ".labels.npy", NpyBytes({2}, std::vector<int64_t>(2))});
  }
  WriteTar(folder / "s.tar", members);
  const auto read = [&](int64_t ranks, int64_t micro_batch, bool is_training) {
    std::vector<int64_t> bits(8);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      BatchLayout layout = Layout(ranks, rank, 4, micro_batch);
      BatchInput input;
      input.name = input.member = "bits";
      input.microbatch = {DType::kI64, {micro_batch}};
      input.sample = {DType::kI64, {}};
      input.sample_bits = true;
      layout.inputs.push_back(input);
      Loader::Options options;
      options.seed = 3;
      options.is_training = is_training;
      auto loader = Loader::Create(ReadIndex(folder.path()), layout, options);
      EXPECT_TRUE(loader.ok()) << loader.status();
      for (int64_t b = 0; b < 2; ++b) {
        auto batch = (*loader)->Next();
        EXPECT_TRUE(batch.ok()) << batch.status();
        for (int64_t m = 0; m < layout.microbatches; ++m) {
          std::memcpy(bits.data() + b * 4 + layout.first_place(m), (*batch)->data[m].back().data(),
                      micro_batch * sizeof(int64_t));
        }
      }
    }
    return bits;
  };
  const std::vector<int64_t> bits = read(1, 4, true);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(bits[i], SampleBits(3, 0, i));
  EXPECT_EQ(read(2, 1, true), bits);
  EXPECT_EQ(read(1, 2, true), bits);
  EXPECT_EQ(read(1, 2, false), std::vector<int64_t>(8, kNoSampleBits));
}

// How many images a sample has is known from headers, however long; a rank that only counts them
// refuses what one that reads them would.
TEST(SampleReaderTest, ImagesAreCountedWithoutBeingRead) {
  TempFolder folder;
  const auto images = [](int64_t count) {
    return NpyBytes({count, 3}, std::vector<float>(count * 3));
  };
  std::string long_header = images(2);
  long_header.insert(10, std::string(3000, ' '));
  const int bytes = static_cast<unsigned char>(long_header[8]) + 3000;
  long_header[8] = static_cast<char>(bytes & 0xff);
  long_header[9] = static_cast<char>(bytes >> 8);
  const std::string text = NpyBytes({1}, std::vector<int64_t>{0});
  WriteTar(folder / "s.tar", {{"0.pixels.npy", images(1)},
                              {"1.text.npy", text},
                              {"2.pixels.npy", long_header},
                              {"3.pixels.npy", images(3)},
                              {"4.pixels.npy", images(2)},
                              {"4.sizes.npy", images(1)}});
  BatchInput pixels, sizes, count;
  pixels.name = pixels.member = "pixels";
  sizes.name = sizes.member = "sizes";
  pixels.sample = sizes.sample = {DType::kF32, {2, 3}};
  pixels.images = sizes.images = 2;
  pixels.image_rows = sizes.image_rows = 1;
  pixels.image_row = sizes.image_row = {3};
  count.name = pixels.counted_by = sizes.counted_by = "count";
  count.image_count = true;
  count.sample = {DType::kI64, {}};
  SampleReader both(ReadIndex(folder.path()), {pixels, count});
  for (const int64_t expected : {1, 0, 2}) {
    const int64_t sample = expected == 1 ? 0 : expected == 0 ? 1 : 2;
    int64_t counted = -1, read = -1;
    float values[6];
    ORIEL_ASSERT_OK(both.Read(sample, {nullptr, reinterpret_cast<char*>(&counted)}));
    ORIEL_ASSERT_OK(
        both.Read(sample, {reinterpret_cast<char*>(values), reinterpret_cast<char*>(&read)}));
    EXPECT_EQ(counted, expected);
    EXPECT_EQ(read, expected);
  }
  int64_t counted = -1;
  char* target = reinterpret_cast<char*>(&counted);
  EXPECT_THAT(both.Read(3, {nullptr, target}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("pixels has shape [3, 3], the plan expects up to 2 images")));
  SampleReader three(ReadIndex(folder.path()), {pixels, sizes, count});
  EXPECT_THAT(three.Read(4, {nullptr, nullptr, target}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 2 images in pixels, but 1 in sizes")));
}

// A leading 1 for the sample and other number types are fine.
TEST_F(BadSampleTest, WhatConvertsIsTaken) {
  const uint8_t x[3] = {1, 2, 255};
  const int32_t labels[2] = {4, -100};
  WriteTar(folder_ / "s.tar", {{"0.x.npy", NpyBytes({DType::kU8, {1, 3}}, x)},
                               {"0.labels.npy", NpyBytes({DType::kI32, {2}}, labels)}});
  ORIEL_ASSERT_OK_AND_ASSIGN(auto loader,
                             Loader::Create(ReadIndex(folder_.path()), Layout(1, 0, 1, 1), {}));
  ORIEL_ASSERT_OK_AND_ASSIGN(auto batch, loader->Next());
  float read[3];
  std::memcpy(read, batch->data[0][0].data(), sizeof read);
  EXPECT_THAT(read, ElementsAre(1, 2, 255));
}

}  // namespace
}  // namespace oriel::runtime
