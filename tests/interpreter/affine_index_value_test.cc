// Values that are said to be linear in their indices, by value: what is computed of random index
// arithmetic, not folded, is what `matchAffineIndex` says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "opcheck/interpreter.h"
#include "passes/raise/affine_index.h"

namespace oriel {
namespace {

using mlir::Value;
using Ints = llvm::SmallVector<int64_t>;

// A function that computes a value from positions by a number of ops.
class RandomProgram {
 public:
  RandomProgram(mlir::MLIRContext* context, unsigned seed)
      : builder_(context), loc_(builder_.getUnknownLoc()), random_(seed) {
    module_ = mlir::ModuleOp::create(loc_);
    builder_.setInsertionPointToEnd(module_->getBody());
    function_ =
        mlir::func::FuncOp::create(builder_, loc_, "main", builder_.getFunctionType({}, {}));
    builder_.setInsertionPointToStart(function_.addEntryBlock());
    for (int i = 0; i < 3; ++i) values_.push_back(Positions());
    for (int i = 0; i < 8; ++i) {
      if (Value value = Next()) values_.push_back(value);
    }
    mlir::func::ReturnOp::create(builder_, loc_, values_);
    llvm::SmallVector<mlir::Type> types;
    for (Value value : values_) types.push_back(value.getType());
    function_.setType(builder_.getFunctionType({}, types));
  }

  mlir::func::FuncOp function() { return function_; }
  const std::vector<Value>& values() const { return values_; }

 private:
  int64_t Int(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Value Any() { return values_[Int(0, static_cast<int64_t>(values_.size()) - 1)]; }
  static Ints ShapeOf(Value value) { return Ints(ir::shapeOf(value)); }
  mlir::RankedTensorType Type(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, builder_.getI64Type());
  }
  Value Number(int64_t number) {
    return ir::ConstantOp::create(builder_, loc_, mlir::DenseElementsAttr::get(Type({}), number));
  }

  // Along one of two dimensions, the other one of size 1 or as large as it may be.
  Value Positions() {
    const int64_t dim = Int(0, 1);
    Ints shape = {dim == 0 || Int(0, 1) ? 3 : 1, dim == 1 || Int(0, 1) ? 4 : 1};
    return ir::IotaOp::create(builder_, loc_, Type(shape), dim);
  }

  Value Next() {
    Value x = Any();
    Ints shape = ShapeOf(x);
    const auto rank = static_cast<int64_t>(shape.size());
    switch (Int(0, 10)) {
      case 0:
        return Combined<ir::AddOp>(x, Any());
      case 1:
        return Combined<ir::SubOp>(x, Any());
      case 2:
        return ir::MulOp::create(builder_, loc_, x, Number(Int(-2, 5)));
      case 3:
        return Combined<ir::MulOp>(x, Any());
      case 4:
        return ir::AddOp::create(builder_, loc_, Number(Int(-2, 2)), x);
      case 5: {
        if (rank == 0) return {};
        const int64_t dim = Int(0, rank - 1), size = shape[dim];
        Ints starts(rank, 0), limits(shape), strides(rank, 1);
        starts[dim] = Int(0, size - 1);
        limits[dim] = Int(starts[dim] + 1, size);
        strides[dim] = Int(1, 2);
        return ir::SliceOp::create(builder_, loc_, x, starts, limits, strides);
      }
      case 6: {
        Value y = Any();
        if (rank == 0 || ShapeOf(y).size() != shape.size()) return {};
        const int64_t dim = Int(0, rank - 1);
        Ints other = ShapeOf(y);
        other[dim] = shape[dim];
        if (other != shape) return {};
        return ir::ConcatOp::create(builder_, loc_, mlir::ValueRange{x, y}, dim);
      }
      case 7: {
        Ints to = Int(0, 1) ? Ints{Type(shape).getNumElements()} : shape;
        to.insert(to.begin() + Int(0, static_cast<int64_t>(to.size())), 1);
        if (Int(0, 1)) to = {Type(shape).getNumElements()};
        return ir::ReshapeOp::create(builder_, loc_, Type(to), x);
      }
      case 8: {
        if (rank == 0) return {};
        Value numbers = ir::BroadcastOp::create(builder_, loc_, Type(shape), Number(Int(-1, 2)));
        return ir::CumsumOp::create(builder_, loc_, numbers, Int(0, rank - 1),
                                    /*exclusive=*/Int(0, 1) == 1, /*reverse=*/Int(0, 1) == 1);
      }
      case 9: {
        Ints to(shape);
        if (Int(0, 1)) to.insert(to.begin(), 2);
        return ir::BroadcastOp::create(builder_, loc_, Type(to), x);
      }
      default: {
        Ints flat = {Type(shape).getNumElements()};
        Value table = ir::ReshapeOp::create(builder_, loc_, Type(flat), x);
        return ir::GatherOp::create(builder_, loc_, table, Any(), /*dim=*/0, /*first=*/Value());
      }
    }
  }

  template <typename Op>
  Value Combined(Value x, Value y) {
    if (mlir::failed(ir::broadcastShapes(ir::shapeOf(x), ir::shapeOf(y)))) return {};
    return Op::create(builder_, loc_, x, y);
  }

  mlir::OpBuilder builder_;
  mlir::Location loc_;
  std::mt19937 random_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp function_;
  std::vector<Value> values_;
};

int64_t ElementAt(const AffineIndex& index, llvm::ArrayRef<int64_t> shape, int64_t at) {
  int64_t element = index.constant;
  for (size_t d = shape.size(); d-- > 0;) {
    element += index.coefficients[d] * (at % shape[d]);
    at /= shape[d];
  }
  return element;
}

TEST(AffineIndexTest, IsWhatIsComputed) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<ir::OrielDialect, mlir::func::FuncDialect>();
  int gathers = 0, concatenations = 0;
  for (unsigned seed = 0; seed < 5000; ++seed) {
    RandomProgram program(&context, seed);
    auto interpreter = Interpreter::create(program.function());
    ASSERT_TRUE(interpreter.ok()) << interpreter.status();
    auto results = interpreter->run({});
    if (!results.ok()) continue;  // an index that does not exist
    for (size_t i = 0; i < program.values().size(); ++i) {
      Value value = program.values()[i];
      std::optional<AffineIndex> index = matchAffineIndex(value);
      if (!index) continue;
      gathers += llvm::isa<ir::GatherOp>(value.getDefiningOp());
      concatenations += llvm::isa<ir::ConcatOp>(value.getDefiningOp());
      const llvm::ArrayRef<int64_t> shape = ir::shapeOf(value);
      ASSERT_EQ(index->coefficients.size(), shape.size());
      const auto [least, most] = rangeOf(*index, shape);
      double smallest = INFINITY, largest = -INFINITY;
      for (int64_t at = 0; at < ir::tensorType(value).getNumElements(); ++at) {
        const double element = (*results)[i].get(at);
        ASSERT_EQ(ElementAt(*index, shape, at), element) << "seed " << seed << ", value " << i;
        smallest = std::min(smallest, element);
        largest = std::max(largest, element);
      }
      EXPECT_EQ(least, smallest);
      EXPECT_EQ(most, largest);
    }
  }
  EXPECT_GT(gathers, 100);
  EXPECT_GT(concatenations, 100);
}

}  // namespace
}  // namespace oriel
