// Each message about attributes that passes write on segments and ops.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{argument 0 of @unknown_kind has the unknown oriel.kind "weight"}}
func.func @unknown_kind(%x: tensor<2xf32> {oriel.kind = "weight", oriel.ref = "p0"}) {
  return
}

// -----

// expected-error@+1 {{result 0 of @no_ref lacks the string attribute oriel.ref}}
func.func @no_ref(%x: tensor<2xf32>) -> (tensor<2xf32> {oriel.kind = "output"}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{a segment must have one block}}
func.func private @declaration(tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"})

// -----

// expected-error@+1 {{has type 'index' for argument 0, expected a tensor}}
func.func @no_tensor(%x: index {oriel.kind = "input", oriel.ref = "x"}) {
  return
}

// -----

// expected-error@+1 {{has oriel.sharding #oriel.sharding<[{a0}]> for argument 0, expected a sharding with as many dimensions as 'tensor<2x2xf32>'}}
func.func @sharding_of_another_rank(%x: tensor<2x2xf32> {oriel.sharding = #oriel.sharding<[{a0}]>}) {
  return
}

// -----

func.func @no_list_of_shardings(%x: tensor<2xf32>) {
  // expected-error@+1 {{has oriel.shardings #oriel.sharding<[{a0}]>, expected a sharding for each result, with as many dimensions}}
  %0 = oriel.exp %x {oriel.shardings = #oriel.sharding<[{a0}]>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @two_shardings(%x: tensor<2xf32>) {
  // expected-error@+1 {{expected a sharding for each result, with as many dimensions}}
  %0 = oriel.exp %x {oriel.shardings = [#oriel.sharding<[{a0}]>, #oriel.sharding<[{}]>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @split_of_numbers(%x: tensor<2xf32>) {
  // expected-error@+1 {{has oriel.split [0], expected axes for each factor, and pairs of an axis and a group}}
  %0 = oriel.exp %x {oriel.split = [0]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @rule_without_results(%x: tensor<2xf32>) {
  // expected-error@+1 {{expected lists named factors, linear, operands and results}}
  %0 = oriel.exp %x {oriel.rule = {factors = [], linear = [], operands = []}} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @rule_with_an_unknown_factor(%x: tensor<2xf32>) {
  // expected-error@+1 {{expected factors with a size and parallel, sum, max or whole}}
  %0 = oriel.exp %x {oriel.rule = {factors = [[2, "min"]], linear = [], operands = [[[0]]], results = [[[0]]]}} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @rule_of_more_operands(%x: tensor<2xf32>) {
  // expected-error@+1 {{expected for each operand and result its factors by dimension, or the factor whose first index an operand is}}
  %0 = oriel.exp %x {oriel.rule = {factors = [[2, "parallel"]], linear = [], operands = [[[0]], [[0]]], results = [[[0]]]}} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @rule_with_a_factor_that_is_not_there(%x: tensor<2xf32>) {
  // expected-error@+1 {{expected for each operand and result its factors by dimension}}
  %0 = oriel.exp %x {oriel.rule = {factors = [[2, "parallel"]], linear = [], operands = [[[1]]], results = [[[0]]]}} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @rule_linear_in_another_operand(%x: tensor<2xf32>) {
  // expected-error@+1 {{expected groups of operands that are there}}
  %0 = oriel.exp %x {oriel.rule = {factors = [[2, "parallel"]], linear = [[1]], operands = [[[0]]], results = [[[0]]]}} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// expected-error@+1 {{has oriel.stages [0], expected a list of names}}
module @stages_of_numbers attributes {oriel.stages = [0]} {
}

// -----

// expected-error@+1 {{has oriel.left_out "p0", expected a list of names}}
module @left_out_no_list attributes {oriel.left_out = "p0"} {
}

// -----

// expected-error@+1 {{has oriel.sequence_types ["x"], expected a list of types}}
module @sequence_types_of_names attributes {oriel.sequence_types = ["x"]} {
}

// -----

// expected-error@+1 {{has oriel.first_rank -1 : i64, expected a 64-bit number from 0 on}}
module @negative_first_rank attributes {oriel.first_rank = -1 : i64} {
}

// -----

// expected-error@+1 {{expected a list, of each kind `count`, the name of an input, `per_sample`, and the number of `rows` of each input}}
module @images_without_number attributes {oriel.images = [{count = "image_count", rows = {pixel_values = 1 : i64}}]} {
}

// -----

func.func @positions_of_no_result(%x: tensor<2xf32>) {
  // expected-error@+1 {{has oriel.positions array<i64>, expected a dimension for each result}}
  %0 = oriel.exp %x {oriel.positions = array<i64>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

module @part_of_another_rank {
  // expected-error@+1 {{has oriel.whole array<i64: 4>, expected a number for each dimension of the parameter}}
  oriel.parameter @p0 {onnx_name = "w", oriel.whole = array<i64: 4>, type = tensor<2x2xf32>}
}

// -----

// A parameter without its type.
// expected-error @below {{has oriel.start array<i64: 0>, expected a number for each dimension of the parameter}}
oriel.parameter @p {onnx_name = "w", oriel.start = array<i64: 0>}

// -----

// expected-error @below {{expected a list of types of tensors with two dimensions or more}}
module attributes {oriel.sequence_types = [tensor<f32>]} {
}

// -----

func.func @positions(%x: tensor<4xf32>) {
  // expected-error@+1 {{has oriel.positions array<i64: 1>, expected a dimension for each result, or -1}}
  %0 = oriel.exp %x {oriel.positions = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @first_of_min(%x: tensor<2xf32>) {
  // expected-error@+1 {{has oriel.first_of_equal unit, expected a unit, on a max, or a reduce_max of one dimension}}
  %0 = oriel.min %x, %x {oriel.first_of_equal} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @first_of_dims(%x: tensor<2x2xf32>) {
  // expected-error@+1 {{has oriel.first_of_equal unit, expected a unit, on a max, or a reduce_max of one dimension}}
  %0 = oriel.reduce_max %x {dims = array<i64: 0, 1>, oriel.first_of_equal} : (tensor<2x2xf32>) -> tensor<f32>
  return
}
