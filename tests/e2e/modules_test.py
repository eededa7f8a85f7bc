"""Vision tower and language model on different axes of the same ranks, against one rank."""

import dataclasses
import pathlib

import numerics
from oriel_testing import OrielTestCase


@dataclasses.dataclass(frozen=True)
class FromFile:
    """As numerics.Strategy, written to a file."""

    path: pathlib.Path
    dp: int  # the least of a module

    ranks = 4

    def arguments(self) -> list[str]:
        return ["--strategy", str(self.path)]


class ModulesTest(OrielTestCase):
    def check(self, language: str, vision: str):
        path = self.folder / "strategy.yaml"
        path.write_text(f"{language}\nmodules:\n  vision: "
                        f'{{parameters: ["model.vision_tower.*"], mesh: {vision}}}\n')
        strategies = {"one": numerics.Strategy(), "four": FromFile(path, dp=2)}
        for name in strategies:
            (self.folder / name).mkdir()
        expected, actual = (numerics.Measurement("llava_tiny", strategy, self.folder / name)
                            for name, strategy in strategies.items())
        errors = actual.compare(expected)
        for name, limit in numerics.LIMITS.items():
            self.assertLessEqual(errors[name], limit, name)

    # The samples of two ranks come together for the language model.
    def test_vision_whole(self):
        self.check("mesh: {dp: 2, tp: 2}\nzero: 1\nsequence_parallel: true", "{dp: 4}")

    # What two ranks share of a sample becomes a sample of each.
    def test_vision_split(self):
        self.check("mesh: {dp: 4}\nzero: 3\nsequence_parallel: true", "{dp: 2, tp: 2}")
