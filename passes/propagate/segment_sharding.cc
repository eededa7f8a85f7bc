#include "passes/propagate/segment_sharding.h"

#include "ir/interfaces/tensor_type.h"
#include "mlir/IR/Matchers.h"
#include "passes/propagate/versions.h"

namespace oriel {

using ir::ValueKind;
using mlir::failure;
using mlir::FailureOr;

bool isSum(const ir::ValueRole& role) {
  return role.kind == ValueKind::kGradient || role.kind == ValueKind::kAccumulator;
}

FailureOr<ir::ParameterOp> parameterOf(const mlir::SymbolTable& symbols, mlir::func::FuncOp segment,
                                       const ir::ValueRole& role) {
  if (auto parameter = symbols.lookup<ir::ParameterOp>(role.ref)) return parameter;
  return segment.emitError("refers to @") << role.ref << ", which is no oriel.parameter";
}

FailureOr<Sharding> shardingOf(ir::ParameterOp parameter, std::optional<ir::ShardingAttr> attribute,
                               const AxisSizes& sizes) {
  mlir::RankedTensorType type = parameter.getTensorType();
  if (!attribute) return Sharding::replicated(type.getRank());
  std::string why;
  FailureOr<Sharding> sharding = sizes.fromAttr(*attribute, type, why);
  if (failed(sharding)) {
    parameter.emitError("a sharding of \"") << parameter.getOnnxName() << "\" " << why;
  }
  return sharding;
}

FailureOr<std::optional<Sharding>> viewOf(const mlir::SymbolTable& symbols,
                                          mlir::func::FuncOp segment, mlir::BlockArgument argument,
                                          const ir::ValueRole& role, const AxisSizes& sizes) {
  bool update = ir::isUpdate(segment);
  if (role.kind == ValueKind::kAccumulator && update) {
    auto type = ir::tensorType(argument);
    return std::optional(Sharding::replicated(type.getRank()));
  }
  bool usesParameter = role.kind == ValueKind::kParameter && !update;
  bool completesGradient = role.kind == ValueKind::kGradient && update;
  if (!usesParameter && !completesGradient) return std::optional<Sharding>();
  FailureOr<ir::ParameterOp> parameter = parameterOf(symbols, segment, role);
  if (failed(parameter)) return failure();
  FailureOr<Sharding> view =
      shardingOf(*parameter, usesParameter ? parameter->getUse() : parameter->getState(), sizes);
  if (failed(view)) return failure();
  return std::optional(*view);
}

FailureOr<Sharding> madeFor(mlir::Value result, const Sharding& from, const Sharding& to) {
  if (canBecome(from, to)) return to;
  mlir::DenseElementsAttr constant;
  if (mlir::matchPattern(result, mlir::m_Constant(&constant)) && constant.isSplat()) {
    bool zero = mlir::matchPattern(result, mlir::m_AnyZeroFloat()) ||
                mlir::matchPattern(result, mlir::m_Zero());
    if (zero) return to.reduced();
  }
  mlir::InFlightDiagnostic error =
      mlir::emitError(result.getLoc(), "a total is returned for what is kept as a sum over ranks");
  error.attachNote() << "this happens where ranks have several stages that use one parameter and "
                        "share its work in some of them only: choose a schedule that is not "
                        "interleaved, or a mesh without cp";
  return error;
}

}  // namespace oriel
