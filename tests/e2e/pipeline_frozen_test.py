"""Frozen parts in pipelines: the numbers of one rank, and no backward, gradient or state of what is frozen."""

import json
import math

import numerics
from oriel_testing import MODEL, OrielTestCase

VISION, PROJECTOR, LANGUAGE = ("*vision_tower*",), ("*projector*",), ("*language_model*", "lm_head*")
STRATEGIES = (
    numerics.Strategy(grids=2, schedule="1f1b"),
    numerics.Strategy(grids=4, schedule="gpipe"),
    numerics.Strategy(dp=2, zero=1, grids=3, schedule="zb-h1"),
    numerics.Strategy(dp=2, zero=3, grids=2, schedule="zb-h1"),
    numerics.Strategy(tp=2, sp=True, grids=2, schedule="interleaved"),
)


class PipelineFrozenTest(OrielTestCase):
    def check(self, frozen: tuple[str, ...]):
        one_rank = numerics.OneRank("llava_tiny", self.folder, frozen=json.dumps(frozen))
        for strategy in STRATEGIES:
            errors, _ = one_rank.compare(strategy)
            for name, limit in numerics.LIMITS.items():
                self.assertLessEqual(errors[name], limit, f"{strategy}: {name}")

    def test_vision_numbers(self):
        self.check(VISION)

    def test_language_numbers(self):
        self.check(LANGUAGE)

    def test_all_but_the_projector_numbers(self):
        self.check(VISION + LANGUAGE)


class PipelineFrozenBytesTest(OrielTestCase):
    """The vision tower on a grid, and the language model, with the projector in front, on two."""

    PARTS = (
        ("vision_tower",),
        ("projector", "embed_tokens", "layers.0.", "layers.1."),
        ("layers.2.", "layers.3.", "language_model.norm", "lm_head"),
    )

    def part(self, name: str) -> int:
        (number,) = [number for number, words in enumerate(self.PARTS) if any(word in name for word in words)
                     and ("vision_tower" in name) == (number == 0)]
        return number

    def check(self, frozen: tuple[str, ...], schedule: str, backward: list[bool]):
        """`backward`: whether each program has one."""
        strategy, plan = self.folder / "strategy.yaml", self.folder / "p.oplan"
        strategy.write_text(f"mesh: {{dp: 1}}\nstages: [vision, language.0-1, language.2-3]\nschedule: {schedule}\n")
        recipe = self.recipe("recipe_adamw.yaml", ("frozen: []", f"frozen: {json.dumps(frozen)}"))
        self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, "--strategy", strategy, "-o", plan)
        description = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)
        held, trained = [0, 0, 0], [0, 0, 0]
        for tensor in description["parameters"]["tensors"]:
            size = 4 * math.prod(tensor["shape"])
            held[self.part(tensor["name"])] += size
            trained[self.part(tensor["name"])] += size * tensor["trainable"]
        self.assertGreater(sum(trained), 0)
        for number, program in enumerate(description["programs"]):
            memory = program["bytes_by_kind"]
            self.assertEqual(memory["parameter"], held[number], number)
            self.assertEqual(memory.get("gradient", 0), trained[number], number)
            self.assertEqual(memory.get("optimizer_state", 0), 2 * trained[number], number)
            names = [segment["name"] for segment in program["segments"]]
            self.assertEqual(any("backward" in name for name in names), backward[number], names)
            if not backward[number]:
                self.assertNotIn("stash", memory)

    def test_nothing(self):
        for schedule in ("1f1b", "zb-h1"):
            self.check((), schedule, [True, True, True])

    def test_vision_has_no_backward(self):
        for schedule in ("1f1b", "zb-h1"):
            self.check(VISION, schedule, [False, True, True])

    def test_language_passes_the_gradient_on(self):
        for schedule in ("1f1b", "zb-h1"):
            self.check(LANGUAGE, schedule, [True, True, True])

    def test_all_but_the_projector(self):
        for schedule in ("1f1b", "zb-h1"):
            self.check(VISION + LANGUAGE, schedule, [False, True, True])

    def test_all_but_the_last_stage(self):
        frozen = VISION + PROJECTOR + ("*embed_tokens*", "*language_model.layers.0.*", "*language_model.layers.1.*")
        for schedule in ("1f1b", "zb-h1"):
            self.check(frozen, schedule, [False, False, True])
