// Which ONNX ops Oriel imports, and by which function.
//
//   registry.add("Softmax", 13, importSoftmax);
//
// A handler is registered with the first operator-set version whose semantics it implements, and
// serves until a handler with a later version takes over.
#ifndef ORIEL_FRONTEND_OP_REGISTRY_H_
#define ORIEL_FRONTEND_OP_REGISTRY_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/Support/LLVM.h"

namespace onnx {
class NodeProto;
}  // namespace onnx

namespace oriel {

class NodeImporter;

// Builds ops for one node and binds its results; on failure it has emitted a diagnostic.
using NodeHandler = mlir::LogicalResult (*)(NodeImporter&);

class OpRegistry {
 public:
  // Every op that Oriel imports.
  static const OpRegistry& standard();

  void add(llvm::StringRef op, int64_t sinceVersion, NodeHandler handler,
           llvm::StringRef domain = "");

  // Handlers that are here and not in `before`, which this was a copy of, serve later versions of
  // their ops, too, in the place of those that `before` has.
  void takeOver(const OpRegistry& before);

  // Says that these operands of an op hold no trained weights, since the importer needs their
  // values or since they are settings: a float initializer there is a constant, unless the model
  // says what it is.
  void addConstantOperands(llvm::StringRef op, llvm::ArrayRef<unsigned> operands,
                           llvm::StringRef domain = "");
  bool isConstantOperand(llvm::StringRef domain, llvm::StringRef op, unsigned operand) const;

  // Says which nodes of an op of ONNX's own domain its handler does not take, but what ONNX defines
  // the op by.
  void leaveToBody(llvm::StringRef op, bool (*isLeft)(const onnx::NodeProto&)) {
    leftToBody_[op.str()] = isLeft;
  }
  bool leavesToBody(const onnx::NodeProto& node) const;
  // Whether there may be such nodes of an op.
  bool hasLeftToBody(const std::string& op) const { return leftToBody_.count(op) > 0; }

  // Says that an op of ONNX's own domain takes sequences (frontend/sequences.h); others get tensors
  // only.
  void addSequenceOperands(llvm::StringRef op) { takeSequences_.insert(op.str()); }
  bool takesSequences(llvm::StringRef domain, llvm::StringRef op) const;

  // The handler for a version of the domain's operator set; null if there is none. ONNX's own
  // domain is "" (or its alias "ai.onnx"). A model that doesn't say which version of another domain
  // it uses (0) gets the latest.
  NodeHandler find(llvm::StringRef domain, llvm::StringRef op, int64_t version) const;

  // The supported op whose name looks most like this one; empty if none looks like it.
  std::string nearest(llvm::StringRef op) const;
  // Names in ONNX's own domain and, with "domain::" before them, in others; sorted. Ops that only
  // rewrites of ours make are left out.
  std::vector<std::string> names() const;
  // The versions that `name`, one of names(), has a handler for, ascending; empty for another name.
  std::vector<int64_t> versions(llvm::StringRef name) const;

 private:
  using Key = std::pair<std::string, std::string>;  // domain, op
  static std::string nameOf(const Key& key);        // "com.microsoft::Gelu", "Relu"

  std::map<Key, std::map<int64_t, NodeHandler>> handlers_;
  std::map<Key, std::set<unsigned>> constantOperands_;
  std::map<std::string, bool (*)(const onnx::NodeProto&)> leftToBody_;
  std::set<std::string> takeSequences_;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OP_REGISTRY_H_
