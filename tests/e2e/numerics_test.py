"""A sample of docs/numerics.md, in which every pair of settings of a strategy occurs."""

import numerics
import numpy
from oriel_testing import OrielTestCase


class NumericsTest(OrielTestCase):
    def check(self, model: str):
        strategies = numerics.pairwise(numerics.all_strategies())
        self.assertGreater(len(strategies), 5)
        one_rank = numerics.OneRank(model, self.folder)
        for strategy in strategies:
            errors, _ = one_rank.compare(strategy)
            for name, limit in numerics.LIMITS.items():
                self.assertLessEqual(errors[name], limit, f"{strategy}: {name}")

    def test_llava_tiny(self):
        self.check("llava_tiny")

    def test_qwen_vl_tiny(self):
        self.check("qwen_vl_tiny")

    def test_not_a_number_exceeds_every_limit(self):
        def measured(second):
            measurement = numerics.Measurement.__new__(numerics.Measurement)
            measurement._strategy, measurement._precision = "a strategy", "f32"
            measurement.gradients = measurement.parameters = {"a": numpy.ones(2), "b": numpy.array([1.0, second])}
            measurement.losses = [1.0, second, 1.0]
            return measurement

        finite, nan = measured(1.0), measured(numpy.nan)
        self.assertEqual(set(finite.compare(finite).values()), {0.0})
        for name, error in nan.compare(finite).items():
            self.assertFalse(error <= numerics.LIMITS[name], name)
