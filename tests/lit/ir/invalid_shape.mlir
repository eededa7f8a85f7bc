// Each message of the verifiers of shape.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @constant_of_vector_type() {
  // expected-error@+2 {{expects a value of a tensor type, got 'vector<4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.constant {value = dense<1.0> : vector<4xf32>} : () -> tensor<4xf32>
  return
}

// -----

func.func @constant_of_another_type() {
  // expected-error@+2 {{inferred type(s) 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<8xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.constant {value = dense<1.0> : tensor<4xf32>} : () -> tensor<8xf32>
  return
}

// -----

func.func @gather_first_without_rows(%t: tensor<4x8xf32>, %i: tensor<2xi64>, %first: tensor<i64>) {
  // expected-error@+2 {{expects first and rows together}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.gather %t, %i, %first {dim = 0 : i64} : (tensor<4x8xf32>, tensor<2xi64>, tensor<i64>) -> tensor<2x8xf32>
  return
}

// -----

func.func @gather_rows_without_first(%t: tensor<4x8xf32>, %i: tensor<2xi64>) {
  // expected-error@+2 {{expects first and rows together}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.gather %t, %i {dim = 0 : i64, rows = 8 : i64} : (tensor<4x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  return
}

// -----

func.func @gather_fewer_rows_than_the_piece(%t: tensor<4x8xf32>, %i: tensor<2xi64>, %first: tensor<i64>) {
  // expected-error@+2 {{expects rows of at least 4, the size of the piece, got 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.gather %t, %i, %first {dim = 0 : i64, rows = 3 : i64} : (tensor<4x8xf32>, tensor<2xi64>, tensor<i64>) -> tensor<2x8xf32>
  return
}

// -----

func.func @scatter_add_first_without_rows(%i: tensor<2xi64>, %u: tensor<2x8xf32>, %first: tensor<i64>) {
  // expected-error@+1 {{expects first and rows together}}
  %0 = oriel.scatter_add %i, %u, %first {dim = 0 : i64} : (tensor<2xi64>, tensor<2x8xf32>, tensor<i64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @iota_dim() {
  // expected-error@+1 {{expects a dim from 0 to 0, got 1}}
  %0 = oriel.iota {dim = 1 : i64} : () -> tensor<4xi64>
  return
}

// -----

func.func @reshape_elements(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects a result with as many elements as the input, got [31] for [4, 8]}}
  %0 = oriel.reshape %x : (tensor<4x8xf32>) -> tensor<31xf32>
  return
}

// -----

func.func @reshape_element_type(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects a result with elements of type 'f32', got 'tensor<32xi32>'}}
  %0 = oriel.reshape %x : (tensor<4x8xf32>) -> tensor<32xi32>
  return
}

// -----

func.func @transpose_twice_the_same(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects a permutation of the 2 dimensions, got [1, 1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.transpose %x {permutation = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @transpose_of_fewer(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects a permutation of the 2 dimensions, got [0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.transpose %x {permutation = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_to_other_size(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects an input that broadcasts to [4, 4, 9], got [4, 8]}}
  %0 = oriel.broadcast %x : (tensor<4x8xf32>) -> tensor<4x4x9xf32>
  return
}

// -----

func.func @broadcast_to_lower_rank(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects an input that broadcasts to [8], got [4, 8]}}
  %0 = oriel.broadcast %x : (tensor<4x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @broadcast_element_type(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects a result with elements of type 'f32', got 'tensor<4x8xf64>'}}
  %0 = oriel.broadcast %x : (tensor<4x8xf32>) -> tensor<4x8xf64>
  return
}

// -----

func.func @slice_counts(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects a start, a limit and a stride for each of the 2 dimensions, got 1, 2 and 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.slice %x {starts = array<i64: 0>, limits = array<i64: 4, 8>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_beyond_the_end(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects 0 <= start <= limit <= size and stride >= 1, got start 0, limit 9, size 8, stride 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 4, 9>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_backwards(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects 0 <= start <= limit <= size and stride >= 1, got start 0, limit 8, size 8, stride -1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 4, 8>, strides = array<i64: 1, -1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_counts(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects low, high and interior of one count from 0 to 17592186044416 for each of the 2 dimensions, got [0, -1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.pad %x {low = array<i64: 0, -1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_of_more_than_can_be(%x: tensor<2147483648x1xf32>) {
  // expected-error@+2 {{would have a result too large to count}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.pad %x {low = array<i64: 0, 0>, high = array<i64: 0, 0>, interior = array<i64: 17592186044416, 0>} : (tensor<2147483648x1xf32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @concat_of_nothing() {
  // expected-error@+2 {{expects at least one operand, got none}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.concat {dim = 0 : i64} : () -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_dim(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects a dim from 0 to 1, got 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.concat %x, %x {dim = 2 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_shapes(%x: tensor<4x8xf32>, %y: tensor<4x9xf32>) {
  // expected-error@+2 {{expects operands that differ in dimension 0 only, got [4, 8] and [4, 9]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.concat %x, %y {dim = 0 : i64} : (tensor<4x8xf32>, tensor<4x9xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_element_types(%x: tensor<4x8xf32>, %y: tensor<4x8xi64>) {
  // expected-error@+2 {{expects operands with elements of type 'f32', got 'tensor<4x8xi64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.concat %x, %y {dim = 0 : i64} : (tensor<4x8xf32>, tensor<4x8xi64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @gather_dim(%x: tensor<4x8xf32>, %i: tensor<2xi64>) {
  // expected-error@+2 {{expects a dim from 0 to 1, got 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.gather %x, %i {dim = 2 : i64} : (tensor<4x8xf32>, tensor<2xi64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_add_dim(%i: tensor<2xi64>, %u: tensor<2x8xf32>) {
  // expected-error@+1 {{expects a dim from 0 to 1, got -1}}
  %0 = oriel.scatter_add %i, %u {dim = -1 : i64} : (tensor<2xi64>, tensor<2x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_add_updates(%i: tensor<2xi64>, %u: tensor<3x8xf32>) {
  // expected-error@+1 {{expects updates of shape [2, 8], got [3, 8]}}
  %0 = oriel.scatter_add %i, %u {dim = 0 : i64} : (tensor<2xi64>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter_add_element_type(%i: tensor<2xi64>, %u: tensor<2x8xf64>) {
  // expected-error@+1 {{expects updates with elements of type 'f32', got 'tensor<2x8xf64>'}}
  %0 = oriel.scatter_add %i, %u {dim = 0 : i64} : (tensor<2xi64>, tensor<2x8xf64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_dims_descend(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects dims that ascend from 0 to at most 1, got [1, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.reduce_sum %x {dims = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @reduce_dims_too_large(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects dims that ascend from 0 to at most 1, got [2]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.reduce_mean %x {dims = array<i64: 2>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @cumsum_dim(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects a dim from 0 to 1, got 2}}
  %0 = oriel.cumsum %x {dim = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @argmax_dim(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects a dim from 0 to 1, got -1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.argmax %x {dim = -1 : i64} : (tensor<4x8xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @remaining_from_value(%x: tensor<4x8xf32>, %v: tensor<8xf32>) {
  // expected-error@+2 {{expects a value of shape [4], got [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.remaining_from %x, %v : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @remaining_from_size(%x: tensor<4x8xf32>, %v: tensor<4xf32>, %first: tensor<i64>) {
  // expected-error@+2 {{expects size of at least 8, the size of the piece, got 7}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.remaining_from %x, %v, %first {size = 7 : i64} : (tensor<4x8xf32>, tensor<4xf32>, tensor<i64>) -> tensor<4xi64>
  return
}

// -----

func.func @topk_dim(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects a dim from 0 to 1, got 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.topk %x {k = 1 : i64, dim = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x1xi64>
  return
}

// -----

func.func @topk_of_more_than_there_are(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expects k from 0 to 8, got 9}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.topk %x {k = 9 : i64, dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x9xi64>
  return
}

// -----

func.func @argmax_of_nothing(%x: tensor<4x0xf32>) {
  // expected-error@+2 {{expects an element along dimension 1, got the shape [4, 0]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.argmax %x {dim = 1 : i64} : (tensor<4x0xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @gather_batch_dims(%x: tensor<2x3x8xf32>, %i: tensor<2x3x5xi64>) {
  // expected-error@+2 {{expects batch_dims of 0 or of dim, 2, got 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.gather %x, %i {batch_dims = 1 : i64, dim = 2 : i64} : (tensor<2x3x8xf32>, tensor<2x3x5xi64>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @gather_batches(%x: tensor<2x3x8xf32>, %i: tensor<2x4x5xi64>) {
  // expected-error@+2 {{expects the same 2 leading dimensions of the table and the indices, got [2, 3, 8] and [2, 4, 5]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.gather %x, %i {batch_dims = 2 : i64, dim = 2 : i64} : (tensor<2x3x8xf32>, tensor<2x4x5xi64>) -> tensor<2x4x5xf32>
  return
}
