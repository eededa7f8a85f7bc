// Each message of the verifiers of distributed.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @all_reduce_reduction(%x: tensor<8xf32>) {
  // expected-error@+1 {{expects the reduction sum or max, got "product"}}
  %0 = oriel.all_reduce %x {axes = ["a0"], reduction = "product"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @all_reduce_without_axis(%x: tensor<8xf32>) {
  // expected-error@+1 {{expects at least one axis, got none}}
  %0 = oriel.all_reduce %x {axes = [], reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @all_reduce_types(%x: tensor<8xf32>) {
  // expected-error@+1 {{expects results of the operands' types, got 'tensor<f32>' for 'tensor<8xf32>'}}
  %0 = oriel.all_reduce %x {axes = ["a0"], reduction = "sum"} : (tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @axis_twice(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{names the axis "a0" twice}}
  %0 = oriel.all_reduce %x {axes = ["a0", "a0"], reduction = "sum"} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return
}

// -----

func.func @all_gather_dim(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{expects dim from 0 to 1, got 2}}
  %0 = oriel.all_gather %x {axes = ["a0"], dim = 2 : i64} : (tensor<8x6xf32>) -> tensor<8x12xf32>
  return
}

// -----

func.func @all_gather_no_multiple(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{makes [8, 13] of [8, 6], which does not fit in dimension 1}}
  %0 = oriel.all_gather %x {axes = ["a0"], dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x13xf32>
  return
}

// -----

func.func @all_gather_other_dim(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{makes [16, 12] of [8, 6], which does not fit in dimension 0}}
  %0 = oriel.all_gather %x {axes = ["a0"], dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<16x12xf32>
  return
}

// -----

func.func @all_gather_rank(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{expects a result of rank 2, got the shape [8, 2, 6]}}
  %0 = oriel.all_gather %x {axes = ["a0"], dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x2x6xf32>
  return
}

// -----

func.func @all_gather_type(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{expects a result with elements of type 'f32', got 'tensor<8x12xbf16>'}}
  %0 = oriel.all_gather %x {axes = ["a0"], dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x12xbf16>
  return
}

// -----

func.func @reduce_scatter_reduction(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{expects the reduction sum or max, got "min"}}
  %0 = oriel.reduce_scatter %x {axes = ["a0"], dim = 0 : i64, reduction = "min"} : (tensor<8x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @reduce_scatter_no_divisor(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{makes [3, 6] of [8, 6], which does not fit in dimension 0}}
  %0 = oriel.reduce_scatter %x {axes = ["a0"], dim = 0 : i64, reduction = "sum"} : (tensor<8x6xf32>) -> tensor<3x6xf32>
  return
}

// -----

func.func @all_to_all_one_dim(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{cuts and joins the same dimension 1}}
  %0 = oriel.all_to_all %x {axes = ["a0"], split_dim = 1 : i64, concat_dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return
}

// -----

func.func @all_to_all_concat_dim(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{expects concat_dim from 0 to 1, got -1}}
  %0 = oriel.all_to_all %x {axes = ["a0"], split_dim = 1 : i64, concat_dim = -1 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return
}

// -----

func.func @all_to_all_pieces(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{cuts into 3 pieces but joins 2}}
  %0 = oriel.all_to_all %x {axes = ["a0"], split_dim = 1 : i64, concat_dim = 0 : i64} : (tensor<8x6xf32>) -> tensor<16x2xf32>
  return
}

// -----

func.func @slice_local_without_axis(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{expects at least one axis, got none}}
  %0 = oriel.slice_local %x {axes = [], dim = 0 : i64} : (tensor<8x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @slice_local_grows(%x: tensor<8x6xf32>) {
  // expected-error@+1 {{makes [16, 6] of [8, 6], which does not fit in dimension 0}}
  %0 = oriel.slice_local %x {axes = ["a0"], dim = 0 : i64} : (tensor<8x6xf32>) -> tensor<16x6xf32>
  return
}

// -----

func.func @slice_local_of_nothing(%x: tensor<0x6xf32>) {
  // expected-error@+1 {{makes [4, 6] of [0, 6], which does not fit in dimension 0}}
  %0 = oriel.slice_local %x {axes = ["a0"], dim = 0 : i64} : (tensor<0x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

// Pieces of nothing join to nothing, in as many pieces as one likes.
func.func @all_gather_of_nothing(%x: tensor<0x6xf32>) {
  %0 = oriel.all_gather %x {axes = ["a0"], dim = 0 : i64} : (tensor<0x6xf32>) -> tensor<0x6xf32>
  return
}

// -----

func.func @wait_for_nothing(%x: tensor<8xf32>) {
  // expected-error@+1 {{waits for nothing}}
  oriel.wait : () -> ()
  return
}

// -----

func.func @wait_types(%x: tensor<8xf32>) {
  %0 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{expects results of the operands' types, got 'tensor<f32>' for 'tensor<8xf32>'}}
  %w:1 = oriel.wait %0 : (tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @wait_for_what_is_not_started(%x: tensor<8xf32>) {
  %0 = oriel.all_reduce %x {axes = ["a0"], reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{waits for what is no result of a collective that was started}}
  %w:1 = oriel.wait %0 : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @wait_for_two(%x: tensor<8xf32>) {
  %0 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{waits for other values than the results of one collective, or one bucket}}
  %w:2 = oriel.wait %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @wait_for_part_of_bucket(%x: tensor<8xf32>) {
  %0 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 1 : i64, oriel.bucket = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 1 : i64, oriel.bucket = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{waits for other values than the results of one collective, or one bucket}}
  %w:1 = oriel.wait %0 : (tensor<8xf32>) -> tensor<8xf32>
  %v = oriel.wait %1 : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @wait_for_scattered_bucket(%x: tensor<8xf32>) {
  %0 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 1 : i64, oriel.bucket = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %e = oriel.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 1 : i64, oriel.bucket = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{waits for other values than the results of one collective, or one bucket}}
  %w:2 = oriel.wait %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @bucket_without_stream(%x: tensor<8xf32>) {
  // expected-error@+1 {{is in a bucket, but on no stream}}
  %0 = oriel.all_reduce %x {axes = ["a0"], oriel.bucket = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @stream_of_what_is_no_collective(%x: tensor<8xf32>) {
  // expected-error@+1 {{is no collective, but on a stream}}
  %0 = oriel.exp %x {oriel.stream = 1 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @stream_zero(%x: tensor<8xf32>) {
  // expected-error@+1 {{is on the stream 0 : i64, expected one from 1}}
  %0 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 0 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %w:1 = oriel.wait %0 : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @started_without_wait(%x: tensor<8xf32>) {
  // expected-error@+1 {{is started, and expects one wait as the only use of each result}}
  %0 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = oriel.exp %0 : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @waited_for_twice(%x: tensor<8xf32>) {
  // expected-error@+1 {{is started, and expects one wait as the only use of each result}}
  %0 = oriel.all_reduce %x {axes = ["a0"], oriel.stream = 1 : i64, reduction = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  %w:1 = oriel.wait %0 : (tensor<8xf32>) -> tensor<8xf32>
  %v = oriel.wait %0 : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @nothing() {
  // expected-error @below {{expects an operand}}
  oriel.all_reduce {axes = ["a0"], reduction = "sum"} : () -> ()
  return
}

// -----

func.func @no_such_stream(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is on the stream 9223372036854775807 : i64, expected one from 1 to 65536}}
  %0 = oriel.all_reduce %x {axes = ["a0"], reduction = "sum", oriel.stream = 9223372036854775807 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
