// Einstein summation, as products of matrices.
#include <map>
#include <set>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

// The labels of a value's dimensions: characters, and for those of an ellipsis numbers above, the
// last dimension having the largest.
using Labels = llvm::SmallVector<int>;
constexpr int kEllipsis = 256, kMaxRank = 64;

struct Term {
  Value value;
  Labels labels;
};

bool has(const Labels& labels, int label) { return llvm::is_contained(labels, label); }

class Einsum {
 public:
  explicit Einsum(NodeImporter& n) : n_(n) {}

  LogicalResult import();

 private:
  LogicalResult parseTerm(llvm::StringRef text, Value value);
  LogicalResult parseOutput(llvm::StringRef text);
  void deriveOutput();
  Term diagonal(Term term, int label);
  // Without the dimensions of size 1 that another term makes larger: they are the same for each
  // element of it.
  Term withoutRepeats(Term term);
  // Sums over the dimensions that `keep` does not want.
  Term summed(Term term, llvm::function_ref<bool(int)> keep);
  Value permuted(const Term& term, const Labels& order);
  Term product(const Term& lhs, const Term& rhs, llvm::function_ref<bool(int)> keep);
  Ints sizesOf(const Labels& labels) const;
  int64_t count(const Labels& labels) const;

  NodeImporter& n_;
  llvm::SmallVector<Term> terms_;
  Labels output_;
  std::map<int, int64_t> sizes_;
  std::set<int> repeated_;  // within a term
};

Ints Einsum::sizesOf(const Labels& labels) const {
  Ints sizes;
  for (int label : labels) {
    sizes.push_back(sizes_.at(label));
  }
  return sizes;
}

int64_t Einsum::count(const Labels& labels) const {
  int64_t product = 1;  // of dimensions of values that exist: no overflow
  for (int64_t size : sizesOf(labels)) {
    product *= size;
  }
  return product;
}

LogicalResult Einsum::parseTerm(llvm::StringRef text, Value value) {
  Term term{value, {}};
  int64_t named = llvm::count_if(text, [](char c) { return c != '.'; });
  int64_t others = rankOf(value) - named;
  size_t ellipsis = text.find("...");
  if (text.count('.') != (ellipsis == llvm::StringRef::npos ? 0 : 3) || others < 0 ||
      others > kMaxRank || (ellipsis == llvm::StringRef::npos && others != 0)) {
    return n_.error() << "has the term \"" << text << "\" for an operand " << value.getType();
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.') {
      term.labels.push_back(static_cast<unsigned char>(text[i]));
      continue;
    }
    for (int64_t dim = 0; dim < others; ++dim) {
      term.labels.push_back(static_cast<int>(kEllipsis + kMaxRank - others + dim));
    }
    i += 2;
  }
  std::map<int, int64_t> own;
  for (auto [label, size] : llvm::zip_equal(term.labels, shapeOf(value))) {
    const int64_t first = own.try_emplace(label, size).first->second;
    int64_t& known = sizes_.try_emplace(label, size).first->second;
    if (first != size || (known != size && known != 1 && size != 1)) {
      return n_.error() << "gives one index the sizes " << (first != size ? first : known)
                        << " and " << size;
    }
    known = std::max(known, size);
  }
  for (const auto& [label, size] : sizes_) {
    while (term.value && llvm::count(term.labels, label) > 1) {
      term = diagonal(std::move(term), label);
      repeated_.insert(label);
    }
  }
  if (!term.value) {
    return failure();
  }
  terms_.push_back(std::move(term));
  return success();
}

// The first two dimensions of a label made one, the last: of a matrix seen as a line of s²
// elements, every (s+1)-th.
Term Einsum::diagonal(Term term, int label) {
  const auto* at = llvm::find(term.labels, label);
  const int64_t size = shapeOf(term.value)[at - term.labels.begin()];
  if (size > kMaxEnumerated) {
    n_.error() << "takes a diagonal of " << size << " elements, more than " << kMaxEnumerated;
    return {};
  }
  Ints permutation, shape, picked, pair;
  Labels labels;
  for (auto [dim, other] : llvm::enumerate(term.labels)) {
    if (other == label && pair.size() < 2) {
      pair.push_back(static_cast<int64_t>(dim));
      continue;
    }
    permutation.push_back(static_cast<int64_t>(dim));
    shape.push_back(shapeOf(term.value)[dim]);
    labels.push_back(other);
  }
  llvm::append_range(permutation, pair);
  shape.push_back(size * size);
  labels.push_back(label);
  for (int64_t at = 0; at < size; ++at) {
    picked.push_back(at * (size + 1));
  }
  Value line = n_.reshape(n_.transpose(term.value, permutation), shape);
  return {n_.gather(line, n_.constantOf(picked), static_cast<int64_t>(shape.size()) - 1), labels};
}

LogicalResult Einsum::parseOutput(llvm::StringRef text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("...")) {
      for (auto it = sizes_.lower_bound(kEllipsis); it != sizes_.end(); ++it) {
        output_.push_back(it->first);
      }
      i += 2;
      continue;
    }
    int label = static_cast<unsigned char>(text[i]);
    if (!sizes_.count(label) || has(output_, label)) {
      return n_.error() << "has the result \"" << text
                        << "\" with an index that is repeated or in no operand";
    }
    output_.push_back(label);
  }
  return success();
}

Term Einsum::withoutRepeats(Term term) {
  Ints shape;
  Labels labels;
  for (auto [label, size] : llvm::zip_equal(term.labels, shapeOf(term.value))) {
    if (size == sizes_.at(label)) {
      shape.push_back(size);
      labels.push_back(label);
    }
  }
  return labels == term.labels ? term : Term{n_.reshape(term.value, shape), labels};
}

// The dimensions of an ellipsis, then the indices that occur once, in order.
void Einsum::deriveOutput() {
  for (auto it = sizes_.lower_bound(kEllipsis); it != sizes_.end(); ++it) {
    output_.push_back(it->first);
  }
  for (const auto& [label, size] : sizes_) {
    int64_t uses = llvm::count_if(terms_, [l = label](const Term& t) { return has(t.labels, l); });
    if (label < kEllipsis && uses == 1 && !repeated_.count(label)) {
      output_.push_back(label);
    }
  }
}

Term Einsum::summed(Term term, llvm::function_ref<bool(int)> keep) {
  Ints dims;
  Labels kept;
  for (auto [dim, label] : llvm::enumerate(term.labels)) {
    if (keep(label)) {
      kept.push_back(label);
    } else {
      dims.push_back(static_cast<int64_t>(dim));
    }
  }
  if (dims.empty()) {
    return term;
  }
  return {n_.reduce<ir::ReduceSumOp>(term.value, dims, /*keepDims=*/false), kept};
}

Value Einsum::permuted(const Term& term, const Labels& order) {
  Ints permutation;
  for (int label : order) {
    permutation.push_back(llvm::find(term.labels, label) - term.labels.begin());
  }
  return llvm::is_sorted(permutation) ? term.value : n_.transpose(term.value, permutation);
}

Term Einsum::product(const Term& lhs, const Term& rhs, llvm::function_ref<bool(int)> keep) {
  Labels batch, rows, columns, inner;
  for (int label : lhs.labels) {
    Labels& group = !has(rhs.labels, label) ? rows : keep(label) ? batch : inner;
    group.push_back(label);
  }
  for (int label : rhs.labels) {
    if (!has(lhs.labels, label)) {
      columns.push_back(label);
    }
  }
  // As the output has them, so that heads are the outer part of what is merged here.
  llvm::stable_sort(columns,
                    [&](int a, int b) { return llvm::find(output_, a) < llvm::find(output_, b); });
  auto joined = [](std::initializer_list<Labels> groups) {
    Labels all;
    for (const Labels& group : groups) {
      llvm::append_range(all, group);
    }
    return all;
  };
  Term result{{}, joined({batch, rows, columns})};
  Value left = permuted(lhs, joined({batch, rows, inner}));
  if (!left || !rhs.value) {
    return result;
  }
  if (inner.empty()) {  // no sum; as a product of elements it folds (the angles of rotary tables)
    Ints shape = sizesOf(joined({batch, rows}));
    shape.append(columns.size(), 1);
    Ints other = sizesOf(batch);
    other.append(rows.size(), 1);
    llvm::append_range(other, sizesOf(columns));
    Value right = permuted(rhs, joined({batch, columns}));
    result.value =
        right ? n_.create<ir::MulOp>(n_.reshape(left, shape), n_.reshape(right, other)) : Value();
    return result;
  }
  Value right = permuted(rhs, joined({batch, inner, columns}));
  Ints leftShape = sizesOf(batch), rightShape = sizesOf(batch);
  llvm::append_range(rightShape, Ints{count(inner), count(columns)});
  if (batch.empty() && !rows.empty()) {
    leftShape = sizesOf(rows);
    leftShape.push_back(count(inner));
    left = right ? n_.reshape(left, leftShape) : Value();
    result.value = left ? n_.create<ir::LinearOp>(left, n_.reshape(right, rightShape),
                                                  OptionalValue{}, /*transposeWeight=*/false)
                        : Value();
  } else {
    llvm::append_range(leftShape, Ints{count(rows), count(inner)});
    left = right ? n_.reshape(left, leftShape) : Value();
    result.value =
        left ? n_.create<ir::MatmulOp>(left, n_.reshape(right, rightShape), false, false) : Value();
  }
  if (result.value) {
    result.value = n_.reshape(result.value, sizesOf(result.labels));
  }
  return result;
}

LogicalResult Einsum::import() {
  std::string text = n_.attrString("equation", "");
  llvm::erase(text, ' ');
  auto [inputs, output] = llvm::StringRef(text).split("->");
  llvm::SmallVector<llvm::StringRef> parts;
  inputs.split(parts, ',');
  if (parts.size() != n_.numOperands()) {
    return n_.error() << "has the equation \"" << text << "\" and " << n_.numOperands()
                      << " operands";
  }
  for (auto [index, part] : llvm::enumerate(parts)) {
    Value operand = n_.operand(index);
    if (!operand || failed(parseTerm(part, operand))) {
      return failure();
    }
  }
  if (llvm::StringRef(text).contains("->")) {
    if (failed(parseOutput(output))) {
      return failure();
    }
  } else {
    deriveOutput();
  }
  for (Term& term : terms_) {
    term = withoutRepeats(std::move(term));
  }
  // From the left; an index is summed as soon as nothing that follows reads it.
  size_t next = 0;
  auto keep = [&](int label) {
    return has(output_, label) ||
           llvm::any_of(llvm::drop_begin(terms_, next),
                        [&](const Term& term) { return has(term.labels, label); });
  };
  next = 1;
  Term result = summed(terms_[0], keep);
  for (; result.value && next < terms_.size();) {
    const Term& rhs = terms_[next++];
    Term other = summed(
        rhs, [&](int label) { return keep(label) || llvm::is_contained(result.labels, label); });
    result = summed(product(result, other, keep), keep);
  }
  return n_.replace(result.value ? permuted(result, output_) : Value());
}

LogicalResult importEinsum(NodeImporter& n) { return Einsum(n).import(); }

}  // namespace

void registerEinsum(OpRegistry& registry) { registry.add("Einsum", 12, importEinsum); }

}  // namespace oriel
