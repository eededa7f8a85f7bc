#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/oriel/segment_roles.h"
#include "passes/train/autodiff.h"
#include "passes/train/isolate.h"
#include "passes/train/passes.h"
#include "passes/train/update.h"

using namespace mlir;

namespace oriel {

#define GEN_PASS_DEF_VERIFYTRAIN
#include "passes/train/passes.h.inc"

namespace {

using ir::SegmentRoles;
using ir::ValueKind;
using ir::ValueRole;

class TrainVerifier {
 public:
  explicit TrainVerifier(ModuleOp module) : module_(module), symbols_(module) {}

  LogicalResult run() {
    if (auto main = module_.lookupSymbol<func::FuncOp>("main")) {
      return main.emitError("@main is left after the train phase");
    }
    if (failed(read("forward", forward_)) || failed(read("backward", backward_)) ||
        failed(read("update", update_)) || failed(read("eval", eval_))) {
      return failure();
    }
    for (const SegmentRoles* segment : {&forward_, &backward_, &update_, &eval_}) {
      if (failed(checkSteps(*segment)) || failed(checkTypesAcross(*segment))) return failure();
    }
    return success(succeeded(checkStash()) && succeeded(checkParameters()) &&
                   succeeded(checkOrigins()));
  }

 private:
  LogicalResult read(StringRef name, SegmentRoles& segment) {
    auto function = module_.lookupSymbol<func::FuncOp>(name);
    if (!function) return module_.emitError("has no segment @") << name;
    FailureOr<SegmentRoles> roles = SegmentRoles::read(function);
    if (failed(roles)) return failure();
    segment = *std::move(roles);
    return ir::checkOrigins(function);
  }

  // New values replace arguments; only @update makes new parameters and states.
  LogicalResult checkSteps(const SegmentRoles& segment) {
    if (failed(segment.checkReplaces({ValueKind::kParameter, ValueKind::kOptimizerState,
                                      ValueKind::kGradient, ValueKind::kAccumulator}))) {
      return failure();
    }
    return &segment == &update_ ? success() : segment.checkStepsNothing();
  }

  // One role has one type in the whole module, but for outputs, which belong to a segment. What
  // belongs to a parameter has its shape.
  LogicalResult checkTypesAcross(const SegmentRoles& segment) {
    func::FuncOp function = segment.function();
    auto check = [&](const ValueRole& role, Type type) -> LogicalResult {
      if (role.kind == ValueKind::kOutput) return success();
      Type expected = types_.try_emplace(role, type).first->second;
      if (role.isParameterBound()) {
        auto parameter = symbols_.lookup<ir::ParameterOp>(role.ref);
        if (!parameter) return function.emitError("no oriel.parameter for ") << roleText(role);
        RankedTensorType own = parameter.getTensorType();
        // Gradient and state may be wider.
        bool isWider = role.kind != ValueKind::kParameter && hasCotangent(expected) &&
                       cast<RankedTensorType>(expected).getShape() == own.getShape();
        if (!isWider) expected = own;
      }
      if (type == expected) return success();
      return function.emitError("has type ")
             << type << " for " << roleText(role) << ", which is " << expected << " elsewhere";
    };
    for (auto [role, type] : llvm::zip_equal(segment.arguments(), function.getArgumentTypes())) {
      if (failed(check(role, type))) return failure();
    }
    for (auto [role, type] : llvm::zip_equal(segment.results(), function.getResultTypes())) {
      if (failed(check(role, type))) return failure();
    }
    return success();
  }

  LogicalResult checkStash() {
    if (failed(backward_.checkReads(ValueKind::kStash, forward_))) return failure();
    for (const ValueRole& role : forward_.results()) {
      if (role.kind == ValueKind::kStash && !backward_.findArgument(role)) {
        return forward_.function().emitError("writes ")
               << roleText(role) << ", which @backward does not read";
      }
    }
    return success();
  }

  LogicalResult checkParameters() {
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      std::string ref = parameter.getSymName().str();
      ValueRole value{ValueKind::kParameter, ref, ""}, gradient{ValueKind::kGradient, ref, ""};
      bool updated = update_.findResult(value).has_value();
      bool hasGradient = backward_.findResult(gradient).has_value();
      if (parameter.getTrainable() && (!updated || !hasGradient)) {
        return parameter.emitError("trainable, but ")
               << (hasGradient ? "@update does not step it" : "@backward has no gradient for it");
      }
      if (!parameter.getTrainable() && (updated || hasGradient)) {
        return parameter.emitError("frozen, but ")
               << (updated ? "@update steps it" : "@backward has a gradient for it");
      }
    }
    return update_.checkReads(ValueKind::kGradient, backward_);
  }

  LogicalResult checkOrigins() {
    Block& body = forward_.function().getBody().front();
    ValueRole lossRole{ValueKind::kAccumulator, kLossSum, ""};
    std::optional<unsigned> loss = forward_.findResult(lossRole);
    if (!loss) return forward_.function().emitError("has no result for ") << roleText(lossRole);
    SmallVector<Value> wanted;
    for (auto [argument, role] : llvm::zip_equal(body.getArguments(), forward_.arguments())) {
      if (role.kind != ValueKind::kParameter) continue;
      if (symbols_.lookup<ir::ParameterOp>(role.ref).getTrainable()) {
        wanted.push_back(argument);
      }
    }
    Autodiff activity(body, {body.getTerminator()->getOperand(*loss)}, wanted);
    DenseMap<int64_t, Operation*> numbered;
    for (Operation& op : body) {
      int64_t origin = originOf(&op);
      if (origin < 0) continue;
      if (!numbered.try_emplace(origin, &op).second) {
        return op.emitOpError("has the origin ") << origin << " of another op of @forward";
      }
    }
    for (Operation& op : backward_.function().getBody().front().without_terminator()) {
      // A constant computes nothing; folding makes some that come from no op.
      if (op.hasTrait<OpTrait::ConstantLike>()) continue;
      int64_t origin = originOf(&op);
      Operation* source = numbered.lookup(origin);
      if (!source) {
        return op.emitOpError("in @backward has the origin ")
               << origin << ", which no op of @forward has";
      }
      if (activity.isActive(source) || repeats(&op, source)) continue;
      auto diagnostic = op.emitOpError("in @backward comes from an op that has no gradient");
      diagnostic.attachNote(source->getLoc()) << "the op with origin " << origin;
      return diagnostic;
    }
    return success();
  }

  // Whether `op` computes again what `source` does.
  static bool repeats(Operation* op, Operation* source) {
    return isFreeToRecompute(op) && op->getName() == source->getName() &&
           op->getAttrDictionary() == source->getAttrDictionary() &&
           op->getResultTypes() == source->getResultTypes();
  }

  ModuleOp module_;
  mlir::SymbolTable symbols_;
  SegmentRoles forward_, backward_, update_, eval_;
  std::map<ValueRole, Type> types_;
};

struct VerifyTrain : impl::VerifyTrainBase<VerifyTrain> {
  void runOnOperation() override {
    if (failed(TrainVerifier(getOperation()).run())) return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

}  // namespace
}  // namespace oriel
