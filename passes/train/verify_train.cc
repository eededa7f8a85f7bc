#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/oriel/segment.h"
#include "passes/train/autodiff.h"
#include "passes/train/isolate.h"
#include "passes/train/passes.h"
#include "passes/train/update.h"

using namespace mlir;

namespace oriel {

#define GEN_PASS_DEF_VERIFYTRAIN
#include "passes/train/passes.h.inc"

namespace {

using ir::ValueKind;
using ir::ValueRole;

std::string roleText(const ValueRole& role) {
  std::string text = ir::stringifyValueKind(role.kind).str() + " '" + role.ref + "'";
  return role.slot.empty() ? text : text + " " + role.slot;
}

// Roles of one segment, in order.
struct Segment {
  func::FuncOp function;
  SmallVector<ValueRole> arguments, results;
  // The first of each role.
  std::map<ValueRole, unsigned> argumentNumbers, resultNumbers;

  std::optional<unsigned> findArgument(const ValueRole& role) const {
    return find(argumentNumbers, role);
  }
  std::optional<unsigned> findResult(const ValueRole& role) const {
    return find(resultNumbers, role);
  }
  void addArgument(ValueRole role) {
    argumentNumbers.try_emplace(role, arguments.size());
    arguments.push_back(std::move(role));
  }
  void addResult(ValueRole role) {
    resultNumbers.try_emplace(role, results.size());
    results.push_back(std::move(role));
  }

 private:
  static std::optional<unsigned> find(const std::map<ValueRole, unsigned>& numbers,
                                      const ValueRole& role) {
    auto it = numbers.find(role);
    return it == numbers.end() ? std::nullopt : std::optional<unsigned>(it->second);
  }
};

bool isReplacement(ValueKind kind) {
  return kind == ValueKind::kParameter || kind == ValueKind::kOptimizerState ||
         kind == ValueKind::kGradient || kind == ValueKind::kAccumulator;
}

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
    for (const Segment* segment : {&forward_, &backward_, &update_, &eval_}) {
      if (failed(checkSegment(*segment)) || failed(checkTypesAcross(*segment))) return failure();
    }
    return success(succeeded(checkStash()) && succeeded(checkParameters()) &&
                   succeeded(checkOrigins()));
  }

 private:
  LogicalResult read(StringRef name, Segment& segment) {
    segment.function = module_.lookupSymbol<func::FuncOp>(name);
    if (!segment.function) return module_.emitError("has no segment @") << name;
    if (!segment.function.getBody().hasOneBlock()) {
      return segment.function.emitError("a segment must have one block");
    }
    for (unsigned i = 0; i < segment.function.getNumArguments(); ++i) {
      FailureOr<ValueRole> role = ir::argumentRole(segment.function, i);
      if (failed(role)) return failure();
      segment.addArgument(std::move(*role));
    }
    for (unsigned i = 0; i < segment.function.getNumResults(); ++i) {
      FailureOr<ValueRole> role = ir::resultRole(segment.function, i);
      if (failed(role)) return failure();
      segment.addResult(std::move(*role));
    }
    return success();
  }

  // Each role at most once on either side; a new value replaces an argument; only @update
  // makes new parameters and states.
  LogicalResult checkSegment(const Segment& segment) {
    func::FuncOp function = segment.function;
    for (auto [i, role] : llvm::enumerate(segment.arguments)) {
      if (*segment.findArgument(role) != i) {
        return function.emitError("has two arguments for ") << roleText(role);
      }
    }
    for (auto [i, role] : llvm::enumerate(segment.results)) {
      if (*segment.findResult(role) != i) {
        return function.emitError("has two results for ") << roleText(role);
      }
      if (!isReplacement(role.kind)) continue;
      if (!segment.findArgument(role)) {
        return function.emitError("returns a new ")
               << roleText(role) << ", but has no argument that holds it";
      }
      bool stepped = role.kind == ValueKind::kParameter || role.kind == ValueKind::kOptimizerState;
      if (stepped && &segment != &update_) {
        return function.emitError("returns a new ") << roleText(role) << "; only @update may";
      }
    }
    return success();
  }

  // One role has one type in the whole module, but for outputs, which belong to a segment. What
  // belongs to a parameter has its shape.
  LogicalResult checkTypesAcross(const Segment& segment) {
    func::FuncOp function = segment.function;
    auto check = [&](const ValueRole& role, Type type) -> LogicalResult {
      if (role.kind == ValueKind::kOutput) return success();
      Type expected = types_.try_emplace(role, type).first->second;
      if (role.isParameterBound()) {
        auto parameter = symbols_.lookup<ir::ParameterOp>(role.ref);
        if (!parameter) return function.emitError("no oriel.parameter for ") << roleText(role);
        auto own = cast<RankedTensorType>(parameter.getType());
        // Gradient and state may be wider.
        bool isWider = role.kind != ValueKind::kParameter && hasCotangent(expected) &&
                       cast<RankedTensorType>(expected).getShape() == own.getShape();
        if (!isWider) expected = own;
      }
      if (type == expected) return success();
      return function.emitError("has type ")
             << type << " for " << roleText(role) << ", which is " << expected << " elsewhere";
    };
    for (auto [role, type] : llvm::zip_equal(segment.arguments, function.getArgumentTypes())) {
      if (failed(check(role, type))) return failure();
    }
    for (auto [role, type] : llvm::zip_equal(segment.results, function.getResultTypes())) {
      if (failed(check(role, type))) return failure();
    }
    return success();
  }

  LogicalResult checkStash() {
    for (const ValueRole& role : backward_.arguments) {
      if (role.kind == ValueKind::kStash && !forward_.findResult(role)) {
        return backward_.function.emitError("reads ")
               << roleText(role) << ", which @forward does not write";
      }
    }
    for (const ValueRole& role : forward_.results) {
      if (role.kind == ValueKind::kStash && !backward_.findArgument(role)) {
        return forward_.function.emitError("writes ")
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
    return success();
  }

  LogicalResult checkOrigins() {
    Block& body = forward_.function.getBody().front();
    ValueRole lossRole{ValueKind::kAccumulator, kLossSum, ""};
    std::optional<unsigned> loss = forward_.findResult(lossRole);
    if (!loss) return forward_.function.emitError("has no result for ") << roleText(lossRole);
    SmallVector<Value> wanted;
    for (auto [argument, role] : llvm::zip_equal(body.getArguments(), forward_.arguments)) {
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
    for (Operation& op : backward_.function.getBody().front().without_terminator()) {
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
  Segment forward_, backward_, update_, eval_;
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
