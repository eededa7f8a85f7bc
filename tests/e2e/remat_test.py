"""What the stash keeps of a GPT block, against the formulas of Korthikanti et al. 2022 ("Reducing activation
recomputation in large transformer models"), and that no policy changes a bit.

A block keeps, with 2-byte values, of a microbatch of b sequences of length s, with hidden size h and a heads, on t ranks of
tensor parallelism (equations 1, 2, 4 and 6, without the masks of dropout, which the models here don't have):
    s b h (32 + 2 a s / h)              of which the attention's probabilities are 2 a s / h
    s b h (8 + 24 / t + 2 a s / (h t))  tensor parallelism: inputs of the norms and of column-parallel layers are whole
    s b h (32 + 2 a s / h) / t          sequence parallelism: they are split too
    s b h 32 / t                        selective: the probabilities are computed again
    s b h 2                             full: what enters the block; / t with sequence parallelism
The paper leaves out the two norms' statistics, 2 numbers of 4 bytes per position each: they are counted apart here.
"""

import itertools
import json
import re

import numpy
from gpt import Gpt
from oriel_testing import SOURCE, OrielTestCase, losses, run, write_shard

# Bytes of a value by precision: in the formulas they are those of bf16.
VALUE, PAPER = {"f32": 4, "bf16": 2}, 2
BATCH = 2
CHOICE = re.compile(r"^remat: (?:\S+: )?(\S+) of \S+ MiB; for each microbatch (\S+) ms run again, "
                    r"(?:at least (\S+) by linear relaxation|and no choice fits); "
                    r"a step computes (\S+) ms and waits (\S+) ms for collectives, overlap: (\S+)$", re.MULTILINE)


class RematTest(OrielTestCase):
    trainable, precision = "*", "f32"

    def compile_gpt(self, gpt: Gpt, *options: str):
        model, recipe = self.folder / "gpt.onnx", self.folder / "recipe.yaml"
        model.write_bytes(gpt.model())
        recipe.write_text(gpt.recipe(4 * BATCH, BATCH, self.trainable, self.precision))
        plan = self.folder / f"p{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", model, "--recipe", recipe, *options, "-o", plan)
        return plan

    def stash(self, gpt: Gpt, *options: str) -> int:
        """Bytes per rank."""
        content = json.loads(self.run_ok("oriel", "inspect", "--json", self.compile_gpt(gpt, *options)).stdout)
        (program,) = content["programs"]
        return program["bytes_by_kind"]["stash"]

    def block_stash(self, *options: str, **sizes: int) -> int:
        """Of one block more."""
        return self.stash(Gpt(blocks=3, **sizes), *options) - self.stash(Gpt(blocks=2, **sizes), *options)

    def check(self, *options: str, formula, statistics: int) -> None:
        """`formula`: bytes over s b h in the paper, of a s / h. `statistics`: numbers per position."""
        for self.precision, sizes in itertools.product(VALUE, ({}, {"hidden": 128, "heads": 8, "sequence": 64})):
            gpt = Gpt(**sizes)
            positions = gpt.sequence * BATCH
            expected = positions * gpt.hidden * formula(gpt.heads * gpt.sequence / gpt.hidden) * VALUE[self.precision] // PAPER
            actual = self.block_stash("--unfused", "attention", *options, **sizes)
            self.assertEqual(actual, expected + statistics * positions * 4, f"{self.precision} {options} {sizes}")

    def test_none(self):
        self.check("--remat", "none", formula=lambda scores: 32 + 2 * scores, statistics=4)

    def test_tensor_parallel(self):
        for t in (2, 4):
            self.check("--mesh", f"tp={t}", formula=lambda scores: 8 + 24 / t + 2 * scores / t, statistics=4)

    def test_sequence_parallel(self):
        for t in (2, 4):
            self.check("--mesh", f"tp={t}", "--sp", formula=lambda scores: (32 + 2 * scores) / t, statistics=4 / t)

    def test_selective(self):
        self.check("--remat", "selective", formula=lambda scores: 32, statistics=4)
        for t in (2, 4):
            self.check("--mesh", f"tp={t}", "--sp", "--remat", "selective", formula=lambda scores: 32 / t,
                       statistics=4 / t)

    def test_full(self):
        self.check("--remat", "full", formula=lambda scores: 2, statistics=0)
        self.check("--mesh", "tp=2", "--remat", "full", formula=lambda scores: 2, statistics=0)
        self.check("--mesh", "tp=2", "--sp", "--remat", "full", formula=lambda scores: 1, statistics=0)

    def test_frozen_blocks(self):
        """Behind what is trained, the inputs of linear layers are not kept (2 + 2 + 2 + 8); in front of it, nothing is."""
        self.trainable = "embedding.weight"
        self.check(formula=lambda scores: 18 + 2 * scores, statistics=4)
        self.check("--remat", "full", formula=lambda scores: 2, statistics=0)
        self.trainable = "head.weight"
        self.check(formula=lambda scores: 0, statistics=0)

    def test_fused_attention(self):
        """Query, key, value, output and the logarithm of each row's sum, and so nothing quadratic: selective has nothing to
        drop. The output is kept as the projection reads it, once."""
        gpt = Gpt()
        positions = gpt.sequence * BATCH
        expected = positions * gpt.hidden * 32 * VALUE["f32"] // PAPER + 4 * positions * 4 + positions * gpt.heads * 4
        for policy in ("none", "selective"):
            self.assertEqual(self.block_stash("--remat", policy), expected)
        self.assertEqual(self.block_stash("--remat", "full"), positions * gpt.hidden * 2 * VALUE["f32"] // PAPER)


BLOCKS = {"llava_tiny": 8, "qwen_vl_tiny": 6}


def named_stages(blocks: int, count: int) -> str:
    edges = [blocks * i // count for i in range(count + 1)]
    return ",".join(f"{begin}-{end - 1}" for begin, end in zip(edges, edges[1:]))


STRATEGIES = (
    (1, ()),
    (2, ("--mesh", "tp=2", "--sp")),
    (2, ("--mesh", "dp=2", "--zero", "3")),
    (2, ("--stages", 2)),
    (4, ("--stages", 4, "--mesh", "tp=2", "--sp", "--schedule", "interleaved")),
    (4, ("--stages", 2, "--mesh", "dp=2", "--zero", "3", "--microbatches", "2", "--schedule", "zb-h1")),
)


class SameBitsTest(OrielTestCase):
    precision = "f32"

    def numbers(self, model: str, world: int, *options) -> list[list[float]]:
        # Cuts that are found depend on what runs again, too.
        options = [named_stages(BLOCKS[model], given) if isinstance(given, int) else given for given in options]
        folder = SOURCE / "models" / model
        recipe = self.folder / "recipe.yaml"
        recipe.write_text((folder / "golden" / "recipe_adamw.yaml").read_text()
                          .replace("precision: f32", f"precision: {self.precision}"))
        plan = self.folder / f"p{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", folder / "model.onnx", "--recipe", recipe,
                    *options, "-o", plan)
        metrics = self.train(plan, "--steps", 3, world=world, data=folder / "golden" / "data")
        return [losses(metrics), [line["grad_norm"] for line in metrics]]

    def check(self, model: str) -> None:
        for world, options in STRATEGIES:
            for attention in ((), ("--unfused", "attention")):
                expected = self.numbers(model, world, *options, *attention)
                self.assertGreater(expected[1][0], 0)
                # Fused attention leaves nothing to select.
                for policy in ("full", "selective") if attention else ("full",):
                    actual = self.numbers(model, world, *options, *attention, "--remat", policy)
                    self.assertEqual(actual, expected, f"{options} {attention} {policy}")

    def test_any_overlap(self):
        for self.precision in ("f32", "bf16"):
            for world, options in STRATEGIES[1:3]:
                expected = self.numbers("llava_tiny", world, *options, "--overlap", "off")
                for policy, overlap in itertools.product(("none", "full"), ("on", "off")):
                    actual = self.numbers("llava_tiny", world, *options, "--remat", policy, "--overlap", overlap)
                    self.assertEqual(actual, expected, f"{self.precision} {options} {policy} {overlap}")

    def test_norms_behind_their_sums(self):
        """A block keeps the norm's result, which the next one begins with, and computes its statistics again."""
        gpt, data = Gpt(blocks=3, post_norm=True), self.folder / "data"
        data.mkdir()
        ids = numpy.random.default_rng(0).integers(0, gpt.vocabulary, (4 * BATCH, gpt.sequence))
        write_shard(data / "0.tar", [{"input_ids": row, "labels": row} for row in ids])
        model, recipe = self.folder / "gpt.onnx", self.folder / "recipe.yaml"
        model.write_bytes(gpt.model())
        recipe.write_text(gpt.recipe(4 * BATCH, BATCH))
        trained = []
        for policy in ("none", "full"):
            plan = self.folder / f"{policy}.oplan"
            self.run_ok("oriel", "compile", model, "--recipe", recipe, "--remat", policy, "-o", plan)
            trained.append(losses(self.train(plan, "--steps", 3, data=data)))
        self.assertEqual(trained[1], trained[0])

    def test_llava_tiny(self):
        self.check("llava_tiny")

    def test_qwen_vl_tiny(self):
        self.check("qwen_vl_tiny")


class BudgetTest(OrielTestCase):
    """The policy auto over budgets of memory per rank."""

    BUDGETS = 8

    def setUp(self):
        super().setUp()
        self.bounds = 0  # lower bounds seen
        self.levels = set()  # of overlap

    def time(self, program: dict) -> float:
        """Milliseconds of a step, as predicted."""
        return sum(segment["runs_per_step"] * segment["predicted_ms"] for segment in program["segments"])

    def compile_within(self, model, recipe, *options: str) -> tuple[int, float]:
        """Bytes of the largest arena, and milliseconds of a step on the ranks of all programs, as predicted."""
        plan = self.folder / "p.oplan"
        result = self.run_ok("oriel", "compile", model, "--recipe", recipe, *options, "-o", plan)
        programs = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)["programs"]
        chosen = CHOICE.findall(result.stderr)
        self.assertEqual(len(chosen), len(programs) if "--memory" in options else 0, result.stderr)
        # What is printed is the plan that results.
        for program, (mebibytes, again, least, computes, waits, level) in zip(programs, chosen):
            self.assertAlmostEqual(program["arena_bytes"] / 2**20, float(mebibytes), delta=1e-5 * float(mebibytes))
            printed = float(computes) + float(waits)
            # But for the launches of lists, which are formed later.
            self.assertAlmostEqual(self.time(program), printed, delta=5e-3 * printed)
            started = sum(len(segment["started"]) for segment in program["segments"])
            self.assertEqual(started == 0, level == "off" or float(waits) == 0)
            self.levels.add(level)
            if least:
                self.assertLessEqual(float(least), float(again))
                self.bounds += 1
        return (max(program["arena_bytes"] for program in programs),
                sum(self.time(program) for program in programs))

    def sweep(self, model, recipe, *options: str) -> list[tuple[int, float]]:
        def within(*remat: str) -> tuple[int, float]:
            return self.compile_within(model, recipe, *options, *remat)

        most, fastest = within()
        full_bytes, full_time = within("--remat", "full")
        self.assertLess(full_bytes, most)
        self.assertGreater(full_time, fastest)

        def auto(budget: int) -> tuple[int, float]:
            bytes_, time = within(*self.automatic(budget))
            self.assertLessEqual(bytes_, budget)
            return bytes_, time

        self.assertLessEqual(auto(most)[1], fastest + 1e-9)
        self.assertLessEqual(auto(full_bytes)[1], full_time + 1e-9)
        least = min(full_bytes, within("--remat", "full", "--overlap", "off")[0])
        step = (most - least) // self.BUDGETS
        frontier = [auto(most - i * step) for i in range(self.BUDGETS + 1)]
        for (bytes_, time), (fewer, longer) in zip(frontier, frontier[1:]):
            self.assertLessEqual(fewer, bytes_)
            self.assertGreaterEqual(longer, time)
        self.assertGreaterEqual(self.bounds, self.BUDGETS)
        # There is more between keeping all and keeping what full keeps.
        self.assertGreater(len(set(frontier)), 3, frontier)
        return frontier

    def automatic(self, budget: int) -> list[str]:
        return ["--memory", str(budget)]

    def test_nothing_fits(self):
        model, recipe = self.golden("llava_tiny")
        result = run("oriel", "compile", model, "--recipe", recipe, "--memory", "5 MiB", "-o", self.folder / "p.oplan")
        self.assert_fails(result, "more than the 5.00 MiB of `memory`", "what would help")
        self.assertIn("and no choice fits", result.stderr)

    def test_the_smallest_plan_is_what_does_not_fit(self):
        """Smaller than all others that can be had, and the one that is printed."""
        model, recipe = self.gpt(Gpt(blocks=3, hidden=128))
        options = ("--mesh", "dp=2", "--zero", "3")
        others = [self.compile_within(model, recipe, *options, "--remat", policy, "--overlap", overlap)[0]
                  for policy in ("none", "selective", "full") for overlap in ("on", "off")]
        budget = min(others) * 3 // 4
        result = run("oriel", "compile", model, "--recipe", recipe, *options, "--memory", str(budget),
                     "-o", self.folder / "p.oplan")
        self.assert_fails(result, "of `memory`")
        ((mebibytes, *_, level),) = CHOICE.findall(result.stderr)
        self.assertLessEqual(float(mebibytes) * 2**20, min(others) * 1.00001)
        self.assertIn(f"need {float(mebibytes):.2f} MiB each", result.stderr)

    def test_halves_of_a_backward_run_it_twice(self):
        """What zb-h1 computes more than without recomputation is what it says to run again, of single ops."""
        model, recipe = self.gpt(Gpt(blocks=4))
        options = ("--stages", "2", "--schedule", "zb-h1", "--microbatches", "4", "--fuse-kernels", "off")
        plans = [self.folder / name for name in ("plain.oplan", "p.oplan")]
        self.run_ok("oriel", "compile", model, "--recipe", recipe, *options, "-o", plans[0])
        full_bytes, _ = self.compile_within(model, recipe, *options, "--remat", "full")
        result = self.run_ok("oriel", "compile", model, "--recipe", recipe, *options, "--memory", str(full_bytes),
                             "-o", plans[1])
        plain, chosen = ([self.time(program) for program in
                          json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)["programs"]]
                         for plan in plans)
        choices = CHOICE.findall(result.stderr)
        self.assertEqual(len(choices), 2)
        for before, after, (_, again, *_) in zip(plain, chosen, choices):
            self.assertGreater(float(again), 0)
            self.assertAlmostEqual(after - before, 4 * float(again), delta=1e-3 * (after - before))

    def golden(self, model: str):
        folder = SOURCE / "models" / model
        return folder / "model.onnx", folder / "golden" / "recipe_adamw.yaml"

    def gpt(self, gpt: Gpt):
        model, recipe = self.folder / "gpt.onnx", self.folder / "recipe.yaml"
        model.write_bytes(gpt.model())
        recipe.write_text(gpt.recipe(4 * BATCH, BATCH))
        return model, recipe

    def test_budgets_of_gpt(self):
        self.sweep(*self.gpt(Gpt(blocks=4, sequence=64)), "--unfused", "attention", "--mesh", "tp=2", "--sp")

    def test_budgets_of_gpt_with_gathers(self):
        """Where parameters are gathered, there is less overlap with less memory."""
        self.sweep(*self.gpt(Gpt(blocks=4, hidden=128, sequence=64)), "--mesh", "dp=2", "--zero", "3")
        self.assertGreater(len(self.levels), 1, self.levels)

    def test_budgets_of_llava_deep(self):
        self.sweep(SOURCE / "models" / "llava_deep" / "model.onnx", self.golden("llava_tiny")[1])

    def test_budgets_of_qwen_vl_tiny(self):
        # Cuts that balance time depend on what runs again.
        self.sweep(*self.golden("qwen_vl_tiny"), "--stages", "2", "--microbatches", "2", "--balance", "parameters")
