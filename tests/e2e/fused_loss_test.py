"""The cross entropy as one op with the output layer (`oriel compile --fuse-loss`): the numbers of the two apart, without the
logits in memory."""

import json

import numpy
from gpt import Gpt
from oriel_testing import OrielTestCase, losses, read_safetensors, relative_error, run, write_shard

BATCH, MICRO = 8, 2
STRATEGIES = (
    (1, ()),
    (2, ("--mesh", "tp=2")),
    (2, ("--mesh", "dp=2", "--zero", "3")),
    (4, ("--mesh", "dp=2,tp=2", "--sp")),
    (2, ("--stages", "2")),
)


class FusedLossTest(OrielTestCase):
    def compile_gpt(self, gpt: Gpt, *options: str, precision: str = "f32"):
        model, recipe = self.folder / "gpt.onnx", self.folder / "recipe.yaml"
        model.write_bytes(gpt.model())
        recipe.write_text(gpt.recipe(BATCH, MICRO, precision=precision))
        plan = self.folder / f"p{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", model, "--recipe", recipe, *options, "-o", plan)
        return plan

    def data(self, gpt: Gpt):
        """Some labels do not count."""
        folder = self.folder / f"data_{gpt.vocabulary}"
        if folder.exists():
            return folder
        folder.mkdir()
        random = numpy.random.default_rng(1)
        samples = []
        for _ in range(BATCH):
            ids = random.integers(0, gpt.vocabulary, gpt.sequence)
            labels = numpy.where(random.random(gpt.sequence) < 0.2, -100, ids)
            samples.append({"input_ids": ids, "labels": labels})
        write_shard(folder / "0.tar", samples)
        return folder

    def numbers(self, gpt: Gpt, world: int, *options: str, precision: str = "f32"):
        """Losses of three steps, and the gradients of the first."""
        plan = self.compile_gpt(gpt, *options, precision=precision)
        dump = plan.with_suffix(".safetensors")
        metrics = self.train(plan, "--steps", 3, world=world, data=self.data(gpt))
        self.train(plan, "--steps", 1, "--dump-gradients", dump, world=world, data=self.data(gpt))
        return losses(metrics), read_safetensors(dump)

    def check(self, gpt: Gpt, strategies=STRATEGIES, precision: str = "f32", bound: float = 1e-5):
        expected, gradients = self.numbers(gpt, 1, precision=precision)
        for world, options in strategies:
            fused, own = self.numbers(gpt, world, *options, "--fuse-loss", precision=precision)
            numpy.testing.assert_allclose(fused, expected, rtol=bound, err_msg=str(options))
            self.assertEqual(own.keys(), gradients.keys())
            for name, gradient in gradients.items():
                if name.endswith("attention.k.bias"):  # has no gradient but rounding
                    continue
                self.assertLess(relative_error(own[name], gradient), 10 * bound, f"{options} {name}")

    def test_numbers(self):
        self.check(Gpt(vocabulary=192))

    def test_tied_weights(self):
        self.check(Gpt(vocabulary=192, tied=True), STRATEGIES[:3])

    def test_a_loss_of_the_model(self):
        """Log-probabilities of labels, of which a negative one counts from the end."""
        gpt = Gpt(vocabulary=192, own_loss=True)
        self.assertIn(b"linear_token_losses", self.compile_gpt(gpt, "--fuse-loss").read_bytes())
        self.check(gpt, ((1, ()), (2, ("--mesh", "tp=2")), (2, ("--mesh", "tp=2", "--sp"))))

    def test_padded_vocabulary(self):
        """The last class is one that no label has; its block's logits are -inf alone."""
        self.check(Gpt(vocabulary=97), STRATEGIES[1:2])

    def test_label_beyond_a_padded_vocabulary(self):
        gpt = Gpt(vocabulary=97)
        random = numpy.random.default_rng(1)
        samples = [{name: random.integers(0, gpt.vocabulary, gpt.sequence) for name in ("input_ids", "labels")} for _ in range(BATCH)]
        samples[2]["labels"][5] = 97
        data = self.write_data("beyond", samples)
        for options in ((), ("--fuse-loss",)):
            plan = self.compile_gpt(gpt, "--mesh", "tp=2", *options)
            self.assert_fails(run("oriel-run", plan, "--data", data, "--no-shuffle"), "97", "label of 'labels'", "outside [-97, 97)")

    def test_bf16(self):
        self.check(Gpt(vocabulary=192), STRATEGIES[:2], precision="bf16", bound=5e-3)

    def test_evaluation(self):
        """Some positions after the other, and without logits to write."""
        for gpt, strategies in ((Gpt(vocabulary=192, sequence=24), STRATEGIES + ((4, ("--mesh", "cp=2,tp=2")),)),
                                (Gpt(vocabulary=97), STRATEGIES[1:2])):
            expected = self.evaluate(gpt, 1)
            for world, options in strategies:
                own = self.evaluate(gpt, world, *options, "--fuse-loss")
                self.assertAlmostEqual(own.pop("eval_loss"), expected["eval_loss"], delta=1e-5, msg=str(options))
                self.assertEqual(own, {key: value for key, value in expected.items() if key != "eval_loss"}, options)
        plan = self.compile_gpt(gpt, "--fuse-loss")
        result = run("oriel-run", plan, "--eval", self.data(gpt), "--eval-logits", self.folder / "l.npy", "-n", 1)
        self.assert_fails(result, "the plan never holds logits", "--fuse-loss")

    def evaluate(self, gpt: Gpt, world: int, *options: str):
        plan = self.compile_gpt(gpt, *options)
        return json.loads(self.run_ok("oriel-run", plan, "--eval", self.data(gpt), "-n", world, "--comm", "in_process").stdout)

    def test_logits_are_never_whole(self):
        """Of a large vocabulary: no segment has a value of tokens by vocabulary, or a rank's piece of it."""
        gpt = Gpt(blocks=1, hidden=32, heads=2, vocabulary=8192)
        logits = MICRO * gpt.sequence * gpt.vocabulary * 4
        for ranks, options in ((1, ()), (2, ("--mesh", "tp=2"))):
            stashes, larges = [], []
            for fused in ((), ("--fuse-loss",)):
                plan = self.compile_gpt(gpt, *options, *fused)
                (program,) = json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout)["programs"]
                stashes.append(program["bytes_by_kind"]["stash"])
                result = self.run_ok("oriel", "compile", self.folder / "gpt.onnx", "--recipe", self.folder / "recipe.yaml",
                                     *options, *fused, "--stop-after=overlap")
                segments = result.stdout.split("func.func ")[1:]
                self.assertEqual(len(segments), 4)
                rows = (MICRO, BATCH)  # of training, and of evaluation
                larges.append(sum(any(f"tensor<{row}x{gpt.sequence}x{gpt.vocabulary // ranks}x" in segment for row in rows)
                                  for segment in segments))
            self.assertEqual(larges, [3, 0], options)
            self.assertGreaterEqual(stashes[0], logits // ranks, options)
            self.assertLess(stashes[1], logits // ranks // 4, options)
