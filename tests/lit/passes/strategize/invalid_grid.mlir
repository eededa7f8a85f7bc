// RUN: oriel-opt %s --oriel-propagate --split-input-file --verify-diagnostics

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

// -----

// expected-error@+1 {{atomic axis "a2": 2 axes are named a0, a1, .. in order}}
module @axis_left_out attributes {oriel.grid = {a0 = 2 : i64, a2 = 2 : i64}, oriel.mesh = {}} {
}

// -----

// expected-error@+1 {{atomic axis "x": 1 axes are named a0, a1, .. in order}}
module @axis_of_another_name attributes {oriel.grid = {x = 2 : i64}, oriel.mesh = {}} {
}

// -----

// expected-error@+1 {{mesh axis "dp" names "a0" out of order}}
module @axes_out_of_order attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a1", "a0"]}} {
}

// -----

// expected-error@+1 {{the meshes of modules are no dictionary}}
module @module_meshes_no_dictionary attributes {oriel.grid = {}, oriel.mesh = {}, oriel.module_meshes = 1 : i64} {
}

// -----

// expected-error@+1 {{the mesh of module "vision" is no dictionary}}
module @module_mesh_no_dictionary attributes {oriel.grid = {}, oriel.mesh = {}, oriel.module_meshes = {vision = []}} {
}

// -----

// expected-error@+1 {{mesh axis "dp" of module "vision" names "a1", which is no atomic axis}}
module @unknown_atomic_axis_of_module attributes {
    oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}, oriel.module_meshes = {vision = {dp = ["a1"]}}} {
}

// -----

// expected-error@+1 {{atomic axis "a0" is used twice by the mesh of module "vision"}}
module @axis_used_twice_by_module attributes {
    oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}, oriel.module_meshes = {vision = {dp = ["a0"], tp = ["a0"]}}} {
}
