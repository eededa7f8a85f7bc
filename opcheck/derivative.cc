#include "opcheck/derivative.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "mlir/IR/Verifier.h"

namespace oriel {
namespace {

using mlir::func::FuncOp;

constexpr double kTolerance = 1e-7;  // relative to max(1, |expected|)

double relative(double actual, double expected) {
  if (actual == expected) return 0;
  const double difference = std::abs(actual - expected) / std::max(1.0, std::abs(expected));
  return std::isnan(difference) ? HUGE_VAL : difference;
}

class DerivativeCheck {
 public:
  DerivativeCheck(FuncOp function, const Tensors& arguments, OnFailure onFailure)
      : function_(function), onFailure_(onFailure) {
    for (const HostTensor& argument : arguments) arguments_.push_back(argument.copy());
  }

  double run(std::mt19937* random) {
    auto forward = Interpreter::create(function_);
    if (!forward.ok()) return fail(std::string(forward.status().message()));
    forward_.emplace(*std::move(forward));
    const llvm::SmallVector<unsigned> wanted = floatArguments(function_);
    if (wanted.empty())
      return fail("has no float argument to be differentiated by: give it check.forward_only");
    cotangents_ = randomCotangents(function_, random);
    const std::optional<Tensors> derivatives = differentiate(wanted);
    if (!derivatives) return HUGE_VAL;
    double worst = 0;
    for (unsigned j = 0; j < wanted.size(); ++j) {
      worst = std::max(worst, compare(wanted[j], (*derivatives)[j]));
      compareAlone(wanted[j], (*derivatives)[j]);
    }
    return isFailed_ ? HUGE_VAL : worst;
  }

 private:
  double fail(const std::string& what) {
    isFailed_ = true;
    onFailure_(function_, what);
    return HUGE_VAL;
  }

  // Σ cotangent · f(arguments); NaN where it can't be computed.
  double objective() {
    const absl::StatusOr<Tensors> results = forward_->run(pointersTo(arguments_));
    if (!results.ok()) return NAN;
    double sum = 0;
    size_t k = 0;
    for (const HostTensor& result : *results) {
      if (!runtime::IsFloat(result.spec().dtype)) continue;
      for (int64_t i = 0; i < result.spec().num_elements(); ++i) {
        sum += cotangents_[k].get(i) * result.get(i);
      }
      ++k;
    }
    return sum;
  }

  double finiteDifference(HostTensor& argument, int64_t element) {
    const double step = numberOr(function_->getAttr("check.step"), 1e-4);
    const double x = argument.get(element);
    auto at = [&](double offset) {
      argument.set(element, x + offset);
      return objective();
    };
    const double near = at(step) - at(-step), far = at(2 * step) - at(-2 * step);
    argument.set(element, x);
    return (8 * near - far) / (12 * step);
  }

  // The cotangents of these arguments, by the differentiated function.
  std::optional<Tensors> differentiate(llvm::ArrayRef<unsigned> wanted) {
    // Says itself why it fails.
    mlir::FailureOr<VjpFunction> vjp = buildVjpFunction(function_, wanted);
    if (failed(vjp)) {
      fail("can't be differentiated");
      return std::nullopt;
    }
    absl::StatusOr<Tensors> results = runVjp(*vjp);
    vjp->function.erase();
    if (results.ok()) return *std::move(results);
    fail(absl::StrCat("its derivative: ", std::string(results.status().message())));
    return std::nullopt;
  }

  absl::StatusOr<Tensors> runVjp(const VjpFunction& vjp) {
    if (failed(mlir::verify(vjp.function))) return absl::InternalError("is not valid");
    absl::StatusOr<Tensors> inputs = vjpArguments(function_, vjp, arguments_, cotangents_);
    if (!inputs.ok()) return inputs;
    absl::StatusOr<Interpreter> backward = Interpreter::create(vjp.function);
    if (!backward.ok()) return backward.status();
    return backward->run(pointersTo(*inputs));
  }

  double compare(unsigned number, const HostTensor& derivative) {
    HostTensor& argument = arguments_[number];
    double worst = 0;
    std::string first;
    int64_t wrong = 0;
    for (int64_t i = 0; i < argument.spec().num_elements(); ++i) {
      const double expected = finiteDifference(argument, i), actual = derivative.get(i);
      const double difference = relative(actual, expected);
      worst = std::max(worst, difference);
      if (difference <= kTolerance) continue;
      if (wrong++ == 0) {
        first = absl::StrCat(i, " is ", actual, ", by finite differences ", expected);
      }
    }
    if (wrong == 0) return worst;
    return fail(absl::StrCat("the derivative by argument ", number, " is wrong in ", wrong, " of ",
                             argument.spec().num_elements(), " elements: element ", first));
  }

  // What an op builds for one operand does not depend on which others are asked for.
  void compareAlone(unsigned number, const HostTensor& together) {
    const std::optional<Tensors> alone = differentiate({number});
    if (!alone) return;
    for (int64_t i = 0; i < together.spec().num_elements(); ++i) {
      if (relative((*alone)[0].get(i), together.get(i)) == 0) continue;
      fail(absl::StrCat("the derivative by argument ", number, ", asked for alone, has ",
                        (*alone)[0].get(i), " as element ", i, ", beside others ",
                        together.get(i)));
      return;
    }
  }

  FuncOp function_;
  OnFailure onFailure_;
  Tensors arguments_, cotangents_;
  std::optional<Interpreter> forward_;
  bool isFailed_ = false;
};

}  // namespace

double checkDerivative(FuncOp function, const Tensors& arguments, std::mt19937* random,
                       OnFailure onFailure) {
  return DerivativeCheck(function, arguments, onFailure).run(random);
}

}  // namespace oriel
