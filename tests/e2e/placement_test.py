"""Stages side by side: the same training, with other processes as ranks."""

import json
import os
import signal
import subprocess
import time
import unittest

from failure_test import rank_processes
from oriel_testing import DATA, ENVIRONMENT, GOLDEN, HAVE_MPI, MODEL, OrielTestCase, command, losses, run

# Two grids of two data-parallel ranks: ranks 0, 2, 1, 3 are processes 0 to 3.
STAGES = ("--stages", 2, "--mesh", "dp=2")


class PlacementTest(OrielTestCase):
    def compile_stages(self, *options):
        plan = self.folder / f"p{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", MODEL, "--recipe", GOLDEN / "recipe_adamw.yaml", *STAGES, *options, "-o", plan)
        return plan

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_same_bits(self):
        apart, beside = self.compile_stages(), self.compile_stages("--placement", "dp_outermost")
        expected = losses(self.train(apart, "--steps", 5, world=4, comm="in_process"))
        self.assertEqual(len(expected), 5)
        for comm in ("mpi", "in_process"):
            self.assertEqual(losses(self.train(beside, "--steps", 5, world=4, comm=comm)), expected)

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_process_1_is_rank_2(self):
        plan = self.compile_stages("--placement", "dp_outermost")
        metrics = self.folder / "metrics.jsonl"
        process = subprocess.Popen(
            command("oriel-run", plan, "--data", DATA, "--comm", "mpi", "--steps", 1000000, "--metrics", metrics),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        try:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and not (metrics.exists() and metrics.read_text()):
                time.sleep(0.05)
            victim = rank_processes(self.folder)[1]
            os.kill(victim, signal.SIGKILL)
            output, _ = process.communicate(timeout=20)
        finally:
            process.kill()
        self.assertIn(f"rank 2 (pid {victim}) was killed by signal 9", output)

    def test_what_a_plan_says(self):
        plan = self.compile_stages("--placement", "dp_outermost")
        self.assertIn("  processes 1 of each grid in turn: ranks 0, 2, 1, 3\n",
                      self.run_ok("oriel", "inspect", plan).stdout)
        self.assertEqual(json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)["placement_block"], 1)
        other = self.compile_stages()
        self.assertNotIn("processes", self.run_ok("oriel", "inspect", other).stdout)
        self.assertIn("placement block", run("oriel", "diff", other, plan).stdout)
        self.run_ok("oriel", "verify", plan)
