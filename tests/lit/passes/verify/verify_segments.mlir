// RUN: oriel-opt %s --oriel-verify-segments --split-input-file -o /dev/null

// A dimension of 4 that has a factor of 2: the rest of it is whole.
module @reshape_that_does_not_nest {
  func.func @forward(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    %0 = oriel.reshape %x : (tensor<2x4x6xf32>) -> tensor<12x4xf32>
    return
  }
}

// -----

// What a stage makes for another one of its program is stash, too.
module @stages_of_one_program {
  func.func @forward.0(%x: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2xf32> {oriel.kind = "stash", oriel.ref = "1"}) {
    return %x : tensor<2xf32>
  }
  func.func @forward.2(%x: tensor<2xf32> {oriel.kind = "stash", oriel.ref = "1"}) {
    return
  }
}

// -----

// A bf16 parameter may be made of its master alone.
module @parameter_of_its_master {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<2xbf16>}
  func.func @update(%m: tensor<2xf32> {oriel.kind = "optimizer_state", oriel.ref = "p0", oriel.slot = "master"})
      -> (tensor<2xbf16> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.cast %m : (tensor<2xf32>) -> tensor<2xbf16>
    return %0 : tensor<2xbf16>
  }
}
