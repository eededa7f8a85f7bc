#include <omp.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "dnnl.hpp"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/linear/gemm.h"

namespace oriel::kernels {
namespace {

using dnnl::memory;

const dnnl::engine& HostEngine() {
  static const dnnl::engine* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// Panels for a product of so many multiply-adds. A panel repeats the packing of an operand,
// so that there are only as many as keep a plausible number of cores busy.
int64_t PanelCount(double multiply_adds) {
  if (multiply_adds < 2e6) return 1;
  if (multiply_adds < 32e6) return 2;
  if (multiply_adds < 512e6) return 4;
  if (multiply_adds < 4e9) return 8;
  return 16;
}

// Keeps oneDNN, as called from this thread, from starting threads of its own.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

memory::data_type TypeOf(DType dtype) {
  return dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

// One panel: a primitive and its memory objects, whose addresses are set at each run.
struct Panel {
  int64_t a_offset, b_offset, bias_offset, c_offset;  // bytes
  dnnl::matmul primitive;
  memory a, b, bias, c, scratch;
  size_t scratch_bytes;
  std::vector<dnnl_exec_arg_t> arguments;
};

class PanelGemm : public OneDnnGemm {
 public:
  explicit PanelGemm(int num_threads) : num_threads_(num_threads), stream_(HostEngine()) {}

  // May throw dnnl::error.
  void Build(const GemmShape& shape) {
    const double work = static_cast<double>(shape.m) * shape.n * shape.k * shape.batch;
    const int64_t wanted = PanelCount(work);
    panel_work_ = static_cast<int64_t>(std::min(work / 8 / static_cast<double>(wanted), 1e15));
    // The dimension to cut: whole matrices, else columns (`a` as stored needs no packing),
    // else the longer side.
    int64_t extent = shape.batch;
    int64_t grain = 1;
    enum { kBatch, kRows, kColumns } cut = kBatch;
    if (shape.batch == 1) {
      const bool columns = shape.transpose_a ? shape.n >= shape.m : shape.n >= 64 * wanted;
      cut = columns ? kColumns : kRows;
      extent = columns ? shape.n : shape.m;
      grain = 64;
    }
    const int64_t grains = (extent + grain - 1) / grain;
    const int64_t step = (grains + wanted - 1) / wanted * grain;
    for (int64_t begin = 0; begin < extent; begin += step) {
      const int64_t size = std::min(step, extent - begin);
      GemmShape part = shape;
      int64_t m0 = 0, n0 = 0, b0 = 0;
      if (cut == kBatch) {
        part.batch = size;
        b0 = begin;
      } else if (cut == kRows) {
        part.m = size;
        m0 = begin;
      } else {
        part.n = size;
        n0 = begin;
      }
      AddPanel(shape, part, b0, m0, n0);
    }
  }

  absl::Status Run(const void* a, const void* b, const void* bias, void* c) override {
    // A panel was prepared for one thread, and must run on one.
    const OneThread guard;
    std::atomic<int> failed{dnnl_success};
    ParallelFor(num_threads_, static_cast<int64_t>(panels_.size()), panel_work_,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const dnnl_status_t status = Launch(panels_[i], a, b, bias, c);
                    if (status != dnnl_success) failed = status;
                  }
                });
    if (failed == dnnl_success) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("oneDNN matmul failed with status ", failed.load()));
  }

 private:
  void AddPanel(const GemmShape& whole, const GemmShape& part, int64_t b0, int64_t m0, int64_t n0) {
    using Dims = memory::dims;
    // Batches of one are left out: oneDNN has more to offer for rank 2.
    const auto describe = [&](DType type, int64_t rows, int64_t columns, int64_t row_stride,
                              int64_t column_stride, int64_t batch_stride) {
      if (part.batch == 1) {
        return memory::desc(Dims{rows, columns}, TypeOf(type), Dims{row_stride, column_stride});
      }
      return memory::desc(Dims{part.batch, rows, columns}, TypeOf(type),
                          Dims{batch_stride, row_stride, column_stride});
    };
    const int64_t m = whole.m, n = whole.n, k = whole.k;
    const auto a_desc = describe(whole.factors, part.m, k, whole.transpose_a ? 1 : k,
                                 whole.transpose_a ? m : 1, m * k);
    const auto b_desc = describe(whole.factors, k, part.n, whole.transpose_b ? 1 : n,
                                 whole.transpose_b ? k : 1, k * n);
    const auto c_desc = describe(whole.result, part.m, part.n, n, 1, m * n);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (whole.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    Panel panel;
    const int64_t factor_bytes = runtime::DTypeBytes(whole.factors);
    panel.a_offset = (b0 * m * k + m0 * (whole.transpose_a ? 1 : k)) * factor_bytes;
    panel.b_offset = (b0 * k * n + n0 * (whole.transpose_b ? k : 1)) * factor_bytes;
    panel.c_offset = (b0 * m * n + m0 * n + n0) * runtime::DTypeBytes(whole.result);
    panel.bias_offset = n0 * runtime::DTypeBytes(whole.added);
    const auto bias_type = TypeOf(whole.added);
    const auto bias_desc =
        part.batch == 1 ? memory::desc(Dims{1, part.n}, bias_type, Dims{part.n, 1})
                        : memory::desc(Dims{1, 1, part.n}, bias_type, Dims{part.n, part.n, 1});
    const dnnl::matmul::desc desc = whole.bias
                                        ? dnnl::matmul::desc(a_desc, b_desc, bias_desc, c_desc)
                                        : dnnl::matmul::desc(a_desc, b_desc, c_desc);
    const dnnl::matmul::primitive_desc primitive(desc, attributes, HostEngine());
    panel.primitive = dnnl::matmul(primitive);
    panel.a = memory(a_desc, HostEngine(), nullptr);
    panel.b = memory(b_desc, HostEngine(), nullptr);
    panel.c = memory(c_desc, HostEngine(), nullptr);
    panel.scratch = memory(primitive.scratchpad_desc(), HostEngine(), nullptr);
    panel.scratch_bytes = primitive.scratchpad_desc().get_size();
    panel.arguments = {{DNNL_ARG_SRC, panel.a.get()},
                       {DNNL_ARG_WEIGHTS, panel.b.get()},
                       {DNNL_ARG_DST, panel.c.get()},
                       {DNNL_ARG_SCRATCHPAD, panel.scratch.get()}};
    if (whole.bias) {
      panel.bias = memory(bias_desc, HostEngine(), nullptr);
      panel.arguments.push_back({DNNL_ARG_BIAS, panel.bias.get()});
    }
    panels_.push_back(std::move(panel));
  }

  // The C interface: it returns a status where the C++ one throws.
  dnnl_status_t Launch(Panel& panel, const void* a, const void* b, const void* bias, void* c) {
    const auto point = [](memory& object, const void* address, int64_t offset = 0) {
      char* place = static_cast<char*>(const_cast<void*>(address)) + offset;
      return dnnl_memory_set_data_handle(object.get(), place);
    };
    dnnl_status_t status = point(panel.a, a, panel.a_offset);
    if (status == dnnl_success) status = point(panel.b, b, panel.b_offset);
    if (status == dnnl_success) status = point(panel.c, c, panel.c_offset);
    if (status == dnnl_success && panel.bias) status = point(panel.bias, bias, panel.bias_offset);
    if (status == dnnl_success) status = point(panel.scratch, ThreadScratch(panel.scratch_bytes));
    if (status != dnnl_success) return status;
    return dnnl_primitive_execute(panel.primitive.get(), stream_.get(),
                                  static_cast<int>(panel.arguments.size()), panel.arguments.data());
  }

  int num_threads_;
  dnnl::stream stream_;
  int64_t panel_work_ = 0;
  std::vector<Panel> panels_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<OneDnnGemm>> OneDnnGemm::Create(const GemmShape& shape,
                                                               int num_threads) {
  if (IsEmpty(shape)) return absl::UnimplementedError("oneDNN matmul: an extent is 0");
  auto gemm = std::make_shared<PanelGemm>(num_threads);
  const OneThread guard;
  try {
    gemm->Build(shape);
  } catch (const dnnl::error& error) {
    return absl::UnimplementedError(absl::StrCat("oneDNN matmul: ", error.what()));
  }
  return std::shared_ptr<OneDnnGemm>(std::move(gemm));
}

}  // namespace oriel::kernels
