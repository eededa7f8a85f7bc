// RUN: oriel-opt %s --oriel-reduce-gradients --split-input-file --verify-diagnostics

// expected-error@+1 {{atomic axis "a0" has no positive size}}
module @axis_without_size attributes {oriel.grid = {a0 = 0 : i64}, oriel.mesh = {dp = ["a0"]}} {
}

// -----

// expected-error@+1 {{mesh axis "dp" is no list}}
module @mesh_axis_no_list attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = "a0"}} {
}

// -----

// expected-error@+1 {{mesh axis "dp" names "a1", which is no atomic axis}}
module @unknown_atomic_axis attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a1"]}} {
}

// -----

// expected-error@+1 {{atomic axis "a0" is used twice by the mesh}}
module @axis_used_twice attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"], tp = ["a0"]}} {
}

// -----

// expected-error@+1 {{the grid has more than 1048576 ranks}}
module @too_many_ranks attributes {oriel.grid = {a0 = 4611686018427387904 : i64, a1 = 4 : i64}, oriel.mesh = {dp = ["a0", "a1"]}} {
}
