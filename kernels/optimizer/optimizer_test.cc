#include "kernels/optimizer/optimizer.h"

#include <cmath>

#include "gmock/gmock.h"
#include "kernels/testing.h"
#include "runtime/base/float16.h"
#include "runtime/base/remainder.h"

namespace oriel::kernels {
namespace {

using runtime::BFloat16ToFloat;
using runtime::RemainderOf;
using runtime::RoundedAway;
using testing::Attributes;
using testing::ExpectClose;
using testing::kFloats;
using testing::RunKernel;
using testing::Tensor;
using Values = std::vector<double>;

TEST(OptimizerTest, SumSquaresOfSeveralTensors) {
  for (DType dtype : kFloats) {
    const std::vector<Tensor> inputs = {Tensor::Random(dtype, {3, 20000}, 1),
                                        Tensor::Random(dtype, {}, 2), Tensor::Random(dtype, {0}, 3),
                                        Tensor::Random(dtype, {17, 5}, 4)};
    double sum = 0;
    for (const Tensor& input : inputs) {
      for (double v : input.values()) sum += v * v;
    }
    ExpectClose(RunKernel("sum_squares", inputs, {{dtype, {}}})[0], {sum},
                dtype == DType::kF32 ? 0.05 : 10);
    ExpectClose(RunKernel("sum_squares", {}, {{dtype, {}}})[0], {0});
  }
}

TEST(OptimizerTest, Sgd) {
  for (DType dtype : kFloats) {
    const Tensor p = Tensor::Random(dtype, {41, 1000}, 1), g = Tensor::Random(dtype, {41, 1000}, 2);
    const Tensor scale = Tensor::Scalar(dtype, 0.5), rate = Tensor::Scalar(dtype, 0.25);
    const Values pv = p.values(), gv = g.values();
    Values expected;
    for (size_t i = 0; i < pv.size(); ++i)
      expected.push_back(pv[i] - 0.25 * (0.5 * gv[i] + 0.125 * pv[i]));
    const Attributes attributes = {{"weight_decay", 0.125}};
    ExpectClose(RunKernel("sgd", {p, g, scale, rate}, {p.spec()}, attributes)[0], expected);
    ExpectClose(RunKernel("sgd", {p, g, scale, rate}, {p.spec()}, attributes, /*in_place=*/0)[0],
                expected);
  }
}

TEST(OptimizerTest, SgdMomentum) {
  for (DType dtype : kFloats) {
    for (int64_t nesterov : {0, 1}) {
      const Shape shape = {41, 1000};
      const Tensor p = Tensor::Random(dtype, shape, 1), g = Tensor::Random(dtype, shape, 2),
                   buffer = Tensor::Random(dtype, shape, 3);
      const Tensor scale = Tensor::Scalar(dtype, 0.5), rate = Tensor::Scalar(dtype, 0.25);
      const Values pv = p.values(), gv = g.values(), bv = buffer.values();
      Values new_p, new_buffer;
      for (size_t i = 0; i < pv.size(); ++i) {
        const double gradient = 0.5 * gv[i] + 0.125 * pv[i];
        new_buffer.push_back(0.75 * bv[i] + gradient);
        new_p.push_back(pv[i] -
                        0.25 * (nesterov != 0 ? gradient + 0.75 * new_buffer[i] : new_buffer[i]));
      }
      const Attributes attributes = {
          {"momentum", 0.75}, {"nesterov", nesterov}, {"weight_decay", 0.125}};
      for (int in_place : {-1, 0}) {
        const auto results = RunKernel("sgd_momentum", {p, g, buffer, scale, rate},
                                       {p.spec(), p.spec()}, attributes, in_place);
        ExpectClose(results[0], new_p);
        ExpectClose(results[1], new_buffer);
      }
    }
  }
}

TEST(OptimizerTest, AdamW) {
  for (DType dtype : kFloats) {
    for (double step : {1.0, 10.0}) {
      const Tensor p = Tensor::Random(dtype, {41, 1000}, 1),
                   g = Tensor::Random(dtype, {41, 1000}, 2);
      const Tensor m = Tensor::Random(dtype, {41, 1000}, 3),
                   v = Tensor::Random(dtype, {41, 1000}, 4, 0.01, 1);
      const Tensor scale = Tensor::Scalar(dtype, 0.5), rate = Tensor::Scalar(dtype, 0.125);
      const Values pv = p.values(), gv = g.values(), mv = m.values(), vv = v.values();
      Values new_p, new_m, new_v;
      for (size_t i = 0; i < pv.size(); ++i) {
        const double gradient = 0.5 * gv[i];
        new_m.push_back(0.9 * mv[i] + 0.1 * gradient);
        new_v.push_back(0.95 * vv[i] + 0.05 * gradient * gradient);
        const double m_hat = new_m[i] / (1 - std::pow(0.9, step));
        const double v_hat = new_v[i] / (1 - std::pow(0.95, step));
        new_p.push_back(pv[i] * (1 - 0.125 * 0.01) - 0.125 * m_hat / (std::sqrt(v_hat) + 1e-8));
      }
      const Attributes attributes = {
          {"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.01}};
      for (int in_place : {-1, 0}) {
        const auto results =
            RunKernel("adamw", {p, g, m, v, scale, rate, Tensor::Scalar(dtype, step)},
                      {p.spec(), p.spec(), p.spec()}, attributes, in_place);
        ExpectClose(results[0], new_p);
        ExpectClose(results[1], new_m);
        ExpectClose(results[2], new_v);
      }
    }
  }
}

TEST(OptimizerTest, ZeroGradientFromZeroStateStaysPut) {
  const Tensor p = Tensor::Random(DType::kF32, {5}, 1);
  const Tensor zero({DType::kF32, {5}}, Values(5, 0.0)), one = Tensor::Scalar(DType::kF32, 1);
  const auto results =
      RunKernel("adamw", {p, zero, zero, zero, one, one, one}, {p.spec(), p.spec(), p.spec()},
                {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.0}});
  EXPECT_EQ(results[0].values(), p.values());
}

// Sizes of a list: more tensors than one launch takes on a device, of all remainders, some of
// several chunks, one of no elements.
std::vector<Shape> ListShapes() {
  std::vector<Shape> shapes = {{3, 20000}, {}, {0}, {16384}, {41, 401}};
  for (int64_t i = 0; i < 60; ++i) shapes.push_back({7 + 3 * i});
  return shapes;
}

// Runs the step of `kOwn` operands for each parameter and the scalars on a list, and for each of
// its parameters alone: the same bits.
void ExpectListIsItsParameters(const char* kernel, DType dtype, DType gradient, bool rounded,
                               int own, const std::vector<Tensor>& scalars,
                               const Attributes& attributes) {
  const std::vector<Shape> shapes = ListShapes();
  const size_t n = shapes.size(), news = static_cast<size_t>(own) - 1;
  std::vector<Tensor> operands;
  for (int group = 0; group < own; ++group) {
    for (size_t i = 0; i < n; ++i) {
      const int seed = static_cast<int>(group * n + i);
      operands.push_back(Tensor::Random(group == 1 ? gradient : dtype, shapes[i], seed, 0.01, 1));
    }
  }
  operands.insert(operands.end(), scalars.begin(), scalars.end());
  std::vector<TensorSpec> results;
  for (size_t group = 0; group < news + (rounded ? 1 : 0); ++group) {
    for (const Shape& shape : shapes) {
      results.push_back({group < news ? dtype : DType::kBF16, shape});
    }
  }
  const std::vector<Tensor> list = RunKernel(kernel, operands, results, attributes);
  ASSERT_EQ(list.size(), results.size());
  for (size_t i = 0; i < n; ++i) {
    std::vector<Tensor> own_operands;
    for (int group = 0; group < own; ++group) own_operands.push_back(operands[group * n + i]);
    own_operands.insert(own_operands.end(), scalars.begin(), scalars.end());
    const std::vector<Tensor> alone = RunKernel(
        kernel, own_operands, std::vector<TensorSpec>(news, {dtype, shapes[i]}), attributes);
    for (size_t group = 0; group < news; ++group) {
      EXPECT_EQ(list[group * n + i].values(), alone[group].values()) << i << ", result " << group;
    }
    if (!rounded) continue;
    const Tensor narrow({DType::kBF16, shapes[i]}, alone[0].values());
    EXPECT_EQ(list[news * n + i].values(), narrow.values()) << i;
  }
}

struct ListTypes {
  DType dtype, gradient;
  bool rounded;
};
constexpr ListTypes kListTypes[] = {{DType::kF32, DType::kF32, false},
                                    {DType::kF32, DType::kF32, true},
                                    {DType::kF32, DType::kBF16, true},
                                    {DType::kF64, DType::kF64, false}};

TEST(OptimizerTest, SgdOfAList) {
  for (const auto& [dtype, gradient, rounded] : kListTypes) {
    ExpectListIsItsParameters("sgd", dtype, gradient, rounded, 2,
                              {Tensor::Scalar(dtype, 0.5), Tensor::Scalar(dtype, 0.25)},
                              {{"weight_decay", 0.125}});
  }
}

TEST(OptimizerTest, SgdMomentumOfAList) {
  for (const auto& [dtype, gradient, rounded] : kListTypes) {
    ExpectListIsItsParameters(
        "sgd_momentum", dtype, gradient, rounded, 3,
        {Tensor::Scalar(dtype, 0.5), Tensor::Scalar(dtype, 0.25)},
        {{"momentum", 0.9}, {"nesterov", int64_t{1}}, {"weight_decay", 0.125}});
  }
}

TEST(OptimizerTest, AdamWOfAList) {
  for (const auto& [dtype, gradient, rounded] : kListTypes) {
    ExpectListIsItsParameters(
        "adamw", dtype, gradient, rounded, 4,
        {Tensor::Scalar(dtype, 0.5), Tensor::Scalar(dtype, 0.125), Tensor::Scalar(dtype, 3)},
        {{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.01}});
  }
}

// Runs a step of parameters that are bf16 and a remainder, and of what the two make in f32: the
// same bits.
void ExpectRemaindersAreMasters(const char* kernel, DType gradient, int own,
                                const std::vector<Tensor>& scalars, const Attributes& attributes,
                                int in_place) {
  const std::vector<Shape> shapes = ListShapes();
  std::vector<Tensor> masters, rounded, remainders, others;
  const auto rounded_of = [](const Tensor& master) {
    Values values;
    for (const double value : master.values()) {
      values.push_back(BFloat16ToFloat(RoundedAway(static_cast<float>(value))));
    }
    return values;
  };
  const auto remainders_of = [](const Tensor& master) {
    Values values;
    for (const double value : master.values()) {
      values.push_back(RemainderOf(static_cast<float>(value)));
    }
    return values;
  };
  for (size_t i = 0; i < shapes.size(); ++i) {
    masters.push_back(Tensor::Random(DType::kF32, shapes[i], static_cast<int>(i), -1, 1));
    rounded.emplace_back(TensorSpec{DType::kBF16, shapes[i]}, rounded_of(masters[i]));
    remainders.emplace_back(TensorSpec{DType::kI16, shapes[i]}, remainders_of(masters[i]));
  }
  for (int group = 1; group < own; ++group) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      const int seed = static_cast<int>(group * shapes.size() + i);
      others.push_back(
          Tensor::Random(group == 1 ? gradient : DType::kF32, shapes[i], seed, 0.01, 1));
    }
  }
  const auto join = [](std::initializer_list<std::vector<Tensor>> lists) {
    std::vector<Tensor> all;
    for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  const auto results = [&](DType first, DType last) {
    std::vector<TensorSpec> specs;
    for (int group = 0; group < own; ++group) {
      const DType dtype = group == 0 ? first : group == own - 1 ? last : DType::kF32;
      for (const Shape& shape : shapes) specs.push_back({dtype, shape});
    }
    return specs;
  };
  const std::vector<Tensor> expected = RunKernel(kernel, join({masters, others, scalars}),
                                                 results(DType::kF32, DType::kBF16), attributes);
  const std::vector<Tensor> found =
      RunKernel(kernel, join({rounded, others, remainders, scalars}),
                results(DType::kBF16, DType::kI16), attributes, in_place);
  ASSERT_EQ(found.size(), expected.size());
  const size_t n = shapes.size(), last = (own - 1) * n;
  for (size_t i = 0; i < n; ++i) {
    EXPECT_EQ(found[i].values(), rounded_of(expected[i])) << i;
    EXPECT_EQ(found[last + i].values(), remainders_of(expected[i])) << i;
    for (int group = 1; group < own - 1; ++group) {
      EXPECT_EQ(found[group * n + i].values(), expected[group * n + i].values()) << i;
    }
  }
}

TEST(OptimizerTest, RemaindersAreMasters) {
  const auto scalar = [](double value) { return Tensor::Scalar(DType::kF32, value); };
  for (const DType gradient : {DType::kF32, DType::kBF16}) {
    for (const int in_place : {-1, 0}) {
      ExpectRemaindersAreMasters("sgd", gradient, 2, {scalar(0.5), scalar(0.25)},
                                 {{"weight_decay", 0.125}}, in_place);
      ExpectRemaindersAreMasters(
          "sgd_momentum", gradient, 3, {scalar(0.5), scalar(0.25)},
          {{"momentum", 0.9}, {"nesterov", int64_t{0}}, {"weight_decay", 0.125}}, in_place);
      ExpectRemaindersAreMasters(
          "adamw", gradient, 4, {scalar(0.5), scalar(0.125), scalar(3)},
          {{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.01}}, in_place);
    }
  }
}

TEST(OptimizerTest, RefusesWhatIsNoList) {
  const Tensor p = Tensor::Random(DType::kF32, {5}, 1), one = Tensor::Scalar(DType::kF32, 1);
  const Attributes decay = {{"weight_decay", 0.0}};
  EXPECT_THAT(testing::TryKernel("sgd", {p, p, p, one, one}, {p.spec()}, decay).status().message(),
              ::testing::HasSubstr("are not those of a list of parameters"));
  EXPECT_THAT(
      testing::TryKernel("sgd", {p, p, one, one}, {p.spec(), p.spec()}, decay).status().message(),
      ::testing::HasSubstr("result 1"));
  const Tensor half = Tensor::Random(DType::kBF16, {5}, 1);
  const Tensor rest({DType::kI16, {5}}, Values(5, 0.0));
  // What is no remainder, and a new one that is missing or of another type.
  const std::pair<std::vector<Tensor>, std::vector<TensorSpec>> lists[] = {
      {{half, p, p, one, one}, {half.spec(), rest.spec()}},
      {{half, p, rest, one, one}, {half.spec(), half.spec()}},
      {{half, p, rest, one, one}, {half.spec()}}};
  for (const auto& [operands, results] : lists) {
    EXPECT_THAT(testing::TryKernel("sgd", operands, results, decay).status().message(),
                ::testing::HasSubstr("are not those of a list of parameters"));
  }
}

}  // namespace
}  // namespace oriel::kernels
