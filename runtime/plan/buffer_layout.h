// How the values of a program's buffers lie over the ranks, as the verifier computes with it.
#ifndef ORIEL_RUNTIME_PLAN_BUFFER_LAYOUT_H_
#define ORIEL_RUNTIME_PLAN_BUFFER_LAYOUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

using AxisNames = std::vector<std::string>;

bool Contains(const AxisNames& axes, const std::string& axis);
// "{a0, a1}"
std::string Braces(const AxisNames& axes);

// The axes of a grid on which ranks differ: those of size 1 say nothing.
class GridAxes {
 public:
  explicit GridAxes(const plan::Grid& grid);

  bool Has(const std::string& axis) const { return sizes_.count(axis) > 0; }
  int64_t SizeOf(const std::string& axis) const;  // 1 for an axis that the grid lacks
  int64_t SizeOf(const AxisNames& axes) const;    // the product
  // Those of size above 1, in the order given.
  AxisNames Real(const google::protobuf::RepeatedPtrField<std::string>& names) const;

 private:
  std::map<std::string, int64_t> sizes_;
};

// The global tensor, the axes that cut each dimension (outermost first), and those on which the
// value is still a sum or a maximum over the ranks. On other axes all ranks have the same.
struct BufferLayout {
  Shape global;
  std::vector<AxisNames> dims;  // one per dimension
  AxisNames sum, max;           // sorted
  double scale = 1;

  bool IsPending() const { return !sum.empty() || !max.empty(); }
  bool IsWhole() const;  // the same on all ranks
  bool Uses(const std::string& axis) const;
  // "[4, 8] cut [{a0}, {}] sum {a1}"; what does not apply is left out.
  std::string ToString() const;
  // Equal for two views of one memory if and only if they mean the same elements by it: shapes
  // don't matter, the order of local elements in the whole does.
  std::string ViewKey(plan::DType dtype, const GridAxes& grid) const;

  friend bool operator==(const BufferLayout& a, const BufferLayout& b);
  friend bool operator!=(const BufferLayout& a, const BufferLayout& b) { return !(a == b); }
};

// Of a buffer whose sharding has been verified.
BufferLayout LayoutOf(const plan::Buffer& buffer, const GridAxes& grid);

// Of all buffers of a program.
std::vector<BufferLayout> LayoutsOf(const plan::Program& program, const GridAxes& grid);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_BUFFER_LAYOUT_H_
