"""Sums and casts joined to products and norms (docs/fused_kernels.md): the numbers of the single ops."""

import collections
import re

import numpy
from cuda_test import CudaTestCase
from gpt import Gpt
from oriel_testing import OrielTestCase, losses, read_safetensors, relative_error, write_shard

BATCH, MICRO = 8, 2
SINGLE = ("--fuse-kernels", "off")
FORMS = r"oriel\.(linear_add|linear_weight_grad_add|linear_activation\w*|linear_grads|fused_\w+)\""


class FusedKernelsTestCase(OrielTestCase):
    gpt = Gpt(gelu="tanh")
    options: tuple[str, ...] = ()

    def files(self, precision: str):
        model, recipe = self.folder / "gpt.onnx", self.folder / f"{precision}.yaml"
        model.write_bytes(self.gpt.model())
        recipe.write_text(self.gpt.recipe(BATCH, MICRO, precision=precision))
        return model, "--recipe", recipe

    def data(self):
        folder = self.folder / "data"
        if not folder.exists():
            folder.mkdir()
            random = numpy.random.default_rng(1)
            shape = (BATCH, self.gpt.sequence)
            ids, labels = random.integers(0, self.gpt.vocabulary, shape), random.integers(0, self.gpt.vocabulary, shape)
            write_shard(folder / "0.tar", [{"input_ids": i, "labels": l} for i, l in zip(ids, labels)])
        return folder

    def numbers(self, precision: str, world: int, *options: str):
        """Losses of three steps, and the gradients of the first."""
        plan = self.folder / f"p{len(list(self.folder.iterdir()))}.oplan"
        self.run_ok("oriel", "compile", *self.files(precision), *options, *self.options, "-o", plan)
        self.run_ok("oriel", "verify", plan)
        dump = plan.with_suffix(".safetensors")
        metrics = self.train(plan, "--steps", 3, world=world, data=self.data(), timeout=170)
        self.train(plan, "--steps", 1, "--dump-gradients", dump, world=world, data=self.data(), timeout=170)
        return losses(metrics), read_safetensors(dump)

    def forms(self, precision: str, *options: str):
        """How often each is launched, by segment."""
        result = self.run_ok("oriel", "compile", *self.files(precision), *options, *self.options, "--stop-after=lower")
        segments = result.stdout.split("exec.segment @")[1:]
        return {s.split(" ", 1)[0]: collections.Counter(re.findall(FORMS, s)) for s in segments}

    def check(self, strategies, precision: str = "f32", bound: float = 1e-5):
        for world, options in strategies:
            expected, gradients = self.numbers(precision, world, *options, *SINGLE)
            fused, own = self.numbers(precision, world, *options)
            numpy.testing.assert_allclose(fused, expected, rtol=bound, err_msg=str(options))
            self.assertEqual(own.keys(), gradients.keys())
            for name, gradient in gradients.items():
                if name.endswith("attention.k.bias"):  # has no gradient but rounding
                    continue
                self.assertLess(relative_error(own[name], gradient), 10 * bound, f"{options} {name}")

    def check_recomputed(self, precision: str):
        kept, again = (self.numbers(precision, 1, "--remat", policy) for policy in ("none", "full"))
        self.assertEqual(kept[0], again[0])
        for name, gradient in kept[1].items():
            numpy.testing.assert_array_equal(again[1][name], gradient, err_msg=name)


class FusedKernelsTest(FusedKernelsTestCase):
    def test_forms(self):
        """Gradients of the weights and biases of all layers, both residuals of each block and its activation, each way."""
        blocks = self.gpt.blocks
        self.assertFalse(any(self.forms("f32", *SINGLE).values()))
        forms = self.forms("f32")
        self.assertEqual(forms["backward"]["linear_grads"], 6 * blocks)
        self.assertEqual(forms["backward"]["linear_weight_grad_add"], 1)  # the output layer's, which has no bias
        self.assertEqual(forms["backward"]["linear_activation_grad"], blocks)
        self.assertEqual(forms["backward"]["fused_layer_norm_grad"], 2 * blocks)
        self.assertEqual(forms["forward"]["linear_activation"], blocks)
        self.assertEqual(forms["forward"]["linear_add"], 2 * blocks)

    def test_derivatives_where_all_is_computed_again(self):
        self.assertEqual(self.forms("f32", "--remat", "full")["backward"]["linear_activation_grad"], self.gpt.blocks)

    def test_forms_in_bf16(self):
        """Norms read and write bf16."""
        forms, blocks = self.forms("bf16"), self.gpt.blocks
        self.assertEqual(forms["backward"]["linear_grads"], 6 * blocks)
        self.assertEqual(forms["forward"]["linear_activation"], blocks)
        self.assertEqual(forms["backward"]["linear_activation_grad"], blocks)
        self.assertGreaterEqual(forms["forward"]["fused_layer_norm"], 2 * blocks)
        self.assertGreaterEqual(forms["backward"]["fused_layer_norm_grad"], 2 * blocks)

    def test_forms_of_pieces(self):
        """Collectives stand between products and residuals: the norms behind them add."""
        forms = self.forms("f32", "--mesh", "tp=2")
        self.assertEqual(forms["forward"]["linear_add"], 0)
        self.assertGreaterEqual(forms["forward"]["fused_layer_norm"], 2 * self.gpt.blocks)

    def test_numbers(self):
        self.check(((1, ()), (2, ("--mesh", "dp=2", "--zero", "1")), (2, ("--mesh", "dp=2", "--zero", "3")),
                    (2, ("--mesh", "tp=2", "--sp"))))

    def test_numbers_of_stages(self):
        self.check(((2, ("--stages", "2", "--schedule", "zb-h1", "--microbatches", "4")),))

    def test_numbers_in_bf16(self):
        self.check(((1, ()), (2, ("--mesh", "tp=2"))), precision="bf16", bound=5e-3)

    def test_recomputed_bits(self):
        """What the backward computes again is joined as in the forward."""
        self.check_recomputed("f32")


class FusedKernelsOnDevicesTest(CudaTestCase, FusedKernelsTestCase):
    options = ("--device", "cuda")

    def test_numbers_on_devices(self):
        self.check(((1, ()),))

    def test_numbers_on_devices_in_bf16(self):
        self.check(((1, ()),), precision="bf16", bound=5e-3)

    def test_recomputed_bits_on_devices(self):
        for precision in ("f32", "bf16"):
            self.check_recomputed(precision)


class FusedKernelsOfOddRowsTest(CudaTestCase, FusedKernelsTestCase):
    """Libraries keep what an activation is of in rows of a multiple of 8 only."""

    gpt = Gpt(gelu="tanh", hidden=63, heads=3)
    options = ("--device", "cuda")

    def test_recomputed_bits_of_odd_rows(self):
        for precision in ("f32", "bf16"):
            self.check_recomputed(precision)
