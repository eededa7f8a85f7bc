// TryKernel for the host's kernels.
#include <omp.h>

#include "kernels/common/parallel.h"
#include "kernels/testing.h"

namespace oriel::kernels::testing {

const double kRowSumSlack = 1;

absl::StatusOr<std::vector<Tensor>> TryKernel(const std::string& kernel,
                                              const std::vector<Tensor>& operands,
                                              const std::vector<TensorSpec>& results,
                                              const Attributes& attributes, int in_place) {
  min_parallel_work = 512;  // so that small tensors are split, too
  std::vector<std::vector<Tensor>> runs;
  for (int num_threads : {1, 3}) {
    omp_set_num_threads(num_threads);
    KernelSpec spec{kernel, {}, results, attributes, num_threads};
    std::vector<Tensor> inputs;
    for (const Tensor& operand : operands) {
      spec.operands.push_back(operand.spec());
      inputs.push_back(Clone(operand));
    }
    std::vector<Tensor> outputs;
    for (const TensorSpec& result : results) {
      outputs.emplace_back(result);
      outputs.back().Poison();
    }
    std::vector<const void*> operand_addresses;
    for (const Tensor& input : inputs) operand_addresses.push_back(input.data());
    std::vector<void*> result_addresses;
    for (Tensor& output : outputs) result_addresses.push_back(output.data());
    if (in_place >= 0) result_addresses[0] = inputs[in_place].data();
    absl::StatusOr<KernelFn> function = KernelRegistry::Host().Prepare(spec);
    if (!function.ok()) return function.status();
    // Twice, because scratch memory must not carry anything over.
    for (int repeat = 0; repeat < (in_place >= 0 ? 1 : 2); ++repeat) {
      absl::Status status = (*function)({operand_addresses.data(), result_addresses.data()});
      if (!status.ok()) return status;
    }
    if (in_place >= 0) outputs[0] = Clone(inputs[in_place]);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (static_cast<int>(i) == in_place || operands[i].spec().bytes() == 0) continue;
      EXPECT_EQ(std::memcmp(inputs[i].data(), operands[i].data(), operands[i].spec().bytes()), 0)
          << kernel << " wrote to operand " << i;
    }
    runs.push_back(std::move(outputs));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].bytes() == 0) continue;
    EXPECT_EQ(std::memcmp(runs[0][i].data(), runs[1][i].data(), results[i].bytes()), 0)
        << kernel << ": result " << i << " depends on the number of threads";
  }
  return std::move(runs[0]);
}

}  // namespace oriel::kernels::testing
