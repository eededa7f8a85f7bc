"""bench/search/run_cases.py: recipes, command lines, verdicts and the table (no build needed: the searches are those of a stand-in)."""

import json
import math
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "search"
sys.path.insert(0, str(FOLDER))

import check_cases  # noqa: E402
import run_cases  # noqa: E402

CASES, _ = check_cases.load()

# Stands in for `oriel plan`: the strategy of STRATEGY, in the file and the JSON as docs/cli.md has them.
STAND_IN = """#!{python}
import json, pathlib, sys, yaml
assert sys.argv[1] == "plan" and pathlib.Path(sys.argv[2]).is_file(), sys.argv
words = [word for word in sys.argv[3:] if word != "--json"]
options = dict(zip(words[::2], words[1::2]))
recipe = yaml.safe_load(open(options["--recipe"]))
cluster = yaml.safe_load(open(options["--cluster"]))
assert recipe["precision"] == "bf16" and cluster["devices_per_node"] > 0
text = pathlib.Path(__file__).with_suffix(".answer").read_text()
if text.startswith("error"):
    sys.exit(text)
pathlib.Path(options["-o"]).write_text(text)
print(json.dumps({{"seconds": 1.5, "candidates": 9, "simulated": 2,
                   "strategies": [{{"text": text, "step_seconds": 0.25, "mfu": 0.5, "peak_memory": 1}}]}}))
"""


class Recipes(unittest.TestCase):
    def recipe(self, name):
        model = CASES[name]["model"]
        path = ROOT / model.get("recipe", model["skeleton"] + "/recipe.yaml")
        return run_cases.recipe_of(CASES[name], path.read_text()), yaml.safe_load(path.read_text())

    def test_a_case_replaces_what_it_says_and_no_more(self):
        recipe, original = self.recipe("lm_70b_64")
        self.assertEqual(recipe["model"]["bind"], {"batch": "micro_batch", "sequence": 4096})
        self.assertEqual(recipe["batch"], {"global": 128, "micro": 1})
        self.assertEqual(recipe["precision"], "bf16")
        for key in set(original) - {"model", "batch", "precision", "parameters"}:
            self.assertEqual(recipe[key], original[key])

    def test_frozen_parts(self):
        recipe, original = self.recipe("frozen_llm_trained_encoder")
        self.assertEqual(recipe["parameters"]["frozen"], ["model.language_model.*", "lm_head.*"])
        self.assertNotEqual(recipe["parameters"], original["parameters"])

    def test_length_that_the_graph_fixes(self):
        self.assertEqual(self.recipe("contrastive_batch_8")[0]["model"]["bind"], {"batch": "micro_batch"})

    def test_every_case_has_a_recipe_that_fits_it(self):
        for name in CASES:
            self.assertEqual(self.recipe(name)[0]["batch"]["global"], CASES[name]["batch"])

    def test_other_images_than_the_recipe_has(self):
        case = dict(CASES["vlm_2b_4"], images=2)
        with self.assertRaisesRegex(run_cases.Unusable, "vlm_2b_4 has 2 images per sample, its recipe 1"):
            run_cases.recipe_of(case, "{model: {bind: {}}, images: {per_sample: 1}}")


class Runs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_cases(self, answer, *arguments):
        oriel = self.folder / "oriel"
        oriel.write_text(STAND_IN.format(python=sys.executable))
        oriel.chmod(oriel.stat().st_mode | stat.S_IXUSR)
        oriel.with_suffix(".answer").write_text(answer)
        return subprocess.run([sys.executable, FOLDER / "run_cases.py", "--oriel", oriel, "--skeletons", self.folder / "built",
                               *arguments], capture_output=True, text=True, check=False)

    def test_command(self):
        run = run_cases.Run(CASES["vlm_7b_8_h100"], {"preset": "h100"}, pathlib.Path("f"), pathlib.Path("m.onnx"))
        self.assertEqual(run.command("oriel"), ["oriel", "plan", "m.onnx", "--recipe", "f/recipe.yaml", "--cluster", "f/cluster.yaml",
                                                "--json", "-o", "f/strategy.yaml"])

    def test_accepted(self):
        result = self.run_cases("mesh: {dp: 8}\nzero: 1\nmicrobatches: 8\n", "--only", "vlm_7b_8_h100", "--out", self.folder / "out.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1], "accepted 1 of 1 cases")
        header, line = result.stdout.splitlines()[:2]
        self.assertEqual(header.split(), run_cases.HEADER)
        self.assertRegex(line, r"^vlm_7b_8_h100  h100 1x8 +1 +1 +1 +2 +none +no +accepted +250.0 +0.500 +1.50 ")
        (written,) = json.loads((self.folder / "out.json").read_text())["cases"]
        self.assertEqual((written["accepted"], written["pick"]["micro"], written["step_ms"]), (True, 2, 250))

    def test_refused_with_the_reason_and_its_source(self):
        result = self.run_cases("mesh: {tp: 8}\nmicrobatches: 8\n", "--only", "vlm_7b_8_h100", "--keep", self.folder / "kept")
        self.assertEqual(result.returncode, 1)
        self.assertIn("refused: tp is 8, not at most 2", result.stdout)
        self.assertIn("NVIDIA/NeMo@", result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], "accepted 0 of 1 cases")
        kept = self.folder / "kept" / "vlm_7b_8_h100-0"
        self.assertEqual(yaml.safe_load((kept / "strategy.yaml").read_text())["mesh"], {"tp": 8})
        self.assertEqual(yaml.safe_load((kept / "cluster.yaml").read_text()), check_cases.cluster_of({"preset": "h100"}))

    def test_each_cluster_of_a_case_counts(self):
        (self.folder / "built" / "gpt2_355m").mkdir(parents=True)
        (self.folder / "built" / "gpt2_355m" / "model.onnx").touch()
        result = self.run_cases("mesh: {dp: 4}\nmicrobatches: 8\n", "--only", "small_lm_2_to_4", "--jobs", "2")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("refused: the strategy has 4 ranks, the cluster 2 devices", result.stdout)
        self.assertEqual([line.split()[-6] for line in result.stdout.splitlines()[1:3]], ["refused", "accepted"])

    def test_search_fails(self):
        result = self.run_cases("error: nothing fits; 16 devices would", "--only", "vlm_7b_8_h100")
        self.assertEqual(result.returncode, 1)
        self.assertIn("exit status 1 of ", result.stdout)
        self.assertIn("nothing fits; 16 devices would", result.stdout)
        self.assertIn("accepted 0 of 1", result.stdout)

    def test_skeleton_is_not_built(self):
        result = self.run_cases("", "--only", "lm_70b_64")
        self.assertEqual(result.returncode, 2)
        self.assertIn("lm_70b_64: no ", result.stderr)
        self.assertIn(f"models/skeletons/build.py llama_2_70b --out {self.folder / 'built'}", result.stderr)


class Summary(unittest.TestCase):
    def test_nine_in_ten(self):
        runs = [run_cases.Run(case, case["clusters"][0], None, None) for case in CASES.values()]
        self.assertEqual(run_cases.summary(runs), ("accepted 10 of 10 cases", 0))
        runs[0].reasons = [("no", None)]
        self.assertEqual(run_cases.summary(runs), ("accepted 9 of 10 cases", 0))
        runs[9].reasons = [("no", None)]
        self.assertEqual(run_cases.summary(runs), ("accepted 8 of 10 cases", 1))

    def test_what_was_not_measured_is_null(self):
        case = CASES["lm_70b_64"]
        (line,) = run_cases.as_json([run_cases.Run(case, case["clusters"][0], None, None, reasons=[("no", None)], wall_s=1.23456)])
        self.assertEqual((line["wall_s"], line["mfu"], line["accepted"]), (1.235, None, False))
        self.assertTrue(math.isnan(run_cases.Run(case, {}, None, None).mfu))

    def test_slow_network_is_marked(self):
        self.assertEqual(run_cases.describe(CASES["lm_7b_4_nodes_slow"]["clusters"][0]), "a100-80 4x8*")


if __name__ == "__main__":
    unittest.main()
