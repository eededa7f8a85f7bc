#include "runtime/plan/data_axes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace oriel::runtime {

absl::StatusOr<std::vector<std::string>> DataAxes(const plan::Program& program) {
  std::vector<std::string> axes;
  const plan::Buffer* first = nullptr;
  for (const plan::Buffer& buffer : program.buffers()) {
    if (buffer.kind() != plan::INPUT) continue;
    std::vector<std::string> own;
    for (int dim = 0; dim < buffer.sharding().dims_size(); ++dim) {
      const auto& cut = buffer.sharding().dims(dim).axes();
      if (dim == 0) own.assign(cut.begin(), cut.end());
      if (dim > 0 && !cut.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "input '", buffer.ref(), "' is split along dimension ", dim, ", not by samples"));
      }
    }
    if (first == nullptr) {
      first = &buffer;
      axes = std::move(own);
    } else if (own != axes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the samples of input '", first->ref(), "' are split over the axes [",
                       absl::StrJoin(axes, ", "), "], those of '", buffer.ref(), "' over [",
                       absl::StrJoin(own, ", "), "]"));
    }
  }
  return axes;
}

}  // namespace oriel::runtime
