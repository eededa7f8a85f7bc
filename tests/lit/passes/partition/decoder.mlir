// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/decoder.yaml --oriel-annotate=strategy=%S/Inputs/tp2.yaml --oriel-propagate --oriel-partition -o %t.tp2
// RUN: FileCheck %s --input-file=%t.tp2 --check-prefixes=TP,TP-ALONE --implicit-check-not=oriel.all_ --implicit-check-not=oriel.reduce_scatter
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/decoder.yaml --oriel-annotate=strategy=%S/Inputs/sp2.yaml --oriel-propagate --oriel-partition -o %t.sp2
// RUN: FileCheck %s --input-file=%t.sp2 --check-prefix=SP --implicit-check-not=oriel.all_ --implicit-check-not=oriel.reduce_scatter
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/decoder.yaml --oriel-annotate=strategy=%S/Inputs/fsdp2.yaml --oriel-propagate --oriel-partition -o %t.fsdp2
// RUN: FileCheck %s --input-file=%t.fsdp2 --check-prefix=GATHER --implicit-check-not=oriel.all_gather
// RUN: FileCheck %s --input-file=%t.fsdp2 --check-prefix=SCATTER --implicit-check-not=oriel.reduce_scatter
// RUN: FileCheck %s --input-file=%t.fsdp2 --check-prefix=FSDP --implicit-check-not=oriel.all_reduce --implicit-check-not=oriel.all_to_all
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/decoder.yaml --oriel-annotate=strategy=%S/Inputs/fsdp2_tp2.yaml --oriel-propagate --oriel-partition -o %t.both
// RUN: FileCheck %s --input-file=%t.both --check-prefixes=TP,BOTH --implicit-check-not=oriel.all_reduce --implicit-check-not=oriel.all_to_all
// RUN: FileCheck %s --input-file=%t.both --check-prefix=GATHER --implicit-check-not=oriel.all_gather
// RUN: FileCheck %s --input-file=%t.both --check-prefix=SCATTER --implicit-check-not=oriel.reduce_scatter

// A decoder of two blocks: pre-norm, causal attention with four heads, an MLP with biases, residuals,
// embedding, output layer and cross entropy. All collectives of a step are listed: there is none but
// these.

// Tensor parallelism: two all-reduces per block forward, one behind each row-parallel layer.
// TP: func.func @forward
// TP: oriel.gather {{.*}} rows = 96
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// Block 0.
// TP: oriel.attention {{.*}} (tensor<{{[24]}}x32x2x16xf32>,
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// TP: oriel.activation
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// Block 1.
// TP: oriel.attention {{.*}} (tensor<{{[24]}}x32x2x16xf32>,
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// TP: oriel.activation
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// The loss reduces numbers per position, and gathers no logits.
// TP: oriel.all_reduce {{.*}}reduction = "max"} : (tensor<{{[24]}}x32xf32>) ->
// TP-COUNT-2: oriel.all_reduce {{.*}}reduction = "sum"} : (tensor<{{[24]}}x32xf32>) ->
// Two per block backward, one in front of each column-parallel layer; and that of the output layer.
// TP: func.func @backward
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// Block 1.
// TP: oriel.activation_grad
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// TP: oriel.attention_grad
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// Block 0.
// TP: oriel.activation_grad
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// TP: oriel.attention_grad
// TP: oriel.all_reduce {{.*}} : (tensor<{{[24]}}x32x64xf32>) -> tensor<{{[24]}}x32x64xf32>
// Nothing but the norm of the gradient is left for the update.
// TP: func.func @update
// TP-ALONE: oriel.all_reduce {{.*}} : (tensor<f32>{{(, tensor<f32>)*}}) ->
// BOTH: oriel.all_reduce {{.*}} {axes = ["a0"], {{.*}} : (tensor<f32>, tensor<f32>) ->
// BOTH: oriel.all_reduce {{.*}} {axes = ["a1"], {{.*}} : (tensor<f32>{{(, tensor<f32>)*}}) ->
// BOTH: oriel.all_reduce {{.*}} {axes = ["a0"], {{.*}} : (tensor<f32>) ->
// TP: func.func @eval
// TP-COUNT-8: oriel.all_reduce
// The host joins pieces of the logits; predictions take the largest and its place.
// TP: oriel.all_reduce {{.*}}reduction = "max"} : (tensor<[[N:[24]]]x32xf32>)
// TP: oriel.remaining_from {{.*}} : (tensor<[[N]]x32x48xf32>, tensor<[[N]]x32xf32>, tensor<i64>) -> tensor<[[N]]x32xi64>
// TP: oriel.all_reduce {{.*}}reduction = "max"} : (tensor<[[N]]x32xi64>)
// BOTH: oriel.all_reduce %{{.*}}, %{{.*}} {axes = ["a0"], {{.*}} : (tensor<f32>, tensor<f32>) ->

// Sequence parallelism: each of these all-reduces becomes an all-gather and a reduce-scatter of the
// same volume.
// SP: func.func @forward
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// Block 0.
// SP: oriel.layer_norm {{.*}} -> (tensor<4x16x64xf32>,
// SP: oriel.all_gather {{.*}} : (tensor<4x16x64xf32>) -> tensor<4x32x64xf32>
// SP: oriel.attention
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// SP: oriel.all_gather {{.*}} : (tensor<4x16x64xf32>) -> tensor<4x32x64xf32>
// SP: oriel.activation
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// Block 1.
// SP: oriel.all_gather {{.*}} : (tensor<4x16x64xf32>) -> tensor<4x32x64xf32>
// SP: oriel.attention
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// SP: oriel.all_gather {{.*}} : (tensor<4x16x64xf32>) -> tensor<4x32x64xf32>
// SP: oriel.activation
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// The output layer and the loss.
// SP: oriel.all_gather {{.*}} : (tensor<4x16x64xf32>) -> tensor<4x32x64xf32>
// SP-COUNT-3: oriel.all_reduce {{.*}} : (tensor<4x32xf32>) ->
// What the backward needs of the activations was kept in pieces: the gradient of a column-parallel
// weight takes one more all-gather.
// SP: func.func @backward
// SP: oriel.all_gather {{.*}} : (tensor<4x16x64xf32>) -> tensor<4x32x64xf32>
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// Block 1.
// SP: oriel.all_gather
// SP: oriel.activation_grad
// SP: oriel.all_gather
// SP: oriel.linear_weight_grad
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// SP: oriel.all_gather
// SP: oriel.attention_grad
// SP: oriel.all_gather
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// Block 0.
// SP: oriel.all_gather
// SP: oriel.activation_grad
// SP: oriel.all_gather
// SP: oriel.linear_weight_grad
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// SP: oriel.all_gather
// SP: oriel.attention_grad
// SP: oriel.all_gather
// SP: oriel.reduce_scatter {{.*}} : (tensor<4x32x64xf32>) -> tensor<4x16x64xf32>
// The embedding.
// SP: oriel.all_gather
// SP: oriel.scatter_add
// Gradients of norms were summed over a rank's positions alone: once a step, all in one.
// SP: func.func @update
// SP: oriel.all_reduce {{.*}} : (tensor<64xf32>{{(, tensor<64xf32>)*}}) ->
// SP: oriel.all_reduce {{.*}} : (tensor<f32>{{(, tensor<f32>)*}}) ->
// SP: func.func @eval
// SP-COUNT-5: oriel.reduce_scatter
// SP: oriel.all_gather
// SP-COUNT-4: oriel.all_reduce
// SP: oriel.remaining_from
// SP: oriel.all_reduce {{.*}}reduction = "max"} : (tensor<4x32xi64>)

// ZeRO 3: one all-gather per parameter forward, at its first use.
// GATHER: func.func @forward
// GATHER: oriel.all_gather
// GATHER: oriel.gather
// Block 0: a norm, query, key, value; output, a norm, up; down.
// GATHER-COUNT-5: oriel.all_gather
// GATHER: oriel.attention
// GATHER-COUNT-5: oriel.all_gather
// GATHER: oriel.activation
// GATHER-COUNT-2: oriel.all_gather
// Block 1.
// GATHER-COUNT-5: oriel.all_gather
// GATHER: oriel.attention
// GATHER-COUNT-5: oriel.all_gather
// GATHER: oriel.activation
// GATHER-COUNT-2: oriel.all_gather
// The last norm and the output layer.
// GATHER-COUNT-3: oriel.all_gather
// One backward for each parameter that the backward needs, which does not need a bias.
// GATHER: func.func @backward
// GATHER-COUNT-2: oriel.all_gather
// Block 1: down; up, a norm, output; value, key, query, a norm.
// GATHER: oriel.all_gather
// GATHER: oriel.activation_grad
// GATHER-COUNT-3: oriel.all_gather
// GATHER: oriel.attention_grad
// GATHER-COUNT-4: oriel.all_gather
// Block 0.
// GATHER: oriel.all_gather
// GATHER: oriel.activation_grad
// GATHER-COUNT-3: oriel.all_gather
// GATHER: oriel.attention_grad
// GATHER-COUNT-4: oriel.all_gather
// GATHER: func.func @update
// GATHER: func.func @eval
// GATHER-COUNT-28: oriel.all_gather

// One reduce-scatter per gradient, as soon as it is there: 3 behind the blocks, 12 in each, 1 before.
// SCATTER: func.func @backward
// SCATTER-COUNT-3: oriel.reduce_scatter
// SCATTER-COUNT-7: oriel.reduce_scatter
// SCATTER: oriel.attention_grad
// SCATTER-COUNT-5: oriel.reduce_scatter
// SCATTER-COUNT-7: oriel.reduce_scatter
// SCATTER: oriel.attention_grad
// SCATTER-COUNT-5: oriel.reduce_scatter
// SCATTER: oriel.scatter_add
// SCATTER: oriel.reduce_scatter
// SCATTER: func.func @update

// The update sums loss, tokens and squares up.
// FSDP: func.func @update
// FSDP: oriel.all_reduce {{.*}} : (tensor<f32>, tensor<f32>) ->
// FSDP: oriel.all_reduce {{.*}} : (tensor<f32>) ->
// FSDP: func.func @eval
// FSDP: oriel.all_reduce {{.*}} : (tensor<f32>, tensor<f32>) ->

module {
  oriel.parameter @p0 {onnx_name = "embedding", type = tensor<96x64xf32>}
  oriel.parameter @p1 {onnx_name = "h0.norm1.weight", type = tensor<64xf32>}
  oriel.parameter @p2 {onnx_name = "h0.norm1.bias", type = tensor<64xf32>}
  oriel.parameter @p3 {onnx_name = "h0.query", type = tensor<64x64xf32>}
  oriel.parameter @p4 {onnx_name = "h0.key", type = tensor<64x64xf32>}
  oriel.parameter @p5 {onnx_name = "h0.value", type = tensor<64x64xf32>}
  oriel.parameter @p6 {onnx_name = "h0.output", type = tensor<64x64xf32>}
  oriel.parameter @p7 {onnx_name = "h0.norm2.weight", type = tensor<64xf32>}
  oriel.parameter @p8 {onnx_name = "h0.norm2.bias", type = tensor<64xf32>}
  oriel.parameter @p9 {onnx_name = "h0.up.weight", type = tensor<64x128xf32>}
  oriel.parameter @p10 {onnx_name = "h0.up.bias", type = tensor<128xf32>}
  oriel.parameter @p11 {onnx_name = "h0.down.weight", type = tensor<128x64xf32>}
  oriel.parameter @p12 {onnx_name = "h0.down.bias", type = tensor<64xf32>}
  oriel.parameter @p13 {onnx_name = "h1.norm1.weight", type = tensor<64xf32>}
  oriel.parameter @p14 {onnx_name = "h1.norm1.bias", type = tensor<64xf32>}
  oriel.parameter @p15 {onnx_name = "h1.query", type = tensor<64x64xf32>}
  oriel.parameter @p16 {onnx_name = "h1.key", type = tensor<64x64xf32>}
  oriel.parameter @p17 {onnx_name = "h1.value", type = tensor<64x64xf32>}
  oriel.parameter @p18 {onnx_name = "h1.output", type = tensor<64x64xf32>}
  oriel.parameter @p19 {onnx_name = "h1.norm2.weight", type = tensor<64xf32>}
  oriel.parameter @p20 {onnx_name = "h1.norm2.bias", type = tensor<64xf32>}
  oriel.parameter @p21 {onnx_name = "h1.up.weight", type = tensor<64x128xf32>}
  oriel.parameter @p22 {onnx_name = "h1.up.bias", type = tensor<128xf32>}
  oriel.parameter @p23 {onnx_name = "h1.down.weight", type = tensor<128x64xf32>}
  oriel.parameter @p24 {onnx_name = "h1.down.bias", type = tensor<64xf32>}
  oriel.parameter @p25 {onnx_name = "norm.weight", type = tensor<64xf32>}
  oriel.parameter @p26 {onnx_name = "norm.bias", type = tensor<64xf32>}
  oriel.parameter @p27 {onnx_name = "head", type = tensor<64x96xf32>}
  func.func @main(%ids: tensor<4x32xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %embedding: tensor<96x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %h0_norm1_weight: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %h0_norm1_bias: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %h0_query: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %h0_key: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %h0_value: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p5"},
      %h0_output: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p6"},
      %h0_norm2_weight: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p7"},
      %h0_norm2_bias: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p8"},
      %h0_up_weight: tensor<64x128xf32> {oriel.kind = "parameter", oriel.ref = "p9"},
      %h0_up_bias: tensor<128xf32> {oriel.kind = "parameter", oriel.ref = "p10"},
      %h0_down_weight: tensor<128x64xf32> {oriel.kind = "parameter", oriel.ref = "p11"},
      %h0_down_bias: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p12"},
      %h1_norm1_weight: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p13"},
      %h1_norm1_bias: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p14"},
      %h1_query: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p15"},
      %h1_key: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p16"},
      %h1_value: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p17"},
      %h1_output: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p18"},
      %h1_norm2_weight: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p19"},
      %h1_norm2_bias: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p20"},
      %h1_up_weight: tensor<64x128xf32> {oriel.kind = "parameter", oriel.ref = "p21"},
      %h1_up_bias: tensor<128xf32> {oriel.kind = "parameter", oriel.ref = "p22"},
      %h1_down_weight: tensor<128x64xf32> {oriel.kind = "parameter", oriel.ref = "p23"},
      %h1_down_bias: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p24"},
      %norm_weight: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p25"},
      %norm_bias: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p26"},
      %head: tensor<64x96xf32> {oriel.kind = "parameter", oriel.ref = "p27"})
      -> (tensor<4x32x96xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %e = oriel.gather %embedding, %ids {dim = 0 : i64} : (tensor<96x64xf32>, tensor<4x32xi64>) -> tensor<4x32x64xf32>
    %n0_1, %mean0_1, %std0_1 = oriel.layer_norm %e, %h0_norm1_weight, %h0_norm1_bias {epsilon = 1.0e-5} : (tensor<4x32x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<4x32x64xf32>, tensor<4x32xf32>, tensor<4x32xf32>)
    %q0_1 = oriel.linear %n0_1, %h0_query : (tensor<4x32x64xf32>, tensor<64x64xf32>) -> tensor<4x32x64xf32>
    %q0_2 = oriel.reshape %q0_1 : (tensor<4x32x64xf32>) -> tensor<4x32x4x16xf32>
    %k0_1 = oriel.linear %n0_1, %h0_key : (tensor<4x32x64xf32>, tensor<64x64xf32>) -> tensor<4x32x64xf32>
    %k0_2 = oriel.reshape %k0_1 : (tensor<4x32x64xf32>) -> tensor<4x32x4x16xf32>
    %v0_1 = oriel.linear %n0_1, %h0_value : (tensor<4x32x64xf32>, tensor<64x64xf32>) -> tensor<4x32x64xf32>
    %v0_2 = oriel.reshape %v0_1 : (tensor<4x32x64xf32>) -> tensor<4x32x4x16xf32>
    %a0_1, %lse0 = oriel.attention %q0_2, %k0_2, %v0_2 {scale = 0.25, causal = true, sequence_first = true} : (tensor<4x32x4x16xf32>, tensor<4x32x4x16xf32>, tensor<4x32x4x16xf32>) -> (tensor<4x32x4x16xf32>, tensor<4x4x32xf32>)
    %a0_2 = oriel.reshape %a0_1 : (tensor<4x32x4x16xf32>) -> tensor<4x32x64xf32>
    %a0_3 = oriel.linear %a0_2, %h0_output : (tensor<4x32x64xf32>, tensor<64x64xf32>) -> tensor<4x32x64xf32>
    %r0_1 = oriel.add %e, %a0_3 : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
    %n0_2, %mean0_2, %std0_2 = oriel.layer_norm %r0_1, %h0_norm2_weight, %h0_norm2_bias {epsilon = 1.0e-5} : (tensor<4x32x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<4x32x64xf32>, tensor<4x32xf32>, tensor<4x32xf32>)
    %m0_1 = oriel.linear %n0_2, %h0_up_weight, %h0_up_bias : (tensor<4x32x64xf32>, tensor<64x128xf32>, tensor<128xf32>) -> tensor<4x32x128xf32>
    %m0_2 = oriel.activation %m0_1 {kind = "gelu_tanh"} : (tensor<4x32x128xf32>) -> tensor<4x32x128xf32>
    %m0_3 = oriel.linear %m0_2, %h0_down_weight, %h0_down_bias : (tensor<4x32x128xf32>, tensor<128x64xf32>, tensor<64xf32>) -> tensor<4x32x64xf32>
    %r0_2 = oriel.add %r0_1, %m0_3 : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
    %n1_1, %mean1_1, %std1_1 = oriel.layer_norm %r0_2, %h1_norm1_weight, %h1_norm1_bias {epsilon = 1.0e-5} : (tensor<4x32x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<4x32x64xf32>, tensor<4x32xf32>, tensor<4x32xf32>)
    %q1_1 = oriel.linear %n1_1, %h1_query : (tensor<4x32x64xf32>, tensor<64x64xf32>) -> tensor<4x32x64xf32>
    %q1_2 = oriel.reshape %q1_1 : (tensor<4x32x64xf32>) -> tensor<4x32x4x16xf32>
    %k1_1 = oriel.linear %n1_1, %h1_key : (tensor<4x32x64xf32>, tensor<64x64xf32>) -> tensor<4x32x64xf32>
    %k1_2 = oriel.reshape %k1_1 : (tensor<4x32x64xf32>) -> tensor<4x32x4x16xf32>
    %v1_1 = oriel.linear %n1_1, %h1_value : (tensor<4x32x64xf32>, tensor<64x64xf32>) -> tensor<4x32x64xf32>
    %v1_2 = oriel.reshape %v1_1 : (tensor<4x32x64xf32>) -> tensor<4x32x4x16xf32>
    %a1_1, %lse1 = oriel.attention %q1_2, %k1_2, %v1_2 {scale = 0.25, causal = true, sequence_first = true} : (tensor<4x32x4x16xf32>, tensor<4x32x4x16xf32>, tensor<4x32x4x16xf32>) -> (tensor<4x32x4x16xf32>, tensor<4x4x32xf32>)
    %a1_2 = oriel.reshape %a1_1 : (tensor<4x32x4x16xf32>) -> tensor<4x32x64xf32>
    %a1_3 = oriel.linear %a1_2, %h1_output : (tensor<4x32x64xf32>, tensor<64x64xf32>) -> tensor<4x32x64xf32>
    %r1_1 = oriel.add %r0_2, %a1_3 : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
    %n1_2, %mean1_2, %std1_2 = oriel.layer_norm %r1_1, %h1_norm2_weight, %h1_norm2_bias {epsilon = 1.0e-5} : (tensor<4x32x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<4x32x64xf32>, tensor<4x32xf32>, tensor<4x32xf32>)
    %m1_1 = oriel.linear %n1_2, %h1_up_weight, %h1_up_bias : (tensor<4x32x64xf32>, tensor<64x128xf32>, tensor<128xf32>) -> tensor<4x32x128xf32>
    %m1_2 = oriel.activation %m1_1 {kind = "gelu_tanh"} : (tensor<4x32x128xf32>) -> tensor<4x32x128xf32>
    %m1_3 = oriel.linear %m1_2, %h1_down_weight, %h1_down_bias : (tensor<4x32x128xf32>, tensor<128x64xf32>, tensor<64xf32>) -> tensor<4x32x64xf32>
    %r1_2 = oriel.add %r1_1, %m1_3 : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
    %n, %mean, %std = oriel.layer_norm %r1_2, %norm_weight, %norm_bias {epsilon = 1.0e-5} : (tensor<4x32x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<4x32x64xf32>, tensor<4x32xf32>, tensor<4x32xf32>)
    %logits = oriel.linear %n, %head : (tensor<4x32x64xf32>, tensor<64x96xf32>) -> tensor<4x32x96xf32>
    return %logits : tensor<4x32x96xf32>
  }
}
