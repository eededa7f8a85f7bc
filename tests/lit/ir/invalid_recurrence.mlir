// Each message of the verifiers of recurrence.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @scan_of_matrices(%u: tensor<4x2xf32>, %w: tensor<4x3xf32>, %d: tensor<1x1xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+2 {{expects values [b.., n, c, v] and read_keys [b.., n, c, k], got [4, 2] and [4, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.delta_scan %u, %w, %w, %d, %s : (tensor<4x2xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<1x1xf32>, tensor<3x2xf32>) -> (tensor<4x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @scan_other_chunks(%u: tensor<5x4x2xf32>, %w: tensor<4x4x3xf32>, %d: tensor<5x1x1xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+2 {{expects values [b.., n, c, v] and read_keys [b.., n, c, k], got [5, 4, 2] and [4, 4, 3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.delta_scan %u, %w, %w, %d, %s : (tensor<5x4x2xf32>, tensor<4x4x3xf32>, tensor<4x4x3xf32>, tensor<5x1x1xf32>, tensor<3x2xf32>) -> (tensor<5x4x2xf32>, tensor<5x3x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @scan_read_keys_type(%u: tensor<5x4x2xf32>, %r: tensor<5x4x3xf64>, %w: tensor<5x4x3xf32>, %d: tensor<5x1x1xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+2 {{read_keys}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.delta_scan %u, %r, %w, %d, %s : (tensor<5x4x2xf32>, tensor<5x4x3xf64>, tensor<5x4x3xf32>, tensor<5x1x1xf32>, tensor<3x2xf32>) -> (tensor<5x4x2xf32>, tensor<5x3x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @scan_write_keys(%u: tensor<5x4x2xf32>, %r: tensor<5x4x3xf32>, %w: tensor<5x4x2xf32>, %d: tensor<5x1x1xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+2 {{write_keys}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.delta_scan %u, %r, %w, %d, %s : (tensor<5x4x2xf32>, tensor<5x4x3xf32>, tensor<5x4x2xf32>, tensor<5x1x1xf32>, tensor<3x2xf32>) -> (tensor<5x4x2xf32>, tensor<5x3x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @scan_decays(%u: tensor<5x4x2xf32>, %w: tensor<5x4x3xf32>, %d: tensor<5x4x1xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+2 {{decays}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.delta_scan %u, %w, %w, %d, %s : (tensor<5x4x2xf32>, tensor<5x4x3xf32>, tensor<5x4x3xf32>, tensor<5x4x1xf32>, tensor<3x2xf32>) -> (tensor<5x4x2xf32>, tensor<5x3x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @scan_initial(%u: tensor<5x4x2xf32>, %w: tensor<5x4x3xf32>, %d: tensor<5x1x1xf32>, %s: tensor<2x3xf32>) {
  // expected-error@+2 {{initial}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.delta_scan %u, %w, %w, %d, %s : (tensor<5x4x2xf32>, tensor<5x4x3xf32>, tensor<5x4x3xf32>, tensor<5x1x1xf32>, tensor<2x3xf32>) -> (tensor<5x4x2xf32>, tensor<5x3x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @scan_decays_type(%u: tensor<5x4x2xf32>, %w: tensor<5x4x3xf32>, %d: tensor<5x1x1xbf16>, %s: tensor<3x2xf32>) {
  // expected-error@+2 {{decays}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.delta_scan %u, %w, %w, %d, %s : (tensor<5x4x2xf32>, tensor<5x4x3xf32>, tensor<5x4x3xf32>, tensor<5x1x1xbf16>, tensor<3x2xf32>) -> (tensor<5x4x2xf32>, tensor<5x3x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @scan_initial_type(%u: tensor<5x4x2xf32>, %w: tensor<5x4x3xf32>, %d: tensor<5x1x1xf32>, %s: tensor<3x2xf64>) {
  // expected-error@+2 {{initial}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.delta_scan %u, %w, %w, %d, %s : (tensor<5x4x2xf32>, tensor<5x4x3xf32>, tensor<5x4x3xf32>, tensor<5x1x1xf32>, tensor<3x2xf64>) -> (tensor<5x4x2xf32>, tensor<5x3x2xf32>, tensor<3x2xf64>)
  return
}

// -----

func.func @scan_added(%u: tensor<5x4x2xf32>, %w: tensor<5x4x3xf32>, %d: tensor<5x1x1xf32>, %s: tensor<3x2xf32>) {
  // expected-error@+2 {{added}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.delta_scan %u, %w, %w, %d, %s, %s : (tensor<5x4x2xf32>, tensor<5x4x3xf32>, tensor<5x4x3xf32>, tensor<5x1x1xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> (tensor<5x4x2xf32>, tensor<5x3x2xf32>, tensor<3x2xf32>)
  return
}
