"""What rows of published tables have in common: trainings that people chose strategies for, each with all strategies that somebody ran.

    problems = hand_problems.gather(rows)        # rows as replay.read_tables has them
    problems = hand_problems.sample(problems)

A problem is a model, a sequence length, a batch, a precision and machines. Rows of several tables may have the same one.
"""

import dataclasses
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "simulator"))

import decoder  # noqa: E402
import rows as published  # noqa: E402

BIND = "model: {bind: {batch: micro_batch}}\n"


@dataclasses.dataclass
class Strategy:
    """One that was run, or a plain one."""

    text: str
    rows: list = dataclasses.field(default_factory=list)
    seconds: float | None = None  # of a step, simulated
    memory: float | None = None   # bytes of a rank
    fits: bool = False
    reason: str = ""  # why it was not simulated


@dataclasses.dataclass
class Problem:
    key: tuple
    name: str
    figures: decoder.Decoder  # with the largest vocabulary that a row padded to
    recipe: str
    cluster: str
    devices: int
    batch: int
    tables: list
    hand: list

    def per_node(self) -> int:
        return int(_cluster_number(self.cluster, "devices_per_node"))

    def memory(self) -> float:
        """Bytes that a rank may have: those of a device, less what is reserved."""
        return _bytes(self.cluster, "memory") - _bytes(self.cluster, "reserved")


def _cluster_number(text: str, key: str) -> str:
    return re.search(rf"^{key}: (\d+)", text, re.MULTILINE)[1]


def _bytes(text: str, key: str) -> float:
    found = re.search(rf"^ *{key}: ([\d.]+) (\w+)", text, re.MULTILINE)
    return float(found[1]) * {"GiB": 2**30, "MiB": 2**20, "GB": 10**9, "MB": 10**6}[found[2]] if found else 0


def whole_cluster(text: str, devices: int) -> str:
    """With as many devices as were used, which may be part of a node."""
    per_node = int(_cluster_number(text, "devices_per_node"))
    if devices % per_node == 0:
        return text
    if devices > per_node:
        raise published.Inexpressible(f"{devices} devices are no whole nodes of {per_node}")
    text = re.sub(r"^devices_per_node: \d+", f"devices_per_node: {devices}", text, flags=re.MULTILINE)
    return re.sub(rf"devices: {per_node}\b", f"devices: {devices}", text)


def with_microbatches(strategy: str, count: int) -> str:
    """A strategy that says it all, so that all strategies of a problem have the same recipe."""
    return f"{strategy}microbatches: {count}\n"


def _problem_of(row: dict, run: published.Run) -> Problem:
    devices, batch = int(row["n_gpus"]), int(row["gbs_seqs"])
    figures = dataclasses.replace(run.figures, batch=1, vocab=int(row["vocab"]))
    recipe = BIND + re.sub(r"micro: \d+", "micro: 1", run.recipe)
    cluster = whole_cluster(run.cluster, devices)
    name = f"{row['model']}, {row['seq_len']} x {batch}, {devices} {row['gpu_type']}"
    return Problem(key=(figures, recipe, cluster), name=name, figures=figures, recipe=recipe, cluster=cluster, devices=devices,
                   batch=batch, tables=[], hand=[])


def gather(table: list) -> tuple[list, dict]:
    """The problems in the order of their first rows, and {reason: [row_id]} of rows that Oriel has no strategy for."""
    problems, refused = {}, {}
    for row in table:
        try:
            run = published.read(row)
            found = _problem_of(row, run)
        except published.Inexpressible as why:
            refused.setdefault(str(why), []).append(row["row_id"])
            continue
        problem = problems.setdefault(found.key, found)
        if row["table_id"] not in problem.tables:
            problem.tables.append(row["table_id"])
        # Megatron pads the vocabulary for tp; all strategies get one that suits each of them.
        problem.figures = dataclasses.replace(problem.figures, vocab=max(problem.figures.vocab, run.figures.vocab))
        samples = run.figures.batch  # of a microbatch on all data-parallel ranks
        text = with_microbatches(run.strategy, problem.batch // samples)
        hand = next((other for other in problem.hand if other.text == text), None)
        if hand is None:
            hand = Strategy(text)
            problem.hand.append(hand)
        hand.rows.append(row["row_id"])
    return list(problems.values()), refused


def sample(problems: list) -> list:
    """Of each table the problem with most strategies, the one on the fewest and the one on the most devices; of equals the first."""
    chosen = []
    for table in dict.fromkeys(name for problem in problems for name in problem.tables):
        alike = [problem for problem in problems if table in problem.tables]
        chosen += [max(alike, key=lambda problem: len(problem.hand)), min(alike, key=lambda problem: problem.devices),
                   max(alike, key=lambda problem: problem.devices)]
    return [problem for problem in problems if any(problem is other for other in chosen)]


def plain(problem: Problem, hsdp: bool, micro: int, remat: str) -> str | None:
    """ZeRO-3 over all devices, or (HSDP) over those of a node with a copy on each; None where that does not divide."""
    if problem.batch % (problem.devices * micro) or problem.devices == 1 or (hsdp and problem.devices <= problem.per_node()):
        return None
    lines = [f"mesh: {{dp: {problem.devices}}}", "zero: 3"] + ([f"hsdp: {problem.per_node()}"] if hsdp else []) + [f"remat: {remat}"]
    return with_microbatches("\n".join(lines) + "\n", problem.batch // (problem.devices * micro))
