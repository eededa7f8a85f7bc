"""llava_tiny on one rank against PyTorch's numbers (models/llava_tiny/golden/README.md)."""

import golden_testing


class LlavaTest(golden_testing.GoldenTestCase):
    name = "llava_tiny"

    def test_logits(self):
        self.check_logits(self.golden / "recipe_sgd.yaml")

    def test_gradients(self):
        self.check_gradients(self.golden / "recipe_sgd.yaml")

    def test_sgd_steps(self):
        self.check_run("sgd", 5)

    def test_adamw_losses(self):
        self.check_run("adamw", 20)
