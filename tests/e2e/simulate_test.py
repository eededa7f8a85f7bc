"""`oriel simulate`: what stands for equal blocks and grids, against all of them compiled; memory, against the plan's."""

import json

from gpt import Gpt
from oriel_testing import SOURCE, OrielTestCase

LLAVA = SOURCE / "models" / "skeletons" / "llava_1_5_7b"
CLUSTER = "h100:2"

# Of a model with more blocks in a row than are compiled whole, on one stage. They are small: so are buckets, of which a block of a
# model of that depth fills one.
DEEP_STRATEGIES = {
    "data_parallel": ["--mesh", "dp=8", "--zero", 1, "--remat", "none"],
    "zero_3": ["--mesh", "fsdp=8", "--zero", 3, "--remat", "full"],
    "tensor_parallel": ["--mesh", "tp=8", "--remat", "selective"],
    "half_sharded": ["--mesh", "dp=4,tp=2", "--zero", 2, "--hsdp", 2, "--remat", "none"],
}
SMALL_BUCKETS = ["--overlap", "bucket=64KiB,prefetch=128KiB"]
# Of Llava-7B: by which stages' segments differ.
STRATEGIES = {
    "pipeline": ["--mesh", "tp=2", "--stages", 8, "--microbatches", 16, "--remat", "none"],
    "zero_bubble": ["--mesh", "dp=2", "--stages", 4, "--microbatches", 8, "--schedule", "zb-h1", "--remat", "none"],
    "interleaved": ["--stages", 16, "--interleave", 2, "--microbatches", 16, "--remat", "none"],
}


class SimulateTest(OrielTestCase):
    def deep(self, precision="f32"):
        folder = self.folder / f"deep_{precision}"
        folder.mkdir()
        gpt = Gpt(blocks=60, heads=8)
        (folder / "model.onnx").write_bytes(gpt.model())
        (folder / "recipe.yaml").write_text(gpt.recipe(64, 8, precision=precision))
        return folder

    def simulate(self, model, *options, cluster=CLUSTER, recipe=None) -> dict:
        run = self.run_ok("oriel", "simulate", model / "model.onnx", "--recipe", recipe or model / "recipe.yaml", "--cluster",
                          cluster, "--json", *options)
        return json.loads(run.stdout)

    def check(self, options: list, model=LLAVA, recipe=None) -> None:
        some, whole = (self.simulate(model, *options, *flag, recipe=recipe) for flag in ([], ["--whole"]))
        self.assertLess(some["compiled_blocks"], whole["compiled_blocks"])
        self.assertEqual(whole["compiled_blocks"], whole["blocks"])
        for key in ("step_seconds", "mfu", "hfu", "tokens_per_second"):
            self.assertGreater(whole[key], 0)
            self.assertAlmostEqual(some[key] / whole[key], 1, delta=2e-3, msg=key)
        self.assertAlmostEqual(some["bubble"], whole["bubble"], delta=2e-3)
        self.assertAlmostEqual(some["exposed_communication"], whole["exposed_communication"], delta=5e-3)
        self.assertEqual(len(some["stages"]), len(whole["stages"]))
        for own, other in zip(some["stages"], whole["stages"]):
            self.assertAlmostEqual(own["memory"]["total"] / other["memory"]["total"], 1, delta=0.05)

    def test_tokens_of_labels_that_the_model_has(self):
        """A language model's `input_ids` are no input of the recipe."""
        recipe = LLAVA.parent / "gpt2_124m" / "recipe.yaml"
        self.assertIn("labels: input_ids", recipe.read_text())
        self.assertIn("sequence: 1024", recipe.read_text())
        found = self.simulate(SOURCE / "bench" / "gpu" / "skeletons" / "gpt2_124m", "--mesh", "dp=2", "--remat", "none", recipe=recipe)
        self.assertAlmostEqual(found["tokens_per_second"] / found["samples_per_second"], 1024, delta=1e-3)

    def test_many_blocks(self):
        model = self.deep()
        for name, options in DEEP_STRATEGIES.items():
            with self.subTest(name):
                self.check([*options, *SMALL_BUCKETS], model)

    def test_many_blocks_in_bf16(self):
        self.check([*DEEP_STRATEGIES["zero_3"], *SMALL_BUCKETS], self.deep("bf16"))

    def test_blocks_that_share_buckets_are_compiled(self):
        """All of the vision tower, whose blocks share buckets, and four of the language model's, which fill some each."""
        some, whole = (self.simulate(LLAVA, *DEEP_STRATEGIES["half_sharded"], *flag) for flag in ([], ["--whole"]))
        self.assertEqual(some["blocks"] - some["compiled_blocks"], 32 - 4)
        self.assertAlmostEqual(some["step_seconds"] / whole["step_seconds"], 1, delta=1e-4)
        self.assertAlmostEqual(some["peak_memory"] / whole["peak_memory"], 1, delta=1e-2)

    def test_pipeline(self):
        self.check(STRATEGIES["pipeline"])

    def test_fewer_microbatches_than_stages(self):
        """What stands for other grids would be compiled with more microbatches than there are."""
        options = ["--mesh", "tp=2", "--stages", 4, "--microbatches", 1, "--schedule", "zb-h1", "--remat", "none"]
        some, whole = (self.simulate(LLAVA, *options, *flag) for flag in ([], ["--whole"]))
        self.assertEqual(some["peak_memory"], whole["peak_memory"])

    def test_a_stage_for_each_block(self):
        """What stands for equal stages would be one block of a tower, which repeats nothing."""
        tiny = SOURCE / "models" / "llava_tiny"
        some, whole = (self.simulate(tiny, "--stages", 12, "--microbatches", 2, "--remat", "none", *flag)
                       for flag in ([], ["--whole"]))
        self.assertEqual(some["compiled_blocks"], some["blocks"])
        self.assertEqual(some["step_seconds"], whole["step_seconds"])

    def test_zero_bubble(self):
        self.check(STRATEGIES["zero_bubble"])

    def test_interleaved(self):
        self.check(STRATEGIES["interleaved"])

    def test_bf16(self):
        recipe = self.folder / "recipe.yaml"
        text = (LLAVA / "recipe.yaml").read_text()
        self.assertIn("precision: f32", text)
        recipe.write_text(text.replace("precision: f32", "precision: bf16"))
        self.check(STRATEGIES["pipeline"], recipe=recipe)

    def test_memory_is_the_plans(self):
        """The arena may be larger than what is in use at its peak, by what the planner loses."""
        options = ["--mesh", "fsdp=4", "--zero", 3, "--remat", "none"]
        plan = self.folder / "plan.oplan"
        model = SOURCE / "models" / "llava_deep"
        self.run_ok("oriel", "compile", model / "model.onnx", "--recipe", model / "recipe.yaml", *options, "-o", plan)
        (program,) = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)["programs"]
        (stage,) = self.simulate(model, *options)["stages"]
        self.assertLessEqual(stage["memory"]["total"], 1.02 * program["arena_bytes"])
        self.assertGreater(stage["memory"]["total"], 0.9 * program["arena_bytes"])

    def test_a_caching_allocator_reserves_more_than_is_in_use(self):
        options = ["--mesh", "dp=2", "--stages", 4, "--microbatches", 8, "--remat", "none"]
        arena, cached = (self.simulate(LLAVA, *options, *flag) for flag in (["--whole"], ["--stack", "allocator=caching"]))
        for key in ("step_seconds", "peak_memory"):
            self.assertAlmostEqual(cached[key] / arena[key], 1, delta=2e-3, msg=key)
        whole = self.simulate(LLAVA, *options, "--whole", "--stack", "allocator=caching")
        self.assertAlmostEqual(cached["reserved_memory"] / whole["reserved_memory"], 1, delta=1e-2)
        self.assertEqual(arena["reserved_memory"], 0)
        self.assertEqual(cached["reserved_memory"] % 2**21, 0)
        self.assertGreater(cached["reserved_memory"], cached["peak_memory"])
        self.assertLess(cached["reserved_memory"], 1.5 * cached["peak_memory"])
        kept = self.simulate(LLAVA, *options, "--stack", "allocator=caching,stage_outputs=kept")
        self.assertEqual(kept["step_seconds"], cached["step_seconds"])
        self.assertGreaterEqual(kept["reserved_memory"], cached["reserved_memory"])

    def test_a_slower_link_is_slower_and_a_trace_is_written(self):
        cluster = self.folder / "slow.yaml"
        cluster.write_text("""
devices_per_node: 8
device: {memory: 80 GiB, memory_bandwidth: 3.35 TB/s, flops: {bf16: 989 TFLOP/s, f32: 67 TFLOP/s}}
links: [{bandwidth: 1 GB/s, latency: 5 us}]
""")
        trace = self.folder / "trace.json"
        options = ["--mesh", "dp=2", "--stages", 4, "--microbatches", 8, "--remat", "none"]
        fast = self.simulate(LLAVA, *options)
        slow = self.simulate(LLAVA, *options, "--trace", trace, cluster=cluster)
        self.assertGreater(slow["step_seconds"], 1.05 * fast["step_seconds"])
        events = json.loads(trace.read_text())["traceEvents"]
        runs = [event for event in events if event["ph"] == "X"]
        self.assertEqual({event["pid"] for event in runs}, {0, 1, 2, 3})
        # A forward and a backward of each microbatch on each grid, and an update.
        self.assertEqual(len(runs), 4 * (2 * 8 + 1))
        self.assertAlmostEqual(max(event["ts"] + event["dur"] for event in runs) / 1e6 / slow["step_seconds"], 1, places=6)

    def test_a_straggler_holds_up_its_program_and_who_waits_for_that(self):
        model = SOURCE / "models" / "llava_tiny"
        options = {"recipe": model / "golden" / "recipe_adamw.yaml"}
        # All ranks of a program are one: its computing takes twice as long, and nothing else does.
        data = ["--mesh", "dp=4", "--remat", "none"]
        even, slow = (self.simulate(model, *data, *flag, **options) for flag in ([], ["--straggler", "2=2"]))
        (before,), (after,) = even["stages"], slow["stages"]
        self.assertAlmostEqual(after["busy"] / before["busy"], 2, places=6)
        self.assertAlmostEqual(slow["step_seconds"], even["step_seconds"] + before["busy"], delta=1e-3 * even["step_seconds"])
        self.assertEqual((even["stragglers"], slow["stragglers"]), ([], [{"rank": 2, "factor": 2}]))
        # The other stage computes as before, and waits.
        stages = ["--mesh", "dp=2", "--stages", 2, "--microbatches", 4, "--remat", "none"]
        even = self.simulate(model, *stages, **options)
        for rank in range(4):
            slow = self.simulate(model, *stages, "--straggler", f"{rank}=2", **options)
            own, other = rank // 2, 1 - rank // 2
            self.assertAlmostEqual(slow["stages"][own]["busy"] / even["stages"][own]["busy"], 2, places=6)
            self.assertAlmostEqual(slow["stages"][other]["busy"], even["stages"][other]["busy"])
            self.assertGreater(slow["stages"][other]["idle"], even["stages"][other]["idle"])
            self.assertGreater(slow["step_seconds"], 1.2 * even["step_seconds"])
            self.assertLess(slow["step_seconds"], 2 * even["step_seconds"])
