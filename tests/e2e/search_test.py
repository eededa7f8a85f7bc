"""The search against a simulation of every strategy in its space, on four ranks."""

import json

from oriel_testing import GOLDEN, MODEL, SOURCE, OrielTestCase, run

CLUSTER = """
devices_per_node: 4
device: {{memory: {memory}, memory_bandwidth: 3 GB/s, flops: {{f32: 60 GFLOP/s}}}}
links: [{{bandwidth: 1 GB/s, latency: 1 us}}]
"""
NODES = """
nodes: 2
devices_per_node: 2
device: {memory: 80 GiB, memory_bandwidth: 3 GB/s, flops: {f32: 60 GFLOP/s}}
links: [{name: bus, devices: 2, bandwidth: 1 GB/s, latency: 1 us}, {name: network, bandwidth: 5 MB/s, latency: 20 us}]
"""
# What the search allows itself: of those that are about as fast, it takes the simplest.
TOLERANCE = 1.02


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
        # Bounds are for uneven stages, too, which take less than even ones where microbatches are as few as here.
        self.assertLess(found["simulated"], every["simulated"] / 2.5)
        for strategy in space:
            self.assertLessEqual(strategy["at_least_seconds"], strategy["step_seconds"], strategy["strategy"])
        best = min(s["step_seconds"] for s in space)
        self.assertLessEqual(found["strategies"][0]["step_seconds"], TOLERANCE * best)

    # Where little is trained, what stages send each other is better kept on a node.
    def test_stages_side_by_side(self):
        cluster = self.folder / "cluster.yaml"
        cluster.write_text(NODES)

        def plan(recipe, *options):
            return json.loads(self.run_ok("oriel", "plan", MODEL, "--recipe", recipe, "--cluster", cluster, "--json",
                                          "--fix", *options).stdout)

        frozen = self.recipe("recipe_adamw.yaml", ('trainable: ["*"]', 'trainable: ["*projector*"]'))
        found = plan(frozen, "pp=2,dp=2")
        self.assertTrue(found["strategies"][0]["strategy"].endswith(" dp_outermost"), found["strategies"][0])
        self.assertIn("placement: dp_outermost\n", found["strategies"][0]["text"])
        apart = next(each for each in found["neighbours"] if each["reason"].startswith("placement=pp_outermost"))
        self.assertRegex(apart["reason"], r"^placement=pp_outermost: \+\S+ % \(waits for other stages ")
        self.assertGreater(apart["step_seconds"], found["strategies"][0]["step_seconds"])
        pinned = plan(frozen, "pp=2,dp=2,placement=pp_outermost")
        self.assertNotIn("dp_outermost", json.dumps(pinned))
        # All that fit, with bounds that are below.
        every = plan(frozen, "placement=dp_outermost", "--top", "100")["strategies"]
        space = [each for each in every if each["at_least_seconds"] > 0]
        self.assertGreater(len(space), 20)
        for strategy in space:
            self.assertLessEqual(strategy["at_least_seconds"], strategy["step_seconds"], strategy["strategy"])

    def test_brute_force(self):
        self.check("80 GiB")

    def test_brute_force_in_little_memory(self):
        self.check("4 MiB")
