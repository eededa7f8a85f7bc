// Products by cuBLASLt, which counts in columns: a row-major matrix [r, c] is its [c, r]. So
// c = a b is computed as cᵀ = bᵀ aᵀ, where nothing is moved: "A" there is our b, "B" our a.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/dispatch.h"
#include "kernels/cuda/libraries/cublaslt.h"
#include "kernels/linear/gemm_cuda.h"
#include "kernels/linear/product_choices.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// Twice what NVIDIA advises for Hopper, for the parts of large gradients whose sums are split;
// algorithms that want more are not considered.
constexpr uint64_t kMaxWorkspace = uint64_t{64} << 20;

// Descriptors, each destroyed by its own function.
template <typename T>
using Owned = std::shared_ptr<std::remove_pointer_t<T>>;

cudaDataType_t TypeOf(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

// What was chosen for a product.
struct Choice {
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace;
  // How much of the device it fills: below 1, not all of it.
  float waves;
};

// The library on one device, and what its heuristics have said. The state of a device, whose
// kernels one thread prepares.
class Library {
 public:
  static absl::StatusOr<std::unique_ptr<Library>> Open(Device& device) {
    auto library = std::make_unique<Library>();
    library->device = &device;
    ORIEL_ASSIGN_OR_RETURN(library->table, CublasLtFor(device.driver()));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUBLASLT(*library->table, cublasLtCreate, &library->handle));
    return library;
  }
  ~Library() {
    if (handle != nullptr) table->cublasLtDestroy(handle);
  }

  const Device* device = nullptr;  // whose state this is
  const CublasLt* table = nullptr;
  cublasLtHandle_t handle = nullptr;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int, int, int, int, int, int>;
  std::map<Key, Choice> choices;
};

Library::Key KeyOf(const DeviceGemmShape& s) {
  const int flags = s.transpose_a | s.transpose_b << 1 | s.bias << 2 | s.accumulate << 3 |
                    s.same_a << 4 | s.same_b << 5;
  return {s.batch,
          s.m,
          s.n,
          s.k,
          flags,
          static_cast<int>(s.factors),
          static_cast<int>(s.added),
          static_cast<int>(s.result),
          static_cast<int>(s.epilogue),
          s.alignment};
}

// What its heuristics find invalid is a product that it does not take: what describes it was
// checked.
absl::Status AsRefusal(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status) && !absl::IsUnimplemented(status)) return status;
  return absl::UnimplementedError(absl::StrCat("cuBLASLt: ", status.message()));
}

// Times launches on the null stream, and owns the memory that they run on.
class Timer {
 public:
  explicit Timer(const Device& device) : driver_(device.driver()) {}
  ~Timer() {
    for (const CUdeviceptr address : memory_) driver_.cuMemFree(address);
    for (const CUevent event : {begin_, end_}) {
      if (event != nullptr) driver_.cuEventDestroy(event);
    }
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  absl::Status Init() {
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventCreate, &begin_, CU_EVENT_DEFAULT));
    return ORIEL_CUDA(driver_, cuEventCreate, &end_, CU_EVENT_DEFAULT);
  }

  absl::StatusOr<void*> Memory(int64_t bytes) {
    CUdeviceptr address = 0;
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemAlloc, &address, static_cast<size_t>(bytes)));
    memory_.push_back(address);
    // Small numbers, whatever their type is.
    ORIEL_RETURN_IF_ERROR(
        ORIEL_CUDA(driver_, cuMemsetD8Async, address, 0x3c, static_cast<size_t>(bytes), nullptr));
    return reinterpret_cast<void*>(address);
  }

  // The least of some runs, behind one that is not counted.
  template <typename Launch>
  absl::StatusOr<double> Microseconds(const Launch& launch) {
    constexpr int kRounds = 3, kLaunches = 4;
    ORIEL_RETURN_IF_ERROR(launch());
    double least = std::numeric_limits<double>::infinity();
    for (int round = 0; round < kRounds; ++round) {
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventRecord, begin_, nullptr));
      for (int i = 0; i < kLaunches; ++i) ORIEL_RETURN_IF_ERROR(launch());
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventRecord, end_, nullptr));
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventSynchronize, end_));
      float milliseconds = 0;
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventElapsedTime, &milliseconds, begin_, end_));
      least = std::min(least, milliseconds * 1e3 / kLaunches);
    }
    return least;
  }

 private:
  const Driver& driver_;
  std::vector<CUdeviceptr> memory_;
  CUevent begin_ = nullptr, end_ = nullptr;
};

class CublasLtGemm : public DeviceGemm {
 public:
  CublasLtGemm(const DeviceGemmShape& shape, Library& library)
      : shape_(shape), library_(library), table_(*library.table) {}

  absl::Status Init() {
    const auto& s = shape_;
    ORIEL_RETURN_IF_ERROR(MakeOperation());
    // In columns: "A" is b, [n, k] or transposed, "B" is a, [k, m] or transposed.
    ORIEL_ASSIGN_OR_RETURN(a_, MakeLayout(s.factors, s.transpose_b ? s.k : s.n,
                                          s.transpose_b ? s.n : s.k, s.same_b ? 0 : s.k * s.n));
    ORIEL_ASSIGN_OR_RETURN(b_, MakeLayout(s.factors, s.transpose_a ? s.m : s.k,
                                          s.transpose_a ? s.k : s.m, s.same_a ? 0 : s.m * s.k));
    ORIEL_ASSIGN_OR_RETURN(c_, MakeLayout(s.result, s.n, s.m, s.m * s.n));
    return Choose();
  }

  int64_t workspace_bytes() const override { return static_cast<int64_t>(choice_.workspace); }
  float waves() const { return choice_.waves; }

  absl::Status Launch(CUstream stream, const DeviceGemmArgs& args, CUdeviceptr workspace) override {
    if (const void* vector = VectorOf(args); vector != nullptr) {
      ORIEL_RETURN_IF_ERROR(SetOperation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector));
    }
    if (HasMatrixBeside()) {
      ORIEL_RETURN_IF_ERROR(SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, args.beside));
    }
    const float one = 1, start = shape_.accumulate ? 1 : 0;
    const void* const added = shape_.accumulate ? args.addend : args.c;
    return ORIEL_CUBLASLT(table_, cublasLtMatmul, library_.handle, operation_.get(), &one, args.b,
                          a_.get(), args.a, b_.get(), &start, added, c_.get(), args.c, c_.get(),
                          &choice_.algorithm, reinterpret_cast<void*>(workspace), choice_.workspace,
                          stream);
  }

 private:
  bool HasMatrixBeside() const {
    return shape_.epilogue == Epilogue::kGeluKept || shape_.epilogue == Epilogue::kGeluGrad;
  }
  bool SumsFactor() const {
    return shape_.epilogue == Epilogue::kSumsOfA || shape_.epilogue == Epilogue::kSumsOfB;
  }
  // A bias, or sums of a factor: it has one place for either.
  const void* VectorOf(const DeviceGemmArgs& args) const {
    return SumsFactor() ? args.beside : shape_.bias ? args.bias : nullptr;
  }

  cublasLtEpilogue_t EpilogueOf() const {
    switch (shape_.epilogue) {
      case Epilogue::kGelu:
        return shape_.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
      case Epilogue::kGeluKept:
        return shape_.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      case Epilogue::kGeluGrad:
        return CUBLASLT_EPILOGUE_DGELU;
      case Epilogue::kSumsOfA:  // its B is our a
        return CUBLASLT_EPILOGUE_BGRADB;
      case Epilogue::kSumsOfB:
        return CUBLASLT_EPILOGUE_BGRADA;
      case Epilogue::kNone:
        break;
    }
    return shape_.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }

  template <typename T>
  absl::Status SetOperation(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return ORIEL_CUBLASLT(table_, cublasLtMatmulDescSetAttribute, operation_.get(), attribute,
                          &value, sizeof(value));
  }

  absl::Status MakeOperation() {
    cublasLtMatmulDesc_t made;
    ORIEL_RETURN_IF_ERROR(
        ORIEL_CUBLASLT(table_, cublasLtMatmulDescCreate, &made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    operation_ = {made, table_.cublasLtMatmulDescDestroy};
    const cublasOperation_t plain = CUBLAS_OP_N, transposed = CUBLAS_OP_T;
    ORIEL_RETURN_IF_ERROR(
        SetOperation(CUBLASLT_MATMUL_DESC_TRANSA, shape_.transpose_b ? transposed : plain));
    ORIEL_RETURN_IF_ERROR(
        SetOperation(CUBLASLT_MATMUL_DESC_TRANSB, shape_.transpose_a ? transposed : plain));
    ORIEL_RETURN_IF_ERROR(SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf()));
    // The heuristics ask for addresses, for their alignment. The real ones come with each run.
    const auto* const aligned =
        reinterpret_cast<const void*>(static_cast<uintptr_t>(shape_.alignment));
    if (HasMatrixBeside()) {
      ORIEL_RETURN_IF_ERROR(SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned));
      ORIEL_RETURN_IF_ERROR(SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape_.n));
    }
    if (!shape_.bias && !SumsFactor()) return absl::OkStatus();
    // A bias has one number per row of its result, which is a column of ours.
    const cudaDataType_t vector = TypeOf(SumsFactor() ? shape_.result : shape_.added);
    ORIEL_RETURN_IF_ERROR(SetOperation(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, vector));
    return SetOperation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
  }

  // `rows` are contiguous.
  absl::StatusOr<Owned<cublasLtMatrixLayout_t>> MakeLayout(DType dtype, int64_t rows,
                                                           int64_t columns, int64_t stride) {
    cublasLtMatrixLayout_t made;
    ORIEL_RETURN_IF_ERROR(ORIEL_CUBLASLT(table_, cublasLtMatrixLayoutCreate, &made, TypeOf(dtype),
                                         static_cast<uint64_t>(rows),
                                         static_cast<uint64_t>(columns), rows));
    Owned<cublasLtMatrixLayout_t> layout(made, table_.cublasLtMatrixLayoutDestroy);
    if (shape_.batch == 1) return layout;
    const int32_t count = static_cast<int32_t>(shape_.batch);
    ORIEL_RETURN_IF_ERROR(ORIEL_CUBLASLT(table_, cublasLtMatrixLayoutSetAttribute, made,
                                         CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof(count)));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUBLASLT(table_, cublasLtMatrixLayoutSetAttribute, made,
                                         CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof(stride)));
    return layout;
  }

  absl::Status Choose() {
    const auto found = library_.choices.find(KeyOf(shape_));
    if (found != library_.choices.end()) {
      choice_ = found->second;
      return absl::OkStatus();
    }
    const char* file = std::getenv("ORIEL_CUBLASLT_CHOICES");
    if (file != nullptr && *file != '\0') {
      ORIEL_RETURN_IF_ERROR(TakeKept(file));
    } else {
      ORIEL_ASSIGN_OR_RETURN(const std::vector<Choice> proposals, Propose());
      choice_ = proposals.front();
    }
    library_.choices.emplace(KeyOf(shape_), choice_);
    if (LogsDispatch()) LogChoice();
    return absl::OkStatus();
  }

  // What the heuristics say will run, the first one first.
  absl::StatusOr<std::vector<Choice>> Propose() const {
    cublasLtMatmulPreference_t made;
    ORIEL_RETURN_IF_ERROR(ORIEL_CUBLASLT(table_, cublasLtMatmulPreferenceCreate, &made));
    const Owned<cublasLtMatmulPreference_t> preference(made,
                                                       table_.cublasLtMatmulPreferenceDestroy);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return ORIEL_CUBLASLT(table_, cublasLtMatmulPreferenceSetAttribute, made, attribute, &value,
                            sizeof(value));
    };
    ORIEL_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspace));
    // Parts of a sum are added up in f32, and rounded once.
    const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    ORIEL_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction));
    const uint32_t alignment = static_cast<uint32_t>(shape_.alignment);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      ORIEL_RETURN_IF_ERROR(prefer(attribute, alignment));
    }
    std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
    int count = 0;
    ORIEL_RETURN_IF_ERROR(
        AsRefusal(ORIEL_CUBLASLT(table_, cublasLtMatmulAlgoGetHeuristic, library_.handle,
                                 operation_.get(), a_.get(), b_.get(), c_.get(), c_.get(), made,
                                 static_cast<int>(results.size()), results.data(), &count)));
    if (count == 0) return absl::UnimplementedError("cuBLASLt: has no algorithm");
    std::vector<Choice> proposals;
    for (int i = 0; i < count; ++i) {
      const cublasLtMatmulHeuristicResult_t& result = results[static_cast<size_t>(i)];
      if (result.state == CUBLAS_STATUS_SUCCESS) {
        proposals.push_back({result.algo, result.workspaceSize, result.wavesCount});
      }
    }
    if (proposals.empty()) {
      return AsRefusal(CublasLtStatus(table_, results[0].state, "the algorithms that it proposes"));
    }
    return proposals;
  }

  // What the file has for the product, or the fastest proposal.
  absl::Status TakeKept(const std::string& file) {
    const DeviceProperties& device = library_.device->properties();
    const std::string product = absl::StrCat(device.name, " sm_", device.major, device.minor, ", ",
                                             device.multiprocessors, " multiprocessors, cuBLASLt ",
                                             table_.cublasLtGetVersion(), ": ", ProductText());
    const absl::StatusOr<ProductChoice> found =
        KeptChoice(file, product, sizeof(choice_.algorithm), [&] { return TimeProposals(); });
    if (absl::IsResourceExhausted(found.status())) {
      if (LogsDispatch()) {
        std::fputs(
            absl::StrCat("dispatch: cuBLASLt: ", ProductText(), ": no memory to time it\n").c_str(),
            stderr);
      }
      ORIEL_ASSIGN_OR_RETURN(const std::vector<Choice> proposals, Propose());
      choice_ = proposals.front();
      return absl::OkStatus();
    }
    ORIEL_ASSIGN_OR_RETURN(const ProductChoice kept, found);
    std::memcpy(&choice_.algorithm, kept.algorithm.data(), sizeof(choice_.algorithm));
    choice_.workspace = kept.workspace;
    choice_.waves = kept.waves;
    return absl::OkStatus();
  }

  // Each on memory of any content, which is freed again.
  absl::StatusOr<ProductChoice> TimeProposals() {
    ORIEL_ASSIGN_OR_RETURN(const std::vector<Choice> proposals, Propose());
    const auto& s = shape_;
    const int64_t a_bytes = (s.same_a ? 1 : s.batch) * s.m * s.k * runtime::DTypeBytes(s.factors),
                  b_bytes = (s.same_b ? 1 : s.batch) * s.k * s.n * runtime::DTypeBytes(s.factors),
                  c_bytes = s.batch * s.m * s.n * runtime::DTypeBytes(s.result);
    // What stands beside, a vector or a matrix, is not larger than the result or a row of it.
    const int64_t vector_bytes = std::max(s.m, s.n) * int64_t{sizeof(float)};
    Timer timer(*library_.device);
    ORIEL_RETURN_IF_ERROR(timer.Init());
    DeviceGemmArgs args{};
    ORIEL_ASSIGN_OR_RETURN(args.a, timer.Memory(a_bytes));
    ORIEL_ASSIGN_OR_RETURN(args.b, timer.Memory(b_bytes));
    ORIEL_ASSIGN_OR_RETURN(args.c, timer.Memory(c_bytes));
    ORIEL_ASSIGN_OR_RETURN(args.bias, timer.Memory(vector_bytes));
    ORIEL_ASSIGN_OR_RETURN(args.beside, timer.Memory(HasMatrixBeside() ? c_bytes : vector_bytes));
    ORIEL_ASSIGN_OR_RETURN(void* const workspace, timer.Memory(kMaxWorkspace));
    args.addend = args.c;
    std::vector<double> times;
    std::vector<Choice> timed;
    absl::Status refusal;
    for (const Choice& proposal : proposals) {
      choice_ = proposal;
      const absl::StatusOr<double> microseconds = timer.Microseconds([&] {
        return AsRefusal(Launch(nullptr, args, reinterpret_cast<CUdeviceptr>(workspace)));
      });
      if (absl::IsUnimplemented(microseconds.status())) {
        refusal = microseconds.status();
        continue;
      }
      ORIEL_RETURN_IF_ERROR(microseconds.status());
      times.push_back(*microseconds);
      timed.push_back(proposal);
    }
    if (timed.empty()) return refusal;
    const size_t fastest = FastestOf(times);
    const Choice& taken = timed[fastest];
    ProductChoice choice;
    choice.algorithm.assign(reinterpret_cast<const char*>(&taken.algorithm),
                            sizeof(taken.algorithm));
    choice.workspace = taken.workspace;
    choice.waves = taken.waves;
    choice.microseconds = times[fastest];
    return choice;
  }

  // "[768, 768] over 65536, bf16 -> f32, transposed a, epilogue 1, alignment 64": the number is
  // that of cublasLt.h.
  std::string ProductText() const {
    const auto& s = shape_;
    const auto flag = [](bool is, const char* text) { return is ? text : ""; };
    return absl::StrCat(s.batch > 1 ? absl::StrCat(s.batch, " x ") : "", "[", s.m, ", ", s.n,
                        "] over ", s.k, ", ", std::string(runtime::DTypeName(s.factors)), " -> ",
                        std::string(runtime::DTypeName(s.result)),
                        flag(s.transpose_a, ", transposed a"),
                        flag(s.transpose_b, ", transposed b"), flag(s.same_a, ", one a"),
                        flag(s.same_b, ", one b"), flag(s.accumulate, ", added"), ", epilogue ",
                        static_cast<int>(EpilogueOf()), ", alignment ", s.alignment);
  }

  // "dispatch: cuBLASLt: [768, 768] over 65536, ..: algorithm 66, tile 20, ..", the numbers of
  // cublasLt.h.
  void LogChoice() const {
    const auto config = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
      int32_t value = -1;
      const cublasStatus_t status = table_.cublasLtMatmulAlgoConfigGetAttribute(
          &choice_.algorithm, attribute, &value, sizeof(value), nullptr);
      return status == CUBLAS_STATUS_SUCCESS ? absl::StrCat(value) : "unknown";
    };
    const std::string line = absl::StrCat("dispatch: cuBLASLt: ", ProductText(), ": algorithm ",
                                          config(CUBLASLT_ALGO_CONFIG_ID), ", tile ",
                                          config(CUBLASLT_ALGO_CONFIG_TILE_ID), ", splits ",
                                          config(CUBLASLT_ALGO_CONFIG_SPLITK_NUM), ", reduction ",
                                          config(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME), ", waves ",
                                          choice_.waves, ", workspace ", choice_.workspace, "\n");
    std::fputs(line.c_str(), stderr);
  }

  const DeviceGemmShape shape_;
  Library& library_;
  const CublasLt& table_;
  Owned<cublasLtMatmulDesc_t> operation_;
  Owned<cublasLtMatrixLayout_t> a_, b_, c_;
  Choice choice_{};
};

}  // namespace

absl::StatusOr<std::shared_ptr<DeviceGemm>> MakeCublasLtGemm(const DeviceGemmShape& shape,
                                                             Device& device) {
  // It has f64, too, on few devices at speed: tests alone use it.
  if (shape.factors != DType::kF32 && shape.factors != DType::kBF16) {
    return absl::UnimplementedError("cuBLASLt: taken for f32 and bf16");
  }
  if (IsEmpty(shape)) return absl::UnimplementedError("cuBLASLt: nothing to multiply");
  if (shape.bias && shape.added != shape.result) {
    return absl::UnimplementedError("cuBLASLt: adds a bias of the result's type");
  }
  const bool keeps = shape.epilogue == Epilogue::kGeluKept,
             grad = shape.epilogue == Epilogue::kGeluGrad;
  if ((keeps || grad) && shape.n % 8 != 0) {
    return absl::UnimplementedError("cuBLASLt: keeps what gelu is of in rows of a multiple of 8");
  }
  if (shape.epilogue != Epilogue::kNone && shape.batch > 1) {
    return absl::UnimplementedError("cuBLASLt: epilogues are of single products here");
  }
  if (shape.bias &&
      (grad || shape.epilogue == Epilogue::kSumsOfA || shape.epilogue == Epilogue::kSumsOfB)) {
    return absl::UnimplementedError("cuBLASLt: no bias beside this epilogue");
  }
  // Of more, TensorFlow found some not supported (tensorflow#44175); the y and z of a launch's grid
  // end there.
  if (shape.batch > 65535) return absl::UnimplementedError("cuBLASLt: too many matrices");
  ORIEL_ASSIGN_OR_RETURN(Library* const library, device.Attached<Library>(&Library::Open));
  auto gemm = std::make_shared<CublasLtGemm>(shape, *library);
  ORIEL_RETURN_IF_ERROR(gemm->Init());
  const bool sums = shape.epilogue == Epilogue::kSumsOfA || shape.epilogue == Epilogue::kSumsOfB;
  if (sums && gemm->waves() > 0 && gemm->waves() < 0.5f) {  // 0 where it doesn't say
    // A small gradient of many rows has few tiles: it needs its sums split, which the library may
    // have without the epilogue alone. Sums of their own then cost less than an idle device.
    DeviceGemmShape product = shape;
    product.epilogue = Epilogue::kNone;
    CublasLtGemm alone(product, *library);
    ORIEL_RETURN_IF_ERROR(alone.Init());
    if (alone.waves() >= 2 * gemm->waves()) {
      return absl::UnimplementedError(absl::StrCat("cuBLASLt: fills ", gemm->waves(),
                                                   " of the device with these sums, ",
                                                   alone.waves(), " without"));
    }
  }
  return gemm;
}

}  // namespace oriel::kernels::cuda
