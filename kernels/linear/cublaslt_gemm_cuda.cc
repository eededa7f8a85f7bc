// Products by cuBLASLt, which counts in columns: a row-major matrix [r, c] is its [c, r]. So
// c = a b is computed as cᵀ = bᵀ aᵀ, where nothing is moved: "A" there is our b, "B" our a.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/libraries/cublaslt.h"
#include "kernels/linear/gemm_cuda.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// What NVIDIA advises for Hopper; algorithms that want more are not considered.
constexpr uint64_t kMaxWorkspace = uint64_t{32} << 20;

// Descriptors, each destroyed by its own function.
template <typename T>
using Owned = std::shared_ptr<std::remove_pointer_t<T>>;

cudaDataType_t TypeOf(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

// What was chosen for a product.
struct Choice {
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace;
};

// The library on one device, and what its heuristics have said. The state of a device, whose
// kernels one thread prepares.
class Library {
 public:
  static absl::StatusOr<std::unique_ptr<Library>> Open(Device& device) {
    auto library = std::make_unique<Library>();
    ORIEL_ASSIGN_OR_RETURN(library->table, CublasLtFor(device.driver()));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUBLASLT(*library->table, cublasLtCreate, &library->handle));
    return library;
  }
  ~Library() {
    if (handle != nullptr) table->cublasLtDestroy(handle);
  }

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
    // The first that it says will run.
    std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
    int count = 0;
    ORIEL_RETURN_IF_ERROR(
        AsRefusal(ORIEL_CUBLASLT(table_, cublasLtMatmulAlgoGetHeuristic, library_.handle,
                                 operation_.get(), a_.get(), b_.get(), c_.get(), c_.get(), made,
                                 static_cast<int>(results.size()), results.data(), &count)));
    const auto end = results.begin() + count;
    const auto result = std::find_if(results.begin(), end, [](const auto& proposed) {
      return proposed.state == CUBLAS_STATUS_SUCCESS;
    });
    if (count == 0) return absl::UnimplementedError("cuBLASLt: has no algorithm");
    if (result == end) {
      return AsRefusal(CublasLtStatus(table_, results[0].state, "the algorithms that it proposes"));
    }
    choice_ = {result->algo, result->workspaceSize};
    library_.choices.emplace(KeyOf(shape_), choice_);
    return absl::OkStatus();
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
  return gemm;
}

}  // namespace oriel::kernels::cuda
