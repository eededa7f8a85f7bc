#!/usr/bin/env bash
# Installs what is missing, builds, runs every test and every check. CI runs this, and so do developers.
#
#   tools/test.sh [--preset dev|asan|fuzz|no-cuda|runtime-only] [--no-setup] [--with-cuda]
#
# With --with-cuda a machine that lacks the CUDA toolkit, NCCL or cuDNN fails; else what needs them is left out.
# The last line is "N passed, N failed". Each GoogleTest, lit and end-to-end test counts as one, and so does each of the
# checks (format, clang-tidy, generated docs). With dev, what the CUDA backend touches is built and tested without it, and
# each fuzz target runs for some seconds too (docs/fuzzing.md), unless all before took more than 50 minutes: they compile
# most of the compiler once more, with sanitizers. A skipped test counts as neither. What failed and, with its reason, what
# was skipped is named just above the last line.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev setup=true with_cuda=false
while (($#)); do
  case "$1" in
    --preset) preset="${2:?--preset needs a name}"; shift 2 ;;
    --no-setup) setup=false; shift ;;
    --with-cuda) with_cuda=true; shift ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test: unknown option '$1' (see --help)" >&2; exit 2 ;;
  esac
done
passed=0 failed=0 skipped=0
exec 2>&1  # one stream, so that a reader of its end sees what failed
outcomes="$(mktemp)"
trap 'rm -f "$outcomes"' EXIT

finish() {
  cat "$outcomes"
  echo "$passed passed, $failed failed"
  ((failed == 0)) || exit 1
  exit 0
}

# step NAME FIX COMMAND...: without this step nothing else can run.
step() {
  local name=$1 fix=$2
  shift 2
  echo "== $name"
  if ! "$@"; then
    echo "failed: $name; reproduce with: $fix" >>"$outcomes"
    failed=$((failed + 1))
    finish
  fi
}

# check NAME FIX COMMAND...: counts as one test.
check() {
  local name=$1 fix=$2
  shift 2
  echo "== $name"
  if "$@"; then
    passed=$((passed + 1))
  else
    echo "failed: $name; fix with: $fix" | tee -a "$outcomes"
    failed=$((failed + 1))
  fi
}

configure() { cmake --preset "$1" >"build/$1.configure.log" 2>&1 || { tail -n 30 "build/$1.configure.log"; false; }; }

# run_preset PRESET [FOLDER]: builds it, or a folder of it, runs its tests and counts them.
run_preset() {
  local preset=$1 folder=${2:-} build="build/$1" rc=0 counts some_passed some_failed some_skipped
  local what="$preset${folder:+, $folder/}" target=() tests=(--preset "$preset")
  if [[ -n "$folder" ]]; then
    target=(--target "$folder/all")
    tests=(--test-dir "$build/$folder" --output-on-failure --no-tests=error)
  fi
  step "configure $preset" "cmake --preset $preset" configure "$preset"
  step "build $what" "cmake --build --preset $preset ${target[*]}" cmake --build --preset "$preset" ${target[@]+"${target[@]}"}
  echo "== tests of $what"
  rm -f "$build/ctest.xml" "$build/lit.xml"
  ctest "${tests[@]}" -j "$(nproc)" --output-junit "$PWD/$build/ctest.xml" >"$build/ctest.log" 2>&1 || rc=$?
  if [[ ! -f "$build/ctest.xml" ]]; then
    tail -n 30 "$build/ctest.log"
    echo "failed: ctest ${tests[*]} wrote no results" >>"$outcomes"
    failed=$((failed + 1))
    finish
  fi
  counts="$(tools/dev/count_tests.py "$build/ctest.xml" --lit-xml "$build/lit.xml" 2>>"$outcomes")"
  read -r some_passed some_failed some_skipped <<<"$counts"
  if ((rc != 0)); then
    ((some_failed > 0)) || some_failed=1
    # --output-on-failure has written what each failing test said.
    grep -v -E '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .* (Passed|\*\*\*Skipped) )' "$build/ctest.log" | tail -n 200
    echo "test: rerun the failures with: ctest ${tests[*]} --rerun-failed"
  fi
  passed=$((passed + some_passed)) failed=$((failed + some_failed)) skipped=$((skipped + some_skipped))
}

# has_cuda BUILD: whether configuring it has found all that the CUDA backend is built with.
has_cuda() {
  local variable found=true
  for variable in CMAKE_CUDA_COMPILER ORIEL_NCCL_INCLUDE_DIR ORIEL_CUDNN_INCLUDE_DIR ORIEL_CUDNN_FRONTEND_INCLUDE_DIR; do
    grep -q "^$variable:[A-Z]*=/" "$1/CMakeCache.txt" && continue
    echo "test: $variable was not found"
    found=false
  done
  $found
}

if $setup; then
  setup_flags=()
  [[ "$preset" != runtime-only ]] || setup_flags+=(--runtime-only)
  step setup "tools/setup.sh ${setup_flags[*]}" tools/setup.sh "${setup_flags[@]}"
fi
mkdir -p build
run_preset "$preset"
! $with_cuda || check "CUDA toolkit, NCCL and cuDNN" "installing them, or without --with-cuda" has_cuda "build/$preset"

check format "tools/dev/format.sh -f" tools/dev/format.sh
if [[ "$preset" == dev ]]; then
  check clang-tidy "editing what it names, then tools/dev/tidy.py" tools/dev/tidy.py --build build/dev
  check docs "tools/dev/gen_docs.sh" tools/dev/gen_docs.sh --check
  # Nothing of the compiler knows whether there is CUDA.
  run_preset no-cuda kernels
  run_preset no-cuda runtime
  if ((SECONDS < 50 * 60)); then
    run_preset fuzz  # it takes the compiler of dev for its seeds
  else
    echo "skipped: fuzz: $((SECONDS / 60)) minutes passed before it; run tools/test.sh --preset fuzz" >>"$outcomes"
    skipped=$((skipped + 1))
  fi
fi
finish
