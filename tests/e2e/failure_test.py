"""A rank that dies or fails ends the job, at once and with a message that names it."""

import os
import pathlib
import signal
import subprocess
import time
import unittest

import numpy
from oriel_testing import (DATA, ENVIRONMENT, GOLDEN, HAVE_MPI, OrielTestCase, command, read_shards,
                           run, write_shard)


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
