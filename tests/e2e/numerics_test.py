"""A sample of docs/numerics.md, in which every pair of settings of a strategy occurs."""

import numerics
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
