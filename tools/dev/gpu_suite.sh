#!/usr/bin/env bash
# Tests Oriel on a machine with NVIDIA GPUs that has nothing else of it: no MLIR, no MPI, no packages.
#
#   tools/dev/gpu_suite.sh pack [--bin DIR] FOLDER   here: puts binaries, libraries, plans and data into FOLDER, below 60 MiB
#   FOLDER/gpu_suite.sh run [--keep DIR]             there: runs all, in some minutes
#
# `pack` takes what was built (default: build/dev/bin). The folder needs glibc 2.36 or newer, a driver for CUDA 13 and, for
# what uses them, cuBLASLt 13, cuDNN 9 and NCCL; other libraries are in it. `run` prints a line per case and writes
# gpu_suite.json beside itself; the exit code is 0 if every case has passed, 1 if one has failed, 3 if there is no device.
# --keep DIR leaves there what the cases wrote.
set -euo pipefail

limit_mib=60
die() { printf 'gpu_suite: error: %s\n' "$1" >&2; exit "${2:-1}"; }
usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit "$1"; }

# ---- pack ----

# Libraries that come with the machine: the C library, and the driver's.
is_of_machine() {
  case "$1" in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux* | linux-vdso* | libcuda.so.* | libnvidia-*) return 0 ;;
  esac
  return 1
}

# Copies a binary without its symbols, and the libraries that it needs.
add_binary() {
  cp "$1" "$stage/bin/"
  strip --strip-unneeded "$stage/bin/$(basename "$1")" 2>/dev/null || true
  ldd "$1" | while read -r name _ path _; do
    [[ "$path" == /* ]] && ! is_of_machine "$name" && [[ ! -e "$stage/lib/$name" ]] || continue
    cp -L "$path" "$stage/lib/$name"
  done
  ! ldd "$1" | grep 'not found' >&2 || die "$1 lacks libraries"
}

# case NAME KIND ARGUMENTS..: a line of the list that `run` reads.
add_case() { (IFS=$'\t'; printf '%s\n' "$*") >>"$stage/cases.tsv"; }

# add_plan MODEL PRECISION NAME OPTIONS..: compiles a plan into the stage.
add_plan() {
  local model=$1 precision=$2 name=$3 recipe
  shift 3
  recipe="$stage/recipe.yaml"
  sed "s/^precision: .*/precision: $precision/" "models/$model/golden/recipe_adamw.yaml" >"$recipe"
  "$bin/oriel" compile "models/$model/model.onnx" --recipe "$recipe" "$@" -o "$stage/plans/$name.oplan" >/dev/null \
    || die "compiling $name failed"
  rm "$recipe"
  # All strategies begin with the same weights: once in the archive, the others are links to them.
  local weights="$stage/plans/$name.weights.safetensors" first="$stage/plans/${model}_f32_host.weights.safetensors"
  if [[ "$weights" != "$first" ]] && cmp -s "$weights" "$first"; then ln -f "$first" "$weights"; fi
}

# What a strategy is called, and the compiler's options for it. As few ranks as show each way to cut.
strategies() {
  cat <<'LIST'
1 --world 1
dp2 --mesh dp=2 --zero 1
tp2 --mesh tp=2 --sp
pp2 --stages 2 --schedule 1f1b
dp2tp2 --mesh dp=2,tp=2 --zero 3
LIST
}

ranks_of() { case "$1" in 1) echo 1 ;; dp2tp2) echo 4 ;; *) echo 2 ;; esac; }

pack() {
  local folder="" bin=build/dev/bin
  while (($#)); do
    case "$1" in
      --bin) bin="${2:?--bin needs a folder}"; shift 2 ;;
      -*) usage 2 ;;
      *) folder=$1; shift ;;
    esac
  done
  [[ -n "$folder" ]] || usage 2
  cd "$(dirname "$0")/../.."
  for file in oriel oriel-run oriel-compare liboriel_cuda.so; do
    [[ -e "$bin/$file" ]] || die "$bin/$file is missing; build it: cmake --preset cuda && cmake --build --preset cuda (then --bin build/cuda/bin)"
  done
  mkdir -p "$folder"
  [[ -z "$(ls -A "$folder")" ]] || die "$folder is not empty"
  stage="$(mktemp -d)"
  trap 'rm -rf "$stage"' EXIT
  mkdir "$stage"/{bin,lib,plans,data}

  for file in oriel-run oriel-compare liboriel_cuda.so; do add_binary "$bin/$file"; done
  # Tests that use a device where ORIEL_CUDA_TEST_DEVICE names one.
  for test in "$bin"/*cuda*_test "$bin"/*nccl*_test; do
    # The emulator has nothing to do with a device.
    [[ -x "$test" && "$test" != *emulator* ]] || continue
    add_binary "$test"
    add_case "$(basename "$test")" gtest "$(basename "$test")"
  done
  for model in llava_tiny qwen_vl_tiny; do
    mkdir "$stage/data/$model"
    cp models/$model/golden/data/* "$stage/data/$model/"
    for precision in f32 bf16; do
      add_plan $model $precision "${model}_${precision}_host" --world 1 --device host
      while read -r name options; do
        # shellcheck disable=SC2086  # options are words
        add_plan $model $precision "${model}_${precision}_$name" $options --device cuda
        add_case "$model $precision $name" train "$model" "$precision" "$name" "$(ranks_of "$name")"
      done < <(strategies)
    done
  done
  tar -C "$stage" -czf "$folder/payload.tar.gz" bin lib plans data cases.tsv
  cp "$0" "$folder/gpu_suite.sh" 2>/dev/null || cp tools/dev/gpu_suite.sh "$folder/gpu_suite.sh"
  local kib
  kib="$(du -sk "$folder" | cut -f1)"
  ((kib <= limit_mib * 1024)) || die "$folder has $((kib / 1024)) MiB, more than $limit_mib"
  echo "packed $(wc -l <"$stage/cases.tsv") cases into $folder, $(((kib + 1023) / 1024)) MiB"
}

# ---- run ----

# Seconds since the epoch, with a fraction.
now() { date +%s.%N; }

json_text() { printf '%s' "$1" | tr -d '\000-\010\013-\037' | sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/ /g' | tr '\n' ' '; }

# The largest relative difference of the losses of two metrics files, or nothing if they have not the same steps.
loss_difference() {
  paste -d' ' <(grep -o '"loss":[^,}]*' "$1" | cut -d: -f2) <(grep -o '"loss":[^,}]*' "$2" | cut -d: -f2) | awk '
    $1 == "null" || $2 == "" || $1 == "" { bad = 1 }
    { d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > worst) worst = d }
    END { if (!bad && NR > 0) printf "%.3g", worst }'
}

below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 <= b + 0) }'; }

# Trains on the host, once for each model and precision, and on the device; compares losses of 20 AdamW steps, and the gradients
# of the first. Bounds: in f32 those against another framework (design section 9); in bf16 what rounding to 8 bits makes.
train_case() {
  local model=$1 precision=$2 name=$3 ranks=$4 loss_bound=1e-4 gradient_bound=1e-4 loss gradients
  [[ "$precision" == f32 ]] || loss_bound=2e-2 gradient_bound=1e-1
  local host=out/${model}_${precision}_host device=out/${model}_${precision}_$name
  local data=(--data "data/$model" --no-shuffle)
  if [[ ! -e "$host.jsonl" ]]; then
    bin/oriel-run "plans/${model}_${precision}_host.oplan" "${data[@]}" --metrics "$host.part" \
      --dump-gradients "$host.safetensors" || return 1
    mv "$host.part" "$host.jsonl"
  fi
  bin/oriel-run "plans/${model}_${precision}_$name.oplan" -n "$ranks" --device cuda "${data[@]}" --metrics "$device.jsonl" \
    --dump-gradients "$device.safetensors" || return 1
  loss="$(loss_difference "$device.jsonl" "$host.jsonl")"
  gradients="$(bin/oriel-compare "$device.safetensors" "$host.safetensors" $gradient_bound)" || {
    echo "gradients: ${gradients:-not comparable}, above $gradient_bound"
    return 1
  }
  below "$loss" $loss_bound || { echo "losses: ${loss:-not comparable}, above $loss_bound"; return 1; }
  echo "losses within $loss of the host's, gradients within $gradients"
}

run_case() {
  local kind=$1
  shift
  case "$kind" in
    gtest) ORIEL_CUDA_TEST_DEVICE=0 "bin/$1" --gtest_brief=1 ;;
    train) train_case "$@" ;;
    *) echo "no such kind of case: $kind"; return 1 ;;
  esac
}

# In a shell of its own, so that `timeout` can end it.
run_one() {
  cd "$1"
  shift
  export LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  run_case "$@"
}

run() {
  local keep="" here work
  while (($#)); do
    case "$1" in
      --keep) keep="${2:?--keep needs a folder}"; shift 2 ;;
      *) usage 2 ;;
    esac
  done
  here="$(cd "$(dirname "$0")" && pwd)"
  [[ -f "$here/payload.tar.gz" ]] || die "$here holds no payload.tar.gz; make the folder with: tools/dev/gpu_suite.sh pack FOLDER"
  work="${keep:-$(mktemp -d)}"
  mkdir -p "$work"
  work="$(cd "$work" && pwd)"
  [[ -n "$keep" ]] || trap "rm -rf '$work'" EXIT
  tar -C "$work" -xzf "$here/payload.tar.gz"
  mkdir -p "$work/out"

  local doctor
  if ! doctor="$(LD_LIBRARY_PATH="$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$work/bin/oriel-run" --doctor --device cuda 2>&1)"; then
    printf '%s\n' "$doctor"
    die "no device: see above what is missing" 3
  fi
  printf '%s\n\n' "$doctor"

  local passed=0 failed=0 name kind arguments begin seconds status detail results=""
  while IFS=$'\t' read -r name kind arguments; do
    begin="$(now)" status=passed
    # shellcheck disable=SC2086  # arguments are words
    timeout 240 bash "$0" case "$work" "$kind" $arguments >"$work/out/log" 2>&1 </dev/null || status=failed
    seconds="$(awk -v a="$begin" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }')"
    detail="$(tail -n 1 "$work/out/log")"
    if [[ "$status" == passed ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    printf '%-7s %6s s  %-28s %s\n' "$status" "$seconds" "$name" "$detail"
    [[ "$status" == passed ]] || sed 's/^/    /' "$work/out/log" | tail -n 20
    results+="${results:+,}
    {\"name\": \"$(json_text "$name")\", \"status\": \"$status\", \"seconds\": $seconds, \"detail\": \"$(json_text "$detail")\"}"
  done <"$work/cases.tsv"
  printf '{\n  "passed": %d,\n  "failed": %d,\n  "doctor": "%s",\n  "cases": [%s\n  ]\n}\n' \
    "$passed" "$failed" "$(json_text "$doctor")" "$results" >"$here/gpu_suite.json"
  echo "$passed passed, $failed failed; $here/gpu_suite.json"
  ((failed == 0)) || exit 1
}

case "${1:-}" in
  pack) shift; pack "$@" ;;
  run) shift; run "$@" ;;
  case) shift; run_one "$@" ;;
  -h | --help) usage 0 ;;
  *) usage 2 ;;
esac
