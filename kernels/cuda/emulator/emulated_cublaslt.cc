// cuBLASLt for the emulator: the same functions over plain loops on the CPU.
//
// What it takes is what Oriel uses: column-major matrices of f32 and bf16, batched with strides,
// either operand transposed, sums in f32 (in a double, rounded once), epilogues of biases, of GELU
// and its derivative, and of sums of a factor. It is stricter than the library: an algorithm runs
// for the very product, alignment and workspace it was chosen for; every matrix must lie within an
// allocation; and the workspace is overwritten.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/libraries/cublaslt.h"
#include "runtime/base/float16.h"

namespace oriel::kernels::cuda {
namespace {

struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;  // or, written, sums of a factor
  cudaDataType_t bias_type = CUDA_R_32F;
  void* aux = nullptr;
  int64_t aux_leading = 0;

  bool Has(int bits) const { return (epilogue & bits) == bits; }
  bool AddsBias() const { return Has(CUBLASLT_EPILOGUE_BIAS); }
  bool SumsA() const { return Has(CUBLASLT_EPILOGUE_BGRADA); }
  bool SumsB() const { return Has(CUBLASLT_EPILOGUE_BGRADB); }
  bool AppliesGelu() const { return Has(CUBLASLT_EPILOGUE_GELU); }
  bool AppliesGeluGrad() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool HasAux() const { return Has(kAux); }

  static constexpr int kAux = CUBLASLT_EPILOGUE_GELU_AUX & ~CUBLASLT_EPILOGUE_GELU;
};

struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;

  int64_t element_bytes() const { return type == CUDA_R_16BF ? 2 : 4; }
  int64_t bytes() const {
    return ((batch - 1) * stride + static_cast<int64_t>(columns - 1) * leading +
            static_cast<int64_t>(rows)) *
           element_bytes();
  }
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
};

// What an algorithm is chosen for: it fits cublasLtMatmulAlgo_t.
struct Algorithm {
  int64_t m, n, k, batch;
  uint32_t alignment[4];
  uint32_t vector_alignment, aux_alignment;
  int32_t splits;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

constexpr size_t kWorkspace = 4096;

template <typename T, typename Handle>
T* As(Handle handle) {
  return reinterpret_cast<T*>(handle);
}

template <typename T>
bool Read(const void* buffer, size_t bytes, T* value) {
  if (buffer == nullptr || bytes != sizeof(T)) return false;
  std::memcpy(value, buffer, bytes);
  return true;
}

cublasStatus_t Checked(bool ok) { return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE; }

size_t GetVersion() { return 130000; }

const char* GetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}
const char* GetStatusString(cublasStatus_t) { return "of the emulated library"; }

cublasStatus_t Create(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t Destroy(cublasLtHandle_t handle) {
  delete As<int>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t MatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                cudaDataType_t scale) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t MatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete As<Operation>(operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t MatmulDescSetAttribute(cublasLtMatmulDesc_t to,
                                      cublasLtMatmulDescAttributes_t attribute, const void* buffer,
                                      size_t bytes) {
  Operation* operation = As<Operation>(to);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return Checked(Read(buffer, bytes, &operation->transpose_a));
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return Checked(Read(buffer, bytes, &operation->transpose_b));
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return Checked(Read(buffer, bytes, &operation->epilogue));
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return Checked(Read(buffer, bytes, &operation->bias));
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return Checked(Read(buffer, bytes, &operation->bias_type));
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return Checked(Read(buffer, bytes, &operation->aux));
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return Checked(Read(buffer, bytes, &operation->aux_leading));
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t MatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                  uint64_t columns, int64_t leading) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t MatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete As<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t MatrixLayoutSetAttribute(cublasLtMatrixLayout_t to,
                                        cublasLtMatrixLayoutAttribute_t attribute,
                                        const void* buffer, size_t bytes) {
  Layout* layout = As<Layout>(to);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return Checked(Read(buffer, bytes, &layout->batch));
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return Checked(Read(buffer, bytes, &layout->stride));
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t MatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t MatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete As<Preference>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t MatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                            cublasLtMatmulPreferenceAttributes_t attribute,
                                            const void* buffer, size_t bytes) {
  Preference* preference = As<Preference>(to);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return Checked(Read(buffer, bytes, &preference->workspace));
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return Checked(Read(buffer, bytes, &preference->reduction));
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return Checked(Read(buffer, bytes, &preference->alignment[0]));
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return Checked(Read(buffer, bytes, &preference->alignment[1]));
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return Checked(Read(buffer, bytes, &preference->alignment[2]));
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return Checked(Read(buffer, bytes, &preference->alignment[3]));
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

// What the descriptors say together.
struct Product {
  Operation operation;
  Layout a, b, c, d;
  int64_t m, n, k;
};

bool MakeProduct(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                 cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, Product* product) {
  Product p{*As<Operation>(operation),
            *As<Layout>(a),
            *As<Layout>(b),
            *As<Layout>(c),
            *As<Layout>(d),
            0,
            0,
            0};
  const bool ta = p.operation.transpose_a != CUBLAS_OP_N;
  const bool tb = p.operation.transpose_b != CUBLAS_OP_N;
  p.m = static_cast<int64_t>(ta ? p.a.columns : p.a.rows);
  p.k = static_cast<int64_t>(ta ? p.a.rows : p.a.columns);
  p.n = static_cast<int64_t>(tb ? p.b.rows : p.b.columns);
  bool fits = p.k == static_cast<int64_t>(tb ? p.b.columns : p.b.rows) &&
              p.m == static_cast<int64_t>(p.d.rows) && p.n == static_cast<int64_t>(p.d.columns) &&
              p.c.rows == p.d.rows && p.c.columns == p.d.columns && p.c.type == p.d.type;
  for (const Layout* layout : {&p.a, &p.b, &p.c, &p.d}) {
    fits = fits && layout->rows > 0 && layout->columns > 0 &&
           layout->leading >= static_cast<int64_t>(layout->rows) && layout->batch == p.d.batch;
  }
  *product = p;
  return fits;
}

bool SupportedEpilogue(const Product& p) {
  const Operation& o = p.operation;
  switch (o.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      break;
    default:
      return false;
  }
  const bool vector = o.AddsBias() || o.SumsA() || o.SumsB();
  if (vector && (o.bias_type != p.d.type || o.bias == nullptr)) return false;
  return !o.HasAux() || (o.aux != nullptr && o.aux_leading % 8 == 0 && o.aux_leading >= p.m &&
                         reinterpret_cast<uintptr_t>(o.aux) % 16 == 0);
}

bool Supported(const Product& p) {
  const auto known = [](cudaDataType_t type) { return type == CUDA_R_32F || type == CUDA_R_16BF; };
  return p.operation.compute == CUBLAS_COMPUTE_32F && p.operation.scale == CUDA_R_32F &&
         p.a.type == p.b.type && known(p.a.type) &&
         (p.d.type == p.a.type || (p.a.type == CUDA_R_16BF && p.d.type == CUDA_R_32F)) &&
         SupportedEpilogue(p) &&
         (p.operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
          p.operation.epilogue == CUBLASLT_EPILOGUE_BIAS || p.d.batch == 1);
}

// That an address shows; of none, any.
uint32_t AlignmentOf(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | 4096;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

// As on a device of so many multiprocessors, in tiles of 128 x 256. Sums are split where tiles are
// few, but not beside an epilogue.
constexpr int kProcessors = 132;

int64_t TilesOf(const Product& p) { return p.d.batch * ((p.m + 127) / 128) * ((p.n + 255) / 256); }

int32_t SplitsOf(const Product& p, int64_t tiles) {
  if (p.operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT) return 1;
  return static_cast<int32_t>(std::clamp<int64_t>(kProcessors / tiles, 1, p.k / 1024 + 1));
}

cublasStatus_t AlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                cublasLtMatmulPreference_t preferred, int requested,
                                cublasLtMatmulHeuristicResult_t results[], int* count) {
  Product p;
  *count = 0;
  if (requested < 1 || !MakeProduct(operation, a, b, c, d, &p)) return CUBLAS_STATUS_INVALID_VALUE;
  const Preference& preference = *As<Preference>(preferred);
  // Others would add parts of a sum in the result's type.
  if (preference.reduction != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!Supported(p) || preference.workspace < kWorkspace) return CUBLAS_STATUS_NOT_SUPPORTED;
  const int64_t tiles = TilesOf(p);
  Algorithm algorithm{p.m,
                      p.n,
                      p.k,
                      p.d.batch,
                      {},
                      AlignmentOf(p.operation.bias),
                      AlignmentOf(p.operation.aux),
                      SplitsOf(p, tiles)};
  std::copy_n(preference.alignment, 4, algorithm.alignment);
  // One that would not run comes first where there is room.
  if (requested > 1) results[(*count)++] = {{}, 0, CUBLAS_STATUS_NOT_SUPPORTED, 1, {}};
  cublasLtMatmulHeuristicResult_t& result = results[(*count)++] = {};
  std::memcpy(&result.algo, &algorithm, sizeof(algorithm));
  // Not every product needs one.
  result.workspaceSize = p.m % 2 == 0 ? kWorkspace : 0;
  result.wavesCount = static_cast<float>(tiles * algorithm.splits) / kProcessors;
  result.state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

// Of what an algorithm says of itself, what Oriel reads.
cublasStatus_t AlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                      cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                      size_t bytes, size_t* written) {
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof(algorithm));
  int32_t number;
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_ID:
      number = 0;
      break;
    case CUBLASLT_ALGO_CONFIG_TILE_ID:
      number = CUBLASLT_MATMUL_TILE_128x256;
      break;
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
      number = algorithm.splits;
      break;
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
      number = algorithm.splits > 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                    : CUBLASLT_REDUCTION_SCHEME_NONE;
      break;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (bytes != sizeof(number)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &number, bytes);
  if (written != nullptr) *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

double Load(const void* base, cudaDataType_t type, int64_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(base)[i];
  return runtime::BFloat16ToFloat(static_cast<const uint16_t*>(base)[i]);
}

void Store(void* base, cudaDataType_t type, int64_t i, double value) {
  const float rounded = static_cast<float>(value);
  if (type == CUDA_R_32F) {
    static_cast<float*>(base)[i] = rounded;
  } else {
    static_cast<uint16_t*>(base)[i] = runtime::FloatToBFloat16(rounded);
  }
}

// x/2 (1 + tanh u), u = √(2/π) (x + 0.044715 x³), and its derivative.
double Gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double GeluSlope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

// The number behind the epilogue, of row i and column j.
double Finish(const Product& p, double sum, int64_t i, int64_t j) {
  const Operation& o = p.operation;
  if (o.AddsBias()) sum += Load(o.bias, o.bias_type, i);
  const int64_t aux = j * o.aux_leading + i;
  if (o.AppliesGeluGrad()) return sum * GeluSlope(Load(o.aux, p.d.type, aux));
  if (!o.AppliesGelu()) return sum;
  if (o.HasAux()) Store(o.aux, p.d.type, aux, sum);
  return Gelu(sum);
}

// Sums over k of the rows of op(A), or of the columns of op(B).
void SumFactor(const Product& p, const void* a, const void* b) {
  const bool of_a = p.operation.SumsA();
  const Layout& layout = of_a ? p.a : p.b;
  const bool transposed = (of_a ? p.operation.transpose_a : p.operation.transpose_b) != CUBLAS_OP_N;
  // The dimension that stays is that of columns of the matrix as it is stored, or of rows.
  const bool rows_stay = of_a != transposed;
  for (int64_t i = 0; i < (of_a ? p.m : p.n); ++i) {
    double sum = 0;
    for (int64_t x = 0; x < p.k; ++x) {
      const int64_t at = rows_stay ? x * layout.leading + i : i * layout.leading + x;
      sum += Load(of_a ? a : b, layout.type, at);
    }
    Store(const_cast<void*>(p.operation.bias), p.operation.bias_type, i, sum);
  }
}

void Multiply(const Product& p, float alpha, const void* a, const void* b, float beta,
              const void* c, void* d) {
  const bool ta = p.operation.transpose_a != CUBLAS_OP_N;
  const bool tb = p.operation.transpose_b != CUBLAS_OP_N;
  if (p.operation.SumsA() || p.operation.SumsB()) SumFactor(p, a, b);
  // Each column of op(B) and all of op(A) as doubles, so that the inner loop is plain.
  std::vector<double> left(p.m * p.k), right(p.k);
  for (int64_t s = 0; s < p.d.batch; ++s) {
    if (s == 0 || p.a.stride != 0) {
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t x = 0; x < p.k; ++x) {
          const int64_t at = ta ? i * p.a.leading + x : x * p.a.leading + i;
          left[i * p.k + x] = Load(a, p.a.type, s * p.a.stride + at);
        }
      }
    }
    for (int64_t j = 0; j < p.n; ++j) {
      for (int64_t x = 0; x < p.k; ++x) {
        const int64_t at = tb ? x * p.b.leading + j : j * p.b.leading + x;
        right[x] = Load(b, p.b.type, s * p.b.stride + at);
      }
      for (int64_t i = 0; i < p.m; ++i) {
        double sum = 0;
        for (int64_t x = 0; x < p.k; ++x) sum += left[i * p.k + x] * right[x];
        sum *= alpha;
        const int64_t at = j * p.d.leading + i;
        // As the library: what is not added is not read, it may be NaN.
        if (beta != 0) {
          sum += beta * Load(c, p.c.type, s * p.c.stride + j * p.c.leading + i);
        }
        Store(d, p.d.type, s * p.d.stride + at, Finish(p, sum, i, j));
      }
    }
  }
}

cublasStatus_t Matmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                      const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                      cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                      cudaStream_t stream) {
  Product p;
  if (algo == nullptr || !MakeProduct(operation, a_layout, b_layout, c_layout, d_layout, &p)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!Supported(p)) return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm chosen;
  std::memcpy(&chosen, algo, sizeof(chosen));
  const size_t needed = p.m % 2 == 0 ? kWorkspace : 0;
  bool fits = chosen.m == p.m && chosen.n == p.n && chosen.k == p.k && chosen.batch == p.d.batch &&
              workspace_bytes >= needed;
  const void* const addresses[] = {a, b, c, d};
  const int64_t bytes[] = {p.a.bytes(), p.b.bytes(), p.c.bytes(), p.d.bytes()};
  for (int i = 0; i < 4; ++i) {
    fits = fits && reinterpret_cast<uintptr_t>(addresses[i]) % chosen.alignment[i] == 0 &&
           IsEmulatedMemory(addresses[i], bytes[i]);
  }
  const Operation& o = p.operation;
  if (o.AddsBias() || o.SumsA() || o.SumsB()) {
    const int64_t count = o.SumsB() ? p.n : p.m;
    fits = fits && AlignmentOf(o.bias) >= chosen.vector_alignment;
    fits = fits && IsEmulatedMemory(o.bias, count * (o.bias_type == CUDA_R_16BF ? 2 : 4));
  }
  if (o.HasAux()) {
    const int64_t count = (p.n - 1) * o.aux_leading + p.m;
    fits = fits && AlignmentOf(o.aux) >= chosen.aux_alignment;
    fits = fits && IsEmulatedMemory(o.aux, count * p.d.element_bytes());
  }
  if (needed > 0) fits = fits && IsEmulatedMemory(workspace, static_cast<int64_t>(needed));
  if (!fits) return CUBLAS_STATUS_INVALID_VALUE;
  const float scale = *static_cast<const float*>(alpha);
  const float start = *static_cast<const float*>(beta);
  const CUresult result = EnqueueEmulated(stream, "cublasLtMatmul", [=](bool) {
    if (needed > 0) std::memset(workspace, 0xa5, needed);
    Multiply(p, scale, a, b, start, c, d);
    return CUDA_SUCCESS;
  });
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

struct Provider {
  Provider() {
    static CublasLt table;
    table.cublasLtGetVersion = GetVersion;
    table.cublasLtGetStatusName = GetStatusName;
    table.cublasLtGetStatusString = GetStatusString;
    table.cublasLtCreate = Create;
    table.cublasLtDestroy = Destroy;
    table.cublasLtMatmulDescCreate = MatmulDescCreate;
    table.cublasLtMatmulDescDestroy = MatmulDescDestroy;
    table.cublasLtMatmulDescSetAttribute = MatmulDescSetAttribute;
    table.cublasLtMatrixLayoutCreate = MatrixLayoutCreate;
    table.cublasLtMatrixLayoutDestroy = MatrixLayoutDestroy;
    table.cublasLtMatrixLayoutSetAttribute = MatrixLayoutSetAttribute;
    table.cublasLtMatmulPreferenceCreate = MatmulPreferenceCreate;
    table.cublasLtMatmulPreferenceDestroy = MatmulPreferenceDestroy;
    table.cublasLtMatmulPreferenceSetAttribute = MatmulPreferenceSetAttribute;
    table.cublasLtMatmulAlgoGetHeuristic = AlgoGetHeuristic;
    table.cublasLtMatmulAlgoConfigGetAttribute = AlgoConfigGetAttribute;
    table.cublasLtMatmul = Matmul;
    ProvideCublasLt(EmulatedDriver(), table);
  }
};
// Linked whole: with the emulator comes its library.
const Provider provider;

}  // namespace
}  // namespace oriel::kernels::cuda
