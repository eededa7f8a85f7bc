// RUN: oriel-opt %s --split-input-file --verify-diagnostics --oriel-lower-generated

func.func @not_linalg(%a: memref<8xf32>) { // expected-error {{is no linalg.generic on whole tensors in memory}}
  return
}
