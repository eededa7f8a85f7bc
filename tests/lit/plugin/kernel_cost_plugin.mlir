// A pass of a plugin sees the dialect's ops through their interfaces.
// RUN: oriel-opt %s --load-pass-plugin=%plugin_dir/kernel_cost_plugin.so \
// RUN:   --pass-pipeline='builtin.module(func.func(test-kernel-cost))' --verify-diagnostics

func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>) -> tensor<2x8xf32> {
  // expected-remark@+1 {{kernel linear, 128 flops}}
  %0 = oriel.linear %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  // expected-remark@+1 {{kernel exp, 16 flops}}
  %1 = oriel.exp %0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
