#include "frontend/constant_tables.h"

#include <vector>

#include "frontend/branches.h"
#include "frontend/table_values.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

using Readers = llvm::StringMap<std::vector<const onnx::NodeProto*>>;

bool isAny(llvm::StringRef op, llvm::ArrayRef<llvm::StringRef> names) {
  return llvm::is_contained(names, op);
}

// Ops that move, repeat or convert elements.
constexpr llvm::StringRef kMoves[] = {"Cast",     "Concat",  "Expand",    "Gather",
                                      "Identity", "Reshape", "Slice",     "Split",
                                      "Squeeze",  "Tile",    "Transpose", "Unsqueeze"};

// Whether each path from a value ends in an op that `isEnd` of what it reads, and only moves
// elements or passes through some others before.
bool endsIn(llvm::StringRef value, const Readers& readers,
            llvm::function_ref<bool(const onnx::NodeProto&, llvm::StringRef)> isEnd,
            llvm::ArrayRef<llvm::StringRef> through = {}) {
  std::vector<llvm::StringRef> open{value};
  llvm::StringSet<> seen;
  bool reachesEnd = false;
  while (!open.empty()) {
    llvm::StringRef name = open.back();
    open.pop_back();
    if (!seen.insert(name).second) {
      continue;
    }
    auto found = readers.find(name);
    if (found == readers.end()) {
      return false;  // an output of the graph, or read by nothing
    }
    for (const onnx::NodeProto* node : found->second) {
      if (isEnd(*node, name)) {
        reachesEnd = true;
      } else if (isAny(node->op_type(), kMoves) || isAny(node->op_type(), through)) {
        open.insert(open.end(), node->output().begin(), node->output().end());
      } else if (node->op_type() != "Shape") {
        return false;
      }
    }
  }
  return reachesEnd;
}

bool endsIn(llvm::StringRef value, const Readers& readers, llvm::ArrayRef<llvm::StringRef> ends,
            llvm::ArrayRef<llvm::StringRef> through = {}) {
  return endsIn(
      value, readers,
      [&](const onnx::NodeProto& node, llvm::StringRef) { return isAny(node.op_type(), ends); },
      through);
}

// Whether the op takes the value for scores, or for what is added to them.
bool takesScores(const onnx::NodeProto& node, llvm::StringRef value) {
  if (node.op_type() == "Softmax") return true;
  struct Attention {
    llvm::StringRef domain, op;
    int bias;  // the operand
  };
  static constexpr Attention kAttention[] = {{"", "Attention", 3},
                                             {"com.microsoft", "Attention", 5},
                                             {"com.microsoft", "GroupQueryAttention", 10},
                                             {"com.microsoft", "MultiHeadAttention", 5}};
  const llvm::StringRef domain = node.domain() == "ai.onnx" ? "" : llvm::StringRef(node.domain());
  return llvm::any_of(kAttention, [&](const Attention& attention) {
    return attention.domain == domain && attention.op == node.op_type() &&
           attention.bias < node.input_size() && node.input(attention.bias) == value &&
           llvm::count(node.input(), value) == 1;
  });
}

bool becomesAngle(llvm::StringRef value, const Readers& readers) {
  return endsIn(value, readers, {"Sin", "Cos"}, {"Div", "Einsum", "MatMul", "Mul"});
}

// Whether all that reads the value multiplies by it.
bool onlyScales(llvm::StringRef value, const Readers& readers) {
  auto found = readers.find(value);
  return found != readers.end() && llvm::all_of(found->second, [](const onnx::NodeProto* node) {
           return node->op_type() == "Mul";
         });
}

// Tables that are told by their values.
class ComputedTables {
 public:
  ComputedTables(const Readers& readers, const llvm::StringSet<>& softmaxes,
                 llvm::StringSet<>& tables)
      : readers_(readers), tables_(tables), softmaxes_(softmaxes) {}

  // What may be one by its use has its values looked at.
  void add(const onnx::TensorProto& tensor,
           llvm::function_ref<std::optional<TensorData>(const onnx::TensorProto&)> valuesOf) {
    llvm::StringRef name = tensor.name();
    const bool scales = endsIn(name, readers_, {"Mul"}, {"Neg"});
    const bool combines =
        scales || endsIn(name, readers_, {"Add", "Max", "Min", "Mul", "Sub", "Where"});
    const bool biases =
        endsIn(name, readers_, takesScores, {"Add", "Div", "Mul", "Neg", "Sub", "Where"});
    const bool turns = endsIn(name, readers_, {"Sin", "Cos"});
    const bool fills = endsIn(name, readers_, {"Where"});
    if (!combines && !biases && !turns) return;
    int64_t count = 1;
    for (int64_t dim : tensor.dims()) {
      if (dim > kLargestTable || (count *= dim) > kLargestTable) return;
    }
    if (count < 2) return;
    std::optional<TensorData> data = valuesOf(tensor);
    if (!data) return;
    const bool isTable =
        (combines && isAddedMask(*data)) ||
        ((biases || scalesProbabilities(name)) && isFactorMask(*data)) ||
        (biases && (isScoreMask(*data) || isOfAlibiSlopes(*data) || isOfAlibiBiases(*data))) ||
        (fills && (isFillValue(*data) || isOfOneNumber(*data))) || (turns && isOfAngles(*data)) ||
        (scales && isOfCosinesAndSines(*data));
    if (isTable) {
      tables_.insert(name);
    } else if (scales && spannedDims(data->shape) >= 2) {
      factors_.emplace_back(name, *data);
    }
  }

  // Once all are added: cosines and sines in tables of their own.
  void findPairs() {
    for (const auto& [name, data] : factors_) {
      for (const auto& [otherName, other] : factors_) {
        if (name == otherName || !areCosinesAndSines(data, other)) continue;
        tables_.insert(name);
        break;
      }
    }
  }

 private:
  // Whether all that reads the value multiplies a softmax with it.
  bool scalesProbabilities(llvm::StringRef name) const {
    auto found = readers_.find(name);
    return found != readers_.end() && llvm::all_of(found->second, [&](const onnx::NodeProto* node) {
             return node->op_type() == "Mul" &&
                    llvm::any_of(node->input(), [&](const std::string& input) {
                      return softmaxes_.contains(input);
                    });
           });
  }

  const Readers& readers_;
  llvm::StringSet<>& tables_;
  const llvm::StringSet<>& softmaxes_;  // results of Softmax
  std::vector<std::pair<llvm::StringRef, TensorData>> factors_;
};

}  // namespace

llvm::StringSet<> findConstantTables(
    const onnx::GraphProto& graph, llvm::function_ref<bool(llvm::StringRef)> isFolded,
    llvm::function_ref<std::optional<TensorData>(const onnx::TensorProto&)> valuesOf) {
  Readers readers;
  llvm::StringSet<> softmaxes;
  for (const onnx::NodeProto& node : graph.node()) {
    visitWithBranches(node, [&](const onnx::NodeProto& reader) {
      if (reader.op_type() == "Softmax" && reader.output_size() > 0) {
        softmaxes.insert(reader.output(0));
      }
      for (const std::string& input : reader.input()) {
        readers[input].push_back(&reader);
      }
    });
  }
  llvm::StringSet<> tables;
  ComputedTables computed(readers, softmaxes, tables);
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    const auto& dims = tensor.dims();
    int64_t spanned = spannedDims(llvm::ArrayRef<int64_t>(dims.data(), dims.size()));
    if ((spanned == 1 && becomesAngle(tensor.name(), readers)) ||
        (spanned >= 2 && isFolded(tensor.name()) && onlyScales(tensor.name(), readers))) {
      tables.insert(tensor.name());
    } else {
      computed.add(tensor, valuesOf);
    }
  }
  computed.findPairs();
  return tables;
}

}  // namespace oriel
