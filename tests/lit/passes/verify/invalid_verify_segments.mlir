// What a pass between the phases may get wrong, before values are sharded.
// RUN: oriel-opt %s --oriel-verify-segments --split-input-file --verify-diagnostics

// expected-error@+2 {{has two arguments for input 'x'}}
module @input_twice {
  func.func @forward(%x: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"}, %y: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
}

// -----

module @result_that_replaces_nothing {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<2xf32>}
  // expected-error@+1 {{returns a new gradient 'p0', but has no argument that holds it}}
  func.func @backward(%x: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<2xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    return %x : tensor<2xf32>
  }
}

// -----

module @parameter_stepped_by_a_forward {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<2xf32>}
  // expected-error@+1 {{returns a new parameter 'p0'; only @update may}}
  func.func @forward(%w: tensor<2xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<2xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    return %w : tensor<2xf32>
  }
}

// -----

module @no_such_parameter {
  // expected-error@+1 {{refers to @p0, which is no oriel.parameter}}
  func.func @forward(%w: tensor<2xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    return
  }
}

// -----

module @gradient_of_another_shape {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<2xbf16>}
  // A gradient may be wider than what it is of.
  func.func @backward.0(%g: tensor<2xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    return
  }
  // expected-error@+1 {{has type 'tensor<4xf32>' for gradient 'p0', expected 'tensor<2xbf16>'}}
  func.func @backward.1(%g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    return
  }
}

// -----

module @stash_of_another_type {
  func.func @forward.0(%x: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2xf32> {oriel.kind = "stash", oriel.ref = "1"}) {
    return %x : tensor<2xf32>
  }
  // expected-error@+1 {{has type 'tensor<4xf32>' for stash '1', which is 'tensor<2xf32>' elsewhere}}
  func.func @backward.0(%s: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "1"}) {
    return
  }
}

// -----

module @stash_that_is_not_written {
  // expected-error@+1 {{reads stash '1', which no segment writes}}
  func.func @backward.1(%s: tensor<2xf32> {oriel.kind = "stash", oriel.ref = "1"}) {
    return
  }
}

// -----

module @stash_that_is_not_read {
  // expected-error@+1 {{writes stash '1', which no segment reads}}
  func.func @forward.0(%x: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2xf32> {oriel.kind = "stash", oriel.ref = "1"}) {
    return %x : tensor<2xf32>
  }
}

// -----

// expected-error@+1 {{the schedule runs @forward, which is not there}}
module @schedule_of_another_program attributes {oriel.schedule = [["forward", 0]]} {
}

// -----

// expected-error@+1 {{the schedule has the entry ["forward", -1], expected [segment, microbatch], with microbatches from 0 on}}
module @negative_microbatch attributes {oriel.schedule = [["forward", -1]]} {
  func.func @forward() {
    return
  }
}

// -----

module @nobody_receives {
  module @p0 {
    func.func @forward.0(%x: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"}) {
      // expected-error@+1 {{sends over the channel "c" from p0 to p1, which nobody receives}}
      oriel.send %x {channel = "c", peer = "p1"} : (tensor<2xf32>) -> ()
      return
    }
  }
  module @p1 {
  }
}

// -----

module @nobody_sends {
  module @p0 {
  }
  module @p1 {
    func.func @forward.1() {
      // expected-error@+1 {{receives over the channel "c" from p0 to p1, which nobody sends}}
      %0 = oriel.receive {channel = "c", peer = "p0"} : () -> tensor<2xf32>
      return
    }
  }
}

// -----

module @ends_of_different_types {
  module @p0 {
    func.func @forward.0(%x: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"}) {
      // expected-error@+1 {{carries 'tensor<2xf32>' over the channel "c"}}
      oriel.send %x {channel = "c", peer = "p1"} : (tensor<2xf32>) -> ()
      return
    }
  }
  module @p1 {
    func.func @forward.1() {
      // expected-note@+1 {{its other end carries 'tensor<4xf32>'}}
      %0 = oriel.receive {channel = "c", peer = "p0"} : () -> tensor<4xf32>
      return
    }
  }
}

// -----

// Tables are made by the numbers of ops.
module @origin_of_no_op {
  func.func @forward(%x: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    // expected-error@+1 {{has the origin 4611686018427387904, expected -1 or the number of an op}}
    %0 = oriel.exp %x {origin = 4611686018427387904 : i64} : (tensor<2xf32>) -> tensor<2xf32>
    return
  }
}

// -----

// expected-error@+1 {{the schedule has the entry ["forward", 1000000007], expected [segment, microbatch], with microbatches from 0 on}}
module @microbatch_of_no_step attributes {oriel.schedule = [["forward", 1000000007]]} {
  func.func @forward() {
    return
  }
}
