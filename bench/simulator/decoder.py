"""A decoder-only language model as a module in the `oriel` dialect, as `raise` leaves one that came from ONNX.

    figures = Decoder(layers=24, hidden=2048, heads=16, kv_heads=16, ffn=8192, vocab=50304, sequence=2048, batch=8)
    path.write_text(module_text(figures))

Token embedding, positions, pre-norm blocks of causal attention and an MLP, a last norm and the output layer. `batch` is
the samples of one microbatch on all data-parallel ranks. Shapes and types are those of the compiler's input: everything
is f32 (the recipe says what is computed in bf16), and nothing is split.
"""

import dataclasses

EPSILON = 1.0e-5


@dataclasses.dataclass(frozen=True)
class Decoder:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    sequence: int
    batch: int
    norm: str = "layer"           # or "rms"
    positions: str = "learned"    # or "rope", "none"
    mlp: str = "gelu"             # or "swiglu", "squared_relu"
    biases: bool = True           # of linear layers and of layer norms
    tied: bool = True             # the output layer is the token embedding
    fused_attention: bool = True  # one op; else scores, mask, softmax and values are ops, and scores are in memory
    dropout: bool = False         # behind attention's softmax, the token embedding and each half of a block

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum(_size(shape) for _, shape in Writer(self).parameters)


def module_text(figures: Decoder) -> str:
    return Writer(figures).text()


def _size(shape: tuple) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _type(shape: tuple, element: str = "f32") -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


def literal(values) -> str:
    """Of numbers in lists in lists. A float has a point, as MLIR and ONNX want it."""
    if isinstance(values, list):
        return f"[{', '.join(literal(value) for value in values)}]"
    return f"{values:.9e}" if isinstance(values, float) else str(values)


def _attribute(value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"array<i64: {', '.join(map(str, value))}>"
    return f"{value} : i64" if isinstance(value, int) else literal(value)


class Value:
    def __init__(self, name: str, shape: tuple, element: str = "f32"):
        self.name, self.shape, self.element, self.type = name, shape, element, _type(shape, element)


class Writer:
    """Ops in order, each on a line; `parameters` in the order of their first use. What writes the model in another form
    has an `_op` and a `_constant` of its own."""

    def __init__(self, figures: Decoder):
        self.figures = figures
        self.parameters: list[tuple[str, tuple]] = []
        self._lines: list[str] = []
        self._values: dict[str, Value] = {}
        self._logits = self._model()

    # Ops -------------------------------------------------------------------------------------------------------------

    def _op(self, name: str, operands: list, *shapes: tuple, element: str = "f32", **attributes) -> Value:
        """The first of its results, which have these shapes."""
        results = [Value(f"%v{len(self._lines)}_{i}", shape, element) for i, shape in enumerate(shapes)]
        types = ", ".join(result.type for result in results)
        words = ", ".join(f"{key} = {_attribute(value)}" for key, value in attributes.items())
        self._lines.append(
            f"{', '.join(r.name for r in results)} = oriel.{name} {', '.join(o.name for o in operands)}"
            f"{f' {{{words}}}' if words else ''} : ({', '.join(o.type for o in operands)}) -> "
            f"{types if len(results) == 1 else f'({types})'}")
        return results[0]

    def _constant(self, values, shape: tuple, element: str) -> Value:
        """`values` are lists in lists as `shape` says."""
        result = Value(f"%v{len(self._lines)}_0", shape, element)
        self._lines.append(f"{result.name} = oriel.constant {{value = dense<{literal(values)}> : {result.type}}} : () -> "
                           f"{result.type}")
        return result

    def _parameter(self, name: str, *shape: int) -> Value:
        if name not in self._values:
            self._values[name] = Value(f"%p{len(self.parameters)}", shape)
            self.parameters.append((name, shape))
        return self._values[name]

    def _linear(self, x: Value, name: str, width: int) -> Value:
        operands = [x, self._parameter(f"{name}.weight", x.shape[-1], width)]
        if self.figures.biases:
            operands.append(self._parameter(f"{name}.bias", width))
        return self._op("linear", operands, (*x.shape[:-1], width))

    def _norm(self, x: Value, name: str) -> Value:
        operands = [x, self._parameter(f"{name}.weight", x.shape[-1])]
        if self.figures.norm == "rms":
            return self._op("rms_norm", operands, x.shape, x.shape[:-1], epsilon=EPSILON)
        if self.figures.biases:
            operands.append(self._parameter(f"{name}.bias", x.shape[-1]))
        return self._op("layer_norm", operands, x.shape, x.shape[:-1], x.shape[:-1], epsilon=EPSILON)

    def _add(self, a: Value, b: Value) -> Value:
        return self._op("add", [a, b], a.shape)

    def _dropout(self, x: Value) -> Value:
        """In place of dropout: what a threshold lets pass takes the same bytes, and a mask of a byte per element."""
        if not self.figures.dropout:
            return x
        kept = self._op("less", [x, self._constant(1.0e+30, (), "f32")], x.shape, element="i1")
        return self._op("select", [kept, x, self._constant(0.0, (), "f32")], x.shape)

    # The model -------------------------------------------------------------------------------------------------------

    def _model(self) -> Value:
        f = self.figures
        table = self._parameter("embedding.weight", f.vocab, f.hidden)
        ids = Value("%ids", (f.batch, f.sequence), "i64")
        x = self._op("gather", [table, ids], (f.batch, f.sequence, f.hidden), dim=0)
        if f.positions == "learned":
            x = self._add(x, self._learned_positions())
        x = self._dropout(x)
        rotation = self._rotation() if f.positions == "rope" else None
        mask = None if f.fused_attention else self._causal_mask()
        for layer in range(f.layers):
            name = f"layers.{layer}"
            y = self._attention(self._norm(x, f"{name}.norm1"), f"{name}.attention", rotation, mask)
            x = self._add(x, self._dropout(y))
            y = self._mlp(self._norm(x, f"{name}.norm2"), f"{name}.mlp")
            x = self._add(x, self._dropout(y))
        x = self._norm(x, "norm")
        logits = (f.batch, f.sequence, f.vocab)
        if f.tied:
            return self._op("linear", [x, table], logits, transpose_weight=True)
        return self._op("linear", [x, self._parameter("head.weight", f.hidden, f.vocab)], logits)

    def _learned_positions(self) -> Value:
        f = self.figures
        table = self._parameter("positions.weight", f.sequence, f.hidden)
        positions = self._constant([list(range(f.sequence))], (1, f.sequence), "i64")
        return self._op("gather", [table, positions], (1, f.sequence, f.hidden), dim=0)

    def _rotation(self) -> tuple:
        """Cosines and sines of each position, for all blocks."""
        f = self.figures
        half = f.head // 2
        positions = self._constant([[[float(i)] for i in range(f.sequence)]], (1, f.sequence, 1), "f32")
        frequencies = self._constant([10000.0 ** (-i / half) for i in range(half)], (half,), "f32")
        angles = self._op("mul", [positions, frequencies], (1, f.sequence, half))
        both = self._op("concat", [angles, angles], (1, f.sequence, f.head), dim=2)
        return tuple(
            self._op("reshape", [self._op(function, [both], both.shape)], (1, f.sequence, 1, f.head))
            for function in ("cos", "sin"))

    def _causal_mask(self) -> Value:
        """0 where a position sees another, else the lowest number: [1, 1, queries, keys]."""
        f = self.figures
        steps = list(range(f.sequence))
        keys = self._constant([[[steps]]], (1, 1, 1, f.sequence), "i64")
        queries = self._constant([[[[i] for i in steps]]], (1, 1, f.sequence, 1), "i64")
        seen = self._op("less_equal", [keys, queries], (1, 1, f.sequence, f.sequence), element="i1")
        zero = self._constant(0.0, (), "f32")
        lowest = self._constant(-3.40282346e+38, (), "f32")
        return self._op("select", [seen, zero, lowest], seen.shape)

    def _attention(self, x: Value, name: str, rotation: tuple, mask: Value) -> Value:
        f = self.figures
        query, key, value = (
            self._op("reshape", [self._linear(x, f"{name}.{part}", heads * f.head)],
                     (f.batch, f.sequence, heads, f.head))
            for part, heads in (("query", f.heads), ("key", f.kv_heads), ("value", f.kv_heads)))
        if rotation:
            query, key = (self._op("rope", [part, *rotation], part.shape) for part in (query, key))
        if mask is None:
            y = self._op("attention", [query, key, value], query.shape, (f.batch, f.heads, f.sequence), causal=True,
                         scale=f.head**-0.5, sequence_first=True)
        else:
            y = self._unfused_attention(query, key, value, mask)
        return self._linear(self._op("reshape", [y], x.shape), f"{name}.output", f.hidden)

    def _unfused_attention(self, query: Value, key: Value, value: Value, mask: Value) -> Value:
        f = self.figures
        scale = self._constant(f.head**-0.5, (), "f32")
        query, key, value = (
            self._op("transpose", [part], (f.batch, heads, *rest), permutation=order)
            for part, heads, rest, order in (
                (self._op("mul", [query, scale], query.shape), f.heads, (f.sequence, f.head), (0, 2, 1, 3)),
                (key, f.kv_heads, (f.head, f.sequence), (0, 2, 3, 1)),
                (value, f.kv_heads, (f.sequence, f.head), (0, 2, 1, 3))))
        scores = self._op("matmul", [query, key], (f.batch, f.heads, f.sequence, f.sequence))
        weights = self._op("softmax", [self._add(scores, mask)], scores.shape, dim=3)
        y = self._op("matmul", [self._dropout(weights), value], query.shape)
        return self._op("transpose", [y], (f.batch, f.sequence, f.heads, f.head),
                        permutation=(0, 2, 1, 3))

    def _mlp(self, x: Value, name: str) -> Value:
        f = self.figures
        up = self._linear(x, f"{name}.up", f.ffn)
        if f.mlp == "swiglu":
            gate = self._linear(x, f"{name}.gate", f.ffn)
            y = self._op("gated_activation", [gate, up], up.shape, kind="silu")
        elif f.mlp == "squared_relu":
            y = self._op("relu", [up], up.shape)
            y = self._op("mul", [y, y], up.shape)
        else:
            y = self._op("activation", [up], up.shape, kind="gelu_tanh")
        return self._linear(y, f"{name}.down", f.hidden)

    # The text --------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        f = self.figures
        symbols = "\n".join(f'  oriel.parameter @p{i} {{onnx_name = "{name}", type = {_type(shape)}}}'
                            for i, (name, shape) in enumerate(self.parameters))
        arguments = ",\n      ".join(
            [f'%ids: {_type((f.batch, f.sequence), "i64")} {{oriel.kind = "input", oriel.ref = "ids"}}'] +
            [f'%p{i}: {_type(shape)} {{oriel.kind = "parameter", oriel.ref = "p{i}"}}'
             for i, (_, shape) in enumerate(self.parameters)])
        body = "\n".join(f"    {line}" for line in self._lines)
        return (f'module {{\n{symbols}\n  func.func @main({arguments})\n      -> ({self._logits.type} '
                f'{{oriel.kind = "output", oriel.ref = "logits"}}) {{\n{body}\n'
                f"    return {self._logits.name} : {self._logits.type}\n  }}\n}}\n")
