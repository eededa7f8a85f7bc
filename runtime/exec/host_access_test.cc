#include "runtime/exec/host_access.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

// One buffer on a device, whose addresses mean nothing to the host.
class DeviceBuffer final : public Executor {
 public:
  explicit DeviceBuffer(const TensorSpec& spec)
      : view{spec, reinterpret_cast<void*>(64)}, bytes(spec.bytes(), 0x55) {}

  absl::Status Run(std::string_view, int64_t) override { return absl::OkStatus(); }
  absl::StatusOr<BufferView> Find(plan::BufferKind, std::string_view,
                                  std::string_view) const override {
    return view;
  }
  void* HostMemory(const BufferView&) const override { return nullptr; }
  absl::Status Read(const BufferView&, int64_t offset, void* target, int64_t count) const override {
    largest = std::max(largest, count);
    std::copy_n(bytes.data() + offset, count, static_cast<char*>(target));
    return status;
  }
  absl::Status Write(const BufferView&, int64_t offset, const void* source,
                     int64_t count) override {
    largest = std::max(largest, count);
    std::copy_n(static_cast<const char*>(source), count, bytes.data() + offset);
    return status;
  }
  absl::StatusOr<SegmentProfile> Profile(std::string_view) const override {
    return SegmentProfile();
  }
  const plan::Program& program() const override { return program_; }

  const BufferView view;
  std::vector<char> bytes;
  mutable int64_t largest = 0;  // transfer
  absl::Status status;

 private:
  plan::Program program_;
};

const TensorSpec kLarge = {DType::kI32, {3, 1700, 1000}};  // 20 MB

// The box is in the middle of a larger tensor.
Box LargeBox() { return {{4, 100, 0}, kLarge.shape}; }

int32_t ValueAt(const Box& piece, int64_t index) {
  const int64_t row = piece.start[1] + index / 1000 % piece.size[1];
  const int64_t plane = piece.start[0] + index / 1000 / piece.size[1];
  return static_cast<int32_t>((plane * 10000 + row) * 1000 + index % 1000);
}

TEST(HostAccessTest, LargeBufferOfADeviceGoesInPieces) {
  DeviceBuffer device(kLarge);
  const HostAccess access(device, device.view);
  int64_t pieces = 0;
  ORIEL_ASSERT_OK(access.WritePieces(LargeBox(), [&](const Box& piece, void* data) {
    ++pieces;
    for (int64_t i = 0; i < piece.num_elements(); ++i) {
      static_cast<int32_t*>(data)[i] = ValueAt(piece, i);
    }
    return absl::OkStatus();
  }));
  EXPECT_GT(pieces, 1);
  EXPECT_LE(device.largest, HostAccess::kPieceBytes);
  std::vector<int32_t> whole(kLarge.num_elements()), joined;
  ORIEL_ASSERT_OK(access.Read(whole.data()));
  EXPECT_EQ(whole.front(), ValueAt(LargeBox(), 0));
  EXPECT_EQ(whole.back(), ValueAt(LargeBox(), kLarge.num_elements() - 1));
  device.largest = 0;
  ORIEL_ASSERT_OK(access.ReadPieces(LargeBox(), [&](const Box& piece, const void* data) {
    const auto* values = static_cast<const int32_t*>(data);
    EXPECT_EQ(values[0], ValueAt(piece, 0)) << piece.ToString();
    joined.insert(joined.end(), values, values + piece.num_elements());
    return absl::OkStatus();
  }));
  EXPECT_LE(device.largest, HostAccess::kPieceBytes);
  EXPECT_EQ(joined, whole);
}

TEST(HostAccessTest, WhatIsNotFilledBecomesZeroOnADevice) {
  DeviceBuffer device({DType::kI8, {2, 3}});
  ORIEL_ASSERT_OK(
      HostAccess(device, device.view).WritePieces(WholeBox({2, 3}), [](const Box&, void* data) {
        static_cast<char*>(data)[1] = 7;
        return absl::OkStatus();
      }));
  EXPECT_EQ(device.bytes, (std::vector<char>{0, 7, 0, 0, 0, 0}));
}

TEST(HostAccessTest, MemoryOfTheHostIsUsedAsItIs) {
  std::vector<float> values(6);
  std::iota(values.begin(), values.end(), 1.0f);
  const HostAccess access({DType::kF32, {2, 3}}, values.data());
  std::vector<char> copy;
  ORIEL_ASSERT_OK_AND_ASSIGN(const void* mapped, access.Map(copy));
  EXPECT_EQ(mapped, values.data());
  EXPECT_TRUE(copy.empty());
  ORIEL_ASSERT_OK(access.WritePieces(WholeBox({2, 3}), [&](const Box& piece, void* data) {
    EXPECT_EQ(data, values.data());
    EXPECT_EQ(piece, WholeBox({2, 3}));
    static_cast<float*>(data)[5] = -1;
    return absl::OkStatus();
  }));
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, -1}));
}

// Both lie in one buffer here, the remainders behind the numbers of bf16.
TEST(HostAccessTest, NumbersAndRemaindersAreReadAndWrittenAsOne) {
  class Halves final : public Executor {
   public:
    absl::Status Run(std::string_view, int64_t) override { return absl::OkStatus(); }
    absl::StatusOr<BufferView> Find(plan::BufferKind, std::string_view,
                                    std::string_view) const override {
      return absl::NotFoundError("");
    }
    void* HostMemory(const BufferView& view) const override { return view.data; }
    absl::Status Read(const BufferView& view, int64_t offset, void* target,
                      int64_t count) const override {
      std::memcpy(target, static_cast<const char*>(view.data) + offset, count);
      return absl::OkStatus();
    }
    absl::Status Write(const BufferView& view, int64_t offset, const void* source,
                       int64_t count) override {
      std::memcpy(static_cast<char*>(view.data) + offset, source, count);
      return absl::OkStatus();
    }
    absl::StatusOr<SegmentProfile> Profile(std::string_view) const override {
      return SegmentProfile();
    }
    const plan::Program& program() const override { return program_; }

   private:
    plan::Program program_;
  } executor;
  uint16_t rounded[4] = {};
  int16_t remainders[4] = {};
  const BufferView upper{{DType::kBF16, {2, 2}}, rounded}, lower{{DType::kI16, {2, 2}}, remainders};
  const HostAccess access(executor, upper, lower);
  EXPECT_EQ(access.spec(), (TensorSpec{DType::kF32, {2, 2}}));
  const std::vector<float> values = {1.0f / 3, -1e-30f, 0, 3.4e38f};
  ORIEL_ASSERT_OK(access.WritePieces(WholeBox({2, 2}), [&](const Box& piece, void* data) {
    EXPECT_EQ(piece, WholeBox({2, 2}));
    std::copy(values.begin(), values.end(), static_cast<float*>(data));
    return absl::OkStatus();
  }));
  EXPECT_EQ(rounded[0], 0x3eab);  // of 0x3eaaaaab
  EXPECT_EQ(static_cast<uint16_t>(remainders[0]), 0xaaab);
  std::vector<char> copy;
  ORIEL_ASSERT_OK_AND_ASSIGN(const void* mapped, access.Map(copy));
  EXPECT_EQ(std::memcmp(mapped, values.data(), sizeof(float) * values.size()), 0);
  // A copy on another grid has no remainder: it is only written.
  const HostAccess written(executor, upper, {});
  ORIEL_ASSERT_OK(written.Write(values.data()));
  EXPECT_EQ(written.Map(copy).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(HostAccessTest, ErrorsArePassedOn) {
  DeviceBuffer device({DType::kI8, {6}});
  const HostAccess access(device, device.view);
  const absl::Status refused = absl::OutOfRangeError("refused");
  EXPECT_EQ(access.WritePieces(WholeBox({6}), [&](const Box&, void*) { return refused; }), refused);
  EXPECT_EQ(device.bytes[0], 0x55);
  device.status = absl::InternalError("lost");
  std::vector<char> copy;
  EXPECT_EQ(access.Map(copy).status(), device.status);
  EXPECT_EQ(
      access.ReadPieces(WholeBox({6}), [](const Box&, const void*) { return absl::OkStatus(); }),
      device.status);
}

}  // namespace
}  // namespace oriel::runtime
