"""A decoder (bench/simulator/decoder.py) as ONNX text without weights, of any number of samples.

    path.write_text(decoder_onnx.model_text(figures))    # path ends with .onnxtxt

The dimension `batch` is symbolic, so that a search is free in the size of microbatches; a module in the `oriel` dialect is for one size.
Each op of the decoder becomes the nodes that an exporter would write, and the compiler raises them to that op again: the end-to-end test
of against_hand.py holds that both forms are simulated alike. Parameters lie in a file that need not be there.
"""

import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "simulator"))

import decoder  # noqa: E402

_TYPES = {"f32": "float", "i64": "int64", "i1": "bool"}
# Ops that are one node, with ONNX's names of their attributes.
_NODES = {"add": ("Add", {}), "mul": ("Mul", {}), "less": ("Less", {}), "less_equal": ("LessOrEqual", {}), "select": ("Where", {}),
          "cos": ("Cos", {}), "sin": ("Sin", {}), "relu": ("Relu", {}), "matmul": ("MatMul", {}), "gather": ("Gather", {"dim": "axis"}),
          "concat": ("Concat", {"dim": "axis"}), "softmax": ("Softmax", {"dim": "axis"}), "transpose": ("Transpose", {"permutation": "perm"}),
          "layer_norm": ("LayerNormalization", {"epsilon": "epsilon"}), "rms_norm": ("RMSNormalization", {"epsilon": "epsilon"})}
_ACTIVATIONS = {"gelu_tanh": ("Gelu", {"approximate": "tanh"})}
_HEADS_FIRST = (0, 2, 1, 3)


def model_text(figures: decoder.Decoder) -> str:
    return _Writer(figures).text()


def _attribute(value) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return decoder.literal(list(value) if isinstance(value, tuple) else value)


def _type(value: decoder.Value, batch: str | None = None) -> str:
    return f"{_TYPES[value.element]}[{', '.join(map(str, (batch, *value.shape[1:]) if batch else value.shape))}]"


class _Writer(decoder.Writer):
    def __init__(self, figures: decoder.Decoder):
        # A first dimension of 1 is then the batch, or nothing that a batch would change.
        super().__init__(dataclasses.replace(figures, batch=1))

    def _node(self, op: str, operands: list, shape: tuple, element: str = "f32", **attributes) -> decoder.Value:
        result = decoder.Value(f"v{len(self._lines)}", shape, element)
        words = ", ".join(f"{key} = {_attribute(value)}" for key, value in attributes.items())
        names = ", ".join(f'"{operand.name.lstrip("%")}"' for operand in operands)
        self._lines.append(f"{result.name} = {op}{f' <{words}>' if words else ''} ({names})")
        return result

    def _constant(self, values, shape: tuple, element: str) -> decoder.Value:
        result = decoder.Value(f"v{len(self._lines)}", shape, element)
        # No initializer: it would be trained.
        numbers = decoder.literal(values).replace("[", "").replace("]", "")
        value = f"value = {_type(result)} {{{numbers}}}" if shape else f"value_float = {numbers}"
        self._lines.append(f"{result.name} = Constant <{value}> ()")
        return result

    def _parameter(self, name: str, *shape: int) -> decoder.Value:
        if name not in self._values:
            self._values[name] = decoder.Value(name, shape)
            self.parameters.append((name, shape))
        return self._values[name]

    def _op(self, name: str, operands: list, *shapes: tuple, element: str = "f32", **attributes) -> decoder.Value:
        if name in _NODES:
            op, names = _NODES[name]
            return self._node(op, operands, shapes[0], element, **{names[key]: value for key, value in attributes.items()})
        return getattr(self, f"_{name}_nodes")(operands, shapes[0], **attributes)

    def _linear_nodes(self, operands: list, shape: tuple, transpose_weight: bool = False) -> decoder.Value:
        x, weight, *bias = operands
        if transpose_weight:
            weight = self._node("Transpose", [weight], weight.shape[::-1], perm=(1, 0))
        product = self._node("MatMul", [x, weight], shape)
        return self._node("Add", [product, *bias], shape) if bias else product

    def _reshape_nodes(self, operands: list, shape: tuple) -> decoder.Value:
        sizes = self._constant([0, *shape[1:]], (len(shape),), "i64")  # 0: as it was
        return self._node("Reshape", [*operands, sizes], shape)

    def _rope_nodes(self, operands: list, shape: tuple) -> decoder.Value:
        x, cos, sin = operands
        half = (*shape[:-1], shape[-1] // 2)
        place = len(self._lines)
        first, second = decoder.Value(f"first{place}", half), decoder.Value(f"second{place}", half)
        self._lines.append(f'{first.name}, {second.name} = Split <axis = -1, num_outputs = 2> ("{x.name}")')
        turned = self._node("Concat", [self._node("Neg", [second], half), first], shape, axis=-1)
        return self._node("Add", [self._node("Mul", [x, cos], shape), self._node("Mul", [turned, sin], shape)], shape)

    def _attention_nodes(self, operands: list, shape: tuple, causal: bool, scale: float, sequence_first: bool) -> decoder.Value:
        assert sequence_first
        turned = [self._node("Transpose", [x], tuple(x.shape[i] for i in _HEADS_FIRST), perm=_HEADS_FIRST) for x in operands]
        y = self._node("Attention", turned, turned[0].shape, is_causal=int(causal), scale=scale)
        return self._node("Transpose", [y], shape, perm=_HEADS_FIRST)

    def _activation_nodes(self, operands: list, shape: tuple, kind: str) -> decoder.Value:
        op, attributes = _ACTIVATIONS[kind]
        return self._node(op, operands, shape, **attributes)

    def _gated_activation_nodes(self, operands: list, shape: tuple, kind: str) -> decoder.Value:
        assert kind == "silu"
        gate, up = operands
        gate = self._node("Mul", [gate, self._node("Sigmoid", [gate], shape)], shape)
        return self._node("Mul", [gate, up], shape)

    def text(self) -> str:
        f = self.figures
        offset, weights = 0, []
        for name, shape in self.parameters:
            value = decoder.Value(name, shape)
            size = 4
            for extent in shape:
                size *= extent
            place = f'["location": "weights", "offset": "{offset}", "length": "{size}"]'
            weights.append(f'  {_type(value)} "{name}" = {place}')
            offset += size
        ids = decoder.Value("ids", (1, f.sequence), "i64")
        lines = "\n".join(f"  {line}" for line in self._lines)
        return (f'<ir_version: 11, opset_import: ["" : 23]>\n'
                f'decoder ({_type(ids, "batch")} ids) => ({_type(self._logits, "batch")} logits)\n<\n' + ",\n".join(weights) +
                f'\n>\n{{\n{lines}\n  logits = Identity ("{self._logits.name}")\n}}\n')
