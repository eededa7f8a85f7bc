"""bench/search/against_hand.py: which rows are one problem, and when a pick is worse (no build needed: what simulates is a stand-in)."""

import csv
import dataclasses
import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "search"
sys.path.insert(0, str(FOLDER))
sys.path.insert(0, str(ROOT / "tests" / "simulator"))

import against_hand  # noqa: E402
import decoder_onnx  # noqa: E402
import hand_problems  # noqa: E402
from rows_test import row  # noqa: E402

# Stands in for `oriel`: SECONDS and GIB of a strategy, by what is in its text; the first that is found counts.
STAND_IN = """#!{python}
import json, pathlib, sys
said = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
words = sys.argv[2:]
assert words[0] == "model.onnxtxt" and "decoder" in pathlib.Path(words[0]).read_text() and "--stack" not in words
assert "bind" in pathlib.Path("recipe.yaml").read_text() and "nodes" in pathlib.Path("cluster.yaml").read_text()
if sys.argv[1] == "plan":
    if said["pick"].startswith("error"):
        sys.exit(said["pick"])
    pathlib.Path(words[words.index("-o") + 1]).write_text(said["pick"])
    print(json.dumps({{"seconds": 3.5, "candidates": 9, "simulated": 2}}))
else:
    text = pathlib.Path(words[words.index("--strategy") + 1]).read_text()
    seconds, gib = next(figures for part, figures in said["simulated"].items() if part in text)
    print(json.dumps({{"step_seconds": seconds, "peak_memory": gib * 2**30}}))
"""
PICK = "mesh: {dp: 32}\nmicrobatches: 1\n"


def small(**changed) -> dict:
    """Its global batch is one sample on each device, so that few plain strategies are tried."""
    return row(**{"layers": "4", "gbs_seqs": "32", **changed})


def gather(*table: dict) -> list:
    return hand_problems.gather(table)[0]


class Problems(unittest.TestCase):
    def test_rows_that_differ_in_the_strategy_are_one(self):
        (problem,) = gather(row(row_id="t-1"), row(row_id="t-2", pp="8", dp="1"), row(row_id="u-1", table_id="u", iter_time_s="9"))
        self.assertEqual([strategy.rows for strategy in problem.hand], [["t-1", "u-1"], ["t-2"]])
        self.assertEqual(problem.tables, ["t", "u"])
        self.assertEqual(problem.devices, 32)

    def test_rows_that_differ_in_what_is_trained_are_not(self):
        for changed in ({"gbs_seqs": "128"}, {"seq_len": "2048"}, {"layers": "48"}, {"n_gpus": "64", "dp": "4"}, {"precision": "fp16"},
                        {"gpu_type": "H100-SXM-80GB"}):
            self.assertEqual(len(gather(row(), row(**changed))), 2, changed)

    def test_a_strategy_has_the_microbatches_of_its_row(self):
        (problem,) = gather(row(mbs_seqs="2"), row(mbs_seqs="4"))
        self.assertEqual([strategy.text.splitlines()[-1] for strategy in problem.hand], ["microbatches: 16", "microbatches: 8"])
        self.assertIn("batch: {global: 64, micro: 1}", problem.recipe)

    def test_the_vocabulary_is_the_largest_that_a_row_padded_to(self):
        (problem,) = gather(row(), row(tp="8", pp="2"), row(tp="1", pp="16"))
        self.assertEqual(problem.figures.vocab, 51200)

    def test_part_of_a_node_is_a_smaller_one(self):
        (problem,) = gather(row(n_gpus="4", dp="1", pp="1"))
        self.assertEqual(problem.per_node(), 4)
        self.assertIn("{name: NVLink, devices: 4,", problem.cluster)
        problems, refused = hand_problems.gather([row(n_gpus="12", dp="3", pp="1", gbs_seqs="60")])
        self.assertEqual((problems, refused), ([], {"12 devices are no whole nodes of 8": ["t-1"]}))

    def test_memory_is_that_of_the_device_less_what_is_reserved(self):
        (problem,) = gather(row())
        self.assertEqual(problem.memory(), 78 * 2**30)
        self.assertEqual(dataclasses.replace(problem, cluster="device:\n  memory: 32 GB\n").memory(), 32e9)

    def test_what_cannot_be_expressed_is_listed(self):
        self.assertEqual(hand_problems.gather([row(precision="fp8")]), ([], {"precision fp8": ["t-1"]}))

    def test_the_sample_has_three_of_each_table(self):
        sizes = [row(n_gpus=str(16 * dp), dp=str(dp), row_id=f"dp{dp}") for dp in (2, 8, 1, 4)]
        many, other = [row(seq_len="512", row_id="many"), row(seq_len="512", mbs_seqs="4")], row(table_id="u", layers="48", row_id="u-1")
        found = hand_problems.sample(gather(*sizes, *many, other))
        self.assertEqual([problem.hand[0].rows[0] for problem in found], ["dp8", "dp1", "many", "u-1"])


class Plain(unittest.TestCase):
    def test_zero_3(self):
        (problem,) = gather(row())
        self.assertEqual(hand_problems.plain(problem, False, 2, "full"), "mesh: {dp: 32}\nzero: 3\nremat: full\nmicrobatches: 1\n")
        self.assertIn("\nhsdp: 8\n", hand_problems.plain(problem, True, 1, "none"))

    def test_what_does_not_divide(self):
        (problem,) = gather(row())
        self.assertIsNone(hand_problems.plain(problem, False, 4, "none"))
        (node,) = gather(row(n_gpus="8", dp="2", pp="1"))
        self.assertIsNone(hand_problems.plain(node, True, 1, "none"))
        self.assertIsNotNone(hand_problems.plain(node, False, 1, "none"))


class Models(unittest.TestCase):
    def test_the_batch_is_symbolic_and_weights_are_elsewhere(self):
        text = decoder_onnx.model_text(gather(row())[0].figures)
        self.assertIn("decoder (int64[batch, 1024] ids) => (float[batch, 1024, 50688] logits)", text)
        self.assertIn('float[2048, 8192] "layers.23.mlp.up.weight" = ["location": "weights", "offset": ', text)
        self.assertEqual(text.count(" Attention "), 24)

    def test_dropout_and_scores(self):
        text = decoder_onnx.model_text(gather(row(precision="fp16", layers="4"))[0].figures)
        self.assertEqual((text.count("Softmax"), text.count("Where")), (4, 14))


class Comparisons(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def compare(self, table: list, pick: str, simulated: dict, *words: str) -> subprocess.CompletedProcess:
        """`simulated`: {part of a strategy's text: (seconds, GiB)}."""
        oriel = self.folder / "oriel"
        oriel.write_text(STAND_IN.format(python=sys.executable))
        oriel.chmod(oriel.stat().st_mode | stat.S_IXUSR)
        oriel.with_suffix(".json").write_text(json.dumps({"pick": pick, "simulated": simulated}))
        with (self.folder / "train_all.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, table[0])
            writer.writeheader()
            writer.writerows(table)
        return subprocess.run([sys.executable, FOLDER / "against_hand.py", "--tables", self.folder, "--oriel", oriel, "--out",
                               self.folder / "out.json", *words], capture_output=True, text=True, check=False)

    def written(self) -> dict:
        return json.loads((self.folder / "out.json").read_text())

    def test_as_good_as_the_best(self):
        simulated = {"hsdp: 8\nremat: none": (4.0, 90), "hsdp": (6.0, 30), "zero: 3\nremat: none": (5.0, 40), "zero: 3": (7.0, 20),
                     "tp: 4": (2.99, 70), PICK: (3.0, 60)}
        done = self.compare([small()], PICK, simulated)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "worse in 0 of 1 problems, 0 errors, 0 plain strategies left out")
        (problem,) = self.written()["problems"]
        self.assertEqual(problem["ratio"], {"hand": 1.0033, "zero3": 0.6, "hsdp": 0.5})
        self.assertEqual((problem["hand"][0]["seconds"], problem["hand"][0]["gib"], problem["search_s"]), (2.99, 70, 3.5))
        self.assertEqual(problem["pick"]["strategy"], PICK)

    def test_worse_by_more_than_the_tolerance(self):
        done = self.compare([small()], PICK, {"zero: 3": (5.0, 40), "tp: 4": (2.9, 70), PICK: (3.0, 60)})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("WORSE than mesh:dp:2,tp:4 zero:1 sequence_parallel:true", done.stdout)
        self.assertEqual(self.written()["summary"]["worse"], 1)

    def test_worse_than_zero_3(self):
        done = self.compare([small()], PICK, {"hsdp": (8.0, 50), "zero: 3": (2.0, 40), "tp: 4": (4.0, 70), PICK: (3.0, 60)})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.written()["problems"][0]["ratio"], {"hand": 0.75, "zero3": 1.5, "hsdp": 0.375})

    def test_what_does_not_fit_is_not_compared(self):
        done = self.compare([small()], PICK, {"zero: 3": (5.0, 99), "tp: 4": (1.0, 78.5), PICK: (3.0, 60)})
        self.assertEqual(done.returncode, 0, done.stdout)
        (problem,) = self.written()["problems"]
        self.assertEqual((problem["ratio"], problem["hand"][0]["fits"]), ({"hand": None, "zero3": None, "hsdp": None}, False))
        self.assertIn("0 of 1 hand strategies fit", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "worse in 0 of 0 problems, 0 errors, 0 plain strategies left out")

    def test_no_pick_where_something_fits_is_worse(self):
        done = self.compare([small()], "error: nothing fits; more nodes", {"zero: 3": (5.0, 99), "tp: 4": (1.0, 70)})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "worse in 1 of 1 problems, 0 errors, 0 plain strategies left out")
        self.assertIsNone(self.written()["problems"][0]["pick"])

    def test_other_errors_are_counted(self):
        done = self.compare([small()], "error: out of luck", {"zero: 3": (5.0, 99), "tp: 4": (1.0, 90)})
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: oriel plan failed: error: out of luck", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "worse in 0 of 0 problems, 1 errors, 0 plain strategies left out")

    def test_what_was_run_must_be_simulated_and_the_plain_need_not(self):
        done = self.compare([small()], PICK, {"tp: 4": (4.0, 70), PICK: (3.0, 60)})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("left out: zero3, 1 samples at a time, remat none: oriel simulate failed: ", done.stdout)
        self.assertEqual(self.written()["problems"][0]["ratio"], {"hand": 0.75, "zero3": None, "hsdp": None})
        done = self.compare([small()], PICK, {"zero: 3": (5.0, 99), PICK: (3.0, 60)})
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: t-1: oriel simulate failed: ", done.stdout)

    def test_only_and_first(self):
        table = [small(), small(layers="8", table_id="u"), small(model="Other", seq_len="512")]
        simulated = {"zero: 3": (5.0, 40), "tp: 4": (4.0, 70), PICK: (3.0, 60)}
        self.compare(table, PICK, simulated, "--only", "^u$|Other")
        self.assertEqual([problem["problem"].split(",")[0] for problem in self.written()["problems"]], ["GPT", "Other"])
        self.compare(table, PICK, simulated, "--first", "1")
        self.assertEqual(self.written()["summary"]["problems"], 1)
        done = self.compare(table, PICK, simulated, "--only", "none")
        self.assertRegex(done.stderr, "^error: no problem is left")

    def test_only_that_is_no_expression(self):
        done = self.compare([small()], PICK, {"zero: 3": (5.0, 40), "tp: 4": (4.0, 70), PICK: (3.0, 60)}, "--only", "GPT (6.2B")
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("Traceback", done.stderr)
        self.assertIn("error: argument --only: 'GPT (6.2B' is no regular expression: missing ), unterminated subpattern", done.stderr)
        self.assertNotIn("problems", done.stdout)


class Tolerance(unittest.TestCase):
    def test_is_that_of_the_search(self):
        header = (ROOT / "passes" / "search" / "search.h").read_text()
        self.assertIn(f"double structureTolerance = {against_hand.TOLERANCE};", header)


if __name__ == "__main__":
    unittest.main()
