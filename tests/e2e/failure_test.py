"""A rank that dies or fails ends the job, at once and with a message that names it."""

import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import numpy
from oriel_testing import (DATA, ENVIRONMENT, GOLDEN, HAVE_MPI, MODEL, OrielTestCase, command, read_shards,
                           rank_environments, run, write_shard)


def rank_processes(folder: pathlib.Path) -> dict[int, int]:
    """Process ids by MPI rank, of processes that have `folder` in their command line."""
    ranks = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() not in (process / "cmdline").read_bytes():
                continue
            for entry in (process / "environ").read_bytes().split(b"\0"):
                name, _, value = entry.partition(b"=")
                if name == b"OMPI_COMM_WORLD_RANK":
                    ranks[int(value)] = int(process.name)
        except OSError:
            continue
    return ranks


class FailureTest(OrielTestCase):
    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_killed_rank_ends_the_job(self):
        plan = self.compile(GOLDEN / "recipe_adamw.yaml", 4)
        metrics = self.folder / "metrics.jsonl"
        process = subprocess.Popen(
            command("oriel-run", plan, "--data", DATA, "-n", 4, "--comm", "mpi", "--steps", 1000000,
                    "--metrics", metrics),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        try:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                if metrics.exists() and metrics.read_text().count("\n") >= 3:
                    break
                time.sleep(0.05)
            victim = rank_processes(self.folder)[2]
            os.kill(victim, signal.SIGKILL)
            killed = time.monotonic()
            output, _ = process.communicate(timeout=20)
        finally:
            process.kill()
        self.assertLess(time.monotonic() - killed, 10)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("rank 2", output)
        self.assertIn("signal 9", output)
        self.assertFalse(rank_processes(self.folder))

    def test_ranks_of_other_jobs(self):
        """A file that is stale on one machine: nobody trains."""
        recipe = (GOLDEN / "recipe_adamw.yaml").read_text()
        other = self.folder / "other.yaml"
        other.write_text(recipe.replace("lr: ", "lr: 2"))
        self.assertNotEqual(other.read_text(), recipe)
        plan, changed = self.compile(GOLDEN / "recipe_adamw.yaml", 2), self.compile(other, 2, name="other")
        weights = self.folder / "weights" / plan.name
        weights.parent.mkdir()
        weights.write_bytes(plan.read_bytes())
        stale = plan.with_suffix(".weights.safetensors").read_bytes()
        (weights.parent / f"{plan.stem}.weights.safetensors").write_bytes(re.sub(rb'"crc32":"[0-9a-f]{8}"', b'"crc32":"00000000"', stale))
        data, saved = self.folder / "data", self.folder / "saved"
        data.mkdir()
        write_shard(data / "shard.tar", read_shards(DATA, 8))
        self.run_ok("oriel-run", plan, "--data", DATA, "-n", 2, "--steps", 2, "--save-dir", saved, "--save-every", 1)
        steps = sorted(saved.glob("step-*"))
        for arguments, message in (
                ([changed, "--data", DATA], "the plan of rank 1 is not that of rank 0; copy that of rank 0"),
                ([weights, "--data", DATA], "are the weights of another plan"),
                ([plan, "--data", data], "the training data of rank 1"),
                ([plan, "--data", DATA, "--eval", data], "the evaluation data of rank 1"),
                ([plan, "--data", DATA, "--seed", 1], "the --seed of rank 1"),
                ([plan, "--data", DATA, "--steps", 5], "the options of rank 1"),
                ([plan, "--data", DATA, "--resume", steps[0]], "the checkpoint of rank 1")):
            first = [plan, "--data", DATA]
            if "--eval" in arguments:
                first += ["--eval", DATA]
            if "--resume" in arguments:
                first += ["--resume", steps[1]]
            with self.subTest(message):
                metrics = self.folder / "m.jsonl"
                ranks = [subprocess.Popen(command("oriel-run", *of_rank), env=environment, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True)
                         for of_rank, environment in zip(([*first, "--metrics", metrics], [*arguments]), rank_environments(2))]
                errors = [rank.communicate(timeout=60)[1] for rank in ranks]
                self.assertEqual([rank.returncode for rank in ranks], [1, 1], errors)
                self.assertIn(message, errors[1])
                self.assertFalse(metrics.exists() and metrics.read_text())

    def test_diverged_run_ends(self):
        """The checkpoint of the step before is left, and rank 0 says so, whatever the ranks are."""
        text = (GOLDEN / "recipe_sgd.yaml").read_text()
        recipe = self.folder / "diverges.yaml"
        recipe.write_text(re.sub(r"lr: [0-9.e-]+", "lr: 1.0e+30", text))
        plan = self.folder / "plan.oplan"
        self.run_ok("oriel", "compile", MODEL, "--recipe", recipe, "--stages", 2, "--mesh", "dp=2", "--zero", 1, "-o", plan)
        for comm in ["in_process", "processes"] + (["mpi"] if HAVE_MPI else []):
            with self.subTest(comm):
                saved = self.folder / comm
                arguments = (plan, "--data", DATA, "--comm", comm, "--steps", 4, "--save-dir", saved, "--save-every", 1, "--keep", 2)
                self.assert_fails(run("oriel-run", *arguments), "of step 2 is not finite", f"the last checkpoint is {saved}/step-00000001",
                                  "--check-nan", "--allow-nan")
                self.assertEqual([path.name for path in saved.glob("step-*")], ["step-00000001"])
                self.assertIn("is not finite", self.run_ok("oriel-run", *arguments, "--allow-nan").stderr)
                self.assertEqual(sorted(path.name for path in saved.glob("step-*")), ["step-00000003", "step-00000004"])

    def test_bad_sample_on_one_rank_ends_the_job(self):
        plan = self.compile(GOLDEN / "recipe_adamw.yaml", 4)
        samples = read_shards(DATA, 16)
        samples[6]["input_ids"] = numpy.full_like(samples[6]["input_ids"], 100000)
        data = self.folder / "data"
        data.mkdir()
        write_shard(data / "shard.tar", samples)
        for comm in ["in_process"] + (["mpi"] if HAVE_MPI else []):
            # Sample 6 of the first batch belongs to the last rank.
            started = time.monotonic()
            result = run("oriel-run", plan, "--data", data, "-n", 4, "--comm", comm, "--no-shuffle",
                         "--steps", 2)
            self.assertLess(time.monotonic() - started, 15)
            self.assert_fails(result, "rank 3", "100000")
