#include "passes/raise/substitution_terms.h"

#include <vector>

#include "gtest/gtest.h"

namespace oriel {
namespace {

using Element = SubstitutionTerms::Element;

// All of X, row after row.
std::vector<std::vector<Element>> substitute(SubstitutionTerms& terms, int64_t rows,
                                             bool negative) {
  std::vector<std::vector<Element>> x(rows, std::vector<Element>(rows, SubstitutionTerms::kZero));
  for (int64_t i = 1; i < rows; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      std::vector<Element> products;
      for (int64_t k = 0; k < i; ++k) {
        products.push_back(*SubstitutionTerms::product(terms.base(i, k), x[k][j]));
      }
      Element sum = *terms.sum(products);
      if (negative) sum = SubstitutionTerms::negative(sum);
      x[i][j] = *terms.sum({terms.base(i, j), sum});
    }
  }
  return x;
}

TEST(SubstitutionTerms, RecognisesEachElement) {
  for (const bool negative : {false, true}) {
    SubstitutionTerms terms(9);
    const auto x = substitute(terms, 9, negative);
    EXPECT_EQ(terms.sign(), negative ? -1 : 1);
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = 0; j < 9; ++j) {
        EXPECT_TRUE(terms.isResult(x[i][j], i, j)) << i << ", " << j;
        if (j >= i) continue;
        EXPECT_FALSE(terms.isResult(x[i][j], i + 1, j)) << i << ", " << j;
      }
    }
  }
}

TEST(SubstitutionTerms, OrderAndGroupingDoNotMatter) {
  SubstitutionTerms terms(4);
  const Element one = *terms.product(terms.base(1, 0), terms.base(3, 1));
  const Element x20 =
      *terms.sum({*terms.product(terms.base(1, 0), terms.base(2, 1)), terms.base(2, 0)});
  const Element two = *terms.product(x20, terms.base(3, 2));
  EXPECT_TRUE(terms.isResult(*terms.sum({*terms.sum({two, terms.base(3, 0)}), one}), 3, 0));
}

TEST(SubstitutionTerms, OtherSumsAreNone) {
  SubstitutionTerms terms(4);
  const Element product = *terms.product(terms.base(2, 1), terms.base(1, 0));
  EXPECT_FALSE(terms.isResult(*terms.sum({product, product}), 2, 0));
  EXPECT_FALSE(terms.isResult(*terms.sum({terms.base(2, 0), product, product}), 2, 0));
  EXPECT_FALSE(terms.isResult(terms.base(2, 0), 2, 0));
  EXPECT_FALSE(terms.isResult(*terms.sum({terms.base(3, 0), product}), 3, 0));
  EXPECT_FALSE(
      terms.isResult(*terms.sum({SubstitutionTerms::negative(terms.base(2, 0)), product}), 2, 0));
  EXPECT_EQ(terms.sign(), 0);
  // Of two signs, the one that was first is that of all.
  EXPECT_TRUE(terms.isResult(*terms.sum({terms.base(2, 0), product}), 2, 0));
  const Element other = *terms.product(terms.base(3, 2), terms.base(2, 1));
  EXPECT_FALSE(
      terms.isResult(*terms.sum({terms.base(3, 1), SubstitutionTerms::negative(other)}), 3, 1));
}

TEST(SubstitutionTerms, SumsDoNotGrow) {
  SubstitutionTerms terms(4);
  Element sum = terms.base(1, 0);
  sum = *terms.sum({sum, sum});
  sum = *terms.sum({sum, sum});
  EXPECT_FALSE(terms.sum({sum, sum}).has_value());
}

TEST(SubstitutionTerms, ProductsOfSumsAreNotFollowed) {
  SubstitutionTerms terms(4);
  const Element sum = *terms.sum({terms.base(1, 0), terms.base(3, 2)});
  EXPECT_FALSE(terms.product(sum, terms.base(2, 1)).has_value());
  EXPECT_EQ(terms.product(sum, SubstitutionTerms::kZero), SubstitutionTerms::kZero);
}

}  // namespace
}  // namespace oriel
