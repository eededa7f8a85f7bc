// RUN: oriel-opt %s --oriel-lower-to-exec --split-input-file --verify-diagnostics --allow-unregistered-dialect

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error@+1 {{takes 'tensor<?xf32>', expected static tensors of numbers}}
  func.func @argument_of_any_size(%x: tensor<?xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @op_without_kernel() {
    // expected-error@+1 {{'foo.bar' op has no kernel and can't be lowered}}
    "foo.bar"() : () -> index
    return
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error@+1 {{is no straight line of ops}}
  func.func @no_return() {
    "foo.end"() : () -> ()
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @constant_not_dense() {
    // expected-error@+1 {{has a value that is not dense}}
    %0 = oriel.constant {value = dense_resource<r> : tensor<1xf32>} : () -> tensor<1xf32>
    return
  }
}

// -----

// A splat takes no memory in the IR.
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @constant_too_large() -> (tensor<f32> {oriel.kind = "output", oriel.ref = "y"}) {
    // expected-error@+1 {{takes 4294967296 bytes, and a plan holds less than 2147483648}}
    %0 = oriel.constant {value = dense<1.0> : tensor<1073741824xf32>} : () -> tensor<1073741824xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>} : (tensor<1073741824xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// expected-error@+1 {{needs more memory than can be addressed, for a value of type 'tensor<4611686018427387904xf32>'}}
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @too_large(%x: tensor<4611686018427387904xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error@+1 {{has two results for output 'y'}}
  func.func @result_twice(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error@+1 {{returns input 'x', which only the host writes}}
  func.func @new_input(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error@+1 {{reads output 'y', which only the host may}}
  func.func @output_read(%y: tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    return
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "s"}) {
    return %x : tensor<4xf32>
  }
  // expected-error@+1 {{returns stash 's', which an earlier segment has written}}
  func.func @stash_written_twice(%s: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "s"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "s"}) {
    return %s : tensor<4xf32>
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error@+1 {{returns the old value of parameter 'p1' as the new one of parameter 'p0'}}
  func.func @swapped(%a: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %b: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
          tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    return %b, %a : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @attribute_of_no_kernel(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    // expected-error@+1 {{has the attribute note, which a kernel can't take}}
    %0 = oriel.exp %x {note = ["a"]} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}
