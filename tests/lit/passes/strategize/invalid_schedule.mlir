// RUN: oriel-opt %s --oriel-lower-to-exec --split-input-file --verify-diagnostics

// expected-error@+1 {{the schedule is no list}}
module @schedule_no_list attributes {oriel.grid = {}, oriel.mesh = {}, oriel.schedule = "forward"} {
}

// -----

// expected-error@+1 {{the schedule has the entry ["forward"], expected [segment, microbatch], with microbatches from 0 on}}
module @entry_without_microbatch attributes {oriel.grid = {}, oriel.mesh = {}, oriel.schedule = [["forward"]]} {
}
