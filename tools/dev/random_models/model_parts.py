"""Parts of random ONNX models: what transformers, vision encoders and diffusion heads are made of, put together at random.

    model = random_model(Choices("7"))      # of seed 7; Choices.drawn says what was chosen

Every choice has a name, a path as parameters have, and depends on seed and name alone: another choice leaves it as it is. The first option is
the simplest, so a model becomes smaller when choices are set to 0 (random_models.py does that with one that fails).
"""

import contextlib
import dataclasses
import random
import zlib

import numpy
from onnx import TensorProto, checker, helper, numpy_helper

OPSET = 23
LOWEST = -1.0e9


class Choices:
    """What a seed chooses, but for `fixed`: names with the number of an option."""

    def __init__(self, seed: str, fixed: dict[str, int] | None = None):
        self.seed = seed
        self.fixed = fixed or {}
        self.drawn: dict[str, int] = {}

    def pick(self, name: str, *options):
        number = self.fixed.get(name)
        if number is None:
            number = random.Random(f"{self.seed}:{name}").randrange(len(options))
        number = min(number, len(options) - 1)
        self.drawn[name] = number
        return options[number]


@dataclasses.dataclass(frozen=True)
class Tokens:
    """A value [batch, length, width]."""

    name: str
    length: int
    width: int


@dataclasses.dataclass
class Input:
    """Of a model, without the batch dimension; `draw` makes a sample's."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    draw: object


class Graph:
    """Nodes, parameters, constants and inputs of a model that grows; names are paths of the scopes that are open."""

    TYPES = {"f4": TensorProto.FLOAT, "i8": TensorProto.INT64, "?": TensorProto.BOOL}

    def __init__(self, choices: Choices):
        self.choices = choices
        self.nodes, self.inputs, self.outputs = [], {}, []
        self.parameters: dict[str, numpy.ndarray] = {}
        self.constants: dict[str, numpy.ndarray] = {}
        self._scopes: list[str] = []
        self._style: list[str] = []

    # Names and choices.

    @contextlib.contextmanager
    def scope(self, name: str, style: bool = False):
        """`style`: choices of style within are made once for it, not for each scope in it."""
        self._scopes.append(name)
        if style:
            self._style.append(".".join(self._scopes))
        yield
        if style:
            self._style.pop()
        self._scopes.pop()

    def path(self, name: str) -> str:
        return ".".join([*self._scopes, name])

    def pick(self, name: str, *options):
        return self.choices.pick(self.path(name), *options)

    def style(self, name: str, *options):
        """A choice that layers of a tower share."""
        return self.choices.pick(f"{self._style[-1]}.{name}" if self._style else self.path(name), *options)

    # Values.

    def parameter(self, name: str, *shape: int, mean: float = 0.0, std: float | None = None) -> str:
        """A name that comes twice is one parameter."""
        name = self.path(name)
        if name not in self.parameters:
            values = numpy.random.default_rng(zlib.crc32(f"{self.choices.seed}:{name}".encode()))
            std = shape[-2] ** -0.5 if std is None and len(shape) > 1 else 0.1 if std is None else std
            self.parameters[name] = (mean + std * values.standard_normal(shape)).astype("f4")
        assert self.parameters[name].shape == shape, name
        return name

    def constant(self, value, dtype: str = "i8") -> str:
        value = numpy.array(value, dtype)
        name = f"constant_{zlib.crc32(value.tobytes() + str((value.shape, dtype)).encode()):08x}"
        self.constants[name] = value
        return name

    def number(self, value: float) -> str:
        return self.constant(value, "f4")

    def input(self, name: str, dtype: str, shape: tuple[int, ...], draw) -> str:
        self.inputs.setdefault(name, Input(name, dtype, shape, draw))
        return name

    def floats(self, name: str, *shape: int) -> str:
        return self.input(name, "f4", shape, lambda rng: rng.standard_normal(shape).astype("f4"))

    def ids(self, name: str, most: int, *shape: int) -> str:
        return self.input(name, "i8", shape, lambda rng: rng.integers(0, most, shape))

    def op(self, kind: str, *inputs: str, **attributes) -> str:
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, count: int, *inputs: str, **attributes) -> list[str]:
        name = self.path(f"{kind}_{len(self.nodes)}")
        results = [name if i == 0 else f"{name}.{i}" for i in range(count)]
        self.nodes.append(helper.make_node(kind, list(inputs), results, name=name, **attributes))
        return results

    # Small helpers.

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(shape))

    def transpose(self, x: str, *perm: int) -> str:
        return self.op("Transpose", x, perm=perm)

    def slice(self, x: str, axis: int, begin: int, end: int, step: int = 1) -> str:
        return self.op("Slice", x, *(self.constant([n]) for n in (begin, end, axis, step)))

    def reduce(self, kind: str, x: str, *axes: int, keep: bool = True) -> str:
        return self.op(f"Reduce{kind}", x, self.constant(axes), keepdims=int(keep))

    def unsqueeze(self, x: str, *axes: int) -> str:
        return self.op("Unsqueeze", x, self.constant(axes))

    def pieces(self, x: str, axis: int, *sizes: int, how: str = "split") -> list[str]:
        if how == "split":
            return self.ops("Split", len(sizes), x, self.constant(sizes), axis=axis)
        ends = numpy.cumsum(sizes)
        return [self.slice(x, axis, int(end - size), int(end)) for size, end in zip(sizes, ends)]

    def mean_square(self, x: str) -> str:
        return self.op("ReduceMean", self.op("Mul", x, x), keepdims=0)

    def used_parameters(self) -> list[str]:
        """That an output depends on."""
        wanted = {name for name, _ in self.outputs}
        for node in reversed(self.nodes):
            if wanted.intersection(node.output):
                wanted.update(node.input)
        return [name for name in self.parameters if name in wanted]

    def model(self):
        # As nodes: floats that are initializers would be parameters.
        floats = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value)) for name, value in self.constants.items()
                  if value.dtype.kind == "f"]
        whole = {name: value for name, value in self.constants.items() if value.dtype.kind != "f"}
        graph = helper.make_graph(
            [*floats, *self.nodes], "random",
            [helper.make_tensor_value_info(i.name, self.TYPES[i.dtype], ["batch", *i.shape]) for i in self.inputs.values()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.outputs],
            [numpy_helper.from_array(value, name) for name, value in (*self.parameters.items(), *whole.items())])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10, producer_name="random_models")
        checker.check_model(model, full_check=True)
        return model


class Layers(Graph):
    """Linear layers, norms, activations, MLPs and experts."""

    def linear(self, x: str, name: str, inputs: int, outputs: int, bias: bool | None = None, rank: int = 3) -> str:
        """`rank`: dimensions of x."""
        form = self.style("linear", "matmul", "matmul", "transposed", "rows", "einsum")
        bias = self.style("bias", False, True) if bias is None else bias
        with self.scope(name):
            if form == "transposed":
                weight = self.transpose(self.parameter("weight", outputs, inputs, std=inputs**-0.5), 1, 0)
                out = self.op("MatMul", x, weight)
            elif form == "rows" and rank == 3:
                weight = self.parameter("weight", outputs, inputs, std=inputs**-0.5)
                rows = self.reshape(x, -1, inputs)
                both = [self.parameter("bias", outputs)] if bias else []
                rows = self.op("Gemm", rows, weight, *both, transB=1)
                out = self.op("Reshape", rows, self.op("Concat", self.op("Shape", x, start=0, end=2), self.constant([outputs]), axis=0))
                bias = False
            elif form == "einsum" and rank == 3:
                out = self.op("Einsum", x, self.parameter("weight", inputs, outputs), equation="btd,df->btf")
            else:
                out = self.op("MatMul", x, self.parameter("weight", inputs, outputs))
            if bias:
                out = self.op("Add", out, self.parameter("bias", outputs))
            lora = self.style("lora", 0, 0, 0, 0, 0, 0, 0, 4)
            if lora:
                low = self.op("MatMul", x, self.parameter("lora_A.weight", inputs, lora))
                out = self.op("Add", out, self.op("Mul", self.op("MatMul", low, self.parameter("lora_B.weight", lora, outputs)), self.number(2)))
        return out

    def norm(self, x: str, name: str, width: int, kind: str | None = None) -> str:
        kind = kind or self.style("norm", "rms", "layer", "layer", "layer_ops", "rms_op", "rms_one", "groups", "l2", "plain")
        with self.scope(name):
            if kind == "layer":
                return self.op("LayerNormalization", x, self.parameter("weight", width, mean=1.0), self.parameter("bias", width))
            if kind == "rms_op":
                return self.op("RMSNormalization", x, self.parameter("weight", width, mean=1.0))
            if kind == "layer_ops":
                x = self.op("Sub", x, self.reduce("Mean", x, -1))
            if kind == "groups":
                return self.group_norm(x, width)
            if kind == "l2":
                return self.op("Mul", self.op("LpNormalization", x, axis=-1, p=2), self.parameter("scale", width, mean=2.0))
            root = self.op("Sqrt", self.op("Add", self.reduce("Mean", self.op("Mul", x, x), -1), self.number(1e-5)))
            x = self.op("Div", x, root)
            if kind == "plain":
                return x
            weight = self.parameter("weight", width, mean=0.0 if kind == "rms_one" else 1.0)
            weight = self.op("Add", weight, self.number(1)) if kind == "rms_one" else weight
            x = self.op("Mul", x, weight)
            return self.op("Add", x, self.parameter("bias", width)) if kind == "layer_ops" else x

    def group_norm(self, x: str, width: int) -> str:
        """Of groups of columns of each token."""
        groups = next(n for n in (4, 3, 2, 1) if width % n == 0)
        x = self.reshape(x, 0, 0, groups, width // groups)
        x = self.op("Sub", x, self.reduce("Mean", x, -1))
        x = self.op("Div", x, self.op("Sqrt", self.op("Add", self.reduce("Mean", self.op("Mul", x, x), -1), self.number(1e-5))))
        return self.op("Mul", self.reshape(x, 0, 0, width), self.parameter("weight", width, mean=1.0))

    def activation(self, x: str) -> str:
        kind = self.style("activation", "silu", "gelu", "relu", "gelu_tanh", "gelu_ops", "relu_squared", "quick", "tanh", "softplus")
        if kind == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind in ("gelu", "gelu_tanh"):
            return self.op("Gelu", x, approximate="tanh" if kind == "gelu_tanh" else "none")
        if kind == "gelu_ops":
            erf = self.op("Erf", self.op("Div", x, self.number(2**0.5)))
            return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.number(1))), self.number(0.5))
        if kind == "relu_squared":
            x = self.op("Relu", x)
            return self.op("Mul", x, x)
        if kind == "quick":
            return self.op("Mul", x, self.op("Sigmoid", self.op("Mul", x, self.number(1.702))))
        return self.op({"relu": "Relu", "tanh": "Tanh", "softplus": "Softplus"}[kind], x)

    def mlp_hidden(self, x: str, width: int, hidden: int) -> str:
        kind = self.style("mlp", "plain", "plain", "gated", "fused", "fused_slice", "fused_reverse", "in_turns", "stacked", "bilinear", "halves_mean")
        if kind == "plain":
            return self.activation(self.linear(x, "up", width, hidden))
        if kind in ("gated", "bilinear"):
            gate, up = (self.linear(x, name, width, hidden) for name in ("gate", "up"))
            return self.op("Mul", gate if kind == "bilinear" else self.activation(gate), up)
        both = self.linear(x, "gate_up", width, 2 * hidden)
        if kind == "in_turns":
            gate, up = (self.slice(both, 2, i, 2 * hidden, 2) for i in (0, 1))
        elif kind == "stacked":
            both = self.reshape(both, 0, 0, 2, hidden)
            gate, up = (self.op("Gather", both, self.constant(i), axis=2) for i in (0, 1))
        else:
            gate, up = self.pieces(both, 2, hidden, hidden, how="slice" if kind == "fused_slice" else "split")
        if kind == "fused_reverse":
            gate, up = up, gate
        if kind == "halves_mean":
            return self.activation(self.op("Mean", gate, up))
        return self.op("Mul", self.activation(gate), up)

    def hidden_of(self, width: int) -> int:
        return self.style("hidden", 2 * width, width, 4 * width, 3 * width, 64, 36)

    def mlp(self, x: Tokens, name: str = "mlp") -> str:
        with self.scope(name):
            hidden = self.hidden_of(x.width)
            inner = self.mlp_hidden(x.name, x.width, hidden)
            if self.style("mlp_norm", False, False, False, False, True):
                inner = self.norm(inner, "norm", hidden)
            return self.linear(inner, "down", hidden, x.width)

    def feed_forward(self, x: Tokens) -> str:
        kind = self.style("experts", *["none"] * 6, "stacked", "rows", "loop", "top_stacked", "top_masked", "modality", "gathered", "shared")
        if kind == "none":
            return self.mlp(x)
        if kind == "modality":
            mask = self.input(f"modality_{x.length}", "?", (x.length,), lambda rng: rng.random(x.length) < 0.5)
            return self.op("Where", self.unsqueeze(mask, -1), self.mlp(x, "mlp"), self.mlp(x, "other_mlp"))
        if kind == "gathered":
            return self.gathered(x)
        with self.scope("experts"):
            count = self.style("expert_count", 4, 2, 3, 8)
            gates = self.gates(x, count, kind)
            if kind in ("loop", "shared"):
                outs = [self.mlp(x, str(i)) for i in range(count)]
                outs = [self.op("Mul", out, self.slice(gates, 2, i, i + 1)) for i, out in enumerate(outs)]
                total = self.op("Sum", *outs)
                return self.op("Add", total, self.mlp(x, "shared")) if kind == "shared" else total
            return self.stacked_experts(x, gates, count, kind == "rows")

    def gates(self, x: Tokens, count: int, kind: str) -> str:
        scores = self.linear(x.name, "router", x.width, count, bias=False)
        if kind == "top_masked":
            least = self.slice(self.ops("TopK", 2, scores, self.constant([2]), axis=-1)[0], 2, 1, 2)
            scores = self.op("Where", self.op("Less", scores, least), self.number(LOWEST), scores)
        gates = self.op("Softmax", scores, axis=-1)
        if kind == "top_stacked":
            best, at = self.ops("TopK", 2, gates, self.constant([2]), axis=-1)
            if self.style("renormalized", False, True):
                best = self.op("Div", best, self.reduce("Sum", best, -1))
            gates = self.op("ScatterElements", self.op("Mul", gates, self.number(0)), at, best, axis=-1)
        return gates

    def stacked_experts(self, x: Tokens, gates: str, count: int, rows: bool) -> str:
        hidden = self.hidden_of(x.width)
        up = self.parameter("up", count, x.width, hidden)
        down = self.parameter("down", count, hidden, x.width)
        if rows:
            flat = self.unsqueeze(self.reshape(x.name, -1, x.width), 0)
            out = self.op("MatMul", self.activation(self.op("MatMul", flat, up)), down)
            weights = self.unsqueeze(self.transpose(self.reshape(gates, -1, count), 1, 0), 2)
            return self.reshape(self.reduce("Sum", self.op("Mul", out, weights), 0, keep=False), -1, x.length, x.width)
        inner = self.activation(self.op("Einsum", x.name, up, equation="btd,edn->bten"))
        out = self.op("Einsum", inner, down, equation="bten,end->bted")
        return self.reduce("Sum", self.op("Mul", out, self.unsqueeze(gates, 3)), 2, keep=False)

    def gathered(self, x: Tokens) -> str:
        """Two MLPs, for tokens at indices of each sample."""
        few = max(1, x.length // 2)
        order = self.input(f"order_{x.length}", "i8", (x.length,), lambda rng: rng.permutation(x.length))
        out = self.op("Mul", x.name, self.number(0))
        for name, begin, end in (("mlp", 0, few), ("other_mlp", few, x.length)):
            index = self.unsqueeze(self.slice(order, 1, begin, end), -1)
            index = self.op("Expand", index, self.constant([1, 1, x.width]))
            rows = self.op("GatherElements", x.name, index, axis=1)
            out = self.op("ScatterElements", out, index, self.mlp(Tokens(rows, end - begin, x.width), name), axis=1)
        return out
