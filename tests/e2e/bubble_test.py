"""The bubbles of pipeline schedules at run time, with timed waits in place of compute."""

import statistics
import unittest

from oriel_testing import DATA, MODEL, OrielTestCase
from pipeline_trace import bubble_formula, equal_waits, timed_steps

WAIT_MS = 30
STEPS = 3
LIMIT = 0.01


class BubbleTest(OrielTestCase):
    def check(self, schedule: str, grids: int, stages: int, microbatches: int):
        recipe = self.recipe("recipe_sgd.yaml", (
            "batch: {global: 8, micro: 2}", f"batch: {{global: {microbatches}, micro: 1}}"))
        plan = self.folder / "plan.oplan"
        self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, "--stages", stages, "--schedule", schedule,
                    "-o", plan)
        steps = timed_steps(plan, DATA, grids, equal_waits(schedule, WAIT_MS), STEPS)
        self.assertEqual(len(steps), STEPS)
        measured = statistics.median(step.bubble for step in steps)
        expected = bubble_formula(schedule, grids, microbatches, stages)
        self.assertLess(abs(measured - expected), LIMIT, f"{measured} measured, {expected} expected")
        for step in steps:
            self.assertGreaterEqual(max(step.busy_ms), 3 * WAIT_MS * microbatches * stages / grids)

    def test_gpipe(self):
        self.check("gpipe", grids=2, stages=2, microbatches=4)

    def test_1f1b(self):
        self.check("1f1b", grids=3, stages=3, microbatches=4)

    def test_interleaved(self):
        self.check("interleaved", grids=2, stages=4, microbatches=4)

    def test_zb_h1(self):
        self.check("zb-h1", grids=2, stages=2, microbatches=4)


if __name__ == "__main__":
    unittest.main()
