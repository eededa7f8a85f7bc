// RUN: oriel-opt %s --split-input-file --verify-diagnostics --oriel-specialize \
// RUN:   --allow-unregistered-dialect

// expected-error @below {{has no function @main}}
module @no_main {
}

// -----

// An op that is not oriel's is left.
func.func @main(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
    -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  // expected-error @below {{left the op acme.op after specialize, expected ops with a kernel only}}
  %0 = "acme.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A shape is not static.
// expected-error @below {{has a value of type 'tensor<?xf32>' after specialize}}
func.func @main(%x: tensor<?xf32> {oriel.kind = "input", oriel.ref = "x"})
    -> (tensor<?xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  return %x : tensor<?xf32>
}
