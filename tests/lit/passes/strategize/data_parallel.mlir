// RUN: oriel-opt %s --oriel-data-parallel="world=4" | FileCheck %s
// RUN: oriel-opt %s --oriel-data-parallel | FileCheck %s --check-prefix=ONE
// RUN: oriel-opt %s --oriel-data-parallel="world=1 microbatches=2" | FileCheck %s --check-prefix=TWICE
// RUN: not oriel-opt %s --oriel-data-parallel="microbatches=0" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not oriel-opt %s --oriel-data-parallel="world=0" 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: module attributes {oriel.grid = {a0 = 4 : i64}, oriel.mesh = {dp = ["a0"]}, oriel.schedule = {{\[\[}}"forward", 0], ["backward", 0], ["update", 0]]}
// ONE: module attributes {oriel.grid = {}, oriel.mesh = {}, oriel.schedule
// TWICE: oriel.schedule = {{\[\[}}"forward", 0], ["backward", 0], ["forward", 1], ["backward", 1], ["update", 0]]
// EMPTY: a step of 0 microbatches: at least one is needed
// NONE: a world of 0 ranks: at least one is needed
module {}
