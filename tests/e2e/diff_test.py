"""`oriel diff`: what it says of two plans is what `oriel inspect` says of each; two strategies; bad input."""

import json

from oriel_testing import GOLDEN, MODEL, OrielTestCase, run


class DiffTest(OrielTestCase):
    def plan(self, name: str, *options):
        path = self.folder / f"{name}.oplan"
        self.run_ok("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_sgd.yaml", *options, "-o", path)
        return path

    def file(self, name: str, text: str):
        path = self.folder / name
        path.write_text(text)
        return path

    def diff(self, a, b, *options) -> dict:
        return json.loads(self.run_ok("oriel", "diff", a, b, "--json", *options).stdout)

    def values(self, comparison: dict) -> dict:
        """By section, grid and key."""
        return {(each["section"], each["grid"], each["key"]): each for each in comparison["values"]}

    def test_plans(self):
        a = self.plan("zero_1", "--mesh", "dp=2", "--zero", 1)
        b = self.plan("stages", "--mesh", "dp=2", "--stages", 2)
        one, two = (json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout) for plan in (a, b))
        comparison = self.diff(a, b, "--all")
        self.assertFalse(comparison["same"])
        values = self.values(comparison)
        (program,) = one["programs"]
        largest = max(two["programs"], key=lambda each: each["arena_bytes"])
        self.assertEqual(values["memory", None, "grid"]["b"], largest["grid"])
        for part, bytes_of_a in program["memory"]["parts"].items():
            value = values["memory", None, part]
            self.assertEqual((value["a"], value["b"]), (bytes_of_a, largest["memory"]["parts"][part]))
        arena = values["memory", None, "arena"]
        self.assertAlmostEqual(arena["change_percent"], 100 * (largest["arena_bytes"] / program["arena_bytes"] - 1))
        self.assertEqual(values["volume", None, "total"]["a"], program["sent_bytes_per_step"])
        self.assertEqual(values["transfers", None, "total"]["b"], sum(each["bytes_per_step"] for each in two["channels"]))
        for plan, side in ((a, "a"), (b, "b")):
            schedule = json.loads(self.run_ok("oriel", "inspect", "--schedule", "--json", plan).stdout)
            self.assertAlmostEqual(values["time", None, "step"][side], schedule["step_ms"])
        self.assertEqual((values["ranks", None, "ranks"]["a"], values["ranks", None, "ranks"]["b"]), (2, 4))

        text = self.run_ok("oriel", "diff", a, b).stdout
        for line in ("  - zero: 1\n", "  + stages: 2\n", "+100.0 %"):
            self.assertIn(line, text)
        self.assertNotIn("sha256", text)
        self.assertNotIn("recipe", text)

        again = self.plan("again", "--mesh", "dp=2", "--zero", 1)
        self.assertIn("nothing differs\n", self.run_ok("oriel", "diff", a, again).stdout)
        self.assertEqual((self.diff(a, again)["same"], self.diff(a, again)["values"]), (True, []))

    def test_strategies(self):
        a = self.file("a.yaml", "mesh: {dp: 4}\nzero: 1\n")
        b = self.file("b.yml", "zero: 3  # all\nmesh: {tp: 2, dp: 2}\nstages: 1\n")
        comparison = self.diff(a, b)
        self.assertEqual(comparison["kind"], "strategies")
        self.assertEqual({each["key"]: (each["a"], each["b"]) for each in comparison["values"]},
                         {"mesh.dp": (4, 2), "mesh.tp": (1, 2), "zero": (1, 3), "data_parallel": (4, 2)})
        self.assertIn("nothing differs\n", self.run_ok("oriel", "diff", a, a).stdout)

    def test_bad_input(self):
        plan = self.plan("plan")
        strategy = self.file("strategy.yaml", "mesh: {dp: 2}\n")
        typo = self.file("typo.yaml", "mesh: {dp: 2}\nzeroo: 1\n")
        truncated = self.folder / "truncated.oplan"
        truncated.write_bytes(plan.read_bytes()[:-1])
        nowhere = self.folder / "nowhere.oplan"
        remedy = "two plans (.oplan), or two strategies (.yaml)"
        for a, b, texts in (
            (plan, nowhere, ("nowhere.oplan", remedy)),
            (plan, MODEL, ("model.onnx is not a plan", remedy)),
            (self.folder, plan, ("not a regular file", remedy)),
            (plan, truncated, ("truncated.oplan", "truncated: expected")),
            (plan, strategy, ("strategy.yaml' is a strategy", "plan.oplan' is none", "oriel compile --strategy")),
            (strategy, typo, ("typo.yaml:2:1", "'zero'")),
        ):
            result = run("oriel", "diff", a, b)
            self.assert_fails(result, *texts)
            self.assertEqual(result.stdout, "")
            self.assertEqual(result.stderr.count("error: "), 1)
        self.assert_fails(run("oriel", "diff", plan), "B is required", "oriel diff --help")
