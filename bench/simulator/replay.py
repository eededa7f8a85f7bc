#!/usr/bin/env python3
"""Replays published training runs in `oriel simulate`, and compares step times and memory.

    bench/simulator/replay.py --tables DIR --out replay.csv [--plots DIR] [--jobs 2] [--only TABLE ...]

DIR has train_all.csv, or other tables with its columns. Each row of grade A becomes a model in the `oriel` dialect, a
recipe, a strategy and a cluster (rows.py), and goes through the compiler's passes and the simulator; rows that Oriel has
no strategy for are listed with the reason.

    error       predicted / published - 1, of the step time; of memory the same where the row has a measured peak
    MAE         mean of |error| over a table's rows
    Spearman    rank correlation of predicted and published times within a table
    held back   tables that no number was fitted to (stacks.py names the others)

The last line is mean_abs_error: over the rows of tables held back, or over all where none is. Needs a build of `oriel`
(preset dev, or --oriel).
"""

import argparse
import concurrent.futures
import csv
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import decoder
import plot
import rows
import stacks

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 300  # seconds, of one simulation


class Failure(Exception):
    """What the user must know; the run ends."""


@dataclasses.dataclass
class Line:
    """A row of the result."""
    row: dict
    run: rows.Run = None
    reason: str = ""  # why there is no prediction
    failed: bool = False  # of Oriel, not for want of a strategy
    seconds: float = 0
    memory: float = 0

    @property
    def error(self) -> float:
        return self.seconds / self.run.seconds - 1

    @property
    def memory_error(self) -> float:
        return (self.memory + self.run.memory_beside) / self.run.memory - 1


def read_tables(folder: pathlib.Path) -> list:
    """The rows of grade A, in the order of the files."""
    if not folder.is_dir():
        raise Failure(f"{folder} is no folder; --tables takes the folder that has train_all.csv")
    paths = [folder / "train_all.csv"] if (folder / "train_all.csv").is_file() else sorted(folder.glob("*.csv"))
    if not paths:
        raise Failure(f"{folder} has no train_all.csv, nor any other .csv")
    found, missing = [], {}
    for path in paths:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            lacking = [column for column in rows.COLUMNS if column not in (reader.fieldnames or [])]
            if lacking:
                missing[path.name] = lacking
                continue
            found += [row for row in reader if row["replay_ready"] == "1" and row["replay_grade"] == "A"]
    if len(missing) == len(paths):
        name, lacking = next(iter(missing.items()))
        raise Failure(f"{folder / name} lacks the columns {', '.join(lacking)}; the README beside the tables names "
                      "those of train_all.csv")
    if not found:
        raise Failure(f"{folder} has no row with replay_ready 1 and replay_grade A")
    return found


def inputs_of(run: rows.Run) -> dict:
    cluster = run.cluster
    if run.memory_beside:  # that an allocator can't have
        cluster = re.sub(r"^  reserved: .*", f"  reserved: {run.memory_beside / 2**30:g} GiB", cluster, flags=re.MULTILINE)
    return {"model.mlir": decoder.module_text(run.figures), "recipe.yaml": run.recipe, "strategy.yaml": run.strategy,
            "cluster.yaml": cluster}


def ask(command: list, folder: pathlib.Path, timeout: int = TIMEOUT) -> dict:
    """The JSON that an `oriel` command prints, run in `folder`; raises Failure with its error."""
    words = f"oriel {command[1]}"
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"{words} took longer than {timeout} s; inputs: {folder}") from late
    if done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-300:])
        raise Failure(f"{words} failed: {said or f'exit code {done.returncode}'}")
    try:
        return json.loads(done.stdout)
    except ValueError as wrong:
        raise Failure(f"{words} --json printed no JSON: {wrong}") from wrong


def figures_of(simulated: dict, memory: str = "peak_memory") -> dict:
    """Of what `oriel simulate --json` says."""
    try:
        return {"seconds": float(simulated["step_seconds"]), "memory": float(simulated[memory])}
    except (ValueError, KeyError, TypeError) as wrong:
        raise Failure(f"oriel simulate --json printed no step_seconds and {memory}: {wrong}") from wrong


def simulate(oriel: pathlib.Path, run: rows.Run, folder: pathlib.Path) -> dict:
    """Seconds and bytes of a run; raises Failure."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in inputs_of(run).items():
        (folder / name).write_text(text)
    stack = ",".join(filter(None, [stacks.stack_option(run.stack), run.allocator]))
    found = ask([str(oriel), "simulate", "model.mlir", "--recipe", "recipe.yaml", "--strategy", "strategy.yaml",
                 "--cluster", "cluster.yaml", "--stack", stack, "--fuse-kernels", "off", "--json"], folder)
    return figures_of(found, "reserved_memory" if run.allocator else "peak_memory")


def simulate_all(lines: list, oriel: pathlib.Path, jobs: int, folder: pathlib.Path, keep: bool) -> None:
    """Fills `lines` in; equal runs are simulated once."""
    groups = {}
    for line in lines:
        if line.run:
            text = "".join(inputs_of(line.run).values()) + line.run.stack + line.run.allocator
            groups.setdefault(hashlib.sha256(text.encode()).hexdigest()[:16], []).append(line)

    def one(item: tuple) -> None:
        key, group = item
        place = folder / (group[0].row["row_id"] if keep else key)
        try:
            found = simulate(oriel, group[0].run, place)
            for line in group:
                line.seconds, line.memory = found["seconds"], found["memory"]
        except Failure as failure:
            for line in group:
                line.run, line.reason, line.failed = None, str(failure), True
        if not keep:
            for path in place.iterdir():
                path.unlink()

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done, _ in enumerate(pool.map(one, groups.items()), start=1):
            if sys.stderr.isatty():
                print(f"\r{done} of {len(groups)} runs", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)


def ranks(values: list) -> list:
    """From 1; equal values share the mean of their places."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in range(start, end):
            result[order[place]] = (start + end + 1) / 2
        start = end
    return result


def spearman(a: list, b: list) -> float:
    """Rank correlation; nan where one side is all equal."""
    x, y = ranks(a), ranks(b)
    mean = (len(x) + 1) / 2
    above = sum((i - mean) * (j - mean) for i, j in zip(x, y))
    below = (sum((i - mean)**2 for i in x) * sum((j - mean)**2 for j in y))**0.5
    return above / below if below else float("nan")


def write_csv(path: pathlib.Path, lines: list) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row_id", "table_id", "model", "fitted", "stack", "predicted_s", "published_s", "error",
                         "predicted_bytes", "published_bytes", "memory_error", "mem_kind", "reason"])
        for line in lines:
            row, run = line.row, line.run
            start = [row["row_id"], row["table_id"], row["model"], int(row["table_id"] in stacks.FIXED_ON)]
            if not run:
                writer.writerow(start + [""] * 8 + [line.reason])
                continue
            memory = [f"{run.memory:.0f}", f"{line.memory_error:.4f}", row["mem_kind"]] if run.memory else [""] * 3
            writer.writerow(start + [run.stack, f"{line.seconds:.6g}", f"{run.seconds:.6g}", f"{line.error:.4f}",
                                     f"{line.memory:.0f}"] + memory +
                            [run.memory_unlike and f"memory not compared: {run.memory_unlike}"])


def by_table(lines: list) -> dict:
    tables = {}
    for line in lines:
        tables.setdefault(line.row["table_id"], []).append(line)
    return tables


def report(lines: list) -> None:
    errors, orders, memories, held_back = [], [], {}, []
    print(f"{'table':42} {'rows':>5} {'MAE':>7} {'mean':>7} {'Spearman':>8} {'memory MAE':>10}")
    for table, group in by_table(lines).items():
        good = [line for line in group if line.run]
        if not good:
            continue
        mae = statistics.fmean(abs(line.error) for line in good)
        order = spearman([line.seconds for line in good], [line.run.seconds for line in good])
        memory = [abs(line.memory_error) for line in good if line.run.memory]
        fitted = table in stacks.FIXED_ON
        if not fitted:
            errors.append(mae)
            orders += [order] if len(good) >= 8 else []
        held_back += [] if table in stacks.MEMORY_FIXED_ON else memory
        for line in good:
            if line.run.memory:
                memories.setdefault(line.row["mem_kind"], []).append(line.memory_error)
        print(f"{table + (' *' if fitted else ''):42} {len(good):5} {mae:7.1%} "
              f"{statistics.fmean(line.error for line in good):+7.1%} {order:8.3f} "
              f"{f'{statistics.fmean(memory):10.1%}' if memory else '':>10}")
    print("(*: numbers were fitted to this table; the lines below are of the others)")
    if errors:
        print(f"median of the tables' MAE: {statistics.median(errors):.1%} over {len(errors)} tables")
    if orders:
        print(f"median Spearman: {statistics.median(orders):.3f} over {len(orders)} tables of 8 rows or more")
    for kind, found in sorted(memories.items()):
        print(f"memory of all tables, {kind}: mean |error| {statistics.fmean(map(abs, found)):.1%}, "
              f"mean {statistics.fmean(found):+.1%}, over {len(found)} rows")
    if memories:
        every = [abs(error) for found in memories.values() for error in found]
        print(f"memory of all tables, every kind: mean |error| {statistics.fmean(every):.1%}, over {len(every)} rows")
    if held_back:
        print(f"memory of tables held back, every kind: mean |error| {statistics.fmean(held_back):.1%}, over "
              f"{len(held_back)} rows")


def report_skipped(lines: list) -> None:
    reasons, unlike = {}, set()
    for line in lines:
        reason = line.run.memory_unlike if line.run else line.reason
        if reason:
            reasons.setdefault((line.row["table_id"], reason), []).append(line.row["row_id"])
            unlike |= {reason} if line.run else set()
    for (table, reason), names in sorted(reasons.items()):
        print(f"{'memory not compared' if reason in unlike else 'not replayed'}: {table}, {len(names)} rows ({names[0]}): "
              f"{reason}")


def check_failed(lines: list) -> None:
    failed = [line for line in lines if line.failed]
    if failed:
        raise Failure(f"{len(failed)} of {len(lines)} rows failed, first {failed[0].row['row_id']}: {failed[0].reason}")


def default_oriel() -> pathlib.Path:
    return pathlib.Path(os.environ.get("ORIEL_BIN_DIR", ROOT / "build" / "dev" / "bin")) / "oriel"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="FILE.csv")
    parser.add_argument("--plots", type=pathlib.Path, metavar="DIR", help="a plot for each table, TABLE.svg")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="simulations at a time (default: 2)")
    parser.add_argument("--only", action="append", metavar="TABLE", help="only this table; may be repeated")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="leave the inputs there, DIR/ROW/")
    parser.add_argument("--oriel", type=pathlib.Path, default=default_oriel(), metavar="FILE")
    found = parser.parse_args()
    if found.jobs < 1:
        parser.error("--jobs must be at least 1")
    return found


def replay(options: argparse.Namespace) -> None:
    start = time.monotonic()
    if not options.oriel.is_file():
        raise Failure(f"{options.oriel} does not exist; build the preset dev, or say --oriel FILE")
    table = read_tables(options.tables)
    known = {row["table_id"] for row in table}
    for name in options.only or []:
        if name not in known:
            raise Failure(f"no table {name}; there are {', '.join(sorted(known))}")
    lines = []
    for row in table:
        if options.only and row["table_id"] not in options.only:
            continue
        try:
            lines.append(Line(row, rows.read(row)))
        except rows.Inexpressible as why:
            lines.append(Line(row, reason=str(why)))
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.keep or pathlib.Path(scratch)).resolve()
        simulate_all(lines, options.oriel.resolve(), options.jobs, folder, options.keep is not None)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_csv(options.out, lines)
    good = [line for line in lines if line.run]
    if not good:
        check_failed(lines)
    report_skipped(lines)
    if not good:
        raise Failure("Oriel has no strategy for any of these rows; the reasons are above")
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        for name, group in by_table(good).items():
            points = [(line.row["row_id"], line.run.seconds, line.seconds) for line in group]
            plot.scatter(options.plots / f"{name}.svg", name, points)
    report(lines)
    print(f"{len(good)} of {len(lines)} rows in {time.monotonic() - start:.0f} s")
    held = [line for line in good if line.row["table_id"] not in stacks.FIXED_ON] or good
    print(f"mean_abs_error={statistics.fmean(abs(line.error) for line in held):.3f}")
    check_failed(lines)


def main() -> int:
    try:
        replay(arguments())
    except (Failure, OSError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
