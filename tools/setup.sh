#!/usr/bin/env bash
# Installs what Oriel needs on a bare Debian 12. Safe to run again; a second run only checks.
#
#   tools/setup.sh [--cpu-only] [--runtime-only] [--python] [--ort-training]
#
#   --cpu-only      say nothing about CUDA (CUDA is never installed by this script; headers for cuDNN are, where there is a toolkit)
#   --runtime-only  only what oriel-run needs: no LLVM, no MLIR, no ONNX
#   --python        also a virtualenv with PyTorch and ONNX, to export models, goldens and benchmarks
#   --ort-training  also a virtualenv with onnxruntime-training, a baseline of bench/step_time.py; it can't share one with onnxruntime
#
# Places (override by environment):
#   ORIEL_DEPS  libraries built from source      default: ~/.cache/oriel/deps
#   ORIEL_VENV  the virtualenv of --python       default: ~/.cache/oriel/venv
#   ORIEL_ORT_VENV  that of --ort-training       default: ~/.cache/oriel/venv-ort-training
#   ORIEL_TORCH_INDEX  a package index with CPU-only PyTorch wheels; without it, the default index
set -euo pipefail

onnx_version=1.23.2
onnx_sha256=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
numpy_version=2.4.6
cudnn_frontend_version=1.32.0
cudnn_frontend_sha256=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0

base_packages=(
  build-essential cmake ninja-build ccache git pkg-config zlib1g-dev libdeflate-dev
  libabsl-dev libprotobuf-dev protobuf-compiler libgtest-dev libgmock-dev
  nlohmann-json3-dev libyaml-cpp-dev libcli11-dev libdnnl-dev libarchive-dev
  libopenmpi-dev openmpi-bin
  clang-format-14 clang-tidy-14
  python3 python3-numpy python3-yaml
)
compiler_packages=(
  llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools
  clang-22 libclang-rt-22-dev       # the fuzz targets
  python3-pip python3-venv          # fetch the ONNX source package and its node tests
  dataset-fashion-mnist             # images for the end-to-end tests
)
python_packages=(
  torch==2.15.0 transformers==5.23.0 onnx=="$onnx_version" onnxscript==0.7.2 onnxruntime==1.31.1
  numpy=="$numpy_version" safetensors==0.8.0 pyyaml==6.0.3
  timm==1.0.31 torchvision==0.29.2 pillow==13.0.0 peft==0.21.2 # towers of some of transformers' VLMs, and adapters of PEFT
)

# The last release on PyPI, for Python 3.11 and older. It imports torch.
ort_training_packages=(onnxruntime-training==1.19.2 onnx=="$onnx_version" torch==2.15.0 numpy==2.4.6)

cpu_only=false runtime_only=false python=false ort_training=false
for arg in "$@"; do
  case "$arg" in
    --cpu-only) cpu_only=true ;;
    --runtime-only) runtime_only=true ;;
    --python) python=true ;;
    --ort-training) ort_training=true ;;
    -h | --help) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "setup: unknown option '$arg' (see --help)" >&2; exit 2 ;;
  esac
done

deps="${ORIEL_DEPS:-$HOME/.cache/oriel/deps}"
venv="${ORIEL_VENV:-$HOME/.cache/oriel/venv}"
ort_venv="${ORIEL_ORT_VENV:-$HOME/.cache/oriel/venv-ort-training}"
onnx_prefix="$deps/onnx-$onnx_version"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# logged WHAT HINT COMMAND...: runs a command with its output in a log; shows the end of the log only when it fails.
logged() {
  local what=$1 hint=$2 log
  shift 2
  log="$(mktemp)"
  if ! "$@" >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    die "$what failed${hint:+; $hint} (full log: $log)"
  fi
  rm -f "$log"
}

install_packages() {
  local wanted=("$@") missing=() package
  for package in "${wanted[@]}"; do
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" == installed ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    say "Debian packages: all ${#wanted[@]} present"
    return
  fi
  [[ $EUID == 0 ]] || die "not root, and ${#missing[@]} Debian packages are missing. As root, run: apt-get install ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  say "Debian packages: installing ${missing[*]}"
  logged "apt-get update" "is there a network, and are the Debian mirrors reachable?" apt-get -qq update
  for package in "${missing[@]}"; do
    apt-cache show "$package" >/dev/null 2>&1 ||
      die "no package '$package' in the configured sources; LLVM 22 comes from bookworm-security, the rest from bookworm main"
  done
  logged "apt-get install" "" apt-get install -y --no-install-recommends "${missing[@]}"
}

# The C++ library of a current ONNX release. Debian's 1.12 rejects the IR versions that exporters write today.
build_onnx() {
  if [[ -f "$onnx_prefix/.complete" ]]; then
    say "ONNX $onnx_version: present in $onnx_prefix"
    return
  fi
  local archive="$scratch/onnx-$onnx_version.tar.gz" source="$scratch/onnx-$onnx_version"
  say "ONNX $onnx_version: fetching the source package"
  logged "pip download onnx==$onnx_version" "is there a network, and is the package index reachable?" \
    python3 -m pip download --quiet --retries 2 --no-deps --no-binary onnx --dest "$scratch" "onnx==$onnx_version"
  echo "$onnx_sha256  $archive" | sha256sum --check --status || die "$archive: checksum differs from the pinned one"
  tar -xf "$archive" -C "$scratch"
  # Debian's CMake is 3.25.1; nothing in the file needs the 3.26 it asks for.
  sed -i '1,5s/cmake_minimum_required(VERSION 3\.26)/cmake_minimum_required(VERSION 3.25)/' "$source/CMakeLists.txt"
  say "ONNX $onnx_version: building (about 75 s on 2 cores)"
  logged "configuring ONNX" "" cmake -S "$source" -B "$scratch/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$onnx_prefix" -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_CXX_STANDARD=17 -DONNX_USE_UNITY_BUILD=ON -DONNX_USE_PROTOBUF_SHARED_LIBS=ON -DONNX_GEN_PB_TYPE_STUBS=OFF
  logged "building ONNX" "" cmake --build "$scratch/build"
  rm -rf "$onnx_prefix"
  logged "installing ONNX" "" cmake --install "$scratch/build"
  touch "$onnx_prefix/.complete"
  say "ONNX $onnx_version: installed in $onnx_prefix"
}

# The tests that ONNX's Python package has for each op, as files for tests/onnx_conformance.
write_node_tests() {
  local folder="$onnx_prefix/node_tests" python="$scratch/venv/bin/python"
  if [[ -f "$folder/.complete" ]]; then
    say "ONNX node tests: present in $folder"
    return
  fi
  say "ONNX node tests: generating (about 30 s)"
  logged "python3 -m venv" "" python3 -m venv "$scratch/venv"
  logged "pip install onnx==$onnx_version" "is there a network, and is the package index reachable?" \
    "$python" -m pip install --quiet --retries 2 "onnx==$onnx_version" "numpy==$numpy_version"
  rm -rf "$folder"
  logged "writing the node tests" "" "$python" "$(dirname "$0")/../tests/onnx_conformance/write_cases.py" "$folder"
  touch "$folder/.complete"
  say "ONNX node tests: written to $folder"
}

# make_venv FOLDER PACKAGE...
make_venv() {
  local venv=$1 index=()
  shift
  local stamp="$venv/.oriel-packages"
  if [[ -f "$stamp" && "$(cat "$stamp")" == "$*" ]]; then
    say "Python: present in $venv"
    return
  fi
  [[ -z "${ORIEL_TORCH_INDEX:-}" ]] || index=(--extra-index-url "$ORIEL_TORCH_INDEX")
  say "Python: making $venv (PyTorch is a large download)"
  [[ -x "$venv/bin/python" ]] || logged "python3 -m venv" "" python3 -m venv "$venv"
  logged "pip install" "is there a network, and is the package index reachable?" \
    "$venv/bin/pip" install --quiet --retries 2 "${index[@]}" "$@"
  echo "$*" >"$stamp"
  say "Python: ready, use $venv/bin/python"
}

find_nvcc() {
  command -v nvcc || { [[ ! -x /usr/local/cuda/bin/nvcc ]] || echo /usr/local/cuda/bin/nvcc; }
}

# NVIDIA's headers over cuDNN (Apache 2.0). The wheel has them for every platform: always the same file, whatever Python is here.
install_cudnn_frontend() {
  local prefix="$deps/cudnn-frontend-$cudnn_frontend_version" wheel
  if [[ -f "$prefix/.complete" ]]; then
    say "cudnn-frontend $cudnn_frontend_version: present in $prefix"
    return
  fi
  say "cudnn-frontend $cudnn_frontend_version: fetching the headers"
  logged "pip download nvidia-cudnn-frontend==$cudnn_frontend_version" "is there a network, and is the package index reachable?" \
    python3 -m pip download --quiet --retries 2 --no-deps --only-binary :all: --implementation cp --python-version 3.11 --abi cp311 \
    --platform manylinux_2_28_x86_64 --dest "$scratch/cudnn" "nvidia-cudnn-frontend==$cudnn_frontend_version"
  wheel="$(ls "$scratch"/cudnn/*.whl)"
  echo "$cudnn_frontend_sha256  $wheel" | sha256sum --check --status || die "$wheel: checksum differs from the pinned one"
  rm -rf "$prefix"
  mkdir -p "$prefix"
  python3 -m zipfile -e "$wheel" "$scratch/cudnn/all"
  cp -r "$scratch/cudnn/all/include" "$scratch"/cudnn/all/*.dist-info/licenses "$prefix/"
  touch "$prefix/.complete"
  say "cudnn-frontend $cudnn_frontend_version: installed in $prefix"
}

report_cuda() {
  local nvcc
  nvcc="$(find_nvcc)"
  if [[ -n "$nvcc" ]]; then
    say "CUDA: $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/toolkit \1/p') found"
    # Not fatal: without them the CUDA plugin is built without cuDNN, and its own kernels take every launch.
    (install_cudnn_frontend) || say "cudnn-frontend: not installed (see above); CUDA is built without cuDNN"
  else
    say "CUDA: no toolkit found; the GPU parts will be skipped (install one and set PATH to its nvcc to build them)"
  fi
}

command -v apt-get >/dev/null || die "this script knows Debian 12; elsewhere install the packages it lists by hand"
packages=("${base_packages[@]}")
$runtime_only || packages+=("${compiler_packages[@]}")
if $runtime_only && { $python || $ort_training; }; then packages+=(python3-pip python3-venv); fi
if ! $cpu_only && [[ -n "$(find_nvcc)" ]]; then packages+=(python3-pip); fi
install_packages "${packages[@]}"
if ! $runtime_only; then
  build_onnx
  write_node_tests
fi
if $python; then make_venv "$venv" "${python_packages[@]}"; fi
if $ort_training; then make_venv "$ort_venv" "${ort_training_packages[@]}"; fi
$cpu_only || report_cuda
say "done"
