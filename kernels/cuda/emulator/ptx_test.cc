// The emulator's PTX does what NVIDIA's manual ("PTX ISA") says of each instruction.
#include "kernels/cuda/emulator/ptx.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/block.h"
#include "runtime/base/status_testing.h"

namespace oriel::kernels::cuda::emulator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kHeader[] =
    "//\n// Generated\n//\n.version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 .ptr .global .align 16 k_x,\n .param .u64 k_y)\n"
    ".maxntid 64, 1, 1\n{\n"
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n";

std::string Entry(const std::string& body) { return absl::StrCat(kHeader, body, "ret;\n}\n"); }

absl::Status RunEntry(const std::string& text, const void* x, void* y, unsigned threads = 1,
                      unsigned blocks = 1) {
  absl::StatusOr<std::unique_ptr<PtxModule>> module = PtxModule::Load(text);
  if (!module.ok()) return module.status();
  const EmulatedKernel* kernel = (*module)->Find("k");
  if (kernel == nullptr) return absl::NotFoundError("k");
  void* arguments[] = {&x, &y};
  return kernel->run({{blocks, 1, 1}, {threads, 1, 1}}, arguments);
}

// What an instruction makes of %r1 and %r2 (of %d1 and %d2 for types of 8 bytes) in %r3 or %d3.
template <typename Result, typename T>
Result Of(const std::string& instruction, T first, T second = T()) {
  constexpr int kFrom = sizeof(T), kTo = sizeof(Result);
  const char from = kFrom == 8 ? 'd' : kFrom == 2 ? 'h' : 'r';
  const char to = kTo == 8 ? 'd' : kTo == 2 ? 'h' : 'r';
  const T x[] = {first, second};
  Result y{};
  const std::string body =
      absl::StrCat("ld.param.b64 %d7, [k_x]; ld.param.b64 %d8, [k_y]; cvta.to.global.u64 %d7, %d7;",
                   "ld.global.b", 8 * kFrom, " %", std::string(1, from), "1, [%d7];", "ld.global.b",
                   8 * kFrom, " %", std::string(1, from), "2, [%d7+", kFrom, "];", instruction,
                   "st.global.b", 8 * kTo, " [%d8], %", std::string(1, to), "3;");
  ORIEL_EXPECT_OK(RunEntry(Entry(body), x, &y));
  return y;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

TEST(PtxTest, WholeNumbersWrapAround) {
  EXPECT_EQ((Of<int32_t>("add.s32 %r3, %r1, %r2;", 0x7fffffff, 1)), INT32_MIN);
  EXPECT_EQ((Of<uint32_t>("sub.s32 %r3, %r1, %r2;", 1u, 2u)), 0xffffffffu);
  EXPECT_EQ((Of<uint32_t>("mul.lo.s32 %r3, %r1, %r2;", 0x10001u, 0x10001u)), 0x20001u);
  EXPECT_EQ((Of<uint32_t>("mul.hi.u32 %r3, %r1, %r2;", 0x80000000u, 6u)), 3u);
  EXPECT_EQ((Of<int32_t>("mul.hi.s32 %r3, %r1, %r2;", -1, 1)), -1);
  EXPECT_EQ((Of<int64_t>("mul.wide.s32 %d3, %r1, %r2;", -3, 1 << 30)), -3 * (int64_t{1} << 30));
  EXPECT_EQ((Of<uint64_t>("mul.wide.u32 %d3, %r1, %r2;", ~0u, 2u)), 0x1fffffffeu);
  EXPECT_EQ((Of<uint64_t>("mul.hi.u64 %d3, %d1, %d2;", ~uint64_t{0}, uint64_t{4})), 3u);
  EXPECT_EQ((Of<uint32_t>("mov.b32 %r4, 7; mad.lo.s32 %r3, %r1, %r2, %r4;", 5u, 6u)), 37u);
  EXPECT_EQ((Of<int32_t>("div.s32 %r3, %r1, %r2;", -7, 2)), -3);
  EXPECT_EQ((Of<int32_t>("rem.s32 %r3, %r1, %r2;", -7, 2)), -1);
  EXPECT_EQ((Of<int32_t>("abs.s32 %r3, %r1;", -7)), 7);
  EXPECT_EQ((Of<int64_t>("neg.s64 %d3, %d1;", int64_t{7})), -7);
  EXPECT_EQ((Of<int32_t>("min.s32 %r3, %r1, %r2;", -7, 2)), -7);
  EXPECT_EQ((Of<uint32_t>("max.u32 %r3, %r1, %r2;", ~0u, 2u)), ~0u);
  EXPECT_EQ((Of<uint16_t>("add.s16 %h3, %h1, %h2;", uint16_t{0xffff}, uint16_t{2})), 1);
  EXPECT_EQ((Of<uint16_t>("not.b16 %h3, %h1;", uint16_t{0xf0f0})), 0x0f0f);
  EXPECT_EQ((Of<uint32_t>("and.b32 %r3, %r1, -16;", 0x12345678u)), 0x12345670u);
  EXPECT_EQ((Of<uint32_t>("xor.b32 %r3, %r1, %r2;", 0xffu, 0x0fu)), 0xf0u);
}

TEST(PtxTest, ShiftsByTheWidthOrMore) {
  EXPECT_EQ((Of<uint32_t>("shl.b32 %r3, %r1, %r2;", 1u, 31u)), 0x80000000u);
  EXPECT_EQ((Of<uint32_t>("shl.b32 %r3, %r1, %r2;", 1u, 32u)), 0u);
  EXPECT_EQ((Of<uint32_t>("shr.u32 %r3, %r1, %r2;", ~0u, 40u)), 0u);
  EXPECT_EQ((Of<int32_t>("shr.s32 %r3, %r1, %r2;", -8, 1)), -4);
  EXPECT_EQ((Of<int32_t>("shr.s32 %r3, %r1, %r2;", -8, 99)), -1);
  EXPECT_EQ((Of<uint16_t>("shr.u16 %h3, %h1, 4;", uint16_t{0xf000})), 0x0f00);
}

TEST(PtxTest, FieldsOfBits) {
  EXPECT_EQ((Of<uint32_t>("bfe.u32 %r3, %r1, 8, 12;", 0x12345678u)), 0x456u);
  EXPECT_EQ((Of<uint32_t>("bfe.u32 %r3, %r1, 16, 99;", 0x92345678u)), 0x9234u);
  EXPECT_EQ((Of<uint32_t>("bfe.u32 %r3, %r1, 40, 4;", ~0u)), 0u);
  EXPECT_EQ((Of<int32_t>("bfe.s32 %r3, %r1, 4, 8;", 0xf80)), -8);
  EXPECT_EQ((Of<int32_t>("bfe.s32 %r3, %r1, 40, 4;", -1)), -1);
  EXPECT_EQ((Of<int32_t>("bfe.s32 %r3, %r1, 4, 0;", -1)), 0);
  EXPECT_EQ((Of<uint64_t>("bfe.u64 %d3, %d1, 32, 16;", uint64_t{0x123456789abcdef0})), 0x5678u);
}

TEST(PtxTest, FloatsRoundAndKeepTheirNan) {
  EXPECT_EQ((Of<float>("add.rn.f32 %r3, %r1, %r2;", 1.0f, 0x1p-24f)), 1.0f);
  EXPECT_EQ((Of<float>("div.rn.f32 %r3, %r1, %r2;", 1.0f, 3.0f)), 1.0f / 3);
  EXPECT_EQ((Of<double>("mul.rn.f64 %d3, %d1, %d2;", 0.1, 3.0)), 0.1 * 3.0);
  EXPECT_EQ((Of<float>("sqrt.rn.f32 %r3, %r1;", 2.0f)), std::sqrt(2.0f));
  EXPECT_EQ((Of<float>("rcp.rn.f32 %r3, %r1;", 3.0f)), 1.0f / 3);
  EXPECT_EQ((Of<float>("mov.b32 %r3, 0f3FC00000;", 0.0f)), 1.5f);
  EXPECT_EQ((Of<float>("max.f32 %r3, %r1, %r2;", kNan, 2.0f)), 2.0f);
  EXPECT_TRUE(std::isnan(Of<float>("max.NaN.f32 %r3, %r1, %r2;", kNan, 2.0f)));
  EXPECT_TRUE(std::isnan(Of<float>("min.f32 %r3, %r1, %r2;", kNan, kNan)));
  EXPECT_FALSE(std::signbit(Of<float>("max.f32 %r3, %r1, %r2;", -0.0f, 0.0f)));
  EXPECT_TRUE(std::signbit(Of<float>("min.f32 %r3, %r1, %r2;", 0.0f, -0.0f)));
  EXPECT_EQ((Of<float>("abs.f32 %r3, %r1;", -2.0f)), 2.0f);
}

TEST(PtxTest, Conversions) {
  EXPECT_EQ((Of<uint32_t>("cvt.u32.u16 %r3, %h1;", uint16_t{0xfedc})), 0xfedcu);
  EXPECT_EQ((Of<int32_t>("cvt.s32.s16 %r3, %h1;", int16_t{-5})), -5);
  EXPECT_EQ((Of<int32_t>("cvt.s32.s8 %r3, %r1;", 0xff)), -1);
  EXPECT_EQ((Of<uint16_t>("cvt.u16.u32 %h3, %r1;", 0x12345678u)), 0x5678);
  EXPECT_EQ((Of<float>("cvt.rn.f32.f64 %r3, %d1;", 0.1)), 0.1f);
  EXPECT_EQ((Of<double>("cvt.f64.f32 %d3, %r1;", 0.1f)), double{0.1f});
  EXPECT_EQ((Of<float>("cvt.rn.f32.s32 %r3, %r1;", 16777217)), 16777216.0f);
  EXPECT_EQ((Of<int32_t>("cvt.rzi.s32.f32 %r3, %r1;", -2.9f)), -2);
  EXPECT_EQ((Of<int32_t>("cvt.rzi.s32.f32 %r3, %r1;", kInfinity)), INT32_MAX);
  EXPECT_EQ((Of<uint32_t>("cvt.rzi.u32.f32 %r3, %r1;", -3.0f)), 0u);
  EXPECT_EQ((Of<int32_t>("cvt.rzi.s32.f32 %r3, %r1;", kNan)), 0);
}

TEST(PtxTest, Comparisons) {
  const auto holds = [](const std::string& compare, float x, float y) {
    return Of<uint32_t>(
               absl::StrCat("setp.", compare, ".f32 %p1, %r1, %r2; selp.b32 %r3, 1, 0, %p1;"), x,
               y) == 1;
  };
  for (const float other : {1.0f, kNan}) {
    EXPECT_EQ(holds("lt", 0, other), other == 1);
    EXPECT_EQ(holds("ne", 0, other), other == 1);
    EXPECT_TRUE(holds("ltu", 0, other));
    EXPECT_TRUE(holds("neu", 0, other));
    EXPECT_EQ(holds("geu", 0, other), other != 1);
    EXPECT_EQ(holds("num", 0, other), other == 1);
    EXPECT_EQ(holds("nan", 0, other), other != 1);
  }
  EXPECT_EQ((Of<uint32_t>("setp.lt.s32 %p1, %r1, %r2; setp.hi.and.u32 %p2, %r1, %r2, %p1;"
                          "selp.b32 %r3, 5, 6, %p2;",
                          -1, 1)),
            5u);
  EXPECT_EQ((Of<uint32_t>("setp.eq.s32 %p1, %r1, %r2; not.pred %p2, %p1; and.pred %p3, %p1, %p2;"
                          "selp.b32 %r3, 5, 6, %p3;",
                          1, 1)),
            6u);
}

TEST(PtxTest, RegistersHaveParts) {
  EXPECT_EQ((Of<uint32_t>("mov.b32 {%h1, %h2}, %r1; mov.b32 %r3, {%h2, %h1};", 0x12345678u)),
            0x56781234u);
  EXPECT_EQ((Of<uint32_t>("mov.b32 {_, %h2}, %r1; cvt.u32.u16 %r3, %h2;", 0x12345678u)), 0x1234u);
}

TEST(PtxTest, BytesArePutInOrder) {
  EXPECT_EQ((Of<uint32_t>("prmt.b32 %r3, %r1, %r2, 0x5410U;", 0x12345678u, 0x9abcdef0u)),
            0xdef05678u);
  EXPECT_EQ((Of<uint32_t>("prmt.b32 %r3, %r1, %r2, 0xc730;", 0x12345678u, 0x9abcdef0u)),
            0xff9a1278u);
}

TEST(PtxTest, NegativeImmediatesHaveTheirTypesWidth) {
  EXPECT_EQ((Of<uint32_t>("setp.eq.s32 %p1, %r1, %r1; selp.b32 %r4, -1, 0, %p1;"
                          "prmt.b32 %r3, %r4, 0, 0x4444;",
                          1u)),
            0u);
  EXPECT_EQ((Of<uint32_t>("mov.pred %p1, -1; not.pred %p2, %p1; selp.b32 %r3, 5, 6, %p2;", 1u)),
            6u);
  EXPECT_EQ((Of<int32_t>("div.s32 %r3, %r1, %r2;", INT32_MIN, -1)), INT32_MIN);
}

TEST(PtxTest, VectorsMoveTogether) {
  alignas(16) const uint32_t x[] = {1, 2, 3, 4};
  alignas(16) uint32_t y[4] = {};
  const std::string body =
      "ld.param.b64 %d1, [k_x]; ld.param.b64 %d2, [k_y];"
      "ld.global.nc.v4.b32 {%r1, %r2, %r3, %r4}, [%d1];"
      "st.global.v4.b32 [%d2+0], {%r4, %r3, %r2, %r1};";
  ORIEL_ASSERT_OK(RunEntry(Entry(body), x, y));
  EXPECT_THAT(y, ElementsAre(4, 3, 2, 1));
  const absl::Status status = RunEntry(Entry(body), x, y + 1);
  EXPECT_THAT(std::string(status.message()), HasSubstr("an address that is no multiple of 16"));
}

// Threads leave what they have in shared memory, and take a neighbour's.
constexpr char kRotate[] =
    ".shared .align 4 .b8 buffer[256];\n"
    "ld.param.b64 %d1, [k_x]; ld.param.b64 %d2, [k_y];\n"
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r6, %ntid.x;\n"
    "mad.lo.s32 %r3, %r2, %r6, %r1; mul.wide.u32 %d3, %r3, 4;\n"
    "add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3; ld.global.b32 %r4, [%d1];\n"
    "mul.wide.u32 %d4, %r1, 4; mov.b64 %d5, buffer; add.s64 %d4, %d5, %d4;\n"
    "st.shared.b32 [%d4], %r4; bar.sync 0;\n"
    "setp.eq.s32 %p1, %r1, 0; @%p1 bra $FIRST;\n"
    "ld.shared.b32 %r5, [%d4+-4]; bra.uni $DONE;\n"
    "$FIRST: ld.shared.b32 %r5, [buffer+252];\n"
    "$DONE: st.global.b32 [%d2], %r5;\n";

TEST(PtxTest, ThreadsMeetAtBarriers) {
  std::vector<uint32_t> x(128), y(128);
  std::iota(x.begin(), x.end(), 0);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SetSeed(seed);
    ORIEL_ASSERT_OK(RunEntry(Entry(kRotate), x.data(), y.data(), 64, 2));
    for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(y[i], i % 64 == 0 ? i + 63 : i - 1);
  }
}

TEST(PtxTest, SharedMemoryHasAnEnd) {
  uint32_t x = 0, y = 0;
  const absl::Status status = RunEntry(
      Entry(".shared .align 4 .b8 b[8]; mov.b32 %r1, 0; st.shared.b32 [b+8], %r1;"), &x, &y);
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte 8 of 8 of shared memory"));
}

TEST(PtxTest, BlocksHaveAsManyThreadsAsTheEntryTakes) {
  EXPECT_THAT(std::string(RunEntry(Entry(""), nullptr, nullptr, 65).message()),
              HasSubstr("where it takes up to 64"));
}

TEST(PtxTest, WhatIsNotUnderstoodIsNamed) {
  const struct {
    const char* body;
    const char* message;
  } cases[] = {
      {"fma.rn.f32 %r3, %r1, %r2, %r3;",
       "line 12 of PTX: fma.rn.f32 of 4 operands is not emulated"},
      {"div.full.f32 %r3, %r1, %r2;", "div.full.f32 of 3 operands is not emulated"},
      {"cvt.f32.f64 %r3, %d1;", "cvt.f32.f64 of 2 operands is not emulated"},
      {"add.s32 %r3, %r1;", "add.s32 of 2 operands is not emulated"},
      {"ld.global.v2.b32 %r1, [%d1];", "ld.global.v2.b32 of 2 operands is not emulated"},
      {"ld.local.b32 %r1, [%d1];", "is not emulated"},
      {"ld.global.s16 %r1, [%d1];", "is not emulated"},
      {"ld.global.b32 %r1, [%d1-4];", "']' expected, not '-4'"},
      {"add.f32 %r3, %r1, %r2;", "add.f32 of 3 operands is not emulated"},  // may be contracted
      {"cvt.rzi.s64.f32 %d3, %r1;", "is not emulated"},
      {"ld.param.b64 %d1, [k_x+8];", "is not emulated"},
      {"bar.sync 1;", "is not emulated"},
      {"mov.b32 %r9, %r1;", "has no register '%r9'"},
      {"ld.param.b64 %d1, [k_z];", "has no parameter 'k_z'"},
      {"bra $NOWHERE;", "a jump to nowhere"},
      {"add.s32 %r3, %r1, (;", "'(' is no operand"},
  };
  for (const auto& [body, message] : cases) {
    EXPECT_THAT(std::string(PtxModule::Load(Entry(body)).status().message()), HasSubstr(message));
  }
  EXPECT_THAT(std::string(PtxModule::Load(kHeader).status().message()),
              HasSubstr("the body of an entry has no end"));
  EXPECT_THAT(std::string(PtxModule::Load(".func f() {}").status().message()),
              HasSubstr("'.func' is not emulated"));
  EXPECT_THAT(std::string(PtxModule::Load("an image").status().message()),
              HasSubstr("line 1 of PTX: 'an' is not emulated"));
}

}  // namespace
}  // namespace oriel::kernels::cuda::emulator
