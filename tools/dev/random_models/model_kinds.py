"""Whole models of model_towers.py's towers, at random: what they read, how towers meet, and what their losses are."""

import dataclasses

import numpy
from onnx import helper

from model_parts import Choices, Tokens
from model_towers import Blocks


@dataclasses.dataclass
class RandomModel:
    """`recipe`: the recipe's `loss` (and `inputs`), as YAML; `labels`: of a recipe's loss, beside the model's inputs."""

    graph: Blocks
    recipe: str
    length: int
    labels: int = 0  # classes; 0: the model has its own loss
    shift: bool = False
    kind: str = ""
    of_tokens: bool = False  # a loss of each


class Models(Blocks):
    """Stems, heads and losses."""

    def width(self, name: str) -> int:
        return self.pick(f"{name}.width", 32, 16, 24, 48, 64, 40, 96, 20)

    def text(self, name: str, width: int) -> tuple[Tokens, int, str]:
        """Tokens, vocabulary, and the table."""
        length = self.pick("length", 8, 4, 12, 16, 20, 6, 8, 12, 7)
        classes = self.pick("vocabulary", 32, 48, 50, 37, 96, 101)
        with self.scope(name, style=True):
            ids = self.ids("input_ids", classes, length)
            with self.scope("embed"):
                table = self.parameter("weight", classes, width, std=0.7)
            x = self.op("Gather", table, ids, axis=0)
            position = self.pick("positions", "none", "table", "slice", "gather", "constant")
            if position == "table":
                x = self.op("Add", x, self.parameter("positions", 1, length, width, std=0.3))
            elif position == "slice":
                x = self.op("Add", x, self.slice(self.parameter("positions", length + 5, width, std=0.3), 0, 0, length))
            elif position == "gather":
                positions = self.op("Gather", self.parameter("positions", length + 5, width, std=0.3), self.constant(numpy.arange(length) + 2))
                x = self.op("Add", x, positions)
            elif position == "constant":
                waves = numpy.sin(numpy.arange(length)[:, None] * 10.0 ** -(numpy.arange(width) / width))
                x = self.op("Add", x, self.constant(waves, "f4"))
            if self.pick("embedding_scale", False, False, True):
                x = self.op("Mul", x, self.number(width**0.5 / 4))
            if self.pick("embedding_norm", False, False, False, True):
                x = self.norm(x, "embed_norm", width)
        return Tokens(x, length, width), classes, table

    def image(self, name: str, width: int) -> Tokens:
        with self.scope(name, style=True):
            form = self.pick("stem", "patches", "patches", "linear", "convolutions", "vectors", "sound")
            side = self.pick("side", 2, 3, 4)
            length = side * side
            if form == "vectors":
                x = self.linear(self.floats("features", length, 12), "embed", 12, width)
            elif form == "sound":
                x = self.floats("sound", 5, 2 * length)
                x = self.op("Conv", x, self.parameter("conv1.weight", width, 5, 3, std=0.25), self.parameter("conv1.bias", width), pads=[1, 1])
                x = self.op("Gelu", x)
                x = self.op("Conv", x, self.parameter("conv2.weight", width, width, 3, std=0.1), pads=[1, 1], strides=[2])
                x = self.transpose(x, 0, 2, 1)
            else:
                pixels = self.floats("pixel_values", 3, 4 * side, 4 * side)
                x = {"patches": self.patches, "linear": self.linear_patches, "convolutions": self.convolutions}[form](pixels, side, width)
            if self.pick("class_token", False, False, True):
                token = self.op("Expand", self.parameter("class_token", 1, 1, width, std=0.5),
                                self.op("Concat", self.op("Shape", x, start=0, end=1), self.constant([1, 1]), axis=0))
                x, length = self.op("Concat", token, x, axis=1), length + 1
            if self.pick("positions", False, True):
                x = self.op("Add", x, self.parameter("positions", 1, length, width, std=0.3))
        return Tokens(x, length, width)

    def patches(self, pixels: str, side: int, width: int) -> str:
        bias = [self.parameter("patch.bias", width)] if self.pick("patch_bias", False, True) else []
        x = self.op("Conv", pixels, self.parameter("patch.weight", width, 3, 4, 4, std=0.15), *bias, strides=[4, 4])
        return self.transpose(self.reshape(x, 0, width, side * side), 0, 2, 1)

    def linear_patches(self, pixels: str, side: int, width: int) -> str:
        x = self.transpose(self.reshape(pixels, 0, 3, side, 4, side, 4), 0, 2, 4, 3, 5, 1)
        return self.linear(self.reshape(x, 0, side * side, 48), "patch", 48, width)

    def convolutions(self, pixels: str, side: int, width: int) -> str:
        weights = self.parameter("conv1.weight", 8, 3, 3, 3, std=0.2), self.parameter("conv1.bias", 8)
        x = self.op("Conv", pixels, *weights, strides=[2, 2], pads=[1] * 4)
        if self.pick("conv_norm", False, True):
            x = self.op("GroupNormalization", x, self.parameter("gn.weight", 8, mean=1.0), self.parameter("gn.bias", 8), num_groups=2)
        x = self.op("Mul", x, self.op("Sigmoid", x))
        if self.pick("conv_block", "none", "residual", "depthwise") == "residual":
            x = self.op("Add", x, self.op("Conv", x, self.parameter("conv_r.weight", 8, 8, 3, 3, std=0.1), pads=[1] * 4))
        elif self.pick("conv_block", "none", "residual", "depthwise") == "depthwise":
            x = self.op("Relu", self.op("Conv", x, self.parameter("conv_d.weight", 8, 1, 3, 3, std=0.3), pads=[1] * 4, group=8))
        x = self.op("Conv", x, self.parameter("conv2.weight", width, 8, 3, 3, std=0.12), strides=[2, 2], pads=[1] * 4)
        return self.transpose(self.reshape(x, 0, width, side * side), 0, 2, 1)

    def condition(self, name: str, width: int) -> Tokens:
        """A time of each sample, and what networks make of it."""
        with self.scope(name, style=True):
            time = self.unsqueeze(self.input("timestep", "f4", (), lambda rng: numpy.float32(rng.random())), 1)
            angles = self.op("Mul", time, self.constant(10.0 ** (numpy.arange(8) / 4 - 0.5), "f4"))
            x = self.op("Concat", self.op("Cos", angles), self.op("Sin", angles), axis=1)
            x = self.linear(x, "time.0", 16, width, bias=True, rank=2)
            x = self.op("Mul", x, self.op("Sigmoid", x))
            x = self.linear(x, "time.1", width, width, bias=True, rank=2)
            if self.pick("label", False, False, True):
                x = self.op("Add", x, self.op("Gather", self.parameter("label.weight", 10, width, std=0.5), self.ids("class_label", 10)))
        return Tokens(x, 1, width)

    def pooled(self, x: Tokens) -> str:
        """[batch, width]."""
        kind = self.pick("pooled", "mean", "first", "last", "max", "attention", "mask")
        if kind in ("mean", "max"):
            return self.reduce(kind.capitalize(), x.name, 1, keep=False)
        if kind in ("first", "last"):
            at = 0 if kind == "first" else x.length - 1
            return self.op("Gather", x.name, self.constant(at), axis=1)
        if kind == "mask":
            mask = self.input(f"pool_mask_{x.length}", "?", (x.length,), lambda rng: (rng.random(x.length) < 0.7) | (numpy.arange(x.length) == 0))
            mask = self.unsqueeze(self.op("Cast", mask, to=1), -1)
            return self.op("Div", self.reduce("Sum", self.op("Mul", x.name, mask), 1, keep=False), self.reduce("Sum", mask, 1, keep=False))
        weights = self.op("Softmax", self.linear(x.name, "pool", x.width, 1, bias=False), axis=1)
        return self.reduce("Sum", self.op("Mul", x.name, weights), 1, keep=False)

    # How towers meet.

    def projected(self, x: Tokens, width: int) -> Tokens:
        with self.scope("projector", style=True):
            kind = self.pick("kind", "linear", "mlp", "norm_mlp")
            y = self.norm(x.name, "norm", x.width, "layer") if kind == "norm_mlp" else x.name
            y = self.linear(y, "1", x.width, width)
            if kind != "linear":
                y = self.linear(self.op("Gelu", y), "2", width, width)
        return Tokens(y, x.length, width)

    def merged(self, vision: Tokens, x: Tokens, how: str) -> Tokens:
        if how == "prefix":
            return Tokens(self.op("Concat", vision.name, x.name, axis=1), vision.length + x.length, x.width)
        if how == "suffix":
            return Tokens(self.op("Concat", x.name, vision.name, axis=1), vision.length + x.length, x.width)
        pooled = self.unsqueeze(self.pooled(vision), 1)
        return Tokens(self.op("Add" if how == "add" else "Mul", x.name, pooled), x.length, x.width)

    # Losses.

    def logits(self, x: Tokens, classes: int, table: str | None) -> str:
        with self.scope("head", style=True):
            y = self.norm(x.name, "norm", x.width) if self.pick("final_norm", True, True, False) else x.name
            if table and self.pick("tied", False, True):
                y = self.op("MatMul", y, self.transpose(table, 1, 0))
            else:
                y = self.linear(y, "out", x.width, classes)
            after = self.pick("after", *["none"] * 6, "cap", "scale", "temperature")
            if after == "cap":
                y = self.op("Mul", self.op("Tanh", self.op("Div", y, self.number(4))), self.number(4))
            elif after == "scale":
                y = self.op("Mul", y, self.number(0.7))
            elif after == "temperature":
                y = self.op("Mul", y, self.op("Exp", self.parameter("log_temperature", 1, mean=-0.3, std=0.05)))
        return y

    def labels(self, length: int, classes: int, ignored: bool) -> str:
        def draw(rng):
            values = rng.integers(0, classes, (length,))
            return numpy.where((rng.random(length) < 0.25) & (numpy.arange(length) > 1), -100, values) if ignored else values
        return self.input("labels", "i8", (length,), draw)

    def own_token_loss(self, logits: str, length: int, classes: int) -> str:
        kind = self.pick("loss", "flat", "classes_first", "none", "gather", "logsumexp", "weighted", "shifted", "policy", "kl")
        labels = self.labels(length, classes, ignored=False)
        if kind in ("flat", "shifted"):
            if kind == "shifted":
                logits, labels, length = self.slice(logits, 1, 0, length - 1), self.slice(labels, 1, 1, length), length - 1
            return self.op("SoftmaxCrossEntropyLoss", self.reshape(logits, -1, classes), self.reshape(labels, -1), reduction="mean")
        if kind in ("classes_first", "none"):
            reduction = "mean" if kind == "classes_first" else "none"
            loss = self.op("SoftmaxCrossEntropyLoss", self.transpose(logits, 0, 2, 1), labels, reduction=reduction)
            return loss if kind == "classes_first" else self.op("ReduceMean", self.op("Mul", loss, self.floats("token_weights", length)), keepdims=0)
        if kind == "kl":
            target = self.op("Softmax", self.floats("teacher", length, classes), axis=-1)
            surprise = self.op("Neg", self.op("LogSoftmax", logits, axis=-1))
            return self.op("ReduceMean", self.reduce("Sum", self.op("Mul", target, surprise), -1), keepdims=0)
        if self.pick("loss_temperature", False, False, True):
            logits = self.op("Div", logits, self.number(1.3))
        if kind == "logsumexp":
            picked = self.op("GatherElements", logits, self.unsqueeze(labels, -1), axis=-1)
            picked = self.op("Sub", picked, self.reduce("LogSumExp", logits, -1))
        else:
            picked = self.op("GatherElements", self.op("LogSoftmax", logits, axis=-1), self.unsqueeze(labels, -1), axis=-1)
        picked = self.op("Squeeze", picked, self.constant([-1]))
        if kind == "policy":
            ratio = self.op("Exp", self.op("Sub", picked, self.floats("old_log_probabilities", length)))
            picked = self.op("Min", ratio, self.op("Clip", ratio, self.number(0.05), self.number(2.0)))
        if kind in ("weighted", "policy"):
            picked = self.op("Mul", picked, self.floats("token_weights", length))
        return self.op("Neg", self.op("ReduceMean", picked, keepdims=0))

    def extra_losses(self, x: Tokens, logits: str | None) -> list[str]:
        kind = self.pick("extra_loss", *["none"] * 6, "hidden", "z", "entropy", "pairs", "value", "bilinear")
        if kind == "hidden":
            return [self.mean_square(x.name)]
        if kind == "z" and logits:
            return [self.mean_square(self.reduce("LogSumExp", logits, -1))]
        if kind == "entropy" and logits:
            terms = self.op("Mul", self.op("Softmax", logits, axis=-1), self.op("LogSoftmax", logits, axis=-1))
            return [self.op("ReduceMean", self.reduce("Sum", terms, -1), keepdims=0)]
        if kind == "pairs":
            left, right = (self.linear(x.name, f"pairs.{side}", x.width, 16) for side in ("left", "right"))
            scores = self.op("MatMul", self.op("MatMul", left, self.parameter("pairs.weight", 16, 16)), self.transpose(right, 0, 2, 1))
            return [self.op("ReduceMean", self.op("Softplus", scores), keepdims=0)]
        if kind == "value":
            value = self.linear(x.name, "value", x.width, 1)
            return [self.mean_square(self.op("Sub", self.op("Squeeze", value, self.constant([-1])), self.floats("returns", x.length)))]
        if kind == "bilinear":
            out = self.op("Einsum", x.name, self.parameter("bilinear.weight", x.width, 4, x.width, std=0.05), equation="btd,dke->btke")
            out = self.reduce("Sum", self.op("Mul", out, self.unsqueeze(x.name, 2)), -1, keep=False)
            return [self.mean_square(out)]
        return []

    def total(self, losses: list[str]) -> str:
        loss = losses[0]
        for other in losses[1:]:
            loss = self.op("Add", loss, self.op("Mul", other, self.number(0.1)))
        self.nodes.append(helper.make_node("Identity", [loss], ["loss"], name="loss"))
        self.outputs.append(("loss", []))
        return "loss: {kind: sum, output: loss, over: microbatch}\n"

    def token_model(self, x: Tokens, classes: int, table: str | None, kind: str) -> RandomModel:
        logits = self.logits(x, classes, table)
        extra = self.extra_losses(x, logits)
        if not extra and self.pick("recipe_loss", True, True, False):
            self.nodes.append(helper.make_node("Identity", [logits], ["logits"], name="logits"))
            self.outputs.append(("logits", ["batch", x.length, classes]))
            shift = self.pick("shift", False, True)
            recipe = (f"inputs: {{labels: {{dtype: int64, shape: [micro_batch, {x.length}]}}}}\n"
                      f"loss: {{kind: token_cross_entropy, logits: logits, labels: labels, shift: {str(shift).lower()}}}\n")
            return RandomModel(self, recipe, x.length, classes, shift, kind, True)
        return RandomModel(self, self.total([self.own_token_loss(logits, x.length, classes), *extra]), x.length, kind=kind, of_tokens=True)

    def vector_model(self, x: Tokens, kind: str) -> RandomModel:
        """Of a loss of each sample, or of numbers for each token."""
        with self.scope("head", style=True):
            form = self.pick("form", "tokens", "classes", "pooled", "pooled_mlp")
            if form == "tokens":
                y = self.norm(x.name, "norm", x.width)
                out = self.linear(y, "out", x.width, 12)
                error = self.op("Sub", out, self.floats("target", x.length, 12))
                loss = self.mean_square(error) if self.pick("error", 0, 1) == 0 else self.op(
                    "ReduceMean", self.op("Sqrt", self.op("Add", self.op("Mul", error, error), self.number(0.01))), keepdims=0)
            else:
                y = self.pooled(x)
                if form == "pooled_mlp":
                    y = self.op("Tanh", self.linear(y, "dense", x.width, 2 * x.width, rank=2))
                out = self.linear(y, "out", 2 * x.width if form == "pooled_mlp" else x.width, 10, rank=2)
                if form == "classes":
                    loss = self.op("SoftmaxCrossEntropyLoss", out, self.ids("class", 10), reduction="mean")
                else:
                    loss = self.mean_square(self.op("Sub", out, self.floats("target_vector", 10)))
        return RandomModel(self, self.total([loss, *self.extra_losses(x, None)]), x.length, kind=kind)


def random_model(choices: Choices) -> RandomModel:
    models = Models(choices)
    kind = models.pick("kind", "text", "text", "image", "prefix", "prefix", "suffix", "add", "mul", "cross", "diffusion", "diffusion",
                       "text_diffusion", "expert", "expert")
    width = models.width("model")
    if kind == "image":
        x, _ = models.tower("vision", models.image("vision", width))
        return models.vector_model(x, kind)
    if kind == "diffusion":
        x, _ = models.tower("dit", models.image("dit", width), condition=models.condition("condition", width))
        return models.vector_model(x, kind)
    x, classes, table = models.text("language", width)
    causal = models.pick("causal", True, True, False)
    if kind == "text":
        x, _ = models.tower("language", x, causal)
        return models.token_model(x, classes, table, kind)
    other_width = models.width("vision")
    if kind == "expert":
        x, keys = models.tower("language", x, causal)
        expert = models.image("expert", other_width)
        timed = models.condition("condition", other_width) if models.pick("timed", True, False) else None
        y, _ = models.tower("expert", expert, condition=timed, given=keys)
        if models.pick("loss_of_both", False, False, True):
            logits = models.logits(x, classes, table)
            with models.scope("both"):
                first = models.own_token_loss(logits, x.length, classes)
            target = models.mean_square(models.op("Sub", models.linear(y.name, "actions", other_width, 7), models.floats("actions", y.length, 7)))
            return RandomModel(models, models.total([first, target]), x.length, kind=kind)
        return models.vector_model(y, kind)
    if kind == "text_diffusion":
        x, _ = models.tower("language", x, False)
        y, _ = models.tower("dit", models.image("dit", other_width), context=x, condition=models.condition("condition", other_width))
        return models.vector_model(y, kind)
    vision, _ = models.tower("vision", models.image("vision", other_width))
    vision = models.projected(vision, width)
    if kind == "cross":
        x, _ = models.tower("language", x, causal, context=vision)
        return models.token_model(x, classes, table, kind)
    length = x.length
    x, _ = models.tower("language", models.merged(vision, x, kind), causal)
    if kind in ("prefix", "suffix") and models.pick("all_positions", False, False, True) is False:
        begin = vision.length if kind == "prefix" else 0
        x = Tokens(models.slice(x.name, 1, begin, begin + length), length, width)
    return models.token_model(x, classes, table, kind)
