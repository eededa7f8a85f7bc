// What a segment is to be handed, and no other one has.
// RUN: oriel-opt %s --oriel-split-stages="strategy=%S/Inputs/listed_tp2.yaml microbatches=2" --split-input-file --verify-diagnostics

oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4x4xf32>}
func.func @forward(%x: tensor<2x4xf32> {oriel.kind = "input", oriel.ref = "x"}, %w: tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) -> (tensor<2x4xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
  %0 = oriel.linear %x, %w {oriel.stage = 0 : i64, origin = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = oriel.linear %0, %w {oriel.stage = 1 : i64, origin = 1 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// expected-error @below {{reads stash 'v7', which @forward does not write}}
func.func @backward(%v: tensor<2x4xf32> {oriel.kind = "stash", oriel.ref = "v7"}, %g: tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) -> (tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
  %0 = oriel.linear_weight_grad %v, %v {origin = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %1 = oriel.add %g, %0 {origin = 1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
func.func @update() {
  return
}
func.func @eval() {
  return
}

// -----

oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4x4xf32>}
func.func @forward(%x: tensor<2x4xf32> {oriel.kind = "input", oriel.ref = "x"}, %w: tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) -> (tensor<2x4xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
  %0 = oriel.linear %x, %w {oriel.stage = 0 : i64, origin = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = oriel.linear %0, %w {oriel.stage = 1 : i64, origin = 1 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
func.func @backward() {
  return
}
// expected-error @below {{reads gradient 'p0', which @backward does not write}}
func.func @update(%g: tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
  return
}
func.func @eval() {
  return
}

// -----

oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4x4xf32>}
func.func @forward(%x: tensor<2x4xf32> {oriel.kind = "input", oriel.ref = "x"}, %w: tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) -> (tensor<2x4xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
  %0 = oriel.linear %x, %w {oriel.stage = 0 : i64, origin = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = oriel.linear %0, %w {oriel.stage = 1 : i64, origin = 1 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
func.func @backward() {
  return
}
// expected-error @below {{returns a new gradient 'loss', but has no argument that holds it}}
func.func @update(%l: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) -> (tensor<f32> {oriel.kind = "gradient", oriel.ref = "loss"}) {
  return %l : tensor<f32>
}
func.func @eval() {
  return
}

// -----

func.func @forward(%x: tensor<2x4xf32> {oriel.kind = "input", oriel.ref = "x"}) {
  // expected-error @below {{has the origin 9223372036854775807, expected -1 or the number of an op}}
  %0 = oriel.exp %x {oriel.stage = 0 : i64, origin = 9223372036854775807 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}
