#include "driver/weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/console.h"
#include "llvm/Support/Path.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/base/crc32.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/checkpoint/initial_weights.h"
#include "runtime/train/checkpoint/safetensors.h"
#include "runtime/train/convert.h"

namespace oriel::driver {

namespace {

// What a parameter is in the weights file: floats have the type in which the model stores them,
// which a plan in bf16 rounds when it loads them.
runtime::TensorSpec specInFile(const TensorData& value, const plan::Parameter& parameter) {
  runtime::TensorSpec spec = runtime::FromPlan(parameter.global());
  spec.shape = runtime::ShapeInFiles(parameter);
  if (!runtime::IsFloat(spec.dtype)) return spec;
  mlir::MLIRContext context;
  const mlir::Type type = elementTypeOf(&context, value.dataType);
  if (!type) return spec;
  if (type.isF32()) spec.dtype = runtime::DType::kF32;
  if (type.isF64()) spec.dtype = runtime::DType::kF64;
  if (type.isF16()) spec.dtype = runtime::DType::kF16;
  if (type.isBF16()) spec.dtype = runtime::DType::kBF16;
  return spec;
}

}  // namespace

std::string weightsFileName(const std::string& planPath) {
  return llvm::sys::path::stem(planPath).str() + ".weights.safetensors";
}

bool hasWeightsFile(const plan::Plan& plan) {
  return std::any_of(plan.parameters().begin(), plan.parameters().end(),
                     [](const auto& parameter) { return !runtime::IsMade(parameter.initial()); });
}

absl::StatusOr<std::string> writeWeights(const ModelFile& model, const plan::Plan& plan,
                                         const std::string& path) {
  std::set<std::string> written;
  std::vector<TensorData> values;  // keeps the bytes alive
  std::vector<runtime::NamedTensor> tensors;
  values.reserve(plan.parameters_size());
  for (const plan::Parameter& parameter : plan.parameters()) {
    const std::string& name = runtime::NameInFiles(parameter);
    if (runtime::IsMade(parameter.initial()) || !written.insert(name).second) continue;
    llvm::Expected<TensorData> value = model.initializer(name);
    if (!value) return toStatus(value.takeError());
    const runtime::TensorSpec spec = specInFile(*value, parameter);
    if (static_cast<int64_t>(value->bytes.size()) != spec.bytes()) {
      return absl::FailedPreconditionError(absl::StrCat("initializer \"", name, "\" has ",
                                                        value->bytes.size(), " bytes, but ",
                                                        spec.ToString(), " has ", spec.bytes()));
    }
    values.push_back(*std::move(value));
    tensors.push_back({parameter.initial().tensor(), spec, values.back().bytes.data()});
  }
  uint32_t checksum = 0;
  for (const TensorData& value : values) {
    checksum = runtime::Crc32({value.bytes.data(), value.bytes.size()}, checksum);
  }
  std::string text = runtime::Crc32Text(checksum);
  ORIEL_RETURN_IF_ERROR(runtime::WriteSafetensors(
      path, tensors, {{"model", plan.model_name()}, {runtime::kWeightsChecksum, text}}));
  return text;
}

absl::Status checkWeights(const plan::Plan& plan, const std::string& planPath) {
  std::map<std::string, runtime::SafetensorsFile> files;
  const std::string folder = runtime::FolderOf(planPath);
  for (const plan::Parameter& parameter : plan.parameters()) {
    if (runtime::IsMade(parameter.initial())) continue;
    const std::string& name = parameter.initial().file();
    auto it = files.find(name);
    if (it == files.end()) {
      absl::StatusOr<runtime::SafetensorsFile> file =
          runtime::OpenInitialWeights(plan, folder, name);
      if (!file.ok()) {
        return runtime::Annotate(file.status(), "the plan's weights (keep them beside the plan)");
      }
      it = files.emplace(name, *std::move(file)).first;
      if (runtime::HasChecksum(plan, it->second)) {
        ORIEL_RETURN_IF_ERROR(
            runtime::CheckWeightsChecksum(plan, it->second, runtime::Crc32(it->second.data())));
      }
    }
    ORIEL_ASSIGN_OR_RETURN(runtime::SafetensorsView view,
                           it->second.Find(parameter.initial().tensor()));
    const runtime::TensorSpec spec{runtime::FromPlan(parameter.global()).dtype,
                                   runtime::ShapeInFiles(parameter)};
    if (!runtime::CanRead(view.spec, spec)) {
      return absl::FailedPreconditionError(
          absl::StrCat(it->second.path(), ": \"", parameter.initial().tensor(), "\" is ",
                       view.spec.ToString(), ", the plan has ", spec.ToString(),
                       "; compile the plan again, or put its own weights beside it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace oriel::driver
