"""Text-only samples mixed in at random: 200 steps under many strategies, with the losses of one rank."""

import images_test
import numerics
import numpy
import onnx_writer
from images_test import PIXELS, POSITIONS, ROWS, VOCABULARY, WIDTH
from oriel_testing import OrielTestCase, losses, write_shard

STEPS, BATCH = 200, 8
VISION_BLOCKS, TEXT_BLOCKS = 2, 6
INNER = 2 * WIDTH
# SP and ZeRO 3, which have no part in this, would take most of the time.
STRATEGIES = numerics.pairwise([strategy for strategy in numerics.all_pipelines("llava_tiny")
                                if strategy.grids > 1 and not strategy.sp and strategy.zero < 3])


def model() -> bytes:
    """As that of images_test, with blocks of two layers in the tower and behind the merge."""
    random = numpy.random.default_rng(1)
    graph = onnx_writer.Graph()
    graph.input("pixel_values", numpy.float32, ["patches", PIXELS])
    graph.input("input_ids", numpy.int64, ["batch", POSITIONS])
    graph.output("logits", numpy.float32, ["batch", POSITIONS, VOCABULARY])

    def weight(name: str, *shape: int) -> str:
        return graph.initializer(name, (0.4 * random.standard_normal(shape)).astype("f4"))

    def block(name: str, x: str) -> str:
        """x + tanh(x up) down"""
        up, down = weight(f"{name}.up", WIDTH, INNER), weight(f"{name}.down", INNER, WIDTH)
        graph.node("MatMul", [x, up], f"{name}/up")
        graph.node("Tanh", [f"{name}/up"], f"{name}/active")
        graph.node("MatMul", [f"{name}/active", down], f"{name}/down")
        return graph.node("Add", [x, f"{name}/down"], f"{name}/out")

    def text_block(name: str, x: str) -> str:
        """Joins positions before that."""
        graph.node("MatMul", [weight(f"{name}.mix", POSITIONS, POSITIONS), x], f"{name}/mix")
        graph.node("Tanh", [f"{name}/mix"], f"{name}/mixed")
        return block(name, graph.node("Add", [x, f"{name}/mixed"], f"{name}/sum"))

    hidden = graph.node("MatMul", ["pixel_values", weight("vision.embed", PIXELS, WIDTH)], "projected")
    for number in range(VISION_BLOCKS):
        hidden = block(f"vision.layers.{number}", hidden)
    weight("embed", VOCABULARY, WIDTH)
    hidden = images_test.add_merge(graph, hidden)
    for number in range(TEXT_BLOCKS):
        hidden = text_block(f"text.layers.{number}", hidden)
    graph.node("MatMul", [hidden, weight("head", WIDTH, VOCABULARY)], "logits")
    return graph.model()


def image_counts(steps: int, batch: int) -> numpy.ndarray:
    """Images of each sample [steps, batch]: the share of samples with any differs from step to step."""
    random = numpy.random.default_rng(0)
    share = random.choice([0, 0.2, 0.5, 1], (steps, 1))
    return numpy.where(random.random((steps, batch)) < share, random.integers(1, 3, (steps, batch)), 0)


class PipelineImagesTest(OrielTestCase):
    def losses_of(self, strategy: numerics.Strategy, model_path, samples: int) -> list[float]:
        _, micro = strategy.batch(BATCH, 2)
        recipe, plan = self.folder / "recipe.yaml", self.folder / "p.oplan"
        text = images_test.RECIPE.format(patches=micro * 2 * ROWS, batch=samples, micro=micro)
        recipe.write_text(text.replace("{kind: sgd, lr: 0.1}", "{kind: adamw, lr: 1.0e-3}"))
        self.run_ok("oriel", "compile", model_path, "--recipe", recipe, *strategy.arguments(self.folder), "-o", plan)
        metrics = self.train(plan, "--steps", STEPS, data=self.folder / "data", world=strategy.ranks, timeout=300)
        return losses(metrics)

    def test_losses_are_those_of_one_rank(self):
        counts = image_counts(STEPS, BATCH)
        # Of two data-parallel ranks with every other sample, one has no image in a whole step; or none has.
        on_ranks = counts.reshape(STEPS, -1, 2).any(axis=1)
        self.assertGreater((on_ranks[:, 0] != on_ranks[:, 1]).sum(), 10)
        self.assertGreater((~on_ranks).all(axis=1).sum(), 10)

        model_path, data = self.folder / "model.onnx", self.folder / "data"
        model_path.write_bytes(model())
        data.mkdir()
        write_shard(data / "0.tar", [images_test.sample(count, seed) for seed, count in enumerate(counts.flat)])
        expected: dict[int, list[float]] = {}
        for strategy in STRATEGIES:
            samples, _ = strategy.batch(BATCH, 2)
            if samples not in expected:
                expected[samples] = self.losses_of(numerics.Strategy(), model_path, samples)
                self.assertLess(sum(expected[samples][-20:]), sum(expected[samples][:20]))
            numpy.testing.assert_allclose(self.losses_of(strategy, model_path, samples), expected[samples],
                                          rtol=1e-6, atol=0, err_msg=str(strategy))
