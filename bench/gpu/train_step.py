#!/usr/bin/env python3
"""Times a training step of Oriel on a GPU against PyTorch eager and torch.compile, in one run.

    bench/gpu/train_step.py --folder PACKED --bin BIN --out results.json llava_7b

PACKED is pack.py's folder; BIN holds oriel-run and oriel_cuda_kernels_bench. Needs Python 3.10 and nothing
else, and for the baselines PyTorch; what is not there is left out, and said. README.md defines the figures.
"""

import argparse
import datetime
import importlib.util
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import cases

PEAK_TFLOPS = 989.0  # H100 and H200, dense bf16
WARMUP_STEPS = 4  # as torch_step.py; graphs are recorded in the second step
TIMED = "oriel_timed_products"  # the plan of "oriel", with products whose algorithms were timed
BASELINES = ("compile", "compile_cudnn", "eager")  # of PyTorch; the second with cuDNN's attention
ORIELS = ("oriel", "oriel_generated", "oriel_fused_loss", TIMED)  # contestants that are not baselines
HERE = pathlib.Path(__file__).resolve().parent


class MemoryInUse:
    """What processes take of the device's memory meanwhile, MiB: the most that nvidia-smi has seen, less
    what was in use before. None where there is no nvidia-smi."""

    QUERY = ["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]

    def __enter__(self):
        self.peak = None
        try:
            before = subprocess.run(self.QUERY, capture_output=True, text=True, timeout=30)
            self.before = int(before.stdout.split()[0])
            self.process = subprocess.Popen([*self.QUERY, "-lms", "500"], stdout=subprocess.PIPE, text=True)
        except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
            self.process = None
            return self
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.peak = max(self.peak or 0, int(line) - self.before)

    def __exit__(self, *_):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.thread.join()


class Failed(Exception):
    """A contestant did not run to the end."""


def run(command: list, environment: dict, timeout: float) -> str:
    """What it writes to stdout and stderr."""
    try:
        result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env=environment, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"took longer than {timeout:.0f} s") from error
    if result.returncode:
        raise Failed(result.stdout.strip()[-600:] or f"exit code {result.returncode}")
    return result.stdout


class Bench:
    def __init__(self, args):
        self.args = args
        self.environment = dict(os.environ)
        if args.library_path:
            before = os.environ.get("LD_LIBRARY_PATH")
            self.environment["LD_LIBRARY_PATH"] = args.library_path + (":" + before if before else "")

    def rates(self) -> dict:
        """Of a copy and of a large product, measured here."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rates.json"
            command = [self.args.bin / "oriel_cuda_kernels_bench", "--only", "none", "--json", file]
            if self.args.dry_run:
                command += ["--emulate", "--tiny"]
            run(command, self.environment, self.args.timeout)
            rates = json.loads(file.read_text())
        return {key: rates[key] for key in ("device", "nominal_tbps", "copy_tbps", "product_tflops")}

    def timed_products(self, name: str, case: cases.Case) -> dict:
        with tempfile.TemporaryDirectory() as temporary:
            choices = pathlib.Path(temporary) / "products.jsonl"  # made by the first run
            result = self.oriel(name, case, environment={"ORIEL_CUBLASLT_CHOICES": str(choices)})
            lines = [json.loads(line) for line in choices.read_text().splitlines()]
        return result | {"products_us": {line["product"]: round(line["microseconds"], 1) for line in lines}}

    def oriel(self, name: str, case: cases.Case, ending: str = "", environment: dict | None = None) -> dict:
        folder, environment = self.args.folder, self.environment | (environment or {})
        command = [self.args.bin / "oriel-run", folder / f"{name}{ending}.oplan", "--device", "cuda", "--data",
                   folder / f"{name}.data", "--no-shuffle"]
        with tempfile.TemporaryDirectory() as temporary:
            metrics = pathlib.Path(temporary) / "metrics.jsonl"
            steps = WARMUP_STEPS + self.args.steps
            start = time.monotonic()
            with MemoryInUse() as memory:
                run([*command, "--steps", steps, "--metrics", metrics], environment, self.args.timeout)
            seconds = time.monotonic() - start
            lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        times = [line["step_ms"] for line in lines[WARMUP_STEPS:]]
        result = {"step_ms": statistics.median(times), "step_ms_min": min(times), "batch": case.batch,
                  "run_s": round(seconds, 1), "peak_mb": memory.peak,
                  "losses": [lines[0]["loss"], lines[-1]["loss"]]}
        # Each kernel between two events, less what these take: what a step takes beyond them is outside of kernels.
        profiled = 4
        try:
            text = run([*command, "--steps", profiled, "--profile"], environment, self.args.timeout)
        except Failed as failure:  # what was timed counts
            return result | {"outside": None, "profile": str(failure)[-300:]}
        found = re.search(r"^all kernels .* at least ([0-9.]+) ms", text, re.MULTILINE)
        if found is None:
            return result | {"outside": None, "profile": "no 'all kernels' in the output of oriel-run --profile"}
        result["kernels_ms"] = float(found[1]) / profiled
        result["outside"] = round(1 - result["kernels_ms"] / result["step_ms"], 4)
        return result

    def torch(self, name: str, case: cases.Case, baseline: str) -> dict:
        mode, _, attention = baseline.partition("_")
        # Memory that a batch that does not fit has cut into pieces is of use to a smaller one.
        environment = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} | os.environ
        start = time.monotonic()
        with MemoryInUse() as memory:
            text = run([sys.executable, HERE / "torch_step.py", "--config", self.args.folder / f"{name}.config.json",
                        "--batch", case.batch, "--sequence", case.sequence, "--mode", mode, "--attention",
                        attention or "default", "--learning-rate", case.learning_rate, "--steps", self.args.steps,
                        "--device", "cpu" if self.args.dry_run else "cuda"], environment, self.args.timeout)
        results = [line for line in text.splitlines() if line.startswith("{")]  # others write behind it
        if not results:
            raise Failed(f"no result in: {text.strip()[-600:]}")
        result = json.loads(results[-1])
        result["run_s"] = round(time.monotonic() - start, 1)
        # The allocator gives nothing back: what is in use behind the steps is the most that they took. nvidia-smi has
        # seen the profiler's memory, too, and batches that did not fit.
        before = memory.before if memory.process is not None else 0
        result["peak_mb"] = result.pop("in_use_mb") - before if "in_use_mb" in result else memory.peak
        return result

    def measure(self, name: str, rates: dict, reports: dict, save) -> None:
        """Into `reports`; saved behind each contestant, since the next one may be cut off."""
        case = cases.CASES[name]
        figures = cases.read_figures(self.args.folder / f"{name}.config.json")
        flops = cases.flops_per_sample(figures, case.sequence)
        report: dict = {"batch": case.batch, "sequence": case.sequence, "flops_per_sample": flops, "contestants": {}}
        reports[name] = report
        runs = {contestant: lambda ending=contestant.removeprefix("oriel"): self.oriel(name, case, ending)
                for contestant in ORIELS} | {TIMED: lambda: self.timed_products(name, case)}
        runs |= {baseline: lambda baseline=baseline: self.torch(name, case, baseline) for baseline in BASELINES}
        for contestant in self.args.contestants:
            try:
                result = runs[contestant]()
                check_loss(result, figures.decoder.vocab)
            except (Failed, ValueError, KeyError, IndexError) as failure:
                too_large = [line for line in str(failure).splitlines() if "of the device's memory" in line]
                if too_large:  # it is said before anything is allocated
                    report["left_out"] = too_large[0]
                    print(f"{name:<10} left out: {report['left_out']}", flush=True)
                    break
                report["contestants"][contestant] = {"failed": str(failure)}
                print(f"{name:<10} {contestant:<11} failed: {failure}", flush=True)
                save()
                continue
            seconds = result["step_ms"] / 1e3
            tflops = flops * result["batch"] / seconds / 1e12
            result["tokens_per_second"] = round(result["batch"] * case.sequence / seconds, 1)
            result["mfu"] = round(tflops / PEAK_TFLOPS, 4)
            result["of_product"] = round(tflops / rates["product_tflops"], 4)
            report["contestants"][contestant] = result
            print(describe(name, contestant, result), flush=True)
            add_ratios(report)
            save()


def check_loss(result: dict, vocab: int):
    """Random weights know nothing: the first loss is near that of guessing, if above it: logits of wide models vary."""
    first, last = result["losses"]
    if last is None or not math.isfinite(last) or first is None or abs(first / math.log(vocab) - 1) > 0.15:
        raise Failed(f"losses {first} to {last}, where the first one should be near {math.log(vocab):.2f}")


def describe(name: str, contestant: str, result: dict) -> str:
    def share(key):
        return f"{100 * result[key]:.1f} %" if result.get(key) is not None else "?"
    memory = f"{result['peak_mb'] / 1024:.1f} GiB" if result["peak_mb"] else "?"
    return (f"{name:<10} {contestant:<11} {result['step_ms']:9.2f} ms, batch {result['batch']}, "
            f"{result['tokens_per_second']:10.0f} tokens/s, MFU {share('mfu')}, {share('of_product')} of a product's "
            f"rate, {memory}, outside of kernels {share('outside')}")


def add_ratios(report: dict):
    """Tokens per second of Oriel over a baseline's, and what Oriel takes of a baseline's memory, per the same batch."""
    done = {name: result for name, result in report["contestants"].items() if "failed" not in result}
    for own, oriel in done.items():
        if own not in ORIELS:
            continue
        for name, result in done.items():
            if name in ORIELS:
                continue
            ratio = {"speed": round(oriel["tokens_per_second"] / result["tokens_per_second"], 3)}
            if oriel["peak_mb"] and result["peak_mb"] and oriel["batch"] == result["batch"]:
                ratio["memory"] = round(oriel["peak_mb"] / result["peak_mb"], 3)
            report.setdefault("ratio", {}).setdefault(own, {})[name] = ratio


def machine() -> dict:
    """GPU and driver as nvidia-smi says them, PyTorch's version."""
    result = {"date": datetime.date.today().isoformat(), "cores": os.cpu_count()}
    try:
        line = subprocess.run(["nvidia-smi", "--id=0", "--query-gpu=name,memory.total,driver_version,clocks.max.sm",
                               "--format=csv,noheader"], capture_output=True, text=True, timeout=30).stdout.strip()
        result |= dict(zip(("gpu", "memory", "driver", "max_clock"), (part.strip() for part in line.split(","))))
    except (OSError, subprocess.TimeoutExpired):
        result["gpu"] = None
    return result


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="+", choices=sorted(cases.CASES), metavar="CASE")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="of pack.py")
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--library-path", help="of Oriel's binaries, before LD_LIBRARY_PATH")
    # The ones that matter most first, since what comes late may be cut off.
    parser.add_argument("--contestants", nargs="+", choices=(*ORIELS, *BASELINES),
                        default=[ORIELS[0], *BASELINES, *reversed(ORIELS[1:])])
    parser.add_argument("--steps", type=int, default=15, help="timed steps")
    parser.add_argument("--timeout", type=float, default=240, help="seconds for one contestant's run")
    parser.add_argument("--dry-run", action="store_true", help="on the emulator and the CPU: tests this script")
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    if importlib.util.find_spec("torch") is None and not set(args.contestants) <= set(ORIELS):
        print("no PyTorch here: its baselines are left out", flush=True)
        args.contestants = [name for name in args.contestants if name in ORIELS]
    bench = Bench(args)
    report = machine()
    report["steps"], report["peak_tflops"] = args.steps, PEAK_TFLOPS
    try:
        report["rates"] = bench.rates()
    except Failed as failure:
        sys.exit(f"error: oriel_cuda_kernels_bench: {failure}")
    report["cases"] = {}

    def save():
        if args.out:
            part = args.out.with_suffix(".part")
            part.write_text(json.dumps(report, indent=2) + "\n")
            part.replace(args.out)

    for name in args.cases:
        bench.measure(name, report["rates"], report["cases"], save)
    save()
    # A baseline that fails is no failure of Oriel's.
    failed = any("failed" in case["contestants"].get(own, {}) for case in report["cases"].values() for own in ORIELS)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
