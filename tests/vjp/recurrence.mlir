// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

func.func @delta_scan(%u: tensor<2x3x2x2xf64>, %r: tensor<2x3x2x3xf64>, %w: tensor<2x3x2x3xf64>, %d: tensor<2x3x1x1xf64>, %s: tensor<2x3x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x3x3x2xf64>, tensor<2x3x2xf64>) {
  %0:3 = oriel.delta_scan %u, %r, %w, %d, %s : (tensor<2x3x2x2xf64>, tensor<2x3x2x3xf64>, tensor<2x3x2x3xf64>, tensor<2x3x1x1xf64>, tensor<2x3x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x3x3x2xf64>, tensor<2x3x2xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x3x2x2xf64>, tensor<2x3x3x2xf64>, tensor<2x3x2xf64>
}

func.func @delta_scan_rows_decay(%u: tensor<2x3x2xf64>, %r: tensor<2x3x2xf64>, %w: tensor<2x3x2xf64>, %d: tensor<2x2x1xf64>, %s: tensor<2x2xf64>) -> (tensor<2x3x2xf64>, tensor<2x2x2xf64>, tensor<2x2xf64>) {
  %0:3 = oriel.delta_scan %u, %r, %w, %d, %s : (tensor<2x3x2xf64>, tensor<2x3x2xf64>, tensor<2x3x2xf64>, tensor<2x2x1xf64>, tensor<2x2xf64>) -> (tensor<2x3x2xf64>, tensor<2x2x2xf64>, tensor<2x2xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x3x2xf64>, tensor<2x2x2xf64>, tensor<2x2xf64>
}

func.func @delta_scan_adds_in_reverse(%u: tensor<2x2x2x3xf64>, %r: tensor<2x2x2x2xf64>, %w: tensor<2x2x2x2xf64>, %d: tensor<2x2x1x1xf64>, %s: tensor<2x2x3xf64>, %a: tensor<2x2x2x3xf64>) -> (tensor<2x2x2x3xf64>, tensor<2x2x2x3xf64>, tensor<2x2x3xf64>) {
  %0:3 = oriel.delta_scan %u, %r, %w, %d, %s, %a {reverse = true} : (tensor<2x2x2x3xf64>, tensor<2x2x2x2xf64>, tensor<2x2x2x2xf64>, tensor<2x2x1x1xf64>, tensor<2x2x3xf64>, tensor<2x2x2x3xf64>) -> (tensor<2x2x2x3xf64>, tensor<2x2x2x3xf64>, tensor<2x2x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x2x2x3xf64>, tensor<2x2x2x3xf64>, tensor<2x2x3xf64>
}

// Cotangents of one result alone.
func.func @delta_scan_written(%u: tensor<2x3x2x2xf64>, %r: tensor<2x3x2x2xf64>, %w: tensor<2x3x2x2xf64>, %d: tensor<2x3x1x1xf64>, %s: tensor<2x2x2xf64>) -> tensor<2x3x2x2xf64> {
  %0:3 = oriel.delta_scan %u, %r, %w, %d, %s : (tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x1x1xf64>, tensor<2x2x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x2x2xf64>)
  return %0#0 : tensor<2x3x2x2xf64>
}

func.func @delta_scan_states(%u: tensor<2x3x2x2xf64>, %r: tensor<2x3x2x2xf64>, %w: tensor<2x3x2x2xf64>, %d: tensor<2x3x1x1xf64>, %s: tensor<2x2x2xf64>) -> tensor<2x3x2x2xf64> {
  %0:3 = oriel.delta_scan %u, %r, %w, %d, %s : (tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x1x1xf64>, tensor<2x2x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x2x2xf64>)
  return %0#1 : tensor<2x3x2x2xf64>
}

func.func @delta_scan_last(%u: tensor<2x3x2x2xf64>, %r: tensor<2x3x2x2xf64>, %w: tensor<2x3x2x2xf64>, %d: tensor<2x3x1x1xf64>, %s: tensor<2x2x2xf64>) -> tensor<2x2x2xf64> {
  %0:3 = oriel.delta_scan %u, %r, %w, %d, %s {reverse = true} : (tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3x1x1xf64>, tensor<2x2x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x2x2xf64>)
  return %0#2 : tensor<2x2x2xf64>
}
