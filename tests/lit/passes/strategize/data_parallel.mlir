// RUN: oriel-opt %s --oriel-data-parallel="world=4" | FileCheck %s
// RUN: oriel-opt %s --oriel-data-parallel | FileCheck %s --check-prefix=ONE
// RUN: not oriel-opt %s --oriel-data-parallel="world=0" 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: module attributes {oriel.grid = {a0 = 4 : i64}, oriel.mesh = {dp = ["a0"]}}
// ONE: module attributes {oriel.grid = {}, oriel.mesh = {}}
// NONE: a world of 0 ranks: at least one is needed
module {}
