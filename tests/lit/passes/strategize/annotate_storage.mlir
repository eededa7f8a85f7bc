// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/zero0.yaml | FileCheck %s --check-prefixes=ALL,ZERO0
// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/zero1.yaml | FileCheck %s --check-prefixes=ALL,ZERO1
// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/zero2.yaml | FileCheck %s --check-prefixes=ALL,ZERO2
// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/zero3.yaml | FileCheck %s --check-prefixes=ALL,ZERO3
// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/hsdp2.yaml | FileCheck %s --check-prefix=HSDP

// Each level of ZeRO shards one thing more over the four data-parallel ranks (a0), along a dimension
// that tensor parallelism (a1) has left whole, if they divide it; else along the one that it cuts.
// ZERO0: @p0 {gradient = #oriel.sharding<[{}, {a1}]>, {{.*}} state = #oriel.sharding<[{}, {a1}]>, storage = #oriel.sharding<[{}, {a1}]>, {{.*}} use = #oriel.sharding<[{}, {a1}]>}
// ZERO1: @p0 {gradient = #oriel.sharding<[{}, {a1}]>, {{.*}} state = #oriel.sharding<[{a0}, {a1}]>, storage = #oriel.sharding<[{}, {a1}]>, {{.*}} use = #oriel.sharding<[{}, {a1}]>}
// ZERO2: @p0 {gradient = #oriel.sharding<[{a0}, {a1}]>, {{.*}} state = #oriel.sharding<[{a0}, {a1}]>, storage = #oriel.sharding<[{}, {a1}]>, {{.*}} use = #oriel.sharding<[{}, {a1}]>}
// ZERO3: @p0 {gradient = #oriel.sharding<[{a0}, {a1}]>, {{.*}} state = #oriel.sharding<[{a0}, {a1}]>, storage = #oriel.sharding<[{a0}, {a1}]>, {{.*}} use = #oriel.sharding<[{}, {a1}]>}
// ZERO3: @p1 {{.*}} storage = #oriel.sharding<[{a1, a0}, {}]>, {{.*}} use = #oriel.sharding<[{a1}, {}]>

// One that is not used in a block is sharded all the same, and one that no axis divides is not.
// ZERO1: @p2 {onnx_name = "scale", state = #oriel.sharding<[{a0}]>, type = tensor<8xf32>}
// ZERO2: @p2 {gradient = #oriel.sharding<[{a0}]>, onnx_name = "scale", state = #oriel.sharding<[{a0}]>, type = tensor<8xf32>}
// ZERO3: @p2 {gradient = #oriel.sharding<[{a0}]>, onnx_name = "scale", state = #oriel.sharding<[{a0}]>, storage = #oriel.sharding<[{a0}]>, type = tensor<8xf32>}
// ALL: @p3 {onnx_name = "odd", type = tensor<7x3xf32>}

// Groups of two that shard (a1), which are copies of each other (a0). What four ranks don't divide,
// two may.
// HSDP: oriel.mesh = {dp = ["a0"], fsdp = ["a1"], tp = ["a2"]}
// HSDP: @p0 {{.*}} storage = #oriel.sharding<[{a1}, {a2}]>
// HSDP: @p1 {{.*}} storage = #oriel.sharding<[{a2}, {a1}]>
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<16x6xf32>}
  oriel.parameter @p2 {onnx_name = "scale", type = tensor<8xf32>}
  oriel.parameter @p3 {onnx_name = "odd", type = tensor<7x3xf32>}
  func.func @forward(%x: tensor<4x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %scale: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.mul %x, %scale : (tensor<4x4x8xf32>, tensor<8xf32>) -> tensor<4x4x8xf32>
    %1 = oriel.linear %0, %up : (tensor<4x4x8xf32>, tensor<8x16xf32>) -> tensor<4x4x16xf32>
    %2 = oriel.linear %1, %down : (tensor<4x4x16xf32>, tensor<16x6xf32>) -> tensor<4x4x6xf32>
    return
  }
}
