// Each message of the verifiers of training.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{expects an onnx_name that is not empty}}
oriel.parameter @no_name {onnx_name = "", type = tensor<4xf32>}

// -----

// expected-error@+1 {{expects a type that is a statically shaped tensor of numbers, got 'f32'}}
oriel.parameter @no_tensor {onnx_name = "w", type = f32}

// -----

// expected-error@+1 {{expects a type that is a statically shaped tensor of numbers, got 'tensor<?xf32>'}}
oriel.parameter @dynamic_shape {onnx_name = "w", type = tensor<?xf32>}

// -----

func.func @logits_of_rank_0(%x: tensor<f32>, %l: tensor<i64>) {
  // expected-error@+2 {{expects logits of rank at least 1, got rank 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.cross_entropy %x, %l : (tensor<f32>, tensor<i64>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @labels_shape(%x: tensor<2x8x32xf32>, %l: tensor<2x7xi64>) {
  // expected-error@+2 {{expects labels of shape [2, 8], got [2, 7]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.cross_entropy %x, %l : (tensor<2x8x32xf32>, tensor<2x7xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
  return
}

// -----

func.func @cross_entropy_cotangent(%x: tensor<2x8x32xf32>, %l: tensor<2x8xi64>, %r: tensor<2x8xf32>, %g: tensor<2xf32>) {
  // expected-error@+2 {{expects a cotangent of type 'tensor<2x8xf32>', got 'tensor<2xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.cross_entropy_grad %g, %x, %l, %r : (tensor<2xf32>, tensor<2x8x32xf32>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<2x8x32xf32>
  return
}

// -----

func.func @cross_entropy_logsumexp(%x: tensor<2x8x32xf32>, %l: tensor<2x8xi64>, %s: tensor<f32>) {
  // expected-error@+2 {{expects a logsumexp of type 'tensor<2x8xf32>', got 'tensor<f32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.cross_entropy_grad %s, %x, %l, %s : (tensor<f32>, tensor<2x8x32xf32>, tensor<2x8xi64>, tensor<f32>) -> tensor<2x8x32xf32>
  return
}

// -----

func.func @cross_entropy_grad_classes(%x: tensor<2x8x32xf32>, %l: tensor<2x8xi64>, %r: tensor<2x8xf32>, %s: tensor<f32>, %first: tensor<i64>) {
  // expected-error@+2 {{expects first and classes together}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.cross_entropy_grad %s, %x, %l, %r, %first : (tensor<f32>, tensor<2x8x32xf32>, tensor<2x8xi64>, tensor<2x8xf32>, tensor<i64>) -> tensor<2x8x32xf32>
  return
}

// -----

func.func @sum_exp_of_rank_0(%x: tensor<f32>) {
  // expected-error@+2 {{expects an input of rank at least 1, got rank 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.sum_exp %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @sum_exp_shift(%x: tensor<2x8x32xf32>, %m: tensor<2x8x1xf32>) {
  // expected-error@+2 {{expects a shift of shape [2, 8], got [2, 8, 1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.sum_exp %x, %m : (tensor<2x8x32xf32>, tensor<2x8x1xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @label_logits_labels(%x: tensor<2x8x32xf32>, %l: tensor<2x7xi64>) {
  // expected-error@+2 {{expects labels of shape [2, 8], got [2, 7]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.label_logits %x, %l : (tensor<2x8x32xf32>, tensor<2x7xi64>) -> tensor<2x8xf32>
  return
}

// -----

func.func @label_logits_classes(%x: tensor<2x8x32xf32>, %l: tensor<2x8xi64>, %first: tensor<i64>) {
  // expected-error@+2 {{expects classes of at least 32, the size of the piece, got 31}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.label_logits %x, %l, %first {classes = 31 : i64} : (tensor<2x8x32xf32>, tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xf32>
  return
}

// -----

func.func @sum_squares_result(%x: tensor<8xf32>) {
  // expected-error@+1 {{expects a result of rank 0, got the shape [8]}}
  %0 = oriel.sum_squares %x : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @sgd_gradient(%p: tensor<8xf32>, %g: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error@+2 {{expects a gradient of shape [8], got [4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.sgd %p, %g, %s, %s {weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @sgd_gradient_scale(%p: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+2 {{expects a gradient_scale of rank 0, got the shape [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.sgd %p, %p, %p, %s {weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @sgd_learning_rate(%p: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+2 {{expects a learning_rate of rank 0, got the shape [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.sgd %p, %p, %s, %p {weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @sgd_momentum_buffer(%p: tensor<8xf32>, %b: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error@+2 {{expects a momentum_buffer of shape [8], got [4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.sgd_momentum %p, %p, %b, %s, %s {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @adamw_gradient(%p: tensor<8xf32>, %g: tensor<4xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %scale: tensor<f32>, %lr: tensor<f32>, %step: tensor<f32>) {
  // expected-error@+2 {{expects a gradient of shape [8], got [4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.adamw %p, %g, %m, %v, %scale, %lr, %step {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @adamw_exp_avg(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<4xf32>, %v: tensor<8xf32>, %scale: tensor<f32>, %lr: tensor<f32>, %step: tensor<f32>) {
  // expected-error@+2 {{expects an exp_avg of shape [8], got [4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.adamw %p, %g, %m, %v, %scale, %lr, %step {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @adamw_exp_avg_sq(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<f32>, %scale: tensor<f32>, %lr: tensor<f32>, %step: tensor<f32>) {
  // expected-error@+2 {{expects an exp_avg_sq of shape [8], got []}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.adamw %p, %g, %m, %v, %scale, %lr, %step {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @adamw_gradient_scale(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %scale: tensor<8xf32>, %lr: tensor<f32>, %step: tensor<f32>) {
  // expected-error@+2 {{expects a gradient_scale of rank 0, got the shape [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.adamw %p, %g, %m, %v, %scale, %lr, %step {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @adamw_learning_rate(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %scale: tensor<f32>, %lr: tensor<8xf32>, %step: tensor<f32>) {
  // expected-error@+2 {{expects a learning_rate of rank 0, got the shape [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.adamw %p, %g, %m, %v, %scale, %lr, %step {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @adamw_step(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %scale: tensor<f32>, %lr: tensor<f32>, %step: tensor<8xf32>) {
  // expected-error@+2 {{expects a step of rank 0, got the shape [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.adamw %p, %g, %m, %v, %scale, %lr, %step {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @remainder_shape(%p: tensor<8xbf16>, %g: tensor<8xf32>, %r: tensor<4xi16>, %s: tensor<f32>) {
  // expected-error@+2 {{expects a remainder of shape [8], got [4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.sgd %p, %g, %r, %s, %s {weight_decay = 0.0 : f64} : (tensor<8xbf16>, tensor<8xf32>, tensor<4xi16>, tensor<f32>, tensor<f32>) -> (tensor<8xbf16>, tensor<4xi16>)
  return
}

// -----

func.func @remainder_of_f32(%p: tensor<8xf32>, %g: tensor<8xf32>, %r: tensor<8xi16>, %s: tensor<f32>) {
  // expected-error@+2 {{expects a parameter of bf16 beside its remainder, got 'tensor<8xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:4 = oriel.adamw %p, %g, %g, %g, %r, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 0.1 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xi16>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xi16>)
  return
}
