"""The timeline that `oriel-run --trace` writes, and runs that sleep instead of computing."""

import json
import unittest

from oriel_testing import DATA, GOLDEN, HAVE_MPI, OrielTestCase, losses, run

STEPS = 4  # that are trained
# Of a step of two ranks: a global batch of 8 in microbatches of 2.
RUNS = ["forward m0", "backward m0", "forward m1", "backward m1", "update"]


def end(event: dict) -> float:
    return event["ts"] + event["dur"]


class TraceTest(OrielTestCase):
    def timeline(self, *arguments, world: int = 2, **options) -> list[dict]:
        """The events of each rank's thread, in the order in which they begin."""
        # Ranks meet in the update only.
        plan = self.compile(GOLDEN / "recipe_sgd.yaml", world, options=["--overlap", "off"])
        path = self.folder / "trace.json"
        self.metrics = self.train(plan, "--steps", STEPS, "--trace", path, *arguments, world=world, **options)
        self.assertEqual(list(self.folder.glob("trace.json?*")), [], "a temporary file was left")
        events = json.loads(path.read_text())["traceEvents"]
        names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
        self.assertEqual([name for name in names if "stream" not in name],
                         [f"rank {rank}" for rank in range(world)])
        threads = [[] for _ in range(world)]
        for event in events:
            if event["ph"] == "X" and event["cat"] != "stream":
                self.assertEqual(event["args"]["rank"], event["tid"])
                threads[event["tid"]].append(event)
        for thread in threads:
            thread.sort(key=lambda event: (event["ts"], -event["dur"]))
        return threads

    def check_two_ranks(self, **options):
        threads = self.timeline(**options)
        waits = []
        for thread in threads:
            runs = [event for event in thread if event["cat"] == "segment"]
            self.assertEqual([event["name"] for event in runs], RUNS * 3)
            self.assertEqual([event["args"]["step"] for event in runs],
                             [step for step in (1, 2, 3) for _ in RUNS])
            self.assertEqual(runs[3]["args"]["segment"], "backward")
            self.assertEqual(runs[3]["args"]["microbatch"], 1)
            for before, after in zip(runs, runs[1:]):
                self.assertLessEqual(end(before), after["ts"] + 0.001)
            waits.append([event for event in thread if event["cat"] == "collective"])
            for wait in waits[-1]:
                self.assertTrue(wait["name"].startswith("all_reduce"), wait["name"])
                holders = [run for run in runs
                           if run["ts"] <= wait["ts"] and end(wait) <= end(run) + 0.001]
                self.assertEqual([run["name"] for run in holders], ["update"])
        # Nobody leaves an all-reduce before all have come: one clock.
        self.assertEqual(len(waits[0]), len(waits[1]))
        self.assertGreater(len(waits[0]), 0)
        for first, second in zip(*waits):
            self.assertEqual(first["name"], second["name"])
            self.assertLessEqual(max(first["ts"], second["ts"]), min(end(first), end(second)))

    def test_two_ranks(self):
        self.check_two_ranks()

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_two_ranks_mpi(self):
        self.check_two_ranks(comm="mpi")

    def test_steps(self):
        (events,) = self.timeline("--trace-steps", "2-3", world=1)
        self.assertEqual({event["args"]["step"] for event in events}, {2, 3})

    def test_file_that_cannot_be_written(self):
        plan = self.compile(GOLDEN / "recipe_sgd.yaml")
        path = self.folder / "none" / "trace.json"
        result = run("oriel-run", plan, "--data", DATA, "--steps", 1, "--trace", path)
        self.assert_fails(result, str(path))

    def check_link_delay(self, **options):
        """Two hops of 10 ms in each all-reduce, and the same losses."""
        threads = self.timeline("--link-delay", "latency=10ms,bandwidth=10GB/s", **options)
        for thread in threads:
            times = [event["dur"] for event in thread if event["name"].startswith("all_reduce")]
            self.assertTrue(times)
            self.assertGreaterEqual(min(times), 20e3)
        plan = self.compile(GOLDEN / "recipe_sgd.yaml", 2, name="plain")
        plain = self.train(plan, "--steps", STEPS, world=2)
        self.assertEqual(losses(self.metrics), losses(plain))

    def test_link_delay(self):
        self.check_link_delay()

    @unittest.skipUnless(HAVE_MPI, "built without MPI")
    def test_link_delay_mpi(self):
        self.check_link_delay(comm="mpi")

    def test_replaced_compute(self):
        (events,) = self.timeline("--replace-compute", "forward=20,backward=40", world=1)
        least = {"forward": 20e3, "backward": 40e3, "update": 0}
        for event in events:
            if event["cat"] == "segment":
                self.assertGreaterEqual(event["dur"], least[event["args"]["segment"]])
        plan = self.compile(GOLDEN / "recipe_sgd.yaml", name="other")
        options = ("--data", DATA, "--steps", 1, "--replace-compute")
        result = self.run_ok("oriel-run", plan, *options, "forward=1")
        self.assertIn("losses mean nothing", result.stderr)
        result = run("oriel-run", plan, *options, "forwards=1")
        self.assert_fails(result, "no segment 'forwards'")
        result = run("oriel-run", plan, *options, "forward=1", "--save-dir", self.folder / "saved")
        self.assertEqual(result.returncode, 2)
        self.assertFalse((self.folder / "saved").exists())


if __name__ == "__main__":
    unittest.main()
