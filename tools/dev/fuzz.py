#!/usr/bin/env python3
"""Runs the fuzz targets of tests/fuzz: nightly for long, in the tests for seconds.

    tools/dev/fuzz.py [--target T]... [--seconds N]

Builds the preset `fuzz`, collects seeds, and runs each target over build/fuzz/corpus/T, which stays. Afterwards the corpus is
minimised, and a line per target says executions, executions a second and covered edges; sums over all runs are kept in
build/fuzz/totals.json. Inputs that crash, leak, hang (10 s) or take too much memory (1 GiB in one piece, 2 GiB in all) are written to
build/fuzz/crashes; the command that reproduces each is printed, and the exit status is 1. docs/fuzzing.md says what to do then.
"""

import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/fuzz"
HERE = ROOT / "tests/fuzz"

# Longest input of each target. Larger ones find little more and take long.
MAX_LEN = {
    "checkpoint_index": 4096,
    "npy": 512,
    "onnx": 12000,
    "onnx_text": 4096,
    "plan": 16384,
    "recipe": 2048,
    "safetensors": 1024,
    "strategy": 1024,
    "tar_shards": 8192,
}
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=1024"]
# A small quarantine of freed memory, so that what counts against the limit is the target's own. Leaks are looked for after each
# input that allocates more than it frees; the check at exit is disturbed by libFuzzer's own timer.
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:leak_check_at_exit=0:quarantine_size_mb=64",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def build() -> None:
    for command in (["cmake", "--preset", "fuzz"], ["cmake", "--build", "--preset", "fuzz"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"fuzz: {' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")


def collect_seeds() -> None:
    oriel = ROOT / "build/dev/bin/oriel"
    # Debian's Python has the numpy that tools/setup.sh installed; one that happens to be on PATH may not.
    python = "/usr/bin/python3" if pathlib.Path("/usr/bin/python3").exists() else sys.executable
    command = [python, str(HERE / "collect_seeds.py"), str(BUILD / "seeds"), "--write-seeds", str(BUILD / "bin/write_seeds")]
    if oriel.exists():
        command += ["--oriel", str(oriel)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def binary(target: str) -> str:
    return str((BUILD / f"bin/{target}_fuzzer").relative_to(ROOT))


def environment() -> dict[str, str]:
    return os.environ | ENVIRONMENT


def fuzz(target: str, seconds: int, corpus: pathlib.Path, log: pathlib.Path) -> dict:
    crashes = BUILD / "crashes"
    for folder in (corpus, crashes, BUILD / "seeds" / target):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(crashes.iterdir())
    command = [binary(target), *LIMITS, f"-max_len={MAX_LEN[target]}", f"-max_total_time={seconds}", "-print_final_stats=1",
               f"-artifact_prefix={crashes}/{target}-"]
    dictionary = HERE / f"dictionaries/{target}.dict"
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    start = time.monotonic()
    with open(log, "w") as out:
        code = subprocess.run([*command, str(corpus), str(BUILD / "seeds" / target)], cwd=ROOT, env=environment(),
                              stdout=out, stderr=subprocess.STDOUT).returncode
    text = log.read_text(errors="replace")
    runs = [int(n) for n in re.findall(r"^#(\d+)\s", text, re.MULTILINE)]
    runs += [int(n) for n in re.findall(r"stat::number_of_executed_units: (\d+)", text)]
    accepted = re.findall(r"stat::accepted: (\d+)", text)
    edges = [int(n) for n in re.findall(r"cov: (\d+)", text)]
    found = sorted(path for path in set(crashes.iterdir()) - before if path.name.startswith(f"{target}-"))
    return {"target": target, "executions": max(runs, default=0), "accepted": int(accepted[-1]) if accepted else 0, "seconds": time.monotonic() - start,
            "edges": max(edges, default=0), "failed": code != 0, "crashes": found, "log": log}


def minimise(target: str) -> None:
    corpus = BUILD / "corpus" / target
    smaller = corpus.with_suffix(".min")
    shutil.rmtree(smaller, ignore_errors=True)
    smaller.mkdir()
    done = subprocess.run([binary(target), *LIMITS, f"-max_len={MAX_LEN[target]}", "-merge=1", str(smaller), str(corpus)],
                          cwd=ROOT, env=environment(), capture_output=True)
    if done.returncode == 0:
        shutil.rmtree(corpus)
        smaller.rename(corpus)


def add_to_totals(result: dict) -> None:
    path = BUILD / "totals.json"
    with open(BUILD / "totals.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        totals = json.loads(path.read_text()) if path.exists() else {}
        count(result, totals)
        path.write_text(json.dumps(totals, indent=1, sort_keys=True) + "\n")


def count(result: dict, totals: dict) -> None:
    entry = totals.setdefault(result["target"], {"executions": 0, "accepted": 0, "seconds": 0, "edges": 0})
    entry["executions"] += result["executions"]
    entry["accepted"] += result["accepted"]
    entry["seconds"] = round(entry["seconds"] + result["seconds"], 1)
    entry["edges"] = max(entry["edges"], result["edges"])


def report(result: dict) -> None:
    rate = result["executions"] / max(result["seconds"], 1e-9)
    print(f"{result['target']:18} {result['executions']:10} runs {rate:8.0f}/s {result['accepted']:10} accepted {result['edges']:6} edges", flush=True)
    if not result["failed"]:
        return
    print(f"fuzz: {result['target']} failed; its log is {result['log']}, the end of it:", file=sys.stderr)
    lines = result["log"].read_text(errors="replace").splitlines()
    marks = [i for i, line in enumerate(lines) if "ERROR" in line or "runtime error" in line or "does not hold" in line]
    start = marks[0] if marks else max(0, len(lines) - 20)
    print("\n".join(lines[start : start + 25]), file=sys.stderr)
    for crash in result["crashes"]:
        print(f"fuzz: reproduce with: {binary(result['target'])} {' '.join(LIMITS)} {crash.relative_to(ROOT)}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=sorted(MAX_LEN), help="only these; all without it")
    parser.add_argument("--seconds", type=int, default=600, help="of each target (default: 600)")
    parser.add_argument("--seeds", action="store_true", help="only collect seeds, with binaries as they are")
    parser.add_argument("--once", action="store_true",
                        help="binaries and seeds as they are, and a corpus that does not stay: for the tests")
    args = parser.parse_args()
    if not (args.once or args.seeds):
        build()
    if not args.once:
        collect_seeds()
    if args.seeds:
        return 0
    failed = 0
    for target in args.target or sorted(MAX_LEN):
        with contextlib.ExitStack() as stack:
            corpus = stack.enter_context(tempfile.TemporaryDirectory()) if args.once else BUILD / "corpus" / target
            log = BUILD / f"{target}{'.once' if args.once else ''}.log"
            result = fuzz(target, args.seconds, pathlib.Path(corpus), log)
        report(result)
        failed += result["failed"]
        if not args.once:
            add_to_totals(result)
            minimise(target)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
