#include "runtime/train/checkpoint/safetensors_difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/train/convert.h"

namespace oriel::runtime {
namespace {

absl::StatusOr<std::vector<double>> Values(const SafetensorsFile& file, const std::string& name) {
  ORIEL_ASSIGN_OR_RETURN(const SafetensorsView view, file.Find(name));
  if (!IsFloat(view.spec.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": ", name, " is ", view.spec.ToString(), ", no floats"));
  }
  std::vector<double> values(static_cast<size_t>(view.spec.num_elements()));
  ORIEL_RETURN_IF_ERROR(ConvertElements(view.spec.dtype, view.data, DType::kF64, values.data(),
                                        view.spec.num_elements()));
  return values;
}

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double FiniteOrInfinity(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
}

absl::Status CheckNames(const SafetensorsFile& a, const SafetensorsFile& b) {
  for (const auto& [name, view] : a.tensors()) {
    ORIEL_ASSIGN_OR_RETURN(const SafetensorsView other, b.Find(name));
    if (other.spec.shape != view.spec.shape) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is ", view.spec.ToString(), " in ",
                                                     a.path(), ", and ", other.spec.ToString(),
                                                     " in ", b.path()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorDifference> CompareTensors(const SafetensorsFile& actual,
                                                const SafetensorsFile& expected,
                                                double zero_share) {
  ORIEL_RETURN_IF_ERROR(CheckNames(expected, actual));
  ORIEL_RETURN_IF_ERROR(CheckNames(actual, expected));
  std::map<std::string, double> norms;
  double whole = 0;
  for (const auto& [name, view] : expected.tensors()) {
    ORIEL_ASSIGN_OR_RETURN(const std::vector<double> values, Values(expected, name));
    norms[name] = Norm(values);
    whole += norms[name] * norms[name];
  }
  TensorDifference difference;
  for (const auto& [name, norm] : norms) {
    ORIEL_ASSIGN_OR_RETURN(std::vector<double> values, Values(actual, name));
    ORIEL_ASSIGN_OR_RETURN(const std::vector<double> wanted, Values(expected, name));
    double element = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] -= wanted[i];
      element = std::max(element, FiniteOrInfinity(std::abs(values[i])));
    }
    if (difference.element_tensor.empty() || element > difference.largest_element) {
      difference.largest_element = element;
      difference.element_tensor = name;
    }
    if (norm <= zero_share * std::sqrt(whole)) {
      ++difference.zeros;
      continue;
    }
    const double relative = FiniteOrInfinity(Norm(values) / norm);
    ++difference.compared;
    if (difference.compared > 1 && relative <= difference.largest) continue;
    difference.largest = relative;
    difference.tensor = name;
  }
  return difference;
}

}  // namespace oriel::runtime
