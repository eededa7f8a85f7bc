#include "passes/generate/lower_elements.h"

#include <algorithm>

#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/generate/code.h"

namespace oriel {

namespace {

using mlir::Value;
namespace arith = mlir::arith;
namespace gpu = mlir::gpu;
namespace memref = mlir::memref;
namespace vector = mlir::vector;

constexpr int64_t kVectorBytes = 16, kMaxElements = 8;

bool goesAlong(mlir::AffineMap map, unsigned loop) {
  return map.getNumResults() > 0 &&
         llvm::cast<mlir::AffineDimExpr>(map.getResults().back()).getPosition() == loop;
}

// A kernel being made.
class Elements {
 public:
  Elements(mlir::func::FuncOp function, mlir::linalg::GenericOp body, gpu::GPUModuleOp module)
      : body_(body),
        builder_(mlir::OpBuilder::atBlockEnd(module.getBody())),
        loc_(function.getLoc()),
        sizes_(body.getStaticLoopRanges()) {
    if (auto width = function->getAttrOfType<mlir::IntegerAttr>(kThreadElements)) {
      width_ = width.getInt();
    }
    kernel_ =
        gpu::GPUFuncOp::create(builder_, loc_, function.getSymName(), function.getFunctionType());
    kernel_->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder_.getUnitAttr());
    kernel_.setKnownBlockSizeAttr(builder_.getDenseI32ArrayAttr({kThreadsOfBlock, 1, 1}));
    builder_.setInsertionPointToStart(&kernel_.getBody().front());
  }

  void build() {
    Value block = gpu::BlockIdOp::create(builder_, loc_, gpu::Dimension::x);
    Value lane = gpu::ThreadIdOp::create(builder_, loc_, gpu::Dimension::x);
    Value before = arith::MulIOp::create(builder_, loc_, block, number(kThreadsOfBlock));
    Value thread = arith::AddIOp::create(builder_, loc_, before, lane);
    Value count = number(mlir::computeProduct(sizes_) / width_);
    Value inside = arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::ult, thread, count);
    auto branch = mlir::scf::IfOp::create(builder_, loc_, inside, /*withElseRegion=*/false);
    gpu::ReturnOp::create(builder_, loc_);
    builder_.setInsertionPointToStart(branch.thenBlock());
    splitThread(thread);
    compute();
  }

 private:
  static mlir::MemRefType typeOf(Value memory) {
    return llvm::cast<mlir::MemRefType>(memory.getType());
  }
  Value number(int64_t value) { return arith::ConstantIndexOp::create(builder_, loc_, value); }

  // The runs of the loops that the thread begins with.
  void splitThread(Value rest) {
    indices_.resize(sizes_.size());
    for (size_t loop = sizes_.size(); loop-- > 0;) {
      const bool innermost = loop + 1 == sizes_.size();
      Value size = number(innermost ? sizes_[loop] / width_ : sizes_[loop]);
      Value index =
          loop == 0 ? rest : arith::RemUIOp::create(builder_, loc_, rest, size).getResult();
      if (loop > 0) rest = arith::DivUIOp::create(builder_, loc_, rest, size);
      indices_[loop] =
          innermost && width_ > 1
              ? arith::MulIOp::create(builder_, loc_, index, number(width_)).getResult()
              : index;
    }
  }

  Value memoryOf(mlir::OpOperand& operand) {
    return kernel_.getArgument(llvm::cast<mlir::BlockArgument>(operand.get()).getArgNumber());
  }
  llvm::SmallVector<Value> placeOf(mlir::AffineMap map) {
    llvm::SmallVector<Value> place;
    for (mlir::AffineExpr dim : map.getResults()) {
      place.push_back(indices_[llvm::cast<mlir::AffineDimExpr>(dim).getPosition()]);
    }
    return place;
  }
  bool isVector(mlir::AffineMap map) const {
    return width_ > 1 && goesAlong(map, sizes_.size() - 1);
  }
  // A multiple of the vector from memory that is aligned to 16 bytes.
  static llvm::MaybeAlign alignmentOf(mlir::VectorType type) {
    const int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    return llvm::Align(std::min(bytes, kVectorBytes));
  }

  // The elements of an operand, one for each that the thread computes.
  llvm::SmallVector<Value> load(mlir::OpOperand& operand) {
    mlir::AffineMap map = body_.getMatchingIndexingMap(&operand);
    Value memory = memoryOf(operand);
    if (!isVector(map)) {
      Value element = memref::LoadOp::create(builder_, loc_, memory, placeOf(map));
      return llvm::SmallVector<Value>(width_, element);
    }
    auto type = mlir::VectorType::get({width_}, typeOf(memory).getElementType());
    Value loaded = vector::LoadOp::create(builder_, loc_, type, memory, placeOf(map),
                                          /*nontemporal=*/false, alignmentOf(type));
    llvm::SmallVector<Value> elements;
    for (int64_t i = 0; i < width_; ++i) {
      elements.push_back(vector::ExtractOp::create(builder_, loc_, loaded, i));
    }
    return elements;
  }

  void store(mlir::OpOperand& result, llvm::ArrayRef<Value> elements) {
    mlir::AffineMap map = body_.getMatchingIndexingMap(&result);
    Value memory = memoryOf(result);
    if (width_ == 1) {
      memref::StoreOp::create(builder_, loc_, elements.front(), memory, placeOf(map));
      return;
    }
    auto type = mlir::VectorType::get({width_}, typeOf(memory).getElementType());
    Value made = vector::FromElementsOp::create(builder_, loc_, type, elements);
    vector::StoreOp::create(builder_, loc_, made, memory, placeOf(map), /*nontemporal=*/false,
                            alignmentOf(type));
  }

  void compute() {
    mlir::Block& region = *body_.getBody();
    llvm::SmallVector<llvm::SmallVector<Value>> operands, results(body_.getNumDpsInits());
    for (mlir::OpOperand* operand : body_.getDpsInputOperands()) operands.push_back(load(*operand));
    for (int64_t i = 0; i < width_; ++i) {
      mlir::IRMapping mapping;
      for (auto [argument, elements] :
           llvm::zip(region.getArguments().take_front(operands.size()), operands)) {
        mapping.map(argument, elements[i]);
      }
      for (mlir::Operation& op : region.without_terminator()) builder_.clone(op, mapping);
      for (auto [result, yielded] :
           llvm::zip_equal(results, region.getTerminator()->getOperands())) {
        result.push_back(mapping.lookupOrDefault(yielded));
      }
    }
    for (auto [number, elements] : llvm::enumerate(results)) {
      store(*body_.getDpsInitOperand(number), elements);
    }
  }

  mlir::linalg::GenericOp body_;
  mlir::OpBuilder builder_;
  const mlir::Location loc_;
  const llvm::SmallVector<int64_t> sizes_;
  int64_t width_ = 1;
  gpu::GPUFuncOp kernel_;
  llvm::SmallVector<Value> indices_;
};

}  // namespace

int64_t threadElementsOf(int64_t size, llvm::ArrayRef<mlir::Type> types) {
  int64_t elements = 1;
  for (mlir::Type type : types) {
    elements = std::max<int64_t>(elements, kVectorBytes * 8 / type.getIntOrFloatBitWidth());
  }
  elements = std::min(elements, kMaxElements);
  while (size % elements != 0) elements /= 2;
  return elements;
}

void elementsToKernel(mlir::func::FuncOp function, mlir::linalg::GenericOp body,
                      gpu::GPUModuleOp module) {
  Elements(function, body, module).build();
  function.erase();
}

}  // namespace oriel
