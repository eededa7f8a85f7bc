// RUN: oriel-opt %s --split-input-file --verify-diagnostics

exec.program @buffer_no_static_tensor attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  // expected-error@+1 {{has the type 'tensor<?xf32>', expected a static tensor}}
  exec.buffer @b0 : tensor<?xf32> {kind = "temporary", offset = 0 : i64}
}

// -----

exec.program @offset_not_aligned attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  // expected-error@+1 {{has the offset 32, expected a multiple of 64}}
  exec.buffer @b0 : tensor<4xf32> {kind = "temporary", offset = 32 : i64}
}

// -----

exec.program @constant_without_value attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  // expected-error@+1 {{of kind constant, and no other, has a value}}
  exec.buffer @b0 : tensor<4xf32> {kind = "constant", offset = 0 : i64}
}

// -----

exec.program @value_of_another_type attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  // expected-error@+1 {{has a value of type 'tensor<2xf32>'}}
  exec.buffer @b0 : tensor<4xf32> {kind = "constant", offset = 0 : i64, value = dense<0.0> : tensor<2xf32>}
}

// -----

exec.program @launch_of_unknown_buffer attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @forward {
    // expected-error@+1 {{names @b1, which is no buffer of the program}}
    exec.launch "exp" [@b1] -> [@b1] {}
  }
}

// -----

exec.program @buffer_counts_differ attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.buffer @b0 : tensor<4xf32> {kind = "temporary", offset = 0 : i64}
  exec.segment @update {
    // expected-error@+1 {{has 1 inputs but 0 outputs}}
    exec.collective "all_reduce" "sum" ["a0"] [@b0] -> []
  }
}

// -----

exec.program @unknown_collective attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{is of the unknown kind "reduce"}}
    exec.collective "reduce" "sum" ["a0"] [] -> []
  }
}

// -----

exec.program @unknown_reduction attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{expects the reduction sum or max, got "min"}}
    exec.collective "all_reduce" "min" ["a0"] [] -> []
  }
}

// -----

exec.program @all_reduce_without_reduction attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{expects a reduction}}
    exec.collective "all_reduce" ["a0"] [] -> []
  }
}

// -----

exec.program @all_gather_with_reduction attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{reduces nothing, but has a reduction}}
    exec.collective "all_gather" "sum" ["a0"] [] -> [] {concat_dims = array<i64: 0>}
  }
}

// -----

exec.program @all_gather_without_concat_dim attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{expects concat_dims}}
    exec.collective "all_gather" ["a0"] [] -> []
  }
}

// -----

exec.program @all_gather_with_split_dim attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{cuts nothing, but has split_dims}}
    exec.collective "all_gather" ["a0"] [] -> [] {concat_dims = array<i64: 0>, split_dims = array<i64: 0>}
  }
}

// -----

exec.program @all_to_all_without_split_dim attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{expects split_dims}}
    exec.collective "all_to_all" ["a0"] [] -> [] {concat_dims = array<i64: 0>}
  }
}

// -----

exec.program @reduce_scatter_with_concat_dim attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{joins nothing, but has concat_dims}}
    exec.collective "reduce_scatter" "sum" ["a0"] [] -> [] {concat_dims = array<i64: 0>, split_dims = array<i64: 0>}
  }
}

// -----

exec.program @all_gather_of_two_along_one attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.buffer @b0 : tensor<4xf32> {kind = "temporary", offset = 0 : i64}
  exec.segment @update {
    // expected-error@+1 {{has 2 inputs, but dimensions for 1}}
    exec.collective "all_gather" ["a0"] [@b0, @b0] -> [@b0, @b0] {concat_dims = array<i64: 0>}
  }
}

// -----

exec.program @stream_below_zero attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{is on the stream -1}}
    exec.collective "all_reduce" "sum" ["a0"] [] -> [] {stream = -1 : i64}
    exec.wait 0
  }
}

// -----

exec.program @no_wait attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    // expected-error@+1 {{is started, but the segment does not wait for it}}
    exec.collective "all_reduce" "sum" ["a0"] [] -> [] {stream = 1 : i64}
  }
}

// -----

exec.program @wait_twice attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    exec.collective "all_reduce" "sum" ["a0"] [] -> [] {stream = 1 : i64}
    exec.wait 0
    // expected-error@+1 {{waits for instruction 0, which is no collective on its way}}
    exec.wait 0
  }
}

// -----

exec.program @wait_for_what_is_not_started attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.segment @update {
    exec.collective "all_reduce" "sum" ["a0"] [] -> []
    // expected-error@+1 {{waits for instruction 0, which is no collective on its way}}
    exec.wait 0
  }
}

// -----

exec.program @slice_of_unknown_buffer attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.buffer @b0 : tensor<4xf32> {kind = "temporary", offset = 0 : i64}
  exec.segment @update {
    // expected-error@+1 {{names @b1, which is no buffer of the program}}
    exec.slice 0 ["a0"] [@b0] -> [@b1]
  }
}

// -----

exec.program @slice_without_result attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.buffer @b0 : tensor<4xf32> {kind = "temporary", offset = 0 : i64}
  exec.segment @update {
    // expected-error@+1 {{takes one buffer to one buffer, got 1 and 0}}
    exec.slice 0 ["a0"] [@b0] -> []
  }
}

// -----

exec.program @copy_of_two attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  exec.buffer @b0 : tensor<4xf32> {kind = "temporary", offset = 0 : i64}
  exec.segment @update {
    // expected-error@+1 {{takes one buffer to one buffer, got 2 and 1}}
    exec.copy [@b0, @b0] -> [@b0]
  }
}

// -----

exec.program @run_of_unknown_segment attributes {first_rank = 0 : i64, rank_count = 1 : i64, arena_bytes = 64 : i64} {
  // expected-error@+1 {{names @forward, which is no segment of the program}}
  exec.run @forward {microbatch = 0 : i64}
}

// -----

exec.program @sharding_of_another_rank attributes {first_rank = 0 : i64, rank_count = 2 : i64, arena_bytes = 64 : i64} {
  // expected-error@+1 {{has the sharding #oriel.sharding<[{a0}, {}]> of another rank than 'tensor<4xf32>'}}
  exec.buffer @b0 : tensor<4xf32> {kind = "temporary", offset = 0 : i64, sharding = #oriel.sharding<[{a0}, {}]>}
}
