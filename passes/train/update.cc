#include "passes/train/update.h"

#include <map>

#include "ir/oriel/builders.h"
#include "ir/oriel/inference.h"
#include "passes/train/segment_builder.h"
#include "passes/train/weight_gradient.h"

using namespace mlir;

namespace oriel {
namespace {

using ir::ValueKind;
using ir::ValueRole;

// PyTorch's guard against a division by zero in clip_grad_norm_.
constexpr double kClipEpsilon = 1e-6;

// Gradients scale, and the three values that the host reads.
struct StepScalars {
  Value gradientScale, loss, gradNorm, tokenCount;
};

StepScalars buildScalars(OpBuilder& builder, Location loc, const Recipe& recipe, Value lossSum,
                         Value tokenCount, ArrayRef<Value> gradients) {
  auto scalar = [&](double value) { return ir::scalarConstant(builder, loc, value, lossSum); };
  // A batch may lack valid tokens: its sums are zeros, and 0/1 keeps them so.
  Value count = ir::MaxOp::create(builder, loc, tokenCount, scalar(1));
  Value scale = ir::ReciprocalOp::create(builder, loc, count);
  Value squares = ir::SumSquaresOp::create(builder, loc, lossSum.getType(), gradients);
  Value norm = ir::SqrtOp::create(builder, loc, squares);
  norm = ir::MulOp::create(builder, loc, norm, scale);
  Value loss = ir::MulOp::create(builder, loc, lossSum, scale);
  if (recipe.optimizer.clipNorm > 0) {
    Value guarded = ir::AddOp::create(builder, loc, norm, scalar(kClipEpsilon));
    Value ratio = ir::DivOp::create(builder, loc, scalar(recipe.optimizer.clipNorm), guarded);
    Value coefficient = ir::MinOp::create(builder, loc, ratio, scalar(1));
    scale = ir::MulOp::create(builder, loc, scale, coefficient);
  }
  return {scale, loss, norm, tokenCount};
}

// One parameter's step: its new value and states become results.
void buildStep(SegmentBuilder& segment, Location loc, const Recipe& recipe,
               ir::ParameterOp parameter, Value value, Value gradient, Value gradientScale,
               Value learningRate, Value step) {
  std::string ref = parameter.getSymName().str();
  auto valueType = ir::tensorType(value);
  RankedTensorType type = valueType.clone(ir::wideType(valueType.getElementType()));
  ValueRole role{ValueKind::kParameter, ref, ""};
  ValueRole masterRole{ValueKind::kOptimizerState, ref, kMaster};
  const bool hasMaster = type != valueType;
  Value master = hasMaster ? segment.argument(masterRole, type, loc) : value;
  auto addStepped = [&](Value stepped) {
    segment.addResult(stepped, hasMaster ? masterRole : role);
    if (!hasMaster) return;
    segment.addResult(ir::CastOp::create(segment.builder(), loc, valueType, stepped), role);
  };

  const Recipe::Optimizer& optimizer = recipe.optimizer;
  double decay = recipe.weightDecayOf(parameter.getOnnxName().str());
  if (optimizer.kind == Recipe::OptimizerKind::kSgd && optimizer.momentum > 0) {
    ValueRole buffer{ValueKind::kOptimizerState, ref, "momentum_buffer"};
    auto stepped = ir::SgdMomentumOp::create(segment.builder(), loc, master, gradient,
                                             segment.argument(buffer, type, loc),
                                             /*remainder=*/Value(), gradientScale, learningRate,
                                             optimizer.momentum, optimizer.nesterov, decay);
    addStepped(stepped.getNewParameter());
    segment.addResult(stepped.getNewMomentumBuffer(), buffer);
    return;
  }
  if (optimizer.kind == Recipe::OptimizerKind::kSgd) {
    addStepped(ir::SgdOp::create(segment.builder(), loc, master, gradient, /*remainder=*/Value(),
                                 gradientScale, learningRate, decay)
                   .getNewParameter());
    return;
  }
  ValueRole average{ValueKind::kOptimizerState, ref, "exp_avg"};
  ValueRole squareAverage{ValueKind::kOptimizerState, ref, "exp_avg_sq"};
  Value expAvg = segment.argument(average, type, loc);
  Value expAvgSq = segment.argument(squareAverage, type, loc);
  auto stepped = ir::AdamWOp::create(segment.builder(), loc, master, gradient, expAvg, expAvgSq,
                                     /*remainder=*/Value(), gradientScale, learningRate, step,
                                     optimizer.beta1, optimizer.beta2, optimizer.epsilon, decay);
  addStepped(stepped.getNewParameter());
  segment.addResult(stepped.getNewExpAvg(), average);
  segment.addResult(stepped.getNewExpAvgSq(), squareAverage);
}

}  // namespace

func::FuncOp buildUpdate(ModuleOp module, Location loc, const Recipe& recipe,
                         ArrayRef<ir::ParameterOp> trainable,
                         const llvm::StringMap<unsigned>& rank) {
  SegmentBuilder segment(module, "update", loc);
  OpBuilder& builder = segment.builder();
  auto scalarType = RankedTensorType::get({}, builder.getF32Type());
  ValueRole lossRole{ValueKind::kAccumulator, kLossSum, ""};
  ValueRole countRole{ValueKind::kAccumulator, kTokenCount, ""};
  Value lossSum = segment.argument(lossRole, scalarType, loc);
  Value tokenCount = segment.argument(countRole, scalarType, loc);
  Value learningRate = segment.argument({ValueKind::kScalar, "learning_rate", ""}, scalarType, loc);
  Value step = segment.argument({ValueKind::kScalar, "step", ""}, scalarType, loc);

  SmallVector<Value> values, gradients;
  for (ir::ParameterOp parameter : trainable) {
    std::string ref = parameter.getSymName().str();
    Type type = parameter.getType();
    values.push_back(segment.argument({ValueKind::kParameter, ref, ""}, type, parameter.getLoc()));
    gradients.push_back(segment.argument({ValueKind::kGradient, ref, ""},
                                         gradientType(parameter, recipe), parameter.getLoc()));
  }
  StepScalars scalars = buildScalars(builder, loc, recipe, lossSum, tokenCount, gradients);
  llvm::MapVector<Type, Value> zeros;
  auto zero = [&](Type type) {
    Value& constant = zeros[type];
    if (!constant) {
      auto tensor = cast<RankedTensorType>(type);
      constant = ir::ConstantOp::create(
          builder, loc,
          DenseElementsAttr::get(tensor, builder.getZeroAttr(tensor.getElementType())));
    }
    return constant;
  };
  // One value for all parameters of a rate, so that one launch steps them.
  std::map<double, Value> rates = {{recipe.optimizer.lr, learningRate}};
  auto rateOf = [&](ir::ParameterOp parameter) {
    const double peak = recipe.learningRateOf(parameter.getOnnxName().str());
    Value& rate = rates[peak];
    if (!rate) {
      Value factor = ir::scalarConstant(builder, loc, peak / recipe.optimizer.lr, learningRate);
      rate = ir::MulOp::create(builder, loc, learningRate, factor);
    }
    return rate;
  };
  for (auto [parameter, value, gradient] : llvm::zip_equal(trainable, values, gradients)) {
    buildStep(segment, parameter->getLoc(), recipe, parameter, value, gradient,
              scalars.gradientScale, rateOf(parameter), step);
    segment.addResult(zero(gradient.getType()),
                      {ValueKind::kGradient, ir::ParameterOp(parameter).getSymName().str(), ""});
  }
  segment.addResult(zero(scalarType), lossRole);
  segment.addResult(zero(scalarType), countRole);
  segment.addResult(scalars.loss, {ValueKind::kOutput, "loss", ""});
  segment.addResult(scalars.gradNorm, {ValueKind::kOutput, "grad_norm", ""});
  segment.addResult(scalars.tokenCount, {ValueKind::kOutput, kTokenCount, ""});
  return segment.finish(rank);
}

}  // namespace oriel
