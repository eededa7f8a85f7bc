"""bench/simulator/replay.py on a table made up here, and its errors."""

import csv
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "simulator"))

from oriel_testing import BIN, SOURCE  # noqa: E402
from rows_test import row  # noqa: E402

SCRIPT = SOURCE / "bench" / "simulator" / "replay.py"
SMALL = {"layers": "4", "hidden": "256", "heads": "4", "kv_heads": "4", "ffn": "1024", "vocab": "1000",
         "seq_len": "128", "n_gpus": "4", "tp": "1", "pp": "2", "dp": "2", "sp": "0", "gbs_seqs": "16"}


class Replay(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        self.out = self.folder / "out" / "replay.csv"

    def table(self, *table: dict) -> None:
        with (self.folder / "train_all.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, table[0])
            writer.writeheader()
            writer.writerows(table)

    def replay(self, *words, folder=None) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, SCRIPT, "--tables", folder or self.folder, "--out", self.out, "--oriel",
                               BIN / "oriel", *words], capture_output=True, text=True, timeout=50)

    def refused(self, done: subprocess.CompletedProcess, words: str) -> None:
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, f"^error: .*{words}.*\n$")

    def test_rows_are_predicted_or_listed(self):
        shallow = row(**SMALL, row_id="t-shallow", peak_mem_gb="1.0", mem_kind="max allocated GiB")
        deep = row(**{**SMALL, "layers": "8"}, row_id="t-deep")
        other = row(**SMALL, row_id="t-other", precision="fp8")
        self.table(shallow, deep, other)
        done = self.replay("--plots", self.folder / "plots")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout.splitlines()[-1], r"^mean_abs_error=\d+\.\d{3}$")
        with self.out.open() as file:
            found = {line["row_id"]: line for line in csv.DictReader(file)}
        self.assertEqual(found["t-other"]["reason"], "precision fp8")
        times = [float(found[name]["predicted_s"]) for name in ("t-shallow", "t-deep")]
        self.assertLess(0, times[0])
        self.assertLess(times[0], times[1])
        self.assertAlmostEqual(float(found["t-deep"]["error"]), times[1] / 2.5 - 1, delta=1e-4)
        self.assertLess(0, float(found["t-shallow"]["predicted_bytes"]))
        self.assertIn("t-deep", (self.folder / "plots" / "t.svg").read_text())

    def test_no_folder(self):
        self.refused(self.replay(folder=self.folder / "absent"), "absent is no folder; --tables takes")

    def test_no_table(self):
        self.refused(self.replay(), "has no train_all.csv, nor any other .csv")

    def test_lacks_columns(self):
        (self.folder / "train_all.csv").write_text("row_id,model\n1,GPT\n")
        self.refused(self.replay(), "train_all.csv lacks the columns table_id, kind, layers")

    def test_unknown_table(self):
        self.table(row(**SMALL))
        self.refused(self.replay("--only", "u"), "no table u; there are t")

    def test_oriel_fails(self):
        broken = self.folder / "oriel"
        broken.write_text("#!/bin/sh\necho 'error: out of luck; try again' >&2\nexit 1\n")
        broken.chmod(broken.stat().st_mode | stat.S_IEXEC)
        self.table(row(**SMALL))
        self.refused(self.replay("--oriel", broken), "1 of 1 rows failed, first t-1: .*out of luck; try again")

    def test_oriel_is_absent(self):
        self.table(row(**SMALL))
        self.refused(self.replay("--oriel", self.folder / "absent"), "absent does not exist; build")


if __name__ == "__main__":
    unittest.main()
