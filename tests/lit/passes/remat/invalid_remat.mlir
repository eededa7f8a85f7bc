// RUN: not oriel-opt %s --oriel-remat=policy=ful 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not oriel-opt %s --oriel-remat=policy=auto 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not oriel-opt %s --oriel-remat="policy=auto memory=1" 2>&1 | FileCheck %s --check-prefix=STASH

// NAME: error: there is no remat policy 'ful'; did you mean 'full'?
// BUDGET: error: the remat policy 'auto' needs a budget of memory
// What the planner refuses, it says.
// STASH: error: 'func.func' op reads stash 'a', which no earlier segment writes
module {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
  func.func @backward(%a: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "a"}) {
    return
  }
}
