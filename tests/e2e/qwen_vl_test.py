"""qwen_vl_tiny against PyTorch's numbers (its golden/README.md), and two ranks against one."""

import golden_testing


class QwenVlTest(golden_testing.GoldenTestCase):
    name = "qwen_vl_tiny"

    def test_logits(self):
        self.check_logits(self.golden / "recipe_sgd.yaml")

    def test_gradients(self):
        self.check_gradients(self.golden / "recipe_sgd.yaml")

    def test_sgd_steps(self):
        self.check_run("sgd", 5)

    def test_adamw_losses(self):
        self.check_run("adamw", 20)


class QwenVlRanksTest(golden_testing.RanksTestCase):
    name = "qwen_vl_tiny"

    def test_two_ranks(self):
        self.check(2, "in_process")
