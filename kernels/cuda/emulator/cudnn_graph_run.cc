#include "kernels/cuda/emulator/cudnn_graph_run.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/float16.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda::emulator {
namespace {

using Index = std::vector<int64_t>;

double Load(cudnnDataType_t type, const void* memory, int64_t at) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return static_cast<const float*>(memory)[at];
    case CUDNN_DATA_DOUBLE:
      return static_cast<const double*>(memory)[at];
    case CUDNN_DATA_BFLOAT16:
      return runtime::BFloat16ToFloat(static_cast<const uint16_t*>(memory)[at]);
    case CUDNN_DATA_INT32:
      return static_cast<const int32_t*>(memory)[at];
    default:
      return static_cast<const int8_t*>(memory)[at];
  }
}

double Round(cudnnDataType_t type, double x) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return static_cast<float>(x);
    case CUDNN_DATA_BFLOAT16:
      return runtime::BFloat16ToFloat(runtime::FloatToBFloat16(static_cast<float>(x)));
    case CUDNN_DATA_INT32:
      return std::trunc(x);
    case CUDNN_DATA_BOOLEAN:
      return x != 0;
    default:
      return x;
  }
}

void Store(cudnnDataType_t type, double x, int64_t at, void* memory) {
  if (type == CUDNN_DATA_FLOAT) static_cast<float*>(memory)[at] = static_cast<float>(x);
  if (type == CUDNN_DATA_BFLOAT16) {
    static_cast<uint16_t*>(memory)[at] = runtime::FloatToBFloat16(static_cast<float>(x));
  }
}

// The elements of a tensor at their strides, in doubles.
struct Values {
  const GraphTensor* tensor = nullptr;
  std::vector<double> at;

  // An index is of another tensor's dimensions: of as many here, or of one, or each of a few of
  // here is for a run of them there (heads of a group).
  int64_t Offset(const Index& index, const Index& dims) const {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t size = tensor->dims[d];
      offset += index[d] / std::max<int64_t>(1, dims[d] / size) % size * tensor->strides[d];
    }
    return offset;
  }
  double Get(const Index& index, const Index& dims) const { return at[Offset(index, dims)]; }
  // Of its own dimensions.
  int64_t At(const Index& index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * tensor->strides[d];
    return offset;
  }
};

// Calls `visit` with each index of the dimensions.
template <typename Visit>
void ForEach(const Index& dims, const Visit& visit) {
  for (int64_t size : dims) {
    if (size == 0) return;
  }
  Index index(dims.size(), 0);
  while (true) {
    visit(index);
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

// The ids of an operation's operands and result.
struct Roles {
  std::vector<cudnnBackendAttributeName_t> operands;
  cudnnBackendAttributeName_t result;
};

bool RolesOf(cudnnBackendDescriptorType_t type, Roles* roles) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      *roles = {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
                CUDNN_ATTR_OPERATION_MATMUL_CDESC};
      return true;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      *roles = {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                 CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
                CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
      return true;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      *roles = {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC}, CUDNN_ATTR_OPERATION_REDUCTION_YDESC};
      return true;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      *roles = {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC}, CUDNN_ATTR_OPERATION_RESHAPE_YDESC};
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      *roles = {
          {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      *roles = {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX};
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      *roles = {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X},
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW};
      return true;
    default:
      return false;
  }
}

int64_t IdOf(const Descriptor& tensor) {
  return tensor.Value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
}

absl::StatusOr<double> Pointwise(cudnnPointwiseMode_t mode, double x, double b, double t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_IDENTITY:
      return x;
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b;
    case CUDNN_POINTWISE_CMP_GT:
      return x > b;
    case CUDNN_POINTWISE_CMP_LE:
      return x <= b;
    case CUDNN_POINTWISE_CMP_LT:
      return x < b;
    case CUDNN_POINTWISE_LOGICAL_AND:
      return x != 0 && b != 0;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    default:
      return absl::UnimplementedError(absl::StrCat("pointwise mode ", static_cast<int>(mode)));
  }
}

absl::Status RunPointwise(const Descriptor& operation, const std::vector<const Values*>& in,
                          Values* out) {
  const auto mode = operation.One(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  if (mode == nullptr) return absl::InvalidArgumentError("a pointwise operation has no mode");
  const auto function = mode->Value(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  const int64_t axis = mode->Value<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
  const Index& dims = out->tensor->dims;
  absl::Status status;
  ForEach(dims, [&](const Index& i) {
    double y;
    if (function == CUDNN_POINTWISE_GEN_INDEX) {
      y = static_cast<double>(i[axis]);
    } else {
      const auto value = [&](size_t k) {
        return in.size() > k && in[k] != nullptr ? in[k]->Get(i, dims) : 0;
      };
      const absl::StatusOr<double> result = Pointwise(function, value(0), value(1), value(2));
      status.Update(result.status());
      y = result.ok() ? *result : 0;
    }
    out->at[out->At(i)] = Round(out->tensor->type, y);
  });
  return status;
}

// [.., m, k] [.., k, n]
void RunMatmul(const Values& a, const Values& b, Values* c) {
  const Index& dims = c->tensor->dims;
  const size_t row = dims.size() - 2, column = dims.size() - 1;
  const int64_t depth = a.tensor->dims[column];
  Index a_dims = dims, b_dims = dims;  // of what an index is split by
  a_dims[column] = b_dims[row] = depth;
  ForEach(dims, [&](const Index& i) {
    Index left = i, right = i;
    left[column] = right[row] = 0;
    int64_t x = a.Offset(left, a_dims), y = b.Offset(right, b_dims);
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      sum += a.at[x] * b.at[y];
      x += a.tensor->strides[column];
      y += b.tensor->strides[row];
    }
    c->at[c->At(i)] = Round(c->tensor->type, sum);
  });
}

absl::Status RunReduction(const Descriptor& operation, const Values& x, Values* y) {
  const auto reduction = operation.One(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  const auto function = reduction == nullptr ? CUDNN_REDUCE_TENSOR_NORM2
                                             : reduction->Value(CUDNN_ATTR_REDUCTION_OPERATOR,
                                                                CUDNN_REDUCE_TENSOR_ADD);
  const bool adds = function == CUDNN_REDUCE_TENSOR_ADD;
  if (!adds && function != CUDNN_REDUCE_TENSOR_MAX) {
    return absl::UnimplementedError("a reduction that neither adds nor takes the largest");
  }
  std::vector<double> reduced(y->at.size(), adds ? 0 : -HUGE_VAL);
  const Index& dims = x.tensor->dims;
  ForEach(dims, [&](const Index& i) {
    double& to = reduced[y->Offset(i, dims)];
    const double value = x.at[x.At(i)];
    to = adds ? to + value : (std::isnan(value) || value > to ? value : to);
  });
  for (size_t i = 0; i < reduced.size(); ++i) y->at[i] = Round(y->tensor->type, reduced[i]);
  return absl::OkStatus();
}

// All three convolutions: a sum over the products of all pairs of an input's and a weight's element
// that meet at an output's.
absl::Status RunConvolution(const Descriptor& operation, cudnnBackendAttributeName_t attribute,
                            const Values& input, const Values& weight, const Values& output,
                            Values* result) {
  const auto conv = operation.One(attribute);
  if (conv == nullptr ||
      conv->Value(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CONVOLUTION) != CUDNN_CROSS_CORRELATION) {
    return absl::UnimplementedError("a convolution that is no cross-correlation");
  }
  const Index lows = conv->List<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const Index strides = conv->List<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const Index dilations = conv->List<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const Index& weights = weight.tensor->dims;
  const int64_t group_outputs =
      weights[0] / (input.tensor->dims[1] / std::max<int64_t>(1, weights[1]));
  std::vector<double> sums(result->at.size(), 0);
  const Index taps(weights.begin() + 1, weights.end());
  Index in(output.tensor->dims.size()), w(weights.size());
  ForEach(output.tensor->dims, [&](const Index& o) {
    in[0] = o[0];
    w[0] = o[1];
    ForEach(taps, [&](const Index& tap) {
      std::copy(tap.begin(), tap.end(), w.begin() + 1);
      in[1] = o[1] / group_outputs * weights[1] + tap[0];
      for (size_t d = 0; d < lows.size(); ++d) {
        in[2 + d] = o[2 + d] * strides[d] - lows[d] + tap[1 + d] * dilations[d];
        if (in[2 + d] < 0 || in[2 + d] >= input.tensor->dims[2 + d]) return;
      }
      const int64_t at_input = input.At(in), at_weight = weight.At(w), at_output = output.At(o);
      if (result == &input) {
        sums[at_input] += output.at[at_output] * weight.at[at_weight];
      } else if (result == &weight) {
        sums[at_weight] += output.at[at_output] * input.at[at_input];
      } else {
        sums[at_output] += input.at[at_input] * weight.at[at_weight];
      }
    });
  });
  for (size_t i = 0; i < sums.size(); ++i) result->at[i] = Round(result->tensor->type, sums[i]);
  return absl::OkStatus();
}

absl::Status RunOperation(const Descriptor& operation, const std::vector<const Values*>& in,
                          Values* out) {
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      RunMatmul(*in[0], *in[1], out);
      return absl::OkStatus();
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return RunPointwise(operation, in, out);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return RunReduction(operation, *in[0], out);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      // The same elements, seen by other strides.
      if (in[0]->at.size() != out->at.size()) {
        return absl::InvalidArgumentError("a reshape changes the number of elements");
      }
      for (size_t i = 0; i < out->at.size(); ++i) {
        out->at[i] = Round(out->tensor->type, in[0]->at[i]);
      }
      return absl::OkStatus();
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return RunConvolution(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, *in[0],
                            *in[1], *out, out);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return RunConvolution(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, *out,
                            *in[1], *in[0], out);
    default:
      return RunConvolution(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                            *in[1], *out, *in[0], out);
  }
}

// The strides of a tensor that is not in memory: those that are said, if they have a place for each
// element, as a reshape needs them; else they mean nothing, and it is row-major.
std::vector<int64_t> VirtualStrides(const std::vector<int64_t>& dims,
                                    const std::vector<int64_t>& strides) {
  std::vector<size_t> order;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t least = 1;
  bool apart = true;
  for (size_t d : order) {
    apart = apart && strides[d] >= least;
    least = strides[d] * dims[d];
  }
  if (apart) return strides;
  std::vector<int64_t> row_major(dims.size(), 1);
  for (size_t d = dims.size() - 1; d > 0; --d) row_major[d - 1] = row_major[d] * dims[d];
  return row_major;
}

}  // namespace

const Descriptor::Attribute& OperationsOf(const Descriptor& graph) {
  static const auto* const none = new Descriptor::Attribute{};
  const Descriptor::Attribute* operations = graph.Find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  return operations == nullptr ? *none : *operations;
}

int64_t GraphTensor::element_bytes() const {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
      return 4;
    case CUDNN_DATA_BFLOAT16:
      return 2;
    default:
      return 1;
  }
}

int64_t GraphTensor::span() const {
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) last += (dims[d] - 1) * strides[d];
  return last + 1;
}

absl::Status TensorsOf(const Descriptor& graph, std::map<int64_t, GraphTensor>* tensors) {
  for (const auto& operation : OperationsOf(graph).descriptors) {
    Roles roles;
    if (!RolesOf(operation->type, &roles)) {
      return absl::UnimplementedError(
          absl::StrCat("operation ", static_cast<int>(operation->type)));
    }
    roles.operands.push_back(roles.result);
    for (cudnnBackendAttributeName_t role : roles.operands) {
      const auto found = operation->One(role);
      if (found == nullptr) continue;
      GraphTensor tensor = {IdOf(*found),
                            found->Value(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT),
                            found->List<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
                            found->List<int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
                            found->Value(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false),
                            found->Value(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false),
                            found->Value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0)};
      if (tensor.dims.empty() || tensor.dims.size() != tensor.strides.size() ||
          *std::min_element(tensor.dims.begin(), tensor.dims.end()) < 1 || tensor.alignment < 1) {
        return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.id, " is malformed"));
      }
      if (tensor.is_virtual) tensor.strides = VirtualStrides(tensor.dims, tensor.strides);
      const auto [at, added] = tensors->emplace(tensor.id, tensor);
      const GraphTensor& known = at->second;
      if (!added && (known.dims != tensor.dims || known.strides != tensor.strides ||
                     known.type != tensor.type || known.is_virtual != tensor.is_virtual)) {
        return absl::InvalidArgumentError(absl::StrCat("two tensors have the id ", tensor.id));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status RunGraph(const Descriptor& graph, const std::map<int64_t, GraphTensor>& tensors,
                      const std::map<int64_t, void*>& memory) {
  std::map<int64_t, Values> values;
  std::vector<int64_t> results;
  for (const auto& operation : OperationsOf(graph).descriptors) {
    Roles roles;
    RolesOf(operation->type, &roles);
    results.push_back(IdOf(*operation->One(roles.result)));
  }
  for (const auto& [id, tensor] : tensors) {
    if (std::find(results.begin(), results.end(), id) != results.end()) continue;
    Values& loaded = values[id];
    loaded.tensor = &tensor;
    loaded.at.resize(tensor.span());
    for (int64_t i = 0; i < tensor.span(); ++i) {
      loaded.at[i] = Load(tensor.type, memory.at(id), i);
    }
  }
  // In the order of what they need, not in that of the list.
  std::vector<std::shared_ptr<const Descriptor>> waiting = OperationsOf(graph).descriptors;
  while (!waiting.empty()) {
    const size_t before = waiting.size();
    for (auto at = waiting.begin(); at != waiting.end();) {
      const Descriptor& operation = **at;
      Roles roles;
      RolesOf(operation.type, &roles);
      std::vector<const Values*> in;
      bool ready = true;
      for (cudnnBackendAttributeName_t role : roles.operands) {
        const auto operand = operation.One(role);
        in.push_back(nullptr);
        if (operand == nullptr) continue;
        const auto found = values.find(IdOf(*operand));
        ready = ready && found != values.end();
        if (ready) in.back() = &found->second;
      }
      if (!ready) {
        ++at;
        continue;
      }
      const GraphTensor& tensor = tensors.at(IdOf(*operation.One(roles.result)));
      Values out;
      out.tensor = &tensor;
      out.at.resize(tensor.span());
      ORIEL_RETURN_IF_ERROR(RunOperation(operation, in, &out));
      if (!tensor.is_virtual) {
        void* to = memory.at(tensor.id);
        ForEach(tensor.dims, [&](const Index& i) {
          const int64_t offset = out.Offset(i, tensor.dims);
          Store(tensor.type, out.at[offset], offset, to);
        });
      }
      values[tensor.id] = std::move(out);
      at = waiting.erase(at);
    }
    if (waiting.size() == before)
      return absl::InvalidArgumentError("operations wait for each other");
  }
  return absl::OkStatus();
}

}  // namespace oriel::kernels::cuda::emulator
