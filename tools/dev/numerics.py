#!/usr/bin/env python3
"""Trains the models of models/ under every strategy that fits 8 ranks, and writes docs/numerics.md.

    tools/dev/numerics.py [--out docs/numerics.md] [--model NAME]

Takes about two minutes on two cores. Fails if a limit of design section 9 is exceeded.
"""

import argparse
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "e2e"))

import numerics  # noqa: E402

HEADER = """# Numbers under every strategy

Written by `tools/dev/numerics.py`. Each row is the same model, data and seed as on one rank, in f32,
with in-process ranks:

- **gradient**: of every parameter at step 1, the 2-norm of the difference over the gradient's norm; at most {gradient:.0e}.
  Gradients below {zero:.0e} of the global norm are zero but for rounding and are left out.
- **parameter**: of every element after 5 steps of SGD, the difference; at most {parameter:.0e}.
- **loss**: of 20 steps of AdamW, the relative difference; at most {loss:.0e}.

Each column is the largest. `sp` is sequence parallelism, `zero` the ZeRO level, `hsdp` the size of the groups that shard.
CI runs a sample in which every pair of settings occurs (`tests/e2e/numerics_test.py`).
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=SOURCE / "docs" / "numerics.md")
    parser.add_argument("--model", action="append", choices=numerics.MODELS)
    options = parser.parse_args()

    text = HEADER.format(zero=numerics.ZERO_SHARE, **numerics.LIMITS)
    exceeded = []
    for model in options.model or numerics.MODELS:
        text += f"\n## {model}\n\n| strategy | ranks | gradient | parameter | loss |\n|---|---|---|---|---|\n"
        with tempfile.TemporaryDirectory(prefix="oriel_numerics_") as folder:
            expected = numerics.Measurement(model, numerics.Strategy(), pathlib.Path(folder))
        for strategy in numerics.all_strategies():
            with tempfile.TemporaryDirectory(prefix="oriel_numerics_") as folder:
                measured = numerics.Measurement(model, strategy, pathlib.Path(folder))
            errors = measured.compare(expected)
            if any(errors[name] > limit for name, limit in numerics.LIMITS.items()):
                exceeded.append(f"{model} {strategy}")
            row = " | ".join(f"{errors[name]:.1e}" for name in numerics.LIMITS)
            print(f"{model}: {strategy}: {row}", flush=True)
            text += f"| {strategy} | {strategy.ranks} | {row} |\n"
    options.out.write_text(text)
    for name in exceeded:
        print(f"error: {name} exceeds a limit", file=sys.stderr)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
