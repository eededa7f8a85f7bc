// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/adamw.yaml --split-input-file --verify-diagnostics

// expected-error @below {{has no function @main to train}}
module {
}

// -----

// The nearest output is suggested.
module {
  // expected-error @below {{the model has no output 'logits', which the recipe's loss.logits names; did you mean 'logit'?}}
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logit"}) {
    return %x : tensor<2x4x6xf32>
  }
}

// -----

module {
  // expected-error @below {{the recipe's inputs declare 'labels', but the model has an input of that name}}
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "labels"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    return %x : tensor<2x4x6xf32>
  }
}

// -----

module {
  // expected-error @below {{the logits 'logits' must be f32, not 'tensor<2x4x6xf64>'}}
  func.func @main(%x: tensor<2x4x6xf64> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<2x4x6xf64> {oriel.kind = "output", oriel.ref = "logits"}) {
    return %x : tensor<2x4x6xf64>
  }
}

// -----

module {
  // expected-error @below {{the logits 'logits' must have rank 2 or 3, not type 'tensor<8xf32>'}}
  func.func @main(%x: tensor<8xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    return %x : tensor<8xf32>
  }
}

// -----

module {
  // expected-error @below {{the logits 'logits' of type 'tensor<2x4x0xf32>' have no classes}}
  func.func @main(%x: tensor<2x4x0xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<2x4x0xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    return %x : tensor<2x4x0xf32>
  }
}

// -----

module {
  // expected-error @below {{the labels 'labels' have type 'tensor<2x4xi64>', which does not fit the logits 'logits' of type 'tensor<2x5x6xf32>': change their shape in `inputs` of the recipe, or, where the model is of a fixed batch, `batch.micro` to that}}
  func.func @main(%x: tensor<2x5x6xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<2x5x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    return %x : tensor<2x5x6xf32>
  }
}

// -----

// A pattern that matches nothing is a typo.
// expected-error @below {{the recipe's 'parameters.frozen' pattern 'frozen*' matches no parameter; did you mean 'frozn.w'?}}
module {
  oriel.parameter @p0 {onnx_name = "frozn.w", type = tensor<6x6xf32>}
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<2x4x6xf32>, tensor<6x6xf32>) -> tensor<2x4x6xf32>
    return %0 : tensor<2x4x6xf32>
  }
}

// -----

// expected-error @below {{the recipe's 'parameters.trainable' pattern '*' matches no parameter: the model has none; its weights must be initializers, of floats}}
module {
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    return %x : tensor<2x4x6xf32>
  }
}

// -----

// expected-error @below {{the recipe leaves no parameter trainable: the model has 1, and all are frozen}}
module {
  oriel.parameter @p0 {onnx_name = "frozen.bias", type = tensor<6xf32>}
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %b: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.add %x, %b : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    return %0 : tensor<2x4x6xf32>
  }
}

// -----

module {
  oriel.parameter @p0 {onnx_name = "frozen.bias", type = tensor<6xf32>}
  // expected-error @below {{the parameter 'w' is 'f16', but the recipe's precision f32 trains f32 parameters only: export the model in f32 (in PyTorch, module.float()), or freeze it}}
  oriel.parameter @p1 {onnx_name = "w", type = tensor<6xf16>}
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6xf16> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.cast %w : (tensor<6xf16>) -> tensor<6xf32>
    %1 = oriel.add %x, %0 : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    return %1 : tensor<2x4x6xf32>
  }
}

// -----

module {
  oriel.parameter @p0 {onnx_name = "frozen.bias", type = tensor<6xf32>}
  oriel.parameter @p1 {onnx_name = "w", type = tensor<6xf32>}
  // expected-warning @below {{does not depend on the parameter 'frozen.bias': left out of the plan}}
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %b: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    // expected-error @below {{'oriel.activation_grad' op has no derivative, but the loss depends on a trainable parameter through it}}
    %0 = oriel.activation_grad %w, %w {kind = "gelu"} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %1 = oriel.add %x, %0 : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    return %1 : tensor<2x4x6xf32>
  }
}

// -----

module {
  oriel.parameter @p0 {onnx_name = "frozen.bias", type = tensor<6xf32>}
  oriel.parameter @p1 {onnx_name = "unused", type = tensor<6xf32>}
  // expected-warning @below {{does not depend on the parameter 'unused': left out of the plan}}
  // expected-error @below {{the loss depends on no trainable parameter}}
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %b: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.add %x, %b : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    return %0 : tensor<2x4x6xf32>
  }
}

// -----

module {
  // expected-error @below {{argument 0 must be an input or a parameter}}
  func.func @main(%s: tensor<2x4x6xf32> {oriel.kind = "stash", oriel.ref = "s"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    return %s : tensor<2x4x6xf32>
  }
}

// -----

module {
  // expected-error @below {{argument 0 refers to @p7, which is not an oriel.parameter}}
  func.func @main(%p: tensor<2x4x6xf32> {oriel.kind = "parameter", oriel.ref = "p7"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    return %p : tensor<2x4x6xf32>
  }
}

// -----

module {
  // expected-error @below {{must have one block to be trained}}
  func.func private @main()
}

// -----

module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6xf32>}
  // expected-error @below {{has two arguments for parameter 'p0'}}
  func.func @main(%w: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %again: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    return %w : tensor<6xf32>
  }
}
