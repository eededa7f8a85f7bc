#!/usr/bin/env python3
"""Trains the models of models/ under every strategy that fits 8 ranks, and writes docs/numerics.md.

    tools/dev/numerics.py [--out docs/numerics.md] [--model NAME] [--part PART]

Takes about seven minutes on two cores. Fails if a limit of design section 9 is exceeded.
"""

import argparse
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "e2e"))

import numerics  # noqa: E402

MODELS = sorted({*numerics.MODELS, *numerics.PIPELINE_MODELS})
HEADER = """# Numbers under every strategy

Written by `tools/dev/numerics.py`. Each row is the same model, data and seed as on one rank, in f32,
with in-process ranks:

- **gradient**: of every parameter at step 1, the 2-norm of the difference over the gradient's norm; at most {gradient:.0e}.
  Gradients below {zero:.0e} of the global norm are zero but for rounding and are left out.
- **parameter**: of every element after 5 steps of SGD, the difference; at most {parameter:.0e}.
- **loss**: of 20 steps of AdamW, the relative difference; at most {loss:.0e}.

Each column is the largest. `sp` is sequence parallelism, `zero` the ZeRO level, `hsdp` the size of the groups that shard.
CI runs samples in which every pair of settings occurs (`tests/e2e/numerics_test.py`, `pipeline_numerics_test.py`).
"""
PIPELINES = """
## Pipelines

Each stage has the mesh `dp` x `tp`, on ranks of its own; with the schedule `interleaved` two stages share them.
Microbatches have one sample per data-parallel rank. One stage (the first rows) is without a schedule.
CI also runs qwen_vl_tiny, whose first and last stage share a matrix.
"""
MESHES = """
## A mesh per stage

`STAGE_MESHES` of `tests/e2e/numerics.py`.
"""

BF16 = """
## bf16

Recipes with `precision: bf16` ([precision.md](precision.md)). `against f32` is one rank against one in f32; the other rows are against one rank
in bf16. At most: gradient {gradient:.0e}, parameter {parameter:.0e}, loss {loss:.0e}; gradients below {zero:.0e} of the global norm are left out. Where
the sums of products are split over ranks (`tp`), each part is rounded; elsewhere only the order of f32 sums differs.
"""
BF16_STRATEGIES = (
    numerics.Strategy(dp=2), numerics.Strategy(dp=4, zero=1), numerics.Strategy(dp=2, zero=2), numerics.Strategy(dp=2, zero=3),
    numerics.Strategy(tp=2), numerics.Strategy(tp=2, sp=True), numerics.Strategy(dp=2, tp=2, sp=True, zero=3),
    numerics.Strategy(grids=2, schedule="1f1b"), numerics.Strategy(grids=2, schedule="zb-h1", dp=2, zero=1),
    numerics.Strategy(grids=2, schedule="interleaved", tp=2, sp=True))
AGAINST_F32 = "against f32"


class Table:
    """Measures the strategies of a model, a row for each. `title`: of Markdown, the signs in front."""

    def __init__(self, title: str, model: str, precision: str = "f32"):
        self._model = model
        self._precision = precision
        self._limits = numerics.LIMITS if precision == "f32" else numerics.BF16_LIMITS
        self.text = f"\n{title} {model}\n\n| strategy | ranks | gradient | parameter | loss |\n|---|---|---|---|---|\n"
        self.exceeded: list[str] = []

    def add(self, strategies: dict) -> "Table":
        """`strategies` by name."""
        with tempfile.TemporaryDirectory(prefix="oriel_numerics_") as folder:
            one_rank = numerics.OneRank(self._model, pathlib.Path(folder), precision=self._precision)
            for name, strategy in strategies.items():
                errors = one_rank.compare_precisions() if name == AGAINST_F32 else one_rank.compare(strategy)[0]
                if any(not errors[key] <= limit for key, limit in self._limits.items()):
                    self.exceeded.append(f"{self._model} {name}")
                row = " | ".join(f"{errors[key]:.1e}" for key in self._limits)
                print(f"{self._model}: {name}: {row}", flush=True)
                self.text += f"| {name} | {strategy.ranks} | {row} |\n"
        return self


def named(strategies: list) -> dict:
    return {str(strategy): strategy for strategy in strategies}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=SOURCE / "docs" / "numerics.md")
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--part", action="append", choices=("ranks", "pipelines", "meshes", "bf16"))
    options = parser.parse_args()

    parts = {
        "ranks": ("##", HEADER.format(zero=numerics.ZERO_SHARE, **numerics.LIMITS),
                  {model: named(numerics.all_strategies()) for model in numerics.MODELS}),
        "pipelines": ("###", PIPELINES, {model: named(numerics.all_pipelines(model))
                                         for model in numerics.PIPELINE_MODELS}),
        "meshes": ("###", MESHES, {"llava_tiny": numerics.STAGE_MESHES}),
        "bf16": ("###", BF16.format(zero=numerics.BF16_ZERO_SHARE, **numerics.BF16_LIMITS),
                 {model: {AGAINST_F32: numerics.Strategy(), **named(BF16_STRATEGIES)} for model in numerics.MODELS}),
    }
    text, exceeded = "", []
    for part in options.part or parts:
        title, header, tables = parts[part]
        text += header
        for model, strategies in tables.items():
            if model in (options.model or MODELS):
                table = Table(title, model, "bf16" if part == "bf16" else "f32").add(strategies)
                text += table.text
                exceeded += table.exceeded
    options.out.write_text(text)
    for name in exceeded:
        print(f"error: {name} exceeds a limit", file=sys.stderr)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
