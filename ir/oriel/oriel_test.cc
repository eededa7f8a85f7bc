// Costs, buffer reuse and the checked builder of single ops.
#include "ir/oriel/oriel.h"

#include "gtest/gtest.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

namespace oriel::ir {
namespace {

class OrielTest : public testing::Test {
 protected:
  OrielTest() : builder_(&context_), loc_(builder_.getUnknownLoc()) {
    context_.loadDialect<OrielDialect>();
    module_ = mlir::ModuleOp::create(loc_);
    builder_.setInsertionPointToEnd(module_->getBody());
  }

  mlir::Value Constant(llvm::ArrayRef<int64_t> shape, mlir::Type elementType = nullptr) {
    auto type =
        mlir::RankedTensorType::get(shape, elementType ? elementType : builder_.getF32Type());
    auto value = mlir::DenseElementsAttr::get(type, builder_.getZeroAttr(type.getElementType()));
    return ConstantOp::create(builder_, loc_, value);
  }

  mlir::MLIRContext context_;
  mlir::OpBuilder builder_;
  mlir::Location loc_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(OrielTest, CreateCheckedBuildsWhatCreateDoes) {
  auto sum = createChecked<AddOp>(builder_, loc_, Constant({4, 1}), Constant({8}));
  ASSERT_TRUE(succeeded(sum));
  EXPECT_EQ(shapeText(sum->getType().getShape()), "[4, 8]");
  auto norm = createChecked<LayerNormOp>(builder_, loc_, Constant({2, 8}), Constant({8}),
                                         mlir::Value(), 1e-5);
  ASSERT_TRUE(succeeded(norm));
  EXPECT_EQ(shapeText(shapeOf(norm->getMean())), "[2]");
  EXPECT_EQ(norm->getEpsilon(), 1e-5);
  EXPECT_EQ(norm->getOrigin(), -1);
  EXPECT_TRUE(succeeded(mlir::verify(*module_)));
}

TEST_F(OrielTest, CreateCheckedReportsWhatCreateWouldDieOf) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context_, [&](mlir::Diagnostic& diagnostic) {
    message += diagnostic.str();
    return mlir::success();
  });
  EXPECT_TRUE(failed(createChecked<AddOp>(builder_, loc_, Constant({4}), Constant({8}))));
  EXPECT_EQ(message,
            "'oriel.add' op expects operands that broadcast to a common shape, got [4] and [8]");
}

TEST_F(OrielTest, HostileSizesAreRefusedWithoutOverflow) {
  mlir::ScopedDiagnosticHandler quiet(&context_, [](mlir::Diagnostic&) { return mlir::success(); });
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  mlir::Value wide = Constant({kHuge / 2, 1});
  mlir::Value deep = Constant({1, kHuge / 2});
  EXPECT_TRUE(failed(createChecked<AddOp>(builder_, loc_, wide, deep)));
  EXPECT_TRUE(
      failed(createChecked<ConcatOp>(builder_, loc_, mlir::ValueRange{deep, deep, deep}, 1)));
  EXPECT_TRUE(failed(createChecked<PadOp>(builder_, loc_, deep, llvm::ArrayRef<int64_t>{0, 1},
                                          llvm::ArrayRef<int64_t>{0, 1},
                                          llvm::ArrayRef<int64_t>{0, kHuge})));
  EXPECT_TRUE(failed(createChecked<ConvOp>(
      builder_, loc_, Constant({1, 1, 8}), Constant({1, 1, 2}), mlir::Value(),
      llvm::ArrayRef<int64_t>{1}, llvm::ArrayRef<int64_t>{0, 0}, llvm::ArrayRef<int64_t>{kHuge})));
  EXPECT_TRUE(
      failed(createChecked<TransposeOp>(builder_, loc_, deep, llvm::ArrayRef<int64_t>{0, kHuge})));
}

TEST_F(OrielTest, ContractionsCountTwoPerMultiplyAdd) {
  auto matmul = MatmulOp::create(builder_, loc_, Constant({5, 2, 3}), Constant({5, 4, 3}),
                                 /*transpose_lhs=*/false, /*transpose_rhs=*/true);
  EXPECT_EQ(matmul.getFlops(), 2 * 5 * 2 * 3 * 4);
  auto linear =
      LinearOp::create(builder_, loc_, Constant({5, 2, 3}), Constant({3, 4}), mlir::Value());
  EXPECT_EQ(linear.getFlops(), 2 * 10 * 3 * 4);
  auto weightGrad =
      LinearWeightGradOp::create(builder_, loc_, Constant({5, 2, 3}), Constant({5, 2, 4}));
  EXPECT_EQ(weightGrad.getFlops(), linear.getFlops());
  // 7x7 positions of a 4x4 kernel over 3 channels, 64 of them, for 2 images.
  auto conv = ConvOp::create(builder_, loc_, Constant({2, 3, 28, 28}), Constant({64, 3, 4, 4}),
                             mlir::Value(), {4, 4}, {0, 0, 0, 0}, {1, 1});
  EXPECT_EQ(conv.getFlops(), 2 * 2 * 64 * 49 * 3 * 16);
  // Scores and weighted sum.
  auto attention = AttentionOp::create(
      builder_, loc_, Constant({2, 4, 8, 16}), Constant({2, 2, 6, 16}), Constant({2, 2, 6, 32}),
      /*mask=*/mlir::Value(), /*sink=*/mlir::Value(), 0.25, /*causal=*/false);
  EXPECT_EQ(attention.getFlops(), 2 * 2 * 4 * 8 * 6 * (16 + 32));
}

TEST_F(OrielTest, AReductionCountsItsInputAndAViewNothing) {
  auto sum = ReduceSumOp::create(builder_, loc_, Constant({4, 8}), {1}, /*keep_dims=*/false);
  EXPECT_EQ(sum.getFlops(), 32);
  EXPECT_EQ(sum.getBytesRead(), 128);
  EXPECT_EQ(sum.getBytesWritten(), 16);
  auto view = ReshapeOp::create(
      builder_, loc_, mlir::RankedTensorType::get({32}, builder_.getF32Type()), Constant({4, 8}));
  EXPECT_TRUE(view.isView());
  EXPECT_EQ(view.getFlops(), 0);
}

TEST_F(OrielTest, PickingLabelsReadsOneLogitPerRow) {
  mlir::Value labels = Constant({4}, builder_.getI64Type());
  auto logits =
      LabelLogitsOp::create(builder_, loc_, Constant({4, 1000}), labels, -100, mlir::Value());
  EXPECT_EQ(logits.getBytesRead(), 4 * (8 + 4));
  auto sum = SumExpOp::create(builder_, loc_, Constant({4, 1000}), Constant({4}));
  EXPECT_EQ(sum.getFlops(), 3 * 4000);
}

TEST_F(OrielTest, EachOptimizerResultReplacesItsOwnOperand) {
  mlir::Value p = Constant({8});
  mlir::Value scalar = Constant({});
  auto adamw = AdamWOp::create(builder_, loc_, p, p, p, p, /*remainder=*/mlir::Value(), scalar,
                               scalar, scalar, 0.9, 0.999, 1e-8, 0.0);
  for (unsigned result = 0; result < 3; ++result) {
    for (unsigned operand = 0; operand < 7; ++operand) {
      bool own = (result == 0 && operand == 0) || (result == 1 && operand == 2) ||
                 (result == 2 && operand == 3);
      EXPECT_EQ(adamw.mayOverwrite(result, operand), own) << result << " " << operand;
    }
  }
}

TEST_F(OrielTest, RemaindersAreReplacedToo) {
  mlir::Value f32 = Constant({8}), scalar = Constant({});
  auto typed = [&](mlir::Type type) -> mlir::Value {
    auto tensor = mlir::RankedTensorType::get({8}, type);
    return ConstantOp::create(builder_, loc_,
                              mlir::DenseElementsAttr::get(tensor, builder_.getZeroAttr(type)));
  };
  mlir::Value p = typed(builder_.getBF16Type()), r = typed(builder_.getIntegerType(16));
  auto adamw = AdamWOp::create(builder_, loc_, p, f32, f32, f32, r, scalar, scalar, scalar, 0.9,
                               0.999, 1e-8, 0.0);
  auto sgd = SgdOp::create(builder_, loc_, p, f32, r, scalar, scalar, 0.0);
  auto momentum = SgdMomentumOp::create(builder_, loc_, p, f32, f32, r, scalar, scalar, 0.9,
                                        /*nesterov=*/false, 0.0);
  EXPECT_EQ(adamw->getNumResults(), 4u);
  EXPECT_EQ(sgd->getNumResults(), 2u);
  auto replaced = [](auto op) {
    std::vector<int> operands;
    for (unsigned result = 0; result < op->getNumResults(); ++result) {
      for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
        if (op.mayOverwrite(result, operand)) operands.push_back(static_cast<int>(operand));
      }
    }
    return operands;
  };
  EXPECT_EQ(replaced(adamw), (std::vector<int>{0, 2, 3, 4}));
  EXPECT_EQ(replaced(sgd), (std::vector<int>{0, 2}));
  EXPECT_EQ(replaced(momentum), (std::vector<int>{0, 2, 3}));
  auto list = [&](mlir::Operation* op, llvm::ArrayRef<unsigned> twice) {
    llvm::SmallVector<mlir::Value> operands;
    for (unsigned i = 0; i < twice.front(); ++i) operands.append(2, op->getOperand(i));
    llvm::append_range(operands, op->getOperands().drop_front(twice.front()));
    return llvm::cast<ListedOpInterface>(op).buildList(builder_, operands, 2, {});
  };
  EXPECT_EQ(replaced(llvm::cast<AdamWListOp>(list(adamw, {5}))),
            (std::vector<int>{0, 1, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(replaced(llvm::cast<SgdListOp>(list(sgd, {3}))), (std::vector<int>{0, 1, 4, 5}));
  EXPECT_EQ(replaced(llvm::cast<SgdMomentumListOp>(list(momentum, {4}))),
            (std::vector<int>{0, 1, 4, 5, 6, 7}));
}

TEST_F(OrielTest, PointwiseOpsMayOverwriteAndOthersMayNot) {
  mlir::Value x = Constant({2, 2});
  EXPECT_TRUE(AddOp::create(builder_, loc_, x, x).mayOverwrite(0, 1));
  EXPECT_TRUE(ExpOp::create(builder_, loc_, x).mayOverwrite(0, 0));
  EXPECT_FALSE(MatmulOp::create(builder_, loc_, x, x).mayOverwrite(0, 0));
  EXPECT_FALSE(TransposeOp::create(builder_, loc_, x, {1, 0}).mayOverwrite(0, 0));
}

TEST_F(OrielTest, TheKernelIsNamedAfterTheOp) {
  auto kernel = llvm::cast<KernelOpInterface>(
      RmsNormOp::create(builder_, loc_, Constant({2, 8}), Constant({8}), 1e-6).getOperation());
  EXPECT_EQ(kernel.getKernelName(), "rms_norm");
}

}  // namespace
}  // namespace oriel::ir
