"""lit configuration: tests/lit/ mirrors the source tree (tests/lit/passes/raise/foo.mlir).

oriel, oriel-opt, oriel-run come from the build's bin/; FileCheck, not, count, split-file from LLVM.
%python, %source_dir, %bin_dir and %plugin_dir are substituted. `REQUIRES: mpi`, `REQUIRES: cuda` and `REQUIRES: oriel-run`
(any of the three binaries) mark what a build may lack.
"""

import os

import lit.formats

config.name = "oriel"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.join(config.oriel_source_dir, "tests", "lit")
config.test_exec_root = os.path.join(config.oriel_binary_dir, "tests", "lit")

config.environment["PATH"] = os.pathsep.join(
    [config.oriel_bin_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
)
for name in ("HOME", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# Open MPI leaks at exit by design; the gtests look for leaks. LLVM's allocators in its headers poison memory, and its libraries,
# which are built without sanitizers, do not undo that.
config.environment["ASAN_OPTIONS"] = "detect_leaks=0:allow_user_poisoning=0"
# Open MPI refuses root and more ranks than cores unless told; containers have both.
config.environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
config.environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
config.environment["OMPI_MCA_rmaps_base_oversubscribe"] = "1"

config.substitutions.append(("%python", config.python))
config.substitutions.append(("%source_dir", config.oriel_source_dir))
config.substitutions.append(("%bin_dir", config.oriel_bin_dir))
config.substitutions.append(("%plugin_dir", config.oriel_plugin_dir))

if config.have_mpi.upper() in ("ON", "TRUE", "1"):
    config.available_features.add("mpi")
if config.have_cuda.upper() in ("ON", "TRUE", "1"):
    config.available_features.add("cuda")
for binary in ("oriel", "oriel-opt", "oriel-run"):
    if os.path.exists(os.path.join(config.oriel_bin_dir, binary)):
        config.available_features.add(binary)
