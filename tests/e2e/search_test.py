"""The search against a simulation of every strategy in its space, on four ranks."""

import json

from oriel_testing import GOLDEN, SOURCE, OrielTestCase, run

CLUSTER = """
devices_per_node: 4
device: {{memory: {memory}, memory_bandwidth: 3 GB/s, flops: {{f32: 60 GFLOP/s}}}}
links: [{{bandwidth: 1 GB/s, latency: 1 us}}]
"""
# What the search allows itself: of those that are about as fast, it takes the simplest.
TOLERANCE = 1.005


class SearchTest(OrielTestCase):
    def search(self, memory: str, top: int) -> dict:
        cluster = self.folder / "cluster.yaml"
        cluster.write_text(CLUSTER.format(memory=memory))
        found = run("oriel", "plan", SOURCE / "models" / "llava_tiny" / "model.onnx", "--recipe", GOLDEN / "recipe_adamw.yaml",
                    "--cluster", cluster, "--top", str(top), "--json", timeout=200)
        self.assertEqual(found.returncode, 0, found.stderr)
        return json.loads(found.stdout)

    def check(self, memory: str):
        found = self.search(memory, 1)
        every = self.search(memory, found["candidates"])
        # Those with a bound are of the space, the others next to it.
        space = [s for s in every["strategies"] if s["at_least_seconds"] > 0]
        print(f"{memory}: {found['candidates']} strategies, {found['simulated']} simulated; all that fit: {len(space)}")
        self.assertTrue(found["whole"] and every["whole"])
        self.assertGreater(len(space), 20)
        self.assertLess(found["simulated"], every["simulated"] / 3)
        for strategy in space:
            self.assertLessEqual(strategy["at_least_seconds"], strategy["step_seconds"], strategy["strategy"])
        best = min(s["step_seconds"] for s in space)
        self.assertLessEqual(found["strategies"][0]["step_seconds"], TOLERANCE * best)

    def test_brute_force(self):
        self.check("80 GiB")

    def test_brute_force_in_little_memory(self):
        self.check("4 MiB")
