#!/usr/bin/env bash
# Checks the layout of every C++ and CUDA file git knows or could know. With -f, fixes it.
set -euo pipefail
cd "$(dirname "$0")/../.."

case "${1:-}" in
  -f) fix=true ;;
  "") fix=false ;;
  *) echo "usage: tools/dev/format.sh [-f]" >&2; exit 2 ;;
esac

listing="$(git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' '*.cu' '*.cuh')" ||
  { echo "format: git cannot list the files (see above)" >&2; exit 1; }
files=()
while IFS= read -r file; do
  if [[ -f "$file" ]]; then files+=("$file"); fi
done <<<"$listing"
((${#files[@]})) || exit 0

if $fix; then
  printf '%s\0' "${files[@]}" | xargs -0 -n 20 -P "$(nproc)" clang-format-14 --style=file -i
  exit
fi
# One line a file; the fix is one command anyway.
wrong="$(printf '%s\0' "${files[@]}" | xargs -0 -n 20 clang-format-14 --style=file --dry-run --Werror 2>&1 |
  sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error:.*/format: \1/p' | sort -u)" || true
if [[ -n "$wrong" ]]; then
  printf '%s\nformat: fix with: tools/dev/format.sh -f\n' "$wrong" >&2
  exit 1
fi
