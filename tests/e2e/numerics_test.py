"""A sample of docs/numerics.md, in which every pair of settings of a strategy occurs."""

import pathlib

import numerics
from oriel_testing import OrielTestCase


class NumericsTest(OrielTestCase):
    def check(self, model: str):
        strategies = numerics.pairwise(numerics.all_strategies())
        self.assertGreater(len(strategies), 5)
        expected = self.measure(model, numerics.Strategy())
        for strategy in strategies:
            errors = self.measure(model, strategy).compare(expected)
            for name, limit in numerics.LIMITS.items():
                self.assertLessEqual(errors[name], limit, f"{strategy}: {name}")

    def measure(self, model: str, strategy: numerics.Strategy) -> numerics.Measurement:
        folder = self.folder / str(strategy).replace(" ", "_")
        folder.mkdir()
        return numerics.Measurement(model, strategy, pathlib.Path(folder))

    def test_llava_tiny(self):
        self.check("llava_tiny")

    def test_qwen_vl_tiny(self):
        self.check("qwen_vl_tiny")
