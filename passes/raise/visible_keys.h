// Masks of attention taken apart into causality, windows and the rest.
#ifndef ORIEL_PASSES_RAISE_VISIBLE_KEYS_H_
#define ORIEL_PASSES_RAISE_VISIBLE_KEYS_H_

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/PatternMatch.h"

namespace oriel {

// Elements that tell keys to be seen from hidden ones: a boolean value, or a table that is known.
struct KeyChoice {
  mlir::Value value;
  mlir::DenseElementsAttr table = {};
  bool keepsWhereTrue = true;
};

// The value below repetitions and new leading dimensions of size 1, which change no mask.
mlir::Value withoutRepetition(mlir::Value value);
// The elements of a known table, true where a key is seen.
llvm::SmallVector<bool> seenKeys(mlir::DenseElementsAttr table, bool keepsWhereTrue);

// Which of t keys each of s queries sees, [.., s, t] or what broadcasts to it: those that all
// parts let through.
class VisibleKeys {
 public:
  VisibleKeys(const KeyChoice& choice, int64_t queries, int64_t keys);

  bool causal() const { return causal_; }
  int64_t window() const { return window_; }  // 0: none
  // Whether anything was recognised.
  bool isSimpler() const { return recognised_ > 0; }
  // Whether it is known that every query sees some key. Then a large negative score hides as
  // well as -infinity does; else softmax spreads a row that sees nothing over all keys.
  bool everyQuerySees() const;
  // The other parts.
  llvm::ArrayRef<KeyChoice> rest() const { return rest_; }

 private:
  void add(mlir::Value value, bool keepsWhereTrue);
  bool addTable(mlir::DenseElementsAttr table, bool keepsWhereTrue);
  bool addComparison(mlir::Value value, bool keepsWhereTrue);
  bool addBound(int64_t byQuery, int64_t byKey, int64_t constant);
  void addWindow(int64_t window);

  int64_t queries_, keys_;
  bool causal_ = false;
  int64_t window_ = 0;
  int recognised_ = 0;
  int depth_ = 0;
  llvm::SmallVector<KeyChoice> rest_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_VISIBLE_KEYS_H_
