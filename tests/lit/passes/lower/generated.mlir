// RUN: oriel-opt %s --oriel-form-generated --oriel-lower-to-exec | FileCheck %s
// Launches of equal bodies name one kernel, wherever their ops came from; a result takes the place
// of an operand that nobody reads later.

// CHECK: exec.segment @forward
// CHECK: exec.launch "generated" [@{{.*}}, @{{.*}}] -> [@[[T:.*]]] {} from "oriel.add, oriel.neg" {generated = @[[SUM:generated[0-9]*]]}
// CHECK: exec.launch "log" [@[[T]]] -> [@[[E:.*]]]
// CHECK: exec.launch "generated" [@[[E]], @{{.*}}] -> [@[[U:.*]]] {} from "oriel.add, oriel.neg" {generated = @[[SUM]]}
// CHECK: exec.launch "log" [@[[U]]]
// CHECK: exec.launch "generated" {{.*}} from "oriel.neg, oriel.cast" {generated = @[[CAST:generated[0-9]*]]}
// CHECK: exec.kernel @[[SUM]] {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32>):
// CHECK-NEXT: oriel.add
// CHECK-NEXT: oriel.neg
// CHECK-NEXT: exec.yield
// CHECK: exec.kernel @[[CAST]] {
// CHECK-NOT: exec.kernel
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @forward(%a: tensor<8xf32> {oriel.kind = "input", oriel.ref = "a"},
                     %b: tensor<8xf32> {oriel.kind = "input", oriel.ref = "b"})
      -> (tensor<8xbf16> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.add %a, %b {origin = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = oriel.neg %0 {origin = 2 : i64} : (tensor<8xf32>) -> tensor<8xf32>
    %2 = oriel.log %1 : (tensor<8xf32>) -> tensor<8xf32>
    %3 = oriel.add %2, %b {origin = 3 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %4 = oriel.neg %3 {origin = 4 : i64} : (tensor<8xf32>) -> tensor<8xf32>
    %5 = oriel.log %4 : (tensor<8xf32>) -> tensor<8xf32>
    %6 = oriel.neg %5 : (tensor<8xf32>) -> tensor<8xf32>
    %7 = oriel.cast %6 : (tensor<8xf32>) -> tensor<8xbf16>
    return %7 : tensor<8xbf16>
  }
}
