#include "kernels/linear/epilogues.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/checks.h"
#include "kernels/linear/linear.h"

namespace oriel::kernels {
namespace {

// A launch with the attributes of `spec` that are named so.
KernelSpec Part(const KernelSpec& spec, const char* kernel, std::vector<TensorSpec> operands,
                std::vector<TensorSpec> results, const char* attribute) {
  KernelSpec part{kernel, std::move(operands), std::move(results), {}};
  part.num_threads = spec.num_threads;
  if (const auto found = spec.attributes.find(attribute); found != spec.attributes.end()) {
    part.attributes.insert(*found);
  }
  return part;
}

}  // namespace

absl::StatusOr<KernelSpec> LinearOfActivation(const KernelSpec& spec) {
  if (spec.results.empty() || spec.results.size() > 2) {
    return Malformed(spec, "expects one or two results");
  }
  KernelSpec linear =
      Part(spec, "linear", spec.operands, {spec.results.back()}, "transpose_weight");
  ORIEL_RETURN_IF_ERROR(LinearShape(linear).status());
  const TensorSpec& product = spec.results.back();
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, product.dtype, product.shape));
  return linear;
}

absl::StatusOr<KernelSpec> LinearOfActivationGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 1));
  KernelSpec linear =
      Part(spec, "linear", {spec.operands[0], spec.operands[1]}, spec.results, "transpose_weight");
  ORIEL_RETURN_IF_ERROR(LinearShape(linear).status());
  const TensorSpec& result = spec.results[0];
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, result.dtype, result.shape));
  return linear;
}

absl::StatusOr<KernelSpec> WeightGradOfGrads(const KernelSpec& spec) {
  if (spec.operands.size() < 2 || spec.operands.size() > 3 || spec.results.size() != 2) {
    return Malformed(spec, "expects two or three operands and two results");
  }
  KernelSpec weight =
      Part(spec, "linear_weight_grad", spec.operands, {spec.results[0]}, "transpose_weight");
  ORIEL_RETURN_IF_ERROR(LinearWeightGradShape(weight).status());
  const TensorSpec& cotangent = spec.operands[1];
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, SumType(cotangent.dtype, spec.results[1].dtype),
                                    {cotangent.shape.back()}));
  return weight;
}

absl::StatusOr<KernelFn> MakeLinearActivation(const KernelSpec& spec,
                                              const PrepareLaunch& prepare) {
  ORIEL_ASSIGN_OR_RETURN(const KernelSpec first, LinearOfActivation(spec));
  ORIEL_ASSIGN_OR_RETURN(const KernelFn linear, prepare(first));
  ORIEL_ASSIGN_OR_RETURN(
      const KernelFn activation,
      prepare(Part(spec, "activation", {spec.results[0]}, {spec.results[0]}, "kind")));
  const size_t last = spec.results.size() - 1;
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    void* product = args.results[last];
    const void* input = product;
    ORIEL_RETURN_IF_ERROR(linear({args.operands, &product, args.stream}));
    return activation({&input, args.results, args.stream});
  });
}

absl::StatusOr<KernelFn> MakeLinearActivationGrad(const KernelSpec& spec,
                                                  const PrepareLaunch& prepare) {
  ORIEL_ASSIGN_OR_RETURN(const KernelSpec first, LinearOfActivationGrad(spec));
  ORIEL_ASSIGN_OR_RETURN(const KernelFn linear, prepare(first));
  ORIEL_ASSIGN_OR_RETURN(const KernelFn grad,
                         prepare(Part(spec, "activation_grad", {spec.results[0], spec.operands[2]},
                                      spec.results, "kind")));
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    ORIEL_RETURN_IF_ERROR(linear(args));
    const void* operands[] = {args.results[0], args.operands[2]};
    return grad({operands, args.results, args.stream});
  });
}

absl::StatusOr<KernelFn> MakeLinearGrads(const KernelSpec& spec, const PrepareLaunch& prepare) {
  ORIEL_ASSIGN_OR_RETURN(const KernelSpec first, WeightGradOfGrads(spec));
  ORIEL_ASSIGN_OR_RETURN(const KernelFn weight, prepare(first));
  KernelSpec rows = Part(spec, "reduce_sum", {spec.operands[1]}, {spec.results[1]}, "");
  std::vector<int64_t> dims(static_cast<size_t>(spec.operands[1].rank() - 1));
  std::iota(dims.begin(), dims.end(), 0);
  rows.attributes = {{"dims", dims}, {"keep_dims", int64_t{0}}};
  ORIEL_ASSIGN_OR_RETURN(const KernelFn sum, prepare(rows));
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    ORIEL_RETURN_IF_ERROR(weight(args));
    return sum({args.operands + 1, args.results + 1, args.stream});
  });
}

}  // namespace oriel::kernels
