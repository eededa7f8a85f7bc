#include "passes/raise/substitution_terms.h"

#include <algorithm>

namespace oriel {

using Element = SubstitutionTerms::Element;

std::optional<Element> SubstitutionTerms::product(Element left, Element right) {
  if (left == kZero || right == kZero) return kZero;
  if (!isSingle(left) || !isSingle(right)) return std::nullopt;
  const Element sign = (left ^ right) & kNegative;
  left &= ~kNegative;
  right &= ~kNegative;
  return kProduct | sign | std::min(left, right) << kFactorBits | std::max(left, right);
}

std::optional<Element> SubstitutionTerms::sum(const std::vector<Element>& summands) {
  std::vector<Element> terms;
  for (const Element summand : summands) {
    if (summand == kZero) continue;
    if ((summand & kSum) == 0) {
      terms.push_back(summand);
      continue;
    }
    for (const Element term : sums_[summand & ~(kSum | kNegative)]) {
      terms.push_back(term ^ (summand & kNegative));
    }
  }
  if (terms.empty()) return kZero;
  if (terms.size() == 1) return terms.front();
  if (static_cast<int64_t>(terms.size()) > rows_) return std::nullopt;
  std::sort(terms.begin(), terms.end());
  if (const std::optional<Element> known = asResult(terms)) return known;
  sums_.push_back(std::move(terms));
  return kSum | static_cast<Element>(sums_.size() - 1);
}

// Below the diagonal the first of a column is B's.
Element SubstitutionTerms::result(int64_t row, int64_t column) const {
  return row == column + 1 ? base(row, column) : rows_ * rows_ + base(row, column);
}

bool SubstitutionTerms::isResult(Element element, int64_t row, int64_t column) const {
  return element == (column < row ? result(row, column) : kZero);
}

std::optional<Element> SubstitutionTerms::asResult(const std::vector<Element>& terms) {
  // The one that is no product says which it may be; it is the first, unless it is negative.
  const Element first = terms.front();
  const auto elements = static_cast<Element>(rows_ * rows_);
  if (!isSingle(first) || first > elements) return std::nullopt;
  const int64_t row = static_cast<int64_t>(first - 1) / rows_,
                column = static_cast<int64_t>(first - 1) % rows_;
  if (static_cast<int64_t>(terms.size()) != row - column) return std::nullopt;
  const int sign = (terms.back() & kNegative) == 0 ? 1 : -1;
  if (sign_ != 0 && sign != sign_) return std::nullopt;
  std::vector<Element> expected = {first};
  for (int64_t k = column + 1; k < row; ++k) {
    const Element term = *product(base(row, k), result(k, column));
    expected.push_back(sign > 0 ? term : negative(term));
  }
  std::sort(expected.begin(), expected.end());
  if (expected != terms) return std::nullopt;
  sign_ = sign;
  return result(row, column);
}

}  // namespace oriel
