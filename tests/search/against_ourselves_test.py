"""bench/search/against_ourselves.py: the figures that it makes of times, and its strategies (no build needed)."""

import pathlib
import sys
import unittest

import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "bench" / "search"
sys.path.insert(0, str(FOLDER))

import against_ourselves as bench  # noqa: E402

SETTINGS = yaml.safe_load((FOLDER / "ourselves.yaml").read_text())


class Figures(unittest.TestCase):
    def test_pairs_less_than_a_tenth_apart_are_not_counted(self):
        self.assertEqual(bench.pairs_apart([100, 109, 111, 200]), [(2, 0), (3, 0), (3, 1), (3, 2)])

    def test_kendall(self):
        measured = [100, 105, 200, 300]
        self.assertEqual(bench.kendall(measured, [2, 1, 3, 4]), 1)  # 100 and 105 are too close to count
        self.assertEqual(bench.kendall(measured, [4, 4, 3, 1]), -1)
        self.assertEqual(bench.kendall([100, 200, 300], [1, 1, 2]), 2 / 3)  # a tie is no order
        self.assertIsNone(bench.kendall([100, 101], [1, 2]))

    def test_spearman(self):
        self.assertAlmostEqual(bench.spearman([1, 2, 3, 4], [10, 20, 25, 90]), 1)
        self.assertAlmostEqual(bench.spearman([1, 2, 3], [3, 2, 1]), -1)
        # Places 0 1 2 3 and 0.5 0.5 2 3.
        self.assertAlmostEqual(bench.spearman([1, 2, 3, 4], [5, 5, 7, 8]), 4.5 / (5 * 4.5) ** 0.5)
        self.assertIsNone(bench.spearman([1, 2], [1, 1]))

    def test_regret_is_of_the_best_prediction(self):
        figures = bench.compare({"a": 100.0, "b": 120.0, "c": 300.0}, {"a": 7.0, "b": 6.0, "c": 9.0}, {"a": 1, "b": 1, "c": 1})
        self.assertEqual((figures["best"], figures["chosen"], figures["regret"]), ("a", "b", 0.2))
        self.assertEqual((figures["count"], figures["pairs"], figures["kendall"]), (3, 3, 0.3333))
        self.assertNotIn("search_regret", figures)

    def test_pick_of_the_search_is_held_against_the_best_and_not_ranked(self):
        ranks = {"a": 2, "b": 2, "search": 2}
        figures = bench.compare({"a": 100.0, "b": 300.0, "search": 90.0}, {"a": 1.0, "b": 2.0, "search": 0.5}, ranks)
        self.assertEqual((figures["count"], figures["best"], figures["chosen"]), (2, "search", "a"))
        self.assertEqual((figures["search_regret"], figures["regret"]), (0, 0.1111))
        # The search was for two ranks, so that one rank may be faster.
        figures = bench.compare({"a": 100.0, "b": 300.0, "search": 330.0}, {"a": 1.0, "b": 2.0, "search": 2}, {**ranks, "a": 1})
        self.assertEqual(figures["search_regret"], 0.1)


class Strategies(unittest.TestCase):
    def test_thirty_of_up_to_two_ranks_and_of_four_to_eight(self):
        self.assertGreaterEqual(sum(map(len, SETTINGS["strategies"].values())), 30)
        ranks = {regime: {bench.ranks_of(strategy) for strategy in strategies.values()}
                 for regime, strategies in SETTINGS["strategies"].items()}
        self.assertEqual(ranks, {"local": {1, 2}, "delayed": {4, 8}})

    def test_all_differ_and_divide_the_batch(self):
        for strategies in SETTINGS["strategies"].values():
            texts = [yaml.safe_dump(strategy) for strategy in strategies.values()]
            self.assertEqual(len(set(texts)), len(texts))
            for name, strategy in strategies.items():
                data = strategy["mesh"].get("dp", 1) * strategy["microbatches"]
                for batch in SETTINGS["batch"].values():
                    self.assertEqual(batch % data, 0, name)

    def test_recipe(self):
        recipe = yaml.safe_load(bench.RECIPE.format(batch=16))
        self.assertEqual(recipe["batch"], {"global": 16, "micro": 1})


if __name__ == "__main__":
    unittest.main()
