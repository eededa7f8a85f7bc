#!/usr/bin/env bash
# From a bare Debian 12 to a trained vision-language model: installs what is missing, builds, prepares the data, compiles
# the model, trains it on 4 ranks, evaluates it on held-out images, exports it to ONNX.
#
#   tools/quickstart.sh [--fresh] [--no-setup]
#
#   --fresh     trains again even where a trained checkpoint of the same plan lies
#   --no-setup  installs nothing
#
# Everything is written to build/. The last line is "class_accuracy=0.NNN".
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=false setup=true
for arg in "$@"; do
  case "$arg" in
    --fresh) fresh=true ;;
    --no-setup) setup=false ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart: unknown option '$arg' (see --help)" >&2; exit 2 ;;
  esac
done

ranks=4
model=models/llava_tiny
data=build/data/llava_tiny
out=build/quickstart
bin=build/dev/bin
plan=$out/llava_tiny.oplan
checkpoints=$out/checkpoints
steps=7 step=0

begin() { step=$((step + 1)); printf '[%d/%d] %s\n' "$step" "$steps" "$*"; }
die() { printf 'quickstart: error: %s\n' "$*" >&2; exit 1; }
# json EXPRESSION: of the JSON object `it` on stdin.
json() { /usr/bin/python3 -c "import json, sys; it = json.load(sys.stdin); print($1)"; }

begin "Setup"
if $setup; then tools/setup.sh --cpu-only; else echo "left out (--no-setup)"; fi

begin "Build (the first time takes some minutes)"
mkdir -p build
cmake --preset dev >build/quickstart.configure.log 2>&1 || {
  tail -n 30 build/quickstart.configure.log >&2
  die "configuring failed; see build/quickstart.configure.log"
}
cmake --build --preset dev --target oriel oriel-run

begin "Data: Fashion-MNIST with captions"
/usr/bin/python3 $model/prepare_data.py --out $data

begin "Compile for $ranks ranks"
mkdir -p $out
$bin/oriel compile $model/model.onnx --recipe $model/recipe.yaml --world $ranks -o $plan
total_steps="$($bin/oriel inspect $plan --json | json 'it["steps"]')"
parameters="$($bin/oriel inspect $plan --json | json '"{:,}".format(it["parameters"]["total"])')"

# What the weights that training ends with depend on.
stamp="$(sha256sum $plan $out/llava_tiny.weights.safetensors $data/stamp.json)"
if $fresh || [[ ! -f $out/trained.stamp || "$(cat $out/trained.stamp)" != "$stamp" ]]; then
  rm -rf $checkpoints $out/trained.stamp
fi
trained=$checkpoints/$(printf 'step-%08d' "$total_steps")

begin "Train: $total_steps steps on $ranks ranks"
if [[ -f $trained/index.json ]]; then
  echo "already done: $trained (train again with --fresh)"
else
  resume=()
  if compgen -G "$checkpoints/step-*/index.json" >/dev/null; then
    resume=(--resume $checkpoints)
    echo "going on from the last checkpoint (start over with --fresh)"
  fi
  echo "$stamp" >$out/trained.stamp
  started=$SECONDS
  $bin/oriel-run $plan -n $ranks --data $data/train --save-dir $checkpoints --save-every 500 \
    --metrics $out/metrics.jsonl "${resume[@]}"
  echo "trained in $((SECONDS - started)) s"
fi

begin "Evaluate on held-out images"
$bin/oriel-run $plan -n $ranks --resume $checkpoints --eval $data/eval >$out/eval.json
accuracy="$(json '"%.3f" % it["exact_match"]' <$out/eval.json)"

begin "Export to ONNX"
$bin/oriel export $plan --checkpoint $checkpoints --to onnx -o $out/trained.onnx

cat <<END

A LLaVA of $parameters parameters, from ONNX, learned to name what is in an image.
  plan          $plan (look: $bin/oriel inspect $plan)
  checkpoint    $trained
  losses        $out/metrics.jsonl
  trained ONNX  $out/trained.onnx
  evaluation    $out/eval.json: share of held-out images whose class name is right at every token
  chance        0.100 (10 classes)
class_accuracy=$accuracy
END
