#include "driver/diagnostics.h"

#include "gtest/gtest.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

namespace oriel::driver {
namespace {

// The text for an error that `emit` adds to, at `location`.
template <typename Emit>
std::string textOf(mlir::MLIRContext& context, mlir::Location location, Emit emit) {
  std::string text;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    text = formatDiagnostic(diagnostic, "model.onnx");
    return mlir::success();
  });
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(location);
  emit(diagnostic);
  diagnostic.report();
  return text;
}

mlir::Location named(mlir::MLIRContext& context, const char* name, const char* module = nullptr) {
  auto attribute = mlir::StringAttr::get(&context, name);
  if (module == nullptr) return mlir::NameLoc::get(attribute);
  return mlir::NameLoc::get(attribute, named(context, module));
}

TEST(DiagnosticsTest, NamesNodeAndModule) {
  mlir::MLIRContext context;
  EXPECT_EQ(textOf(context, named(context, "Add_1", "model.layers.0"),
                   [](auto& diagnostic) { diagnostic << "is wrong"; }),
            "error: node \"Add_1\" [model.layers.0]: is wrong\n");
  EXPECT_EQ(
      textOf(context, named(context, "Add_1"), [](auto& diagnostic) { diagnostic << "is wrong"; }),
      "error: node \"Add_1\": is wrong\n");
}

TEST(DiagnosticsTest, DoesNotRepeatTheNode) {
  mlir::MLIRContext context;
  EXPECT_EQ(textOf(context, named(context, "Add_1"),
                   [](auto& diagnostic) { diagnostic << "node \"Add_1\" (Add): is wrong"; }),
            "error: node \"Add_1\" (Add): is wrong\n");
}

TEST(DiagnosticsTest, ModelFileIsNoNode) {
  mlir::MLIRContext context;
  EXPECT_EQ(textOf(context, named(context, "model.onnx"),
                   [](auto& diagnostic) { diagnostic << "has no loss"; }),
            "error: model.onnx: has no loss\n");
}

TEST(DiagnosticsTest, NotesFollow) {
  mlir::MLIRContext context;
  const mlir::Location here = named(context, "a"), there = named(context, "b");
  EXPECT_EQ(textOf(context, here,
                   [&](auto& diagnostic) {
                     diagnostic << "is wrong";
                     diagnostic.attachNote() << "because of this";
                     diagnostic.attachNote(there) << "see here";
                   }),
            "error: node \"a\": is wrong\nnote: because of this\nnote: node \"b\": see here\n");
}

TEST(DiagnosticsTest, FilesHaveLines) {
  mlir::MLIRContext context;
  EXPECT_EQ(textOf(context, mlir::FileLineColLoc::get(&context, "a.mlir", 3, 7),
                   [](auto& diagnostic) { diagnostic << "is wrong"; }),
            "error: a.mlir:3:7: is wrong\n");
}

TEST(DiagnosticsTest, PrinterCountsErrors) {
  mlir::MLIRContext context;
  DiagnosticPrinter printer(&context, "model.onnx");
  testing::internal::CaptureStderr();
  mlir::emitWarning(named(context, "a")) << "odd";
  mlir::emitError(named(context, "a")) << "wrong";
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: node \"a\": odd\nerror: node \"a\": wrong\n");
  EXPECT_EQ(printer.errors(), 1);
}

}  // namespace
}  // namespace oriel::driver
