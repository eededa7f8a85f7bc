"""Cuts between stages that are found: by times on a rank, and the same for whoever asks."""

import json
import pathlib
import re
import unittest

from oriel_testing import GOLDEN, MODEL, SOURCE, OrielTestCase

GPT2 = SOURCE / "bench" / "gpu" / "skeletons" / "gpt2_124m" / "model.onnx"
CLUSTER = ("--cluster", "h100:4")


class StageCutsTest(OrielTestCase):
    def setUp(self):
        super().setUp()
        recipe = SOURCE / "models" / "skeletons" / "gpt2_124m" / "recipe.yaml"
        self.gpt2 = self.folder / "gpt2.yaml"
        self.gpt2.write_text(recipe.read_text().replace("precision: f32", "precision: bf16").replace("micro: 64", "micro: 4"))

    def explained(self, model, recipe, *options, cluster=CLUSTER) -> str:
        return self.run_ok("oriel", "compile", model, "--recipe", recipe, *cluster, *options, "--explain-stages",
                           "--stop-after=stage", "-o", self.folder / "x.oplan").stderr

    def cuts(self, model, recipe, *options) -> list[str]:
        return re.findall(r"stage: stage \d+ on grid \d+: (.*?): \d+ parameters", self.explained(model, recipe, *options))

    def simulated(self, model, recipe, *options) -> dict:
        return json.loads(self.run_ok("oriel", "simulate", model, "--recipe", recipe, *CLUSTER, *options, "--json").stdout)

    def test_whoever_asks(self):
        tiny = (MODEL, GOLDEN / "recipe_adamw.yaml")
        for model, recipe, *options in (
                (*tiny, "--stages", 4),
                (*tiny, "--stages", 3, "--mesh", "tp=2", "--sp", "--remat", "full"),
                (*tiny, "--stages", 2, "--mesh", "dp=2", "--zero", 3, "--balance", "parameters"),
                (GPT2, self.gpt2, "--stages", 4, "--mesh", "dp=4"),
                (GPT2, self.gpt2, "--stages", 4, "--mesh", "dp=8", "--remat", "none"),
                (GPT2, self.gpt2, "--stages", 4, "--mesh", "dp=2,tp=4", "--sp", "--remat", "full", "--zero", 3)):
            cuts, simulated = self.cuts(model, recipe, *options), self.simulated(model, recipe, *options)
            self.assertEqual([stage["stages"] for stage in simulated["stages"]], cuts, options)
            whole = self.simulated(model, recipe, *options, "--whole")
            self.assertAlmostEqual(whole["step_seconds"] / simulated["step_seconds"], 1, delta=2e-3, msg=options)
            # A block that is left out may have a conversion less than the one that stands for it: what the last
            # block gives the head is in f32.
            for one, other in zip(whole["stages"], simulated["stages"]):
                self.assertAlmostEqual(one["busy"] / other["busy"], 1, delta=1e-2, msg=options)

    def block_times(self, *options, cluster=CLUSTER) -> str:
        text = self.explained(GPT2, self.gpt2, "--stages", 4, *options, cluster=cluster)
        return re.search(r"part transformer.5: \d+ parameters, on a rank (.*)", text)[1]

    def test_what_is_beside_computing_takes_no_time(self):
        def waited_for(*options) -> str:
            return re.search(r"forward .* for inputs", self.block_times(*options))[0]
        self.assertEqual(waited_for("--mesh", "dp=8", "--zero", 3), waited_for("--mesh", "dp=8"))

    def test_activations_wait_for_collectives(self):
        def linked_by(bandwidth: str) -> tuple[str, pathlib.Path]:
            path = self.folder / f"{bandwidth[:3].strip()}.yaml"
            path.write_text("nodes: 1\ndevices_per_node: 16\n"
                            "device: {memory: 80 GiB, memory_bandwidth: 3 TB/s, flops: {f32: 60 TFLOP/s, bf16: 900 TFLOP/s}}\n"
                            f"links: [{{bandwidth: {bandwidth}, latency: 1 us}}]\n")
            return "--cluster", path

        fast, slow = linked_by("400 GB/s"), linked_by("40 GB/s")
        split, copies = ("--mesh", "tp=4", "--sp"), ("--mesh", "dp=4", "--zero", 3)
        times = [float(self.block_times(*split, cluster=links).split()[0]) for links in (fast, slow)]
        self.assertGreater(times[1], 1.5 * times[0])
        # Nothing waits for what is gathered and reduced beside computing.
        self.assertEqual(self.block_times(*copies, cluster=fast), self.block_times(*copies, cluster=slow))

    def test_what_runs_again_counts(self):
        none, full = (self.cuts(GPT2, self.gpt2, "--stages", 3, "--microbatches", 32, "--remat", policy) for policy in ("none", "full"))
        self.assertEqual(none, ["transformer.0-4", "transformer.5-10", "transformer.11"])
        self.assertEqual(full, ["transformer.0-4", "transformer.5-9", "transformer.10-11"])


if __name__ == "__main__":
    unittest.main()
