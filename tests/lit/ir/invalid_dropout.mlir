// RUN: oriel-opt %s --split-input-file --verify-diagnostics

func.func @another_type(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{has the result 'tensor<4x6xf64>', not of its input's type}}
  %0 = oriel.dropout %x {ratio = 0.5, site = 7 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf64>
  return
}

// -----

func.func @all_dropped(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{has the ratio 1.000000e+00, expected one from 0 to below 1}}
  %0 = oriel.dropout %x {ratio = 1.0, site = 7 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @rows_of_no_sample(%x: tensor<4x6xf32>, %bits: tensor<3xi64>) {
  // expected-error@+1 {{has samples 'tensor<3xi64>', which the first dimension of its input must be a multiple of}}
  %0 = oriel.dropout %x, %bits {ratio = 0.5, site = 7 : i64} : (tensor<4x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  return
}

// -----

func.func @first_without_cut(%x: tensor<4x6xf32>, %bits: tensor<2xi64>, %first: tensor<i64>) {
  // expected-error@+1 {{has 1 beginnings for 0 dimensions that are cut}}
  %0 = oriel.dropout %x, %bits, %first {ratio = 0.5, site = 7 : i64} : (tensor<4x6xf32>, tensor<2xi64>, tensor<i64>) -> tensor<4x6xf32>
  return
}

// -----

func.func @cut_without_samples(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{has pieces, but no samples}}
  %0 = oriel.dropout %x {ratio = 0.5, site = 7 : i64, cut = array<i64: 1>, whole = array<i64: 4, 12>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @whole_of_another_rank(%x: tensor<4x6xf32>, %bits: tensor<2xi64>, %first: tensor<i64>) {
  // expected-error@+1 {{has a whole of another rank than its piece}}
  %0 = oriel.dropout %x, %bits, %first {ratio = 0.5, site = 7 : i64, cut = array<i64: 1>, whole = array<i64: 12>} : (tensor<4x6xf32>, tensor<2xi64>, tensor<i64>) -> tensor<4x6xf32>
  return
}

// -----

func.func @samples_cut(%x: tensor<4x6xf32>, %bits: tensor<2xi64>, %first: tensor<i64>) {
  // expected-error@+1 {{has a beginning of dimension 0, which is none behind the first, or no number}}
  %0 = oriel.dropout %x, %bits, %first {ratio = 0.5, site = 7 : i64, cut = array<i64: 0>, whole = array<i64: 8, 6>} : (tensor<4x6xf32>, tensor<2xi64>, tensor<i64>) -> tensor<4x6xf32>
  return
}

// -----

func.func @scalar(%x: tensor<f32>) {
  // expected-error@+1 {{drops a scalar, which has no samples}}
  %0 = oriel.dropout %x {ratio = 0.5, site = 7 : i64} : (tensor<f32>) -> tensor<f32>
  return
}
