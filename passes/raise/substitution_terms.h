// What the elements of a matrix are that is computed row after row, as sums of products.
//
// Of a matrix B, zero on and above its diagonal, X = B + s B X with s = 1 or -1 has the elements
//   X(i, j) = B(i, j) + s Σ_{j < k < i} B(i, k) X(k, j)
// each of rows before its own. Elements are put together as a program does it; a sum that is one of
// X's is that from there on, so that none has more terms than there are rows; what has is given up.
//
//   SubstitutionTerms terms(3);
//   auto product = terms.product(terms.base(2, 1), terms.base(1, 0));  // X(1, 0) is B(1, 0)
//   terms.isResult(*terms.sum({terms.base(2, 0), *product}), 2, 0);    // true, with s = 1
#ifndef ORIEL_PASSES_RAISE_SUBSTITUTION_TERMS_H_
#define ORIEL_PASSES_RAISE_SUBSTITUTION_TERMS_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace oriel {

class SubstitutionTerms {
 public:
  // A sum of products of elements of B and X, with signs; 0 is zero.
  using Element = uint64_t;
  static constexpr Element kZero = 0;
  static constexpr int64_t kMaxRows = 256;

  // 1 < rows <= kMaxRows.
  explicit SubstitutionTerms(int64_t rows) : rows_(rows) {}

  // Of B, with column < row.
  Element base(int64_t row, int64_t column) const { return 1 + row * rows_ + column; }
  static Element negative(Element element) {
    return element == kZero ? kZero : element ^ kNegative;
  }
  // Nothing if a factor is neither zero nor a single element of B or X.
  static std::optional<Element> product(Element left, Element right);
  // Nothing if it has more terms than X's elements may have.
  std::optional<Element> sum(const std::vector<Element>& summands);

  bool isResult(Element element, int64_t row, int64_t column) const;
  // s; 0 before a sum was one of X's.
  int sign() const { return sign_; }

 private:
  // Encoding: elements of B and of X by number, products of two, sums by their place in sums_.
  static constexpr Element kSum = Element{1} << 63, kProduct = Element{1} << 62,
                           kNegative = Element{1} << 61;
  static constexpr int kFactorBits = 30;

  static bool isSingle(Element element) { return (element & (kSum | kProduct)) == 0; }
  Element result(int64_t row, int64_t column) const;
  // The element of X that these terms are, if they are one; sorted.
  std::optional<Element> asResult(const std::vector<Element>& terms);

  const int64_t rows_;
  int sign_ = 0;
  std::vector<std::vector<Element>> sums_;  // terms, sorted
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_SUBSTITUTION_TERMS_H_
