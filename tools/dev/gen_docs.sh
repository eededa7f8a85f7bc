#!/usr/bin/env bash
# Writes docs/generated/: from the TableGen files, and onnx_ops.md from what the built onnx_conformance finds. With
# --check, only says whether what comes from TableGen is up to date; the CTest test onnx_conformance checks the other.
set -euo pipefail
cd "$(dirname "$0")/../.."

# TableGen files (a pattern), the document's name (%d: folder, %s: file stem), what mlir-tblgen prints.
table=(
  "ir/oriel/oriel_ops.td   dialect_oriel   -gen-dialect-doc -dialect=oriel"
  "ir/oriel/fused.td       dialect_oriel_fused -gen-dialect-doc -dialect=oriel"
  "ir/exec/exec_ops.td     dialect_exec    -gen-dialect-doc -dialect=exec"
  "ir/interfaces/*.td      interface_%s    -gen-op-interface-docs"
  "ir/scalar/*.td          interface_%s    -gen-op-interface-docs"
  "frontend/passes.td      passes_%d       -gen-pass-doc"
  "passes/*/passes.td      passes_%d       -gen-pass-doc"
  "opcheck/passes.td       passes_%d       -gen-pass-doc"
)
tblgen="${ORIEL_MLIR_TBLGEN:-/usr/lib/llvm-22/bin/mlir-tblgen}"
mlir_include="$(dirname "$tblgen")/../include"
target=docs/generated

check=false
case "${1:-}" in
  --check) check=true ;;
  "") ;;
  *) echo "usage: tools/dev/gen_docs.sh [--check]" >&2; exit 2 ;;
esac

fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
for row in "${table[@]}"; do
  read -r pattern name flags <<<"$row"
  for td in $pattern; do
    [[ -f "$td" ]] || continue
    stem="$(basename "$td" .td)"
    folder="$(basename "$(dirname "$td")")"
    document="${name//%s/$stem}"
    document="${document//%d/$folder}"
    # shellcheck disable=SC2086  # flags are words
    "$tblgen" $flags -I . -I "$mlir_include" "$td" -o "$fresh/$document.md"
    # Files that only declare attributes or constraints have nothing to say.
    [[ "$(grep -c '^#' "$fresh/$document.md")" != 0 ]] || rm "$fresh/$document.md"
  done
done

conformance=build/dev/bin/onnx_conformance
if ! $check && [[ -x $conformance ]]; then
  "$conformance" --write "$fresh/onnx_ops.md"
else
  $check || echo "docs: onnx_ops.md is left as it is; it needs: ninja -C build/dev onnx_conformance" >&2
  cp "$target/onnx_ops.md" "$fresh/"
fi

if $check; then
  if ! diff -ru --new-file "$target" "$fresh"; then
    echo "docs: fix with: tools/dev/gen_docs.sh" >&2
    exit 1
  fi
else
  rm -rf "$target"
  mkdir -p "$target"
  find "$fresh" -name '*.md' -exec cp {} "$target/" \;
  echo "docs: wrote $(find "$target" -name '*.md' | wc -l) files to $target"
fi
