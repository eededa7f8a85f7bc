// ONNX model -> module of the oriel dialect.
//
//   oriel.parameter @p0 {onnx_name = "..", type = tensor<..>}   one per initializer that is trained
//   func.func @main(inputs.., parameters..) -> outputs..        with the roles of
//   ir/oriel/segment.h
//
// Symbolic dimensions are bound first, so every tensor is static, and integer arithmetic on shapes
// folds away as its ops are made. Initial values of parameters stay in the model file
// (ModelFile::initializer, by `onnx_name`); other initializers become constants. Floats of 16 bits
// are f32 (FloatTypes).
//
// Attributes of the module: `oriel.model_name` (string), `oriel.bind` (dictionary of the
// dimensions that were bound), `oriel.tables` (names of the initializers that are tables by their
// use and values, if there are any).
#ifndef ORIEL_FRONTEND_IMPORTER_H_
#define ORIEL_FRONTEND_IMPORTER_H_

#include "frontend/bind_inputs.h"
#include "frontend/float_types.h"
#include "frontend/model_file.h"
#include "frontend/op_registry.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace oriel {

struct ImportOptions {
  // Sizes of symbolic dimensions. A name that no input has is an error. An input that gets no
  // elements is a constant.
  DimensionBindings bind;
  // The importers of ops; plugins add some.
  const OpRegistry* ops = &OpRegistry::standard();
  FloatTypes floats = FloatTypes::wide();
};

// Loads the dialects that it needs. On failure it has emitted diagnostics and returns null. A
// diagnostic about a node is located at loc("NODE"("MODULE PATH")), see node_location.h.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext& context, const ModelFile& model,
                                              const ImportOptions& options);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_IMPORTER_H_
