"""Vision tower and language model on different axes of the same ranks, against one rank."""

import numerics
from oriel_testing import OrielTestCase


class ModulesTest(OrielTestCase):
    def check(self, language: str, vision: str):
        text = f"{language}\nmodules:\n  vision: {{parameters: [\"model.vision_tower.*\"], mesh: {vision}}}\n"
        one_rank = numerics.OneRank("llava_tiny", self.folder)
        errors, _ = one_rank.compare(numerics.StrategyFile(text, ranks=4, dp=2))
        for name, limit in numerics.LIMITS.items():
            self.assertLessEqual(errors[name], limit, name)

    # The samples of two ranks come together for the language model.
    def test_vision_whole(self):
        self.check("mesh: {dp: 2, tp: 2}\nzero: 1\nsequence_parallel: true", "{dp: 4}")

    # What two ranks share of a sample becomes a sample of each.
    def test_vision_split(self):
        self.check("mesh: {dp: 4}\nzero: 3\nsequence_parallel: true", "{dp: 2, tp: 2}")
