#!/usr/bin/env bash
# Tests and times Oriel on a machine with NVIDIA GPUs that has nothing else of it: no MLIR, no MPI, no packages.
#
#   tools/dev/gpu_suite.sh pack [--bin DIR] [--dry] FOLDER   here: puts binaries, libraries, plans and data into FOLDER, below 40 MiB
#   FOLDER/gpu_suite.sh run [--parts LIST] [--minutes N] [--out DIR] [--keep DIR] [--dry]   there: runs all, in some minutes
#
# `pack` takes what was built (default: build/dev/bin). The folder needs the glibc that `pack` names, a driver for CUDA 13 and, for
# what uses them, cuBLASLt 13, cuDNN 9 and NCCL, which are looked for where the toolkit and PyTorch's packages have them, too; other
# libraries are in it. The benchmark of training steps needs python3, and its baselines PyTorch.
#
# `run` prints a line per case and writes, behind each, gpu_suite.json and what the cases said (gpu_suite_logs.tar.gz) into --out, or
# beside itself. The report's `kernels` and `training` go into bench/results. The exit code is 0 if every case has passed, 1 if one has
# failed, 4 if time was short for some, 3 if there is no device. Parts, all by default:
#   tests    the backend, kernels against their references, communicators' conformance
#   train    tiny models against the host, on 1, 2 and 4 ranks
#   nccl     whether NCCL takes several ranks on one GPU: no failure if it does not
#   kernels  each kernel against what the memory or a product gives
#   bench    training steps of full-size models against PyTorch's (of some: bench=llava_2b,llava_7b)
# --minutes N ends all then (default: 8; the benchmark of all models takes longer: run it by itself), --keep DIR leaves there what the
# cases wrote, and --dry runs on the emulator what was packed with --dry, a few small cases: it tests this script.
set -euo pipefail

# Where sources and folder travel together, they may have 64.
limit_mib=40
die() { printf 'gpu_suite: error: %s\n' "$1" >&2; exit "${2:-1}"; }
usage() { sed -n '2,22s/^# \{0,1\}//p' "$0"; exit "$1"; }

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

# add_case PART NAME KIND ARGUMENTS..: a line of the list that `run` reads.
add_case() { (IFS=$'\t'; printf '%s\n' "$*") >>"$stage/cases.tsv"; }

# add_plan MODEL PRECISION OPTIMIZER NAME OPTIONS..: compiles a plan into the stage.
add_plan() {
  local model=$1 precision=$2 optimizer=$3 name=$4 recipe
  shift 4
  recipe="$stage/recipe.yaml"
  sed "s/^precision: .*/precision: $precision/" "models/$model/golden/recipe_$optimizer.yaml" >"$recipe"
  "$bin/oriel" compile "models/$model/model.onnx" --recipe "$recipe" "$@" -o "$stage/plans/$name.oplan" >/dev/null \
    || die "compiling $name failed"
  rm "$recipe"
  # All strategies begin with the same weights: once in the archive, the others are links to them.
  local weights="$stage/plans/$name.weights.safetensors" first="$stage/plans/${model}_f32_adamw_host.weights.safetensors"
  if [[ "$weights" != "$first" ]] && cmp -s "$weights" "$first"; then ln -f "$first" "$weights"; fi
}

# What a strategy is called, and the compiler's options for it. As few ranks as show each way to cut.
strategies() {
  cat <<'LIST'
1 --mesh dp=1
dp2 --mesh dp=2 --zero 1
tp2 --mesh tp=2 --sp
pp2 --stages 2 --schedule 1f1b
dp2tp2 --mesh dp=2,tp=2 --zero 3
single_ops --mesh dp=1 --fuse-kernels off
generated --mesh dp=1 --generated-kernels on
fused_loss --mesh dp=1 --fuse-loss
tp2_all --mesh tp=2 --sp --fuse-loss --generated-kernels on
LIST
}

# What a precision is trained with: 20 steps of AdamW and, in f32, 5 of SGD, which hides no wrong factor of a gradient.
optimizers() { if [[ "$1" == f32 ]]; then echo adamw sgd; else echo adamw; fi; }

ranks_of() { case "$1" in 1 | single_ops | generated | fused_loss) echo 1 ;; dp2tp2) echo 4 ;; *) echo 2 ;; esac; }

# The highest version of glibc that what was packed asks for.
glibc_needed() {
  local file
  for file in "$stage"/bin/* "$stage"/lib/*; do
    objdump -T "$file" 2>/dev/null | grep -o 'GLIBC_[0-9][0-9.]*' || true
  done | sed 's/GLIBC_//' | sort -uV | tail -n 1
}

pack_training() {
  local dry=$1 model precision optimizer name options precisions="f32 bf16"
  [[ -z "$dry" ]] || precisions=f32
  for model in llava_tiny qwen_vl_tiny; do
    [[ -z "$dry" || "$model" == llava_tiny ]] || continue
    mkdir "$stage/data/$model"
    cp models/$model/golden/data/* "$stage/data/$model/"
    for precision in $precisions; do
      for optimizer in $(optimizers "$precision"); do
        add_plan "$model" "$precision" "$optimizer" "${model}_${precision}_${optimizer}_host" --mesh dp=1 --device host
        while read -r name options; do
          [[ -z "$dry" || "$name" == 1 || "$name" == dp2 ]] || continue
          # shellcheck disable=SC2086  # options are words
          add_plan "$model" "$precision" "$optimizer" "${model}_${precision}_${optimizer}_$name" $options --device cuda
        done < <(strategies)
      done
      while read -r name options; do
        [[ -z "$dry" || "$name" == 1 || "$name" == dp2 ]] || continue
        add_case train "$model $precision $name" train "$model" "$precision" "$name"
      done < <(strategies)
    done
  done
}

pack_benchmark() {
  local models=(gpt2_124m llava_2b llava_7b llava_7b_batch8) model
  [[ -z "$1" ]] || models=(llava_tiny)
  mkdir "$stage/bench"
  cp bench/gpu/*.py "$stage/bench/"
  python3 -B bench/gpu/pack.py --oriel "$bin/oriel" --out "$stage/bench/packed" "${models[@]}"
  for model in "${models[@]}"; do add_case bench "training $model" bench "$model"; done
}

pack() {
  local folder="" bin=build/dev/bin dry="" preset=3 file kib
  while (($#)); do
    case "$1" in
      --bin) bin="${2:?--bin needs a folder}"; shift 2 ;;
      --dry) dry=yes; shift ;;
      -*) usage 2 ;;
      *) folder=$1; shift ;;
    esac
  done
  [[ -n "$folder" ]] || usage 2
  cd "$(dirname "$0")/../.."
  local files=(oriel-run oriel-compare oriel_cuda_kernels_bench liboriel_cuda.so oriel_cuda_kernels_test oriel_backend_cuda_test oriel_random_values_cuda_test)
  [[ -z "$dry" ]] || files=(oriel-run oriel-compare oriel_cuda_kernels_bench liboriel_cuda_emulated.so oriel_random_values_cuda_test)
  # Not where NCCL's header was missing.
  [[ ! -e "$bin/oriel_comm_nccl_test" ]] || files+=(oriel_comm_nccl_test)
  for file in oriel "${files[@]}"; do
    [[ -e "$bin/$file" ]] || die "$bin/$file is missing; build it: cmake --preset cuda && cmake --build --preset cuda (then --bin build/cuda/bin)"
  done
  # Machine code for this processor dies on one that lacks its instructions.
  [[ -n "$dry" ]] || ! grep -q '^ORIEL_NATIVE:BOOL=ON' "$bin/../CMakeCache.txt" 2>/dev/null \
    || echo "gpu_suite: warning: $bin is built for this machine's processor; for any: cmake --preset cuda && cmake --build --preset cuda (then --bin build/cuda/bin)" >&2
  mkdir -p "$folder"
  [[ -z "$(ls -A "$folder")" ]] || die "$folder is not empty"
  stage="$(mktemp -d)"
  trap 'rm -rf "$stage"' EXIT
  mkdir "$stage"/{bin,lib,plans,data}

  for file in "${files[@]}"; do add_binary "$bin/$file"; done
  # Most is to be learned from the times, should time be short.
  add_case kernels "kernel times" kernels
  # Each of these has the machine code of all kernels, 6 MiB: the emulator runs one of them.
  add_case tests "initial values" gtest oriel_random_values_cuda_test '*'
  if [[ -z "$dry" ]]; then
    add_case tests "backend" gtest oriel_backend_cuda_test '*'
    add_case tests "kernels" gtest oriel_cuda_kernels_test '*'
  fi
  [[ -n "$dry" || ! -e "$bin/oriel_comm_nccl_test" ]] || add_case tests "communicators" gtest oriel_comm_nccl_test 'Device/DeviceConformance*:DeviceGraphProgress*'
  pack_training "$dry"
  [[ -n "$dry" ]] || add_case nccl "NCCL on one GPU" shared_gpu llava_tiny f32 dp2
  pack_benchmark "$dry"

  glibc_needed >"$stage/glibc"
  # The kernels' machine code is in several binaries, farther apart than gzip looks back. A dry run doesn't travel.
  [[ -z "$dry" ]] || preset=0
  tar -C "$stage" -c bin lib plans data bench cases.tsv glibc | xz --lzma2=preset=$preset,dict=128MiB >"$folder/payload.tar.xz"
  cp "$0" "$folder/gpu_suite.sh" 2>/dev/null || cp tools/dev/gpu_suite.sh "$folder/gpu_suite.sh"
  kib="$(du -sk "$folder" | cut -f1)"
  ((kib <= limit_mib * 1024)) || die "$folder has $((kib / 1024)) MiB, more than $limit_mib"
  echo "packed $(wc -l <"$stage/cases.tsv") cases into $folder, $(((kib + 1023) / 1024)) MiB, for glibc $(cat "$stage/glibc") or newer"
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

# Compares two trainings by design section 9: gradients of the first step, losses of AdamW, parameters behind SGD. Bounds are those
# of another implementation where `against` is host, and in bf16 what rounding to 8 bits makes. Gradients below a share of all are zero
# but for rounding, which reaches a little higher than in f64: key biases before a softmax. What it prints says how many these are.
compare() {
  local precision=$1 optimizer=$2 actual=$3 expected=$4 against=$5 loss_bound=1e-5 gradient_bound=1e-5 parameter_bound=1e-6
  local zero_share=1e-6 loss gradients parameters
  if [[ "$precision" == bf16 ]]; then
    loss_bound=2e-2 gradient_bound=1e-1 zero_share=1e-4
  elif [[ "$against" == host ]]; then
    loss_bound=1e-4 gradient_bound=1e-4 parameter_bound=1e-5
  fi
  if [[ "$optimizer" == sgd ]]; then
    parameters="$(bin/oriel-compare --elements "$actual.parameters" "$expected.parameters" $parameter_bound)" || {
      echo "parameters behind 5 steps of SGD: ${parameters:-not comparable}, above $parameter_bound"
      return 1
    }
    echo "parameters behind SGD within $parameters"
    return 0
  fi
  loss="$(loss_difference "$actual.jsonl" "$expected.jsonl")"
  gradients="$(bin/oriel-compare --zero-share $zero_share "$actual.gradients" "$expected.gradients" $gradient_bound)" || {
    echo "gradients: ${gradients:-not comparable}, above $gradient_bound"
    return 1
  }
  below "$loss" $loss_bound || { echo "losses: ${loss:-not comparable}, above $loss_bound"; return 1; }
  echo "losses within $loss, gradients within $gradients"
}

# train_once MODEL PRECISION OPTIMIZER NAME [OPTION], if that has not been done: what the run wrote is out/MODEL_PRECISION_OPTIMIZER_NAME.*
train_once() {
  local name=$1_$2_$3_$4 ranks
  local out="out/$name" arguments=()
  [[ ! -e "$out.jsonl" ]] || return 0
  if [[ "$4" != host ]]; then
    ranks="$(ranks_of "$4")"
    arguments=(-n "$ranks" --device cuda)
    # NCCL wants a GPU, and a process, for each rank.
    if ((ranks > gpus)); then
      local -x ORIEL_DEVICE_COMM=staged
      arguments+=(--comm in_process)
    fi
  fi
  bin/oriel-run "plans/$name.oplan" ${arguments[@]+"${arguments[@]}"} --data "data/$1" --no-shuffle --metrics "$out.part" \
    --dump-gradients "$out.gradients" --dump-parameters "$out.parameters" ${dry_run:+--steps 2} ${5:+"$5"} || return 1
  mv "$out.part" "$out.jsonl"
}

# On one rank against the host, on several against one.
train_case() {
  local model=$1 precision=$2 name=$3 optimizer reference=1 found all="" way
  [[ "$name" != 1 ]] || reference=host
  for optimizer in $(optimizers "$precision"); do
    train_once "$model" "$precision" "$optimizer" "$reference" || return 1
    found="$(trained_as "$model" "$precision" "$optimizer" "$name" "$reference")" || {
      echo "$found"
      # Which part of the program it is.
      for way in --no-graphs --check-nan; do
        rm -f "out/${model}_${precision}_${optimizer}_$name".*
        echo "$way: $(trained_as "$model" "$precision" "$optimizer" "$name" "$reference" "$way" || echo "fails, too")"
      done
      echo "$found"
      return 1
    }
    all+="${all:+; }$found"
  done
  echo "$all of $([[ "$reference" == host ]] && echo "the host's" || echo "one rank's")"
}

# trained_as MODEL PRECISION OPTIMIZER NAME REFERENCE [OPTION]: prints what compare says.
trained_as() {
  train_once "$1" "$2" "$3" "$4" "${6:-}" >&2 || { echo "the run failed (above: why)"; return 1; }
  compare "$2" "$3" "out/$1_$2_$3_$4" "out/$1_$2_$3_$5" "$5"
}

# Two processes on one GPU, which NCCL takes for two machines, so that it goes over the loopback network. Where they fail, once more in
# the ways that say what it is: without recordings, and without NCCL's order of launches.
shared_gpu_case() {
  local model=$1 precision=$2 name=$3 way found
  local plan=${model}_${precision}_adamw_$name reference=${model}_${precision}_adamw_1
  local out=out/${plan}_shared
  train_once "$model" "$precision" adamw 1 || return 1
  for way in "as usual" "--no-graphs" "NCCL_LAUNCH_ORDER_IMPLICIT=0"; do
    if shared_gpu_ranks "$plan" "$out" "data/$model" "$way"; then
      found="$(compare "$precision" adamw "$out" "out/$reference" 1)" || { echo "wrong numbers, $way: $found"; return 1; }
      echo "works, $way: $found"
      return 0
    fi
    echo "does not work, $way: two ranks on one GPU over NCCL (above: why)"
  done
}

shared_gpu_ranks() {
  local plan=$1 out=$2 data=$3 way=$4 rank options=() environment=() pids=() code=0
  [[ "$way" != --* ]] || options=("$way")
  [[ "$way" != *=* ]] || environment=("$way")
  for rank in 0 1; do
    env MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 RANK=$rank LOCAL_RANK=$rank CUDA_VISIBLE_DEVICES=0 \
      NCCL_HOSTID="oriel$rank" NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo \
      ORIEL_DEVICE_COMM=nccl ORIEL_NCCL_TIMEOUT=30 ORIEL_RENDEZVOUS_TIMEOUT=30 ${environment[@]+"${environment[@]}"} \
      timeout --foreground -k 5 60 bin/oriel-run "plans/$plan.oplan" --device cuda --data "$data" --no-shuffle --comm tcp \
      --metrics "$out.jsonl" --dump-gradients "$out.gradients" ${options[@]+"${options[@]}"} &
    pids+=($!)
  done
  for rank in 0 1; do wait "${pids[$rank]}" || code=1; done
  return $code
}

bench_case() {
  local dry=() of_binaries="$LD_LIBRARY_PATH"
  command -v python3 >/dev/null || { echo "left out: no python3"; return 0; }
  # Only Oriel's binaries get its libraries.
  [[ -z "$dry_run" ]] || dry=(--dry-run --contestants oriel oriel_generated oriel_fused_loss oriel_timed_products --steps 2)
  # A contestant of the largest model takes some minutes.
  LD_LIBRARY_PATH="$library_path_before" python3 -B bench/train_step.py --folder bench/packed --bin bin --timeout 400 \
    --library-path "$of_binaries" --out "out/training_$1.json" ${dry[@]+"${dry[@]}"} "$1"
}

# A process for each suite: behind a fault of a kernel, all that follows in its process fails. One that hangs leaves the others their time.
# A large one has several processes at once: opening a device takes longer than most tests, and cuDNN compiles for each shape (about a
# second).
gtest_case() {
  local binary=bin/$1 filter=$2 suite suites=0 tests=0 failed="" part parts pids log
  export ORIEL_CUDA_TEST_DEVICE=gpu
  [[ -z "$dry_run" ]] || ORIEL_CUDA_TEST_DEVICE=emulator
  for suite in $("$binary" --gtest_list_tests --gtest_filter="$filter" | sed -n 's/^\([^ ]*\)\.\( .*\)\{0,1\}$/\1/p'); do
    suites=$((suites + 1))
    echo "$suite"  # known, should it hang
    parts=1 pids=() log="out/tests_${suite//[!A-Za-z0-9]/_}"
    (($("$binary" --gtest_list_tests --gtest_filter="$suite.*" | grep -c '^  ') <= 10)) || parts=4
    for ((part = 0; part < parts; part++)); do
      GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part timeout --foreground -k 5 180 "$binary" --gtest_brief=1 --gtest_filter="$suite.*" >"$log$part.log" 2>&1 &
      pids+=($!)
    done
    for ((part = 0; part < parts; part++)); do
      wait "${pids[part]}" || [[ "$failed" == *" $suite" ]] || failed+=" $suite"
      cat "$log$part.log"
      tests=$((tests + $(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log$part.log" | tail -n 1) + 0))
    done
  done
  ((suites > 0)) || { echo "no tests: $binary $filter"; return 1; }
  echo "$tests tests of $suites suites have passed${failed:+; failed:$failed}"
  [[ -z "$failed" ]]
}

# Goes on behind a kernel after which the device does nothing more for its process.
kernels_case() {
  local from=0 code=5 ended=0
  while ((code == 5)); do
    code=0
    bin/oriel_cuda_kernels_bench --json out/kernels.json --from "$from" ${dry_run:+--emulate --tiny} || code=$?
    ((code == 0)) || ended=1
    from="$(grep -c '"kernel":' out/kernels.json || true)"
  done
  return $ended
}

# Seconds that a case may take: far more than it should, so that one that hangs leaves the others their time. A benchmark's runs have
# a limit each.
seconds_of() { case "$1" in gtest) echo 420 ;; shared_gpu | kernels) echo 240 ;; bench) echo 86400 ;; *) echo 120 ;; esac; }

run_case() {
  local kind=$1
  shift
  case "$kind" in
    gtest) gtest_case "$@" ;;
    train) train_case "$@" ;;
    shared_gpu) shared_gpu_case "$@" ;;
    kernels) kernels_case ;;
    bench) bench_case "$@" ;;
    *) echo "no such kind of case: $kind"; return 1 ;;
  esac
}

# Where cuBLASLt, cuDNN and NCCL may be beside the system's folders: the toolkit, and PyTorch's packages.
cuda_folders() {
  local folder
  for folder in $(python3 -c '
import glob
try:
    import nvidia
    print(*[folder for path in nvidia.__path__ for folder in sorted(glob.glob(path + "/*/lib"))])
except ImportError:
    pass' 2>/dev/null) /usr/local/cuda/lib64; do
    # A library of CUDA 12 may have the name of one of 13.
    [[ ! -d "$folder" || ( "$folder" == /usr/local/cuda/lib64 && ! -e "$folder/libcublasLt.so.13" ) ]] || printf ':%s' "$folder"
  done
}

# What all cases see.
enter() {
  cd "$1"
  library_path_before="${LD_LIBRARY_PATH:-}"
  export LD_LIBRARY_PATH
  # PyTorch's own are not hidden by others.
  LD_LIBRARY_PATH="$PWD/lib$(cuda_folders)${library_path_before:+:$library_path_before}"
  [[ -z "$dry_run" ]] || export ORIEL_CUDA_PLUGIN="$PWD/bin/liboriel_cuda_emulated.so"
}

# In a shell of its own, so that `timeout` can end it.
run_one() {
  dry_run=$1 gpus=$2
  enter "$3"
  shift 3
  run_case "$@"
}

check_glibc() {
  local needed have
  needed="$(cat "$1/glibc")"
  have="$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2)"
  [[ "$(printf '%s\n' "$needed" "${have:-0}" | sort -V | head -n 1)" == "$needed" ]] \
    || die "the binaries need glibc $needed, and this machine has ${have:-another C library}; pack on an older system"
}

unpack() {
  if command -v xz >/dev/null; then tar -C "$2" -xJf "$1"; else
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$1" "$2" || die "unpacking needs xz or python3"
  fi
}

# {"name": .., ..} of several files, by what stands between PREFIX and .json in their names.
json_of_files() {
  local prefix=$1 file name first=yes
  printf '{'
  for file in "$prefix"*.json; do
    [[ -e "$file" ]] || continue
    name="${file#"$prefix"}"
    [[ -n "$first" ]] || printf ','
    first=""
    printf '\n"%s": ' "${name%.json}"
    cat "$file"
  done
  printf '}'
}

# What `run` leaves behind when it ends, however.
scratch="" holder=""
clean_up() {
  [[ -z "$holder" ]] || kill "$holder" 2>/dev/null || true
  [[ -z "$scratch" ]] || rm -rf "$scratch"
}

# What is known so far; a run that is cut off leaves it.
write_report() {
  {
    printf '{\n  "date": "%s",\n  "dry_run": %s,\n  "gpu": "%s",\n' "$(date +%F)" "$([[ -n "$dry_run" ]] && echo true || echo false)" \
      "$(json_text "$gpu")"
    printf '  "passed": %d,\n  "failed": %d,\n  "skipped": %d,\n  "doctor": "%s",\n  "cases": [%s\n  ],\n' \
      "$passed" "$failed" "$skipped" "$(json_text "$doctor")" "$results"
    printf '  "kernels": '
    if [[ -e "$work/out/kernels.json" ]]; then cat "$work/out/kernels.json"; else echo null; fi
    printf '  , "training": %s\n}\n' "$(json_of_files "$work/out/training_")"
  } >"$report.part"
  mv "$report.part" "$report"
  ! compgen -G "$work/out/*.log" >/dev/null || (cd "$work/out" && tar -czf "$logs.part" -- *.log && mv "$logs.part" "$logs")
}

run() {
  local keep="" here work out="" report logs gpu parts=tests,train,nccl,kernels,bench minutes=8 only=""
  dry_run=""
  while (($#)); do
    case "$1" in
      --keep) keep="${2:?--keep needs a folder}"; shift 2 ;;
      --out) out="${2:?--out needs a folder}"; shift 2 ;;
      --parts) parts="${2:?--parts needs a list}"; shift 2 ;;
      --minutes) minutes="${2:?--minutes needs a number}"; shift 2 ;;
      --dry) dry_run=yes; shift ;;
      *) usage 2 ;;
    esac
  done
  if [[ "$parts" == *bench=* ]]; then only=",${parts#*bench=}," parts="${parts%%=*}"; fi
  [[ "$parts" =~ ^(tests|train|nccl|kernels|bench)(,(tests|train|nccl|kernels|bench))*$ ]] || die "--parts takes some of tests,train,nccl,kernels,bench" 2
  here="$(cd "$(dirname "$0")" && pwd)"
  [[ -f "$here/payload.tar.xz" ]] || die "$here holds no payload.tar.xz; make the folder with: tools/dev/gpu_suite.sh pack FOLDER"
  out="${out:-$here}"
  mkdir -p "$out"
  report="$(cd "$out" && pwd)/gpu_suite.json"
  logs="${report%.json}_logs.tar.gz"
  # Those of an earlier run are not this one's.
  rm -f "$report" "$logs"
  trap clean_up EXIT
  if [[ -z "$keep" ]]; then scratch="$(mktemp -d)"; fi
  work="${keep:-$scratch}"
  mkdir -p "$work"
  [[ -z "$(ls -A "$work")" || -f "$work/cases.tsv" ]] || die "--keep $work is not empty, nor what an earlier run left"
  work="$(cd "$work" && pwd)"
  unpack "$here/payload.tar.xz" "$work"
  rm -rf "$work/out"
  mkdir "$work/out"
  check_glibc "$work"
  local model
  for model in ${only//,/ }; do
    cut -f 1,4 "$work/cases.tsv" | grep -q "^bench.$model\$" || die "--parts bench=..: no model '$model' is packed" 2
  done

  local doctor code=0 gpus
  doctor="$(enter "$work"; bin/oriel-run --doctor --device cuda 2>&1)" || code=$?
  ((code != 132)) || die "these binaries are for another processor: pack a build of the preset cuda"
  printf '%s\n\n' "$doctor"
  # The emulator is no machine's.
  ((code == 0)) || [[ -n "$dry_run" ]] || die "no device: see above what is missing" 3
  [[ -n "$dry_run" ]] || grep -q '^ok  cuDNN' <<<"$doctor" \
    || echo "gpu_suite: warning: without cuDNN attention runs without tensor cores: the figures of bench say nothing" >&2
  # Those that programs see, which are not all of the machine's.
  gpus="$(grep '^ok  CUDA devices' <<<"$doctor" | grep -o '(sm_' | wc -l || true)"
  ((gpus > 0)) || gpus=1
  # While one process has the driver open, it does not start anew for each of the others.
  if [[ -z "$dry_run" ]] && command -v nvidia-smi >/dev/null; then
    nvidia-smi -l 60 >/dev/null 2>&1 </dev/null &
    holder=$!
  fi
  gpu="$(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null || true)"

  local passed=0 failed=0 skipped=0 part name kind arguments begin started left limit seconds status detail results=""
  started="$(now)"
  while IFS=$'\t' read -r part name kind arguments; do
    [[ ",$parts," == *",$part,"* ]] || continue
    [[ "$part" != bench || -z "$only" || "$only" == *",$arguments,"* ]] || continue
    begin="$(now)" status=passed code=0
    left="$(awk -v a="$started" -v b="$begin" -v minutes="$minutes" 'BEGIN { printf "%d", minutes * 60 - (b - a) }')"
    if ((left < 1)); then
      skipped=$((skipped + 1))
      printf '%-7s %8s  %-28s %s\n' skipped "" "$name" "--minutes $minutes have passed"
      continue
    fi
    limit="$(seconds_of "$kind")"
    ((limit <= left)) || limit=$left
    # shellcheck disable=SC2086  # arguments are words
    # KILL reaches all of the group at once, which limits within keep to (--foreground): a rank that waits for its device heeds nothing else.
    (set -f; timeout -s KILL "$limit" bash "$0" case "$dry_run" "$gpus" "$work" "$kind" $arguments) >"$work/out/log" 2>&1 </dev/null || code=$? status=failed
    seconds="$(awk -v a="$begin" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }')"
    # What something else has killed ends before.
    if [[ $code == 124 || $code == 137 ]] && below "$limit" "$seconds"; then
      if ((limit == left)); then
        status="cut"
        echo "ended, since --minutes $minutes have passed" >>"$work/out/log"
      else
        echo "ended after $limit s, far more than it should take" >>"$work/out/log"
      fi
    fi
    detail="$(tail -n 1 "$work/out/log")"
    case "$status" in passed) passed=$((passed + 1)) ;; failed) failed=$((failed + 1)) ;; cut) skipped=$((skipped + 1)) ;; esac
    printf '%-7s %6s s  %-28s %s\n' "$status" "$seconds" "$name" "$detail"
    if [[ "$status" == failed ]]; then
      # The first failure says most.
      sed 's/^/    /' "$work/out/log" | awk 'NR <= 25 { print; next } { last[NR % 15] = $0 }
        END { if (NR > 40) print "    .."; for (i = NR > 40 ? NR - 14 : 26; i <= NR; i++) print last[i % 15] }'
    elif [[ "$part" == kernels || "$part" == bench || "$part" == nccl ]]; then
      sed 's/^/    /' "$work/out/log"
    fi
    mv "$work/out/log" "$work/out/${name// /_}.log"
    results+="${results:+,}
    {\"part\": \"$part\", \"name\": \"$(json_text "$name")\", \"status\": \"$status\", \"seconds\": $seconds, \"detail\": \"$(json_text "$detail")\"}"
    write_report
  done <"$work/cases.tsv"
  write_report
  echo "$passed passed, $failed failed, $skipped skipped; $report"
  ((failed == 0)) || exit 1
  ((skipped == 0)) || exit 4
}

case "${1:-}" in
  pack) shift; pack "$@" ;;
  run) shift; run "$@" ;;
  case) shift; run_one "$@" ;;
  -h | --help) usage 0 ;;
  *) usage 2 ;;
esac
