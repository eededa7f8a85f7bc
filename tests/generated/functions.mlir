// Functions with approximated ops, each of which generated_value_test compiles to one launch, too.

func.func @functions(%a: tensor<3x333xf32>) -> (tensor<3x333xf32>, tensor<3x333xf32>, tensor<3x333xf32>, tensor<3x333xf32>) {
  %0 = oriel.neg %a : (tensor<3x333xf32>) -> tensor<3x333xf32>
  %1 = oriel.exp %0 : (tensor<3x333xf32>) -> tensor<3x333xf32>
  %2 = oriel.tanh %0 : (tensor<3x333xf32>) -> tensor<3x333xf32>
  %3 = oriel.sigmoid %0 : (tensor<3x333xf32>) -> tensor<3x333xf32>
  %4 = oriel.erf %0 : (tensor<3x333xf32>) -> tensor<3x333xf32>
  return %1, %2, %3, %4 : tensor<3x333xf32>, tensor<3x333xf32>, tensor<3x333xf32>, tensor<3x333xf32>
}

// One alone is a launch of generated code, too.
func.func @alone(%a: tensor<1001xf32> {check.low = -20.0, check.high = 4.0}) -> tensor<1001xf32> {
  %0 = oriel.exp %a : (tensor<1001xf32>) -> tensor<1001xf32>
  return %0 : tensor<1001xf32>
}

// A sum of bias and product, its activation, and what takes it.
func.func @gelu(%a: tensor<20x48xf32>, %b: tensor<48xf32>, %c: tensor<20x48xf32>) -> (tensor<20x48xf32>, tensor<20x48xf32>) {
  %0 = oriel.add %a, %b : (tensor<20x48xf32>, tensor<48xf32>) -> tensor<20x48xf32>
  %1 = oriel.activation %0 {kind = "gelu"} : (tensor<20x48xf32>) -> tensor<20x48xf32>
  %2 = oriel.activation_grad %c, %0 {kind = "gelu"} : (tensor<20x48xf32>, tensor<20x48xf32>) -> tensor<20x48xf32>
  return %1, %2 : tensor<20x48xf32>, tensor<20x48xf32>
}

func.func @gelu_tanh(%a: tensor<960xf32> {check.low = -6.0, check.high = 6.0}, %c: tensor<960xf32>) -> (tensor<960xf32>, tensor<960xf32>) {
  %0 = oriel.activation %a {kind = "gelu_tanh"} : (tensor<960xf32>) -> tensor<960xf32>
  %1 = oriel.activation_grad %c, %a {kind = "gelu_tanh"} : (tensor<960xf32>, tensor<960xf32>) -> tensor<960xf32>
  %2 = oriel.mul %0, %1 : (tensor<960xf32>, tensor<960xf32>) -> tensor<960xf32>
  return %0, %2 : tensor<960xf32>, tensor<960xf32>
}

func.func @gelu_quick(%a: tensor<960xf32> {check.low = -6.0, check.high = 6.0}, %c: tensor<960xf32>) -> (tensor<960xf32>, tensor<960xf32>) {
  %0 = oriel.activation %a {kind = "gelu_quick"} : (tensor<960xf32>) -> tensor<960xf32>
  %1 = oriel.activation_grad %c, %a {kind = "gelu_quick"} : (tensor<960xf32>, tensor<960xf32>) -> tensor<960xf32>
  %2 = oriel.sub %0, %1 : (tensor<960xf32>, tensor<960xf32>) -> tensor<960xf32>
  return %0, %2 : tensor<960xf32>, tensor<960xf32>
}

// Gated, and its gradients, which are two results of one op.
func.func @gated(%a: tensor<7x100xf32> {check.low = -6.0, check.high = 6.0}, %b: tensor<7x100xf32>, %c: tensor<7x100xf32>) -> (tensor<7x100xf32>, tensor<7x100xf32>, tensor<7x100xf32>) {
  %0 = oriel.gated_activation %a, %b {kind = "silu"} : (tensor<7x100xf32>, tensor<7x100xf32>) -> tensor<7x100xf32>
  %1:2 = oriel.gated_activation_grad %c, %a, %b {kind = "silu"} : (tensor<7x100xf32>, tensor<7x100xf32>, tensor<7x100xf32>) -> (tensor<7x100xf32>, tensor<7x100xf32>)
  %2 = oriel.add %1#0, %0 : (tensor<7x100xf32>, tensor<7x100xf32>) -> tensor<7x100xf32>
  return %0, %1#1, %2 : tensor<7x100xf32>, tensor<7x100xf32>, tensor<7x100xf32>
}

// Each value is rounded to bf16.
func.func @bf16(%a: tensor<5x70xbf16>, %b: tensor<5x70xbf16>) -> (tensor<5x70xbf16>, tensor<5x70xbf16>) {
  %0 = oriel.add %a, %b : (tensor<5x70xbf16>, tensor<5x70xbf16>) -> tensor<5x70xbf16>
  %1 = oriel.activation %0 {kind = "gelu"} : (tensor<5x70xbf16>) -> tensor<5x70xbf16>
  %2 = oriel.exp %1 : (tensor<5x70xbf16>) -> tensor<5x70xbf16>
  return %1, %2 : tensor<5x70xbf16>, tensor<5x70xbf16>
}
