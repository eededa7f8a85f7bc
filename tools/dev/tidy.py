#!/usr/bin/env python3
"""Runs clang-tidy on the sources of runtime/ and kernels/, as far as a time budget allows.

A file that was clean and whose text, headers and settings did not change is not looked at again; so a file that the
budget left out is reached by the next run. Exit status 1 when a file has a finding.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("runtime/", "kernels/")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def with_our_headers(file: pathlib.Path, build: pathlib.Path, seen: set) -> set:
    """`file` and the headers of ours that it reaches, generated ones included."""
    if file in seen:
        return seen
    seen.add(file)
    for include in INCLUDE.findall(file.read_text(encoding="utf-8", errors="replace")):
        for root in (ROOT, build):
            if (root / include).is_file():
                with_our_headers(root / include, build, seen)
    return seen


def fingerprint(file: pathlib.Path, build: pathlib.Path, command: str) -> str:
    digest = hashlib.sha256(command.encode())
    for part in [ROOT / ".clang-tidy", *sorted(with_our_headers(file, build, set()))]:
        digest.update(part.read_bytes())
    return digest.hexdigest()


def compile_flags(entry: dict) -> list[str]:
    """The flags clang-tidy needs: include paths, definitions and the language."""
    words = entry["command"].split()
    flags = ["-std=c++17", "-x", "c++"]
    for i, word in enumerate(words):
        if word in ("-isystem", "-I"):
            flags += [word, words[i + 1]]
        elif word.startswith(("-I", "-D", "-march=")):
            flags.append(word.replace('\\"', '"'))
    return flags


def by_last_change() -> dict[str, int]:
    """How many changes ago git saw a file, 0 for what it has not seen; a clone's file times tell nothing."""
    lines = subprocess.run(["git", "log", "--format=", "--name-only", "--", *FOLDERS], cwd=ROOT, capture_output=True,
                           text=True, check=False).stdout.splitlines()
    return {path: age for age, path in reversed(list(enumerate(filter(None, lines), start=1)))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--budget", type=float, default=240, help="seconds")
    args = parser.parse_args()

    build = args.build.resolve()
    clean = build / "tidy"
    clean.mkdir(exist_ok=True)
    todo = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        path = os.path.relpath(file, ROOT)
        # CUDA needs a CUDA-aware clang, and gtest macros are findings of their own.
        if not path.startswith(FOLDERS) or file.suffix != ".cc" or path.endswith("_test.cc") or not file.exists():
            continue
        stamp = clean / fingerprint(file, build, entry["command"])
        if not stamp.exists():
            todo.append((path, compile_flags(entry), stamp))
    age = by_last_change()
    todo.sort(key=lambda item: age.get(item[0], 0))

    deadline = time.monotonic() + args.budget
    findings, skipped = [], []

    def check(item):
        path, flags, stamp = item
        left = deadline - time.monotonic()
        if left <= 0:
            skipped.append(path)
            return
        try:
            done = subprocess.run(["clang-tidy-14", "--quiet", str(ROOT / path), "--", *flags], cwd=ROOT, timeout=left,
                                  capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            skipped.append(path)
            return
        if done.returncode == 0:
            stamp.touch()
        else:
            findings.append(path)
            print(done.stdout + ("" if done.stdout.strip() else done.stderr), file=sys.stderr)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(check, todo))
    print(f"clang-tidy: {len(todo) - len(skipped)} files checked, {len(findings)} with findings, "
          f"{len(skipped)} left for the next run")
    if findings:
        print(f"clang-tidy: see one again with: tools/dev/tidy.py --build {os.path.relpath(build)}", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
