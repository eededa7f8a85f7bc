// Elementwise ops. Binary and ternary ones broadcast as NumPy and ONNX do.
#ifndef ORIEL_IR_ORIEL_ELEMENTWISE_TD
#define ORIEL_IR_ORIEL_ELEMENTWISE_TD

include "ir/oriel/base.td"

class Oriel_UnaryOp<string mnemonic, string what, Type tensor, list<Trait> traits = []>
    : Oriel_Op<mnemonic, (ins tensor:$input),
               !listconcat(traits, [SameOperandsAndResultType, OverwritingOp, Pointwise])> {
  let summary = what;
  let description = "Result `i` is a function of element `i`: " # what # ".\n\n"
      "Example: `%1 = oriel." # mnemonic # " %0 : (tensor<4xf32>) -> tensor<4xf32>`. "
      "Made by the importer and by autodiff; removed by `lower`.";
  let results = (outs tensor:$result);
  let hasFolder = 1;
  let extraClassDefinition = Oriel_Pointwise.definition;
}
class Oriel_SmoothOp<string mnemonic, string what, Type tensor = Oriel_FloatTensor>
    : Oriel_UnaryOp<mnemonic, what, tensor, [Differentiable]>;
// The derivative is 0 wherever there is one, and taken for 0 where there is none.
class Oriel_StepOp<string mnemonic, string what, Type tensor = Oriel_FloatTensor,
                   list<Trait> traits = []>
    : Oriel_UnaryOp<mnemonic, what # "; the derivative is 0", tensor,
                    !listconcat(traits, [Differentiable, StepFunction])>;
class Oriel_WholeNumberOp<string mnemonic, string what>
    : Oriel_StepOp<mnemonic, what, Oriel_FloatTensor, [PositionOp]>;
// What a rounded operand or result would be far off for.
class Oriel_WideSmoothOp<string mnemonic, string what>
    : Oriel_UnaryOp<mnemonic, what, Oriel_FloatTensor, [Differentiable, PreciseOp]>;

def NegOp : Oriel_UnaryOp<"neg", "-x", Oriel_ArithmeticTensor, [Differentiable, ShardedOp]>;
def AbsOp : Oriel_SmoothOp<"abs", "absolute value; the derivative at 0 is 0", Oriel_ArithmeticTensor>;
def ExpOp : Oriel_WideSmoothOp<"exp", "e to the x">;
def LogOp : Oriel_WideSmoothOp<"log", "natural logarithm">;
def SqrtOp : Oriel_WideSmoothOp<"sqrt", "square root">;
def RsqrtOp : Oriel_WideSmoothOp<"rsqrt", "1 / square root">;
def ReciprocalOp : Oriel_WideSmoothOp<"reciprocal", "1 / x">;
def SinOp : Oriel_WideSmoothOp<"sin", "sine of an angle in radians">;
def CosOp : Oriel_WideSmoothOp<"cos", "cosine of an angle in radians">;
def TanOp : Oriel_WideSmoothOp<"tan", "tangent of an angle in radians">;
def AsinOp : Oriel_WideSmoothOp<"asin", "arc sine, an angle in radians">;
def AcosOp : Oriel_WideSmoothOp<"acos", "arc cosine, an angle in radians">;
def AtanOp : Oriel_WideSmoothOp<"atan", "arc tangent, an angle in radians">;
def SinhOp : Oriel_WideSmoothOp<"sinh", "hyperbolic sine">;
def CoshOp : Oriel_WideSmoothOp<"cosh", "hyperbolic cosine">;
def AsinhOp : Oriel_WideSmoothOp<"asinh", "inverse of the hyperbolic sine">;
def AcoshOp : Oriel_WideSmoothOp<"acosh", "inverse of the hyperbolic cosine">;
def AtanhOp : Oriel_WideSmoothOp<"atanh", "inverse of the hyperbolic tangent">;
def TanhOp : Oriel_SmoothOp<"tanh", "hyperbolic tangent">;
def SigmoidOp : Oriel_SmoothOp<"sigmoid", "1 / (1 + exp(-x))">;
def ErfOp : Oriel_SmoothOp<"erf", "Gauss error function">;
def ReluOp : Oriel_SmoothOp<"relu", "max(x, 0); the derivative at 0 is 0", Oriel_ArithmeticTensor>;
def SignOp : Oriel_StepOp<"sign", "-1, 0 or 1", Oriel_ArithmeticTensor>;
def FloorOp : Oriel_WholeNumberOp<"floor", "largest whole number not above x">;
def CeilOp : Oriel_WholeNumberOp<"ceil", "smallest whole number not below x">;
def RoundOp : Oriel_WholeNumberOp<"round", "nearest whole number, the even one of two equally near">;
def StopGradientOp : Oriel_Op<"stop_gradient", (ins Oriel_Tensor:$input),
    [Differentiable, SameOperandsAndResultType, ShardedOp, StepFunction, ViewOp]> {
  let summary = "The same elements, through which no derivative goes";
  let description = [{
    PyTorch's `detach`: the derivative is taken for 0. Costs nothing at run time.

    Example: `%1 = oriel.stop_gradient %0 : (tensor<4xf32>) -> tensor<4xf32>`. Made by the importer
    (`ai.oriel::StopGradient`, docs/import.md); removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
  let extraClassDefinition = "bool $cppClass::isView() { return true; }";
}
def NotOp : Oriel_UnaryOp<"not", "logical negation of a boolean", Oriel_BoolTensor>;

class Oriel_BinaryOp<string mnemonic, string what, Type tensor, Type result_tensor,
                     list<Trait> traits = []>
    : Oriel_Op<mnemonic, (ins tensor:$lhs, tensor:$rhs),
               !listconcat(traits, [SameOperandsElementType, InferTypes, Pointwise])> {
  let summary = what;
  let description = what # ", on operands broadcast to a common shape as NumPy "
      "does: shapes are aligned at the last dimension, and sizes of 1 repeat.\n\n"
      "Example: `%2 = oriel." # mnemonic # " %0, %1 : (tensor<4x8xf32>, tensor<8xf32>)"
      " -> ...`. Made by the importer and by autodiff; removed by `lower`.";
  let results = (outs result_tensor:$result);
  let hasFolder = 1;
}
class Oriel_ArithmeticOp<string mnemonic, string what, list<Trait> traits = [],
                         Type tensor = Oriel_ArithmeticTensor>
    : Oriel_BinaryOp<mnemonic, what, tensor, tensor,
                     !listconcat(traits, [OverwritingOp])> {
  let extraClassDefinition = Oriel_Pointwise.definition;
}
class Oriel_LogicalOp<string mnemonic, string what>
    : Oriel_ArithmeticOp<mnemonic, what, [Commutative], Oriel_BoolTensor>;

def AddOp : Oriel_ArithmeticOp<"add", "Sum", [Differentiable, Commutative, ShardedOp]>;
def SubOp : Oriel_ArithmeticOp<"sub", "Difference", [Differentiable, ShardedOp]>;
def MulOp : Oriel_ArithmeticOp<"mul", "Product", [Differentiable, Commutative, ShardedOp]>;
def DivOp : Oriel_ArithmeticOp<"div",
    "Quotient (integers round towards zero)", [Differentiable, ShardedOp]>;
def PowOp : Oriel_ArithmeticOp<"pow", "lhs to the power rhs", [Differentiable, PreciseOp]>;
def MaxOp : Oriel_ArithmeticOp<"max",
    "Maximum (equal operands share the cotangent in halves)", [Differentiable]>;
def MinOp : Oriel_ArithmeticOp<"min",
    "Minimum (equal operands share the cotangent in halves)", [Differentiable]>;
def ModOp : Oriel_ArithmeticOp<"mod",
    "Remainder with the divisor's sign (the quotient's derivative is 0)", [Differentiable]>;
def AndOp : Oriel_LogicalOp<"and", "Logical and of booleans">;
def OrOp : Oriel_LogicalOp<"or", "Logical or of booleans">;
def XorOp : Oriel_LogicalOp<"xor", "Exclusive or of booleans">;

class Oriel_CompareOp<string mnemonic, string what>
    : Oriel_BinaryOp<mnemonic, "Comparison: lhs " # what # " rhs, as booleans",
                     Oriel_Tensor, Oriel_BoolTensor, [PreciseOp]>;
def EqualOp : Oriel_CompareOp<"equal", "=">;
def LessOp : Oriel_CompareOp<"less", "<">;
def LessEqualOp : Oriel_CompareOp<"less_equal", "<=">;
def GreaterOp : Oriel_CompareOp<"greater", ">">;
def GreaterEqualOp : Oriel_CompareOp<"greater_equal", ">=">;

def SelectOp : Oriel_Op<"select",
    (ins Oriel_BoolTensor:$condition, Oriel_Tensor:$on_true, Oriel_Tensor:$on_false),
    [Differentiable, InferTypes, OverwritingOp, Pointwise, PreciseOp, ShardedOp]> {
  let summary = "Elementwise choice between two tensors";
  let description = [{
    `result = condition ? on_true : on_false`, the three broadcast as NumPy does.

    Example: `%3 = oriel.select %c, %a, %b : (tensor<4x1xi1>, tensor<4x8xf32>,
    tensor<f32>) -> tensor<4x8xf32>`. Made by the importer; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
  let extraClassDefinition = Oriel_Pointwise.definition;
}

def CastOp : Oriel_Op<"cast", (ins Oriel_Tensor:$input),
    [Differentiable, Pointwise, PositionPreciseOp, ShardedOp]> {
  let summary = "Conversion of the element type";
  let description = [{
    Same shape, other element type. A float becomes an integer by truncation
    towards zero, anything becomes a boolean by comparison with zero.

    Example: `%1 = oriel.cast %0 : (tensor<4xi64>) -> tensor<4xf32>`. Made by the
    importer and by `mixed-precision`; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif
