"""Steps of one microbatch: gradients are set, not added to zeros, and have the numbers of several microbatches."""

import unittest

import numpy
from gpt import Gpt
from oriel_testing import OrielTestCase, losses, read_safetensors, relative_error, write_shard

BATCH = 8
STRATEGIES = (
    (1, ()),
    (2, ("--mesh", "dp=2")),
    (2, ("--mesh", "dp=2", "--zero", "1")),
    (2, ("--mesh", "dp=2", "--zero", "2")),
    (2, ("--mesh", "dp=2", "--zero", "3")),
    (2, ("--mesh", "tp=2", "--sp")),
    (4, ("--mesh", "dp=2,tp=2", "--zero", "1")),
    (2, ("--stages", "2", "--schedule", "gpipe")),
    (4, ("--mesh", "tp=2", "--stages", "2", "--schedule", "zb-h1")),
    (4, ("--mesh", "dp=2", "--stages", "2", "--schedule", "zb-h1", "--zero", "1")),
    (1, ("--fuse-kernels", "off", "--remat", "full")),
)


class OneMicrobatchTest(OrielTestCase):
    def compile_gpt(self, name: str, micro: int, gpt: Gpt, *options: str, precision: str = "f32"):
        model, recipe = self.folder / f"{name}.onnx", self.folder / f"{name}.yaml"
        model.write_bytes(gpt.model())
        recipe.write_text(gpt.recipe(BATCH, micro, precision=precision))
        plan = self.folder / f"{name}.oplan"
        self.run_ok("oriel", "compile", model, "--recipe", recipe, *options, "-o", plan)
        self.run_ok("oriel", "verify", plan)
        return plan

    def numbers(self, plan, gpt: Gpt, world: int):
        """Losses of three steps, the last of which would show a gradient that is kept, and gradients of the first."""
        folder = self.folder / f"data{gpt.vocabulary}"
        if not folder.exists():
            folder.mkdir()
            random = numpy.random.default_rng(1)
            ids, labels = (random.integers(0, gpt.vocabulary, (BATCH, gpt.sequence)) for _ in range(2))
            write_shard(folder / "0.tar", [{"input_ids": i, "labels": l} for i, l in zip(ids, labels)])
        dump = plan.with_suffix(".gradients")
        metrics = self.train(plan, "--steps", 3, world=world, data=folder)
        self.train(plan, "--steps", 1, "--poison-dead-memory", "--dump-gradients", dump, world=world, data=folder)
        return losses(metrics), read_safetensors(dump)

    def check(self, gpt: Gpt, world: int, options, bound: float = 1e-5, **rest):
        ranks = int(options[1].split("dp=")[1][0]) if options and "dp=" in options[1] else 1
        several = self.numbers(self.compile_gpt("several", 2, gpt, **rest), gpt, 1)
        own = self.numbers(self.compile_gpt("one", BATCH // ranks, gpt, *options, **rest), gpt, world)
        numpy.testing.assert_allclose(own[0], several[0], rtol=bound)
        self.assertEqual(own[1].keys(), several[1].keys())
        for name, gradient in several[1].items():
            if not name.endswith("attention.k.bias"):  # has no gradient but rounding
                self.assertLess(relative_error(own[1][name], gradient), 10 * bound, name)

    def launches(self, plan, kernel: str) -> int:
        result = self.run_ok("oriel", "inspect", plan, "--segments").stdout.split("segments ")[1].split("  eval")[0]
        return sum(int(line.split()[0]) for line in result.splitlines() if line.split()[1:] == [kernel])

    def test_strategies(self):
        for world, options in STRATEGIES:
            with self.subTest(options=options):
                self.check(Gpt(), world, options)

    def test_in_bf16(self):
        self.check(Gpt(), 2, ("--mesh", "dp=2", "--zero", "1"), bound=5e-3, precision="bf16")

    def test_nothing_is_reset(self):
        """But the sums of losses and tokens; parameters, each of which adds up a gradient, otherwise."""
        one, several = (self.compile_gpt(f"m{micro}", micro, Gpt()) for micro in (BATCH, 2))
        self.assertEqual(self.launches(one, "fill"), 2)
        self.assertGreater(self.launches(several, "fill"), 10)

    def test_tied_weight(self):
        """Its gradient is a sum of two, on one rank or on those of two stages."""
        tied = Gpt(tied=True)
        self.check(tied, 1, ())
        self.check(tied, 2, ("--stages", "2", "--schedule", "gpipe"))


if __name__ == "__main__":
    unittest.main()
