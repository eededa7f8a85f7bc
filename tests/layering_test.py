#!/usr/bin/env python3
"""Enforces the one-way dependencies of docs/architecture.md.

Without arguments: checks every #include of C++ and CUDA sources and every include of .td and .proto files.
With --binary FILE: checks that FILE needs no LLVM, MLIR or ONNX library (a cluster node has none).
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# (folder, folders of ours it may include, foreign header prefixes it may include). The longest matching folder holds.
RULES = [
    ("runtime/base", ["runtime/base"], []),
    ("runtime", ["runtime", "kernels"], []),
    ("kernels", ["kernels", "runtime/base"], []),
    ("ir", ["ir"], ["mlir/", "llvm/"]),
    ("frontend", ["frontend", "ir"], ["mlir/", "llvm/", "onnx/"]),
    ("passes", ["passes", "ir"], ["mlir/", "llvm/"]),
    ("passes/emit", ["passes", "ir", "runtime/plan", "runtime/base"], ["mlir/", "llvm/"]),
    ("opcheck", ["opcheck", "passes", "ir", "kernels", "runtime/base"], ["mlir/", "llvm/"]),
    # The commands of `oriel`. Of the runtime: the plan, the files that both sides read and write, and what a machine lacks.
    ("driver", ["driver", "frontend", "passes", "ir", "runtime/plan", "runtime/base", "runtime/doctor", "runtime/train"],
     ["mlir/", "llvm/"]),
    # Main files see everything of ours; ONNX only through frontend/.
    ("tools", ["tools", "driver", "opcheck", "frontend", "passes", "ir", "runtime", "kernels"], ["mlir/", "llvm/"]),
    ("bench", ["bench", "passes", "ir", "runtime", "kernels"], ["mlir/", "llvm/"]),
    ("tests", ["tests", "driver", "opcheck", "frontend", "passes", "ir", "runtime", "kernels"], ["mlir/", "llvm/"]),
    ("tests/fuzz", ["tests", "frontend", "passes", "ir", "runtime"], ["mlir/", "llvm/", "onnx/"]),
    ("tests/onnx_conformance", ["tests", "opcheck", "frontend", "ir", "runtime"], ["mlir/", "llvm/", "onnx/"]),
]
GUARDED = ["mlir/", "llvm/", "onnx/"]
OURS = sorted({folder.split("/")[0] for folder, _, _ in RULES})
SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".td", ".proto"}
INCLUDE = re.compile(r'^\s*(?:#\s*include|include|import)\s*(?:public\s*)?[<"]([^>"]+)[>"]')


def rule_for(path: str):
    matching = [rule for rule in RULES if path.startswith(rule[0] + "/")]
    return max(matching, key=lambda rule: len(rule[0]), default=None)


def check_include(path: str, include: str):
    """Returns why `path` may not include `include`, or None."""
    rule = rule_for(path)
    if rule is None:
        return None
    folder, ours, foreign = rule
    for prefix in GUARDED:
        # llvm-c/ and mlir-c/ count as what they wrap.
        if include.startswith((prefix, prefix[:-1] + "-c/")) and prefix not in foreign:
            return f"{folder}/ may not include {prefix}"
    if include.split("/")[0] in OURS and not any(include.startswith(allowed + "/") for allowed in ours):
        return f"{folder}/ may include {', '.join(ours)} only"
    return None


def check_sources() -> list[str]:
    problems = []
    for folder in OURS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix not in SUFFIXES or not file.is_file():
                continue
            path = file.relative_to(ROOT).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
                found = INCLUDE.match(line)
                reason = check_include(path, found.group(1)) if found else None
                if reason:
                    problems.append(f'{path}:{number}: includes "{found.group(1)}": {reason}')
    return problems


def check_binary(binary: str) -> list[str]:
    # ldd and not readelf: a dependency of a dependency would be missing on the node just the same.
    listing = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    return [f"{binary} needs {line.split()[0]}" for line in listing.splitlines()
            if re.search(r"lib(LLVM|MLIR|onnx)", line)]


def check_self() -> list[str]:
    """The rules themselves, on the cases they exist for."""
    bad = [("runtime/exec/a.cc", "mlir/IR/Value.h"), ("kernels/add/a.cc", "runtime/exec/a.h"),
           ("ir/oriel/a.cc", "passes/raise/a.h"), ("passes/lower/a.cc", "runtime/plan/plan.h"),
           ("passes/raise/a.cc", "onnx/onnx_pb.h"), ("runtime/base/a.cc", "runtime/plan/plan.h"),
           ("frontend/a.cc", "passes/raise/a.h"), ("driver/a.cc", "runtime/exec/a.h"),
           ("driver/a.cc", "onnx/onnx_pb.h"), ("passes/raise/a.cc", "driver/cli.h")]
    good = [("passes/emit/a.cc", "runtime/plan/plan.h"), ("kernels/add/a.cc", "runtime/base/status.h"),
            ("frontend/a.cc", "onnx/onnx_pb.h"), ("runtime/exec/a.cc", "kernels/add/add.h"),
            ("tools/oriel.cc", "mlir/IR/Value.h"), ("tools/oriel.cc", "driver/cli.h"),
            ("driver/a.cc", "runtime/plan/plan_file.h")]
    return ([f"self-check: {case} was allowed" for case in bad if check_include(*case) is None] +
            [f"self-check: {case} was refused" for case in good if check_include(*case) is not None])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", help="check what this binary links instead of the sources")
    args = parser.parse_args()
    problems = check_binary(args.binary) if args.binary else check_self() + check_sources()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
