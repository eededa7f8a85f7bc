"""What is of the whole model, though no stage has it: evaluation, the gradient norm, tied weights."""

import json

import numpy
from oriel_testing import DATA, MODEL, SOURCE, OrielTestCase, losses

QWEN = SOURCE / "models" / "qwen_vl_tiny"
ONE_RANK = (1, [])
STRATEGIES = (
    (3, ["--stages", "3", "--schedule", "zb-h1"]),
    (8, ["--stages", "4", "--mesh", "dp=2", "--zero", "3", "--microbatches", "4"]),
    (4, ["--stages", "4", "--mesh", "tp=2", "--schedule", "interleaved", "--sp"]),
)


class PipelineModelTest(OrielTestCase):
    def compile_stages(self, recipe, options: list[str], model=MODEL):
        plan = self.folder / f"p{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", model, "--recipe", recipe, *options, "-o", plan)
        return plan

    def test_evaluation(self):
        recipe = self.recipe("recipe_sgd.yaml")

        def evaluate(world: int, options: list[str]):
            path = self.folder / "logits.npy"
            result = self.run_ok("oriel-run", self.compile_stages(recipe, options), "--eval", DATA, "-n", world,
                                 "--comm", "in_process", "--eval-logits", path)
            return json.loads(result.stdout), numpy.load(path)

        expected, expected_logits = evaluate(*ONE_RANK)
        for world, options in STRATEGIES:
            line, logits = evaluate(world, options)
            self.assertAlmostEqual(line.pop("eval_loss"), expected["eval_loss"], delta=1e-6)
            self.assertEqual(line, {key: value for key, value in expected.items() if key != "eval_loss"})
            numpy.testing.assert_allclose(logits, expected_logits, rtol=0, atol=1e-5)

    def test_clipping(self):
        recipe = self.recipe("recipe_sgd.yaml", ("lr: 1.0e-3", "lr: 1.0, clip_norm: 0.5"))

        def norms_and_losses(world: int, options: list[str]):
            metrics = self.train(self.compile_stages(recipe, options), "--steps", 5, world=world)
            return [line["grad_norm"] for line in metrics] + losses(metrics)

        expected = norms_and_losses(*ONE_RANK)
        self.assertGreater(min(expected[:5]), 0.5)
        for world, options in STRATEGIES:
            numpy.testing.assert_allclose(norms_and_losses(world, options), expected, rtol=1e-5, atol=0)

    # The matrix is the embedding in the first stage and the output layer in the last.
    def test_tied_weights_are_on_both_ends_and_stepped_on_one(self):
        plan = self.compile_stages(QWEN / "golden" / "recipe_adamw.yaml", ["--stages", "3"], QWEN / "model.onnx")
        description = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)
        total, tied = 4 * description["parameters"]["total"], 4 * 64 * 32

        def held(kind: str) -> int:
            return sum(program["bytes_by_kind"][kind] for program in description["programs"])

        self.assertEqual([held("parameter"), held("gradient"), held("optimizer_state")],
                         [total + tied, total + tied, 2 * total])
