"""Sublayers beside attention and MLPs: mixers of tokens, weights that are made of others, memories, gates."""

import numpy

from model_parts import Layers, Tokens

KINDS = ("token_mixing", "depthwise", "squeeze", "window", "weight_norm", "tied", "shift", "linear_attention", "differential", "hyper",
         "perceiver", "cumsum", "gram", "merged_adapter", "convolution", "group_linear", "stacked_weight", "maxout", "memory",
         "unit_hidden", "heads_norm", "batch_norm", "low_rank", "channel_attention", "codes", "swapped", "padded", "residual_in_hidden")


class Extras(Layers):
    def extra(self, x: Tokens) -> str | None:
        """[batch, length, width] to add, or none."""
        kind = self.style("extra", *["none"] * 14, *KINDS)
        if kind == "none":
            return None
        with self.scope(kind):
            return getattr(self, f"extra_{kind}")(x, x.width)

    def plain_heads(self, x: str, length: int, heads: int, depth: int) -> str:
        return self.transpose(self.reshape(x, -1, length, heads, depth), 0, 2, 1, 3)

    def plain_attention(self, q: str, k: str, v: str, length: int, keys: int, heads: int, width: int) -> str:
        """Of [batch, positions, width]."""
        depth = width // heads
        q, k, v = (self.plain_heads(part, n, heads, depth) for part, n in ((q, length), (k, keys), (v, keys)))
        scores = self.op("MatMul", self.op("Mul", q, self.number(depth**-0.5)), self.transpose(k, 0, 1, 3, 2))
        out = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.reshape(self.transpose(out, 0, 2, 1, 3), -1, length, width)

    def extra_token_mixing(self, x: Tokens, width: int) -> str:
        y = self.transpose(x.name, 0, 2, 1)
        y = self.op("Gelu", self.op("MatMul", y, self.parameter("up", x.length, 2 * x.length)))
        y = self.op("MatMul", y, self.parameter("down", 2 * x.length, x.length))
        return self.transpose(y, 0, 2, 1)

    def extra_depthwise(self, x: Tokens, width: int) -> str:
        y = self.transpose(self.linear(x.name, "in", width, 2 * width), 0, 2, 1)
        y = self.op("Conv", y, self.parameter("conv", 2 * width, 1, 3, std=0.5), self.parameter("conv_bias", 2 * width), pads=[2, 0], group=2 * width)
        a, b = self.pieces(self.transpose(y, 0, 2, 1), 2, width, width)
        return self.linear(self.op("Mul", a, self.op("Sigmoid", b)), "out", width, width)

    def extra_squeeze(self, x: Tokens, width: int) -> str:
        y = self.op("Relu", self.linear(self.reduce("Mean", x.name, 1), "down", width, width // 4))
        return self.op("Mul", x.name, self.op("Sigmoid", self.linear(y, "up", width // 4, width)))

    def extra_window(self, x: Tokens, width: int) -> str:
        size = next(n for n in (2, 3, 7, 5, 1) if x.length % n == 0)
        q, k, v = self.pieces(self.linear(x.name, "qkv", width, 3 * width), 2, width, width, width)
        q, k, v = (self.reshape(part, -1, size, width) for part in (q, k, v))
        y = self.plain_attention(q, k, v, size, size, 4, width)
        return self.linear(self.reshape(y, -1, x.length, width), "out", width, width)

    def extra_weight_norm(self, x: Tokens, width: int) -> str:
        v = self.parameter("v", width, 2 * width)
        norm = self.op("Sqrt", self.reduce("Sum", self.op("Mul", v, v), 0))
        weight = self.op("Mul", self.op("Div", v, norm), self.parameter("g", 2 * width, mean=1.0))
        return self.linear(self.op("Tanh", self.op("MatMul", x.name, weight)), "down", 2 * width, width)

    def extra_tied(self, x: Tokens, width: int) -> str:
        weight = self.parameter("weight", width, 2 * width)
        y = self.op("Relu", self.op("Add", self.op("MatMul", x.name, weight), self.parameter("bias", 2 * width)))
        return self.op("MatMul", y, self.op("Mul", self.transpose(weight, 1, 0), self.number(0.5)))

    def extra_shift(self, x: Tokens, width: int) -> str:
        before = self.op("Concat", self.op("Mul", self.slice(x.name, 1, 0, 1), self.number(0)), self.slice(x.name, 1, 0, x.length - 1), axis=1)
        mix = self.parameter("mix", width, mean=0.5)
        y = self.op("Add", self.op("Mul", x.name, mix), self.op("Mul", before, self.op("Sub", self.number(1), mix)))
        key = self.op("Relu", self.linear(y, "key", width, 2 * width))
        value = self.linear(self.op("Mul", key, key), "value", 2 * width, width)
        return self.op("Mul", self.op("Sigmoid", self.linear(y, "receptance", width, width)), value)

    def extra_linear_attention(self, x: Tokens, width: int) -> str:
        q, k, v = (self.plain_heads(self.linear(x.name, name, width, width), x.length, 4, width // 4) for name in "qkv")
        q, k = (self.op("Add", self.op("Elu", part), self.number(1.01)) for part in (q, k))
        out = self.op("MatMul", q, self.op("MatMul", self.transpose(k, 0, 1, 3, 2), v))
        total = self.op("MatMul", q, self.transpose(self.reduce("Sum", k, 2), 0, 1, 3, 2))
        out = self.reshape(self.transpose(self.op("Div", out, total), 0, 2, 1, 3), 0, 0, width)
        return self.linear(out, "out", width, width)

    def extra_differential(self, x: Tokens, width: int) -> str:
        v = self.linear(x.name, "v", width, width)
        pairs = [[self.linear(x.name, f"{part}{i}", width, width) for part in "qk"] for i in (1, 2)]
        first, second = (self.plain_attention(*pair, v, x.length, x.length, 4, width) for pair in pairs)
        share = self.op("Sigmoid", self.parameter("share", width))
        return self.linear(self.op("Sub", first, self.op("Mul", second, share)), "out", width, width)

    def extra_hyper(self, x: Tokens, width: int) -> str:
        weight = self.linear(self.reduce("Mean", x.name, 1, keep=False), "make", width, width * 4, bias=False, rank=2)
        return self.linear(self.op("Tanh", self.op("MatMul", x.name, self.reshape(weight, 0, width, 4))), "out", 4, width)

    def extra_perceiver(self, x: Tokens, width: int) -> str:
        queries = self.parameter("queries", 1, 3, width, std=0.5)
        queries = self.op("Expand", queries, self.op("Concat", self.op("Shape", x.name, start=0, end=1), self.constant([1, 1]), axis=0))
        keys = [self.linear(x.name, name, width, width) for name in ("k1", "v1")]
        y = self.plain_attention(self.linear(queries, "q1", width, width), *keys, 3, x.length, 4, width)
        y = self.op("Add", queries, self.linear(y, "out1", width, width))
        keys = [self.linear(y, name, width, width) for name in ("k2", "v2")]
        y = self.plain_attention(self.linear(x.name, "q2", width, width), *keys, x.length, 3, 4, width)
        return self.linear(y, "out2", width, width)

    def extra_cumsum(self, x: Tokens, width: int) -> str:
        y = self.op("CumSum", self.linear(x.name, "in", width, width), self.constant(1))
        y = self.op("Mul", y, self.constant(1 / numpy.arange(1, x.length + 1).reshape(1, -1, 1), "f4"))
        return self.linear(self.op("Tanh", y), "out", width, width)

    def extra_gram(self, x: Tokens, width: int) -> str:
        y = self.linear(x.name, "in", width, 6)
        gram = self.reshape(self.op("Einsum", y, y, equation="btd,bte->bde"), 0, 36)
        return self.unsqueeze(self.linear(self.op("Tanh", gram), "out", 36, width, rank=2), 1)

    def extra_merged_adapter(self, x: Tokens, width: int) -> str:
        added = self.op("MatMul", self.parameter("A", width, 4), self.parameter("B", 4, 2 * width))
        weight = self.op("Add", self.parameter("weight", width, 2 * width), added)
        y = self.op("Relu", self.op("MatMul", x.name, weight))
        added = self.op("MatMul", self.parameter("down_A", 2 * width, 4), self.parameter("down_B", 4, width))
        down = self.op("Add", self.parameter("down", 2 * width, width), added)
        return self.op("MatMul", y, down)

    def extra_convolution(self, x: Tokens, width: int) -> str:
        y = self.transpose(x.name, 0, 2, 1)
        y = self.op("Relu", self.op("Conv", y, self.parameter("conv1", 2 * width, width, 3, std=0.1), self.parameter("bias", 2 * width), pads=[1, 1]))
        return self.transpose(self.op("Conv", y, self.parameter("conv2", width, 2 * width, 3, std=0.07), pads=[1, 1]), 0, 2, 1)

    def extra_group_linear(self, x: Tokens, width: int) -> str:
        y = self.reshape(self.linear(x.name, "in", width, width), 0, 0, 4, width // 4)
        y = self.op("Tanh", self.op("Einsum", y, self.parameter("weight", 4, width // 4, 8), equation="bthd,hde->bthe"))
        return self.linear(self.reshape(y, 0, 0, 32), "out", 32, width)

    def extra_stacked_weight(self, x: Tokens, width: int) -> str:
        weights = self.parameter("weights", 2, width, 2 * width)
        a, b = (self.op("MatMul", x.name, self.op("Gather", weights, self.constant(i), axis=0)) for i in (0, 1))
        return self.linear(self.op("Mul", self.op("Sigmoid", a), b), "down", 2 * width, width)

    def extra_maxout(self, x: Tokens, width: int) -> str:
        y = self.reduce("Max", self.reshape(self.linear(x.name, "up", width, 4 * width), 0, 0, 2 * width, 2), 3, keep=False)
        return self.linear(y, "down", 2 * width, width)

    def extra_memory(self, x: Tokens, width: int) -> str:
        return self.linear(self.op("Softmax", self.linear(x.name, "keys", width, 64), axis=-1), "values", 64, width)

    def extra_unit_hidden(self, x: Tokens, width: int) -> str:
        y = self.op("LpNormalization", self.linear(x.name, "up", width, 2 * width), axis=-1, p=2)
        return self.linear(self.op("Gelu", self.op("Mul", y, self.parameter("scale", 2 * width, mean=4.0))), "down", 2 * width, width)

    def extra_heads_norm(self, x: Tokens, width: int) -> str:
        y = self.reshape(self.linear(x.name, "up", width, 2 * width), 0, 0, 4, width // 2)
        y = self.op("Softmax", y, axis=2)
        return self.linear(self.reshape(y, 0, 0, 2 * width), "down", 2 * width, width)

    def extra_batch_norm(self, x: Tokens, width: int) -> str:
        y = self.transpose(self.linear(x.name, "up", width, width), 0, 2, 1)
        mean, variance = self.constant(numpy.full(width, 0.1), "f4"), self.constant(numpy.full(width, 0.8), "f4")
        y = self.op("BatchNormalization", y, self.parameter("weight", width, mean=1.0), self.parameter("bias", width), mean, variance)
        return self.linear(self.op("Relu", self.transpose(y, 0, 2, 1)), "down", width, width)

    def extra_low_rank(self, x: Tokens, width: int) -> str:
        y = self.op("Relu", self.linear(self.linear(x.name, "up1", width, 8), "up2", 8, 2 * width))
        return self.linear(self.linear(y, "down1", 2 * width, 8), "down2", 8, width)

    def extra_channel_attention(self, x: Tokens, width: int) -> str:
        """Of channels, over positions (XCiT)."""
        q, k, v = (self.transpose(self.reshape(self.linear(x.name, name, width, width), 0, 0, 4, width // 4), 0, 2, 3, 1) for name in "qkv")
        q, k = (self.op("LpNormalization", part, axis=-1, p=2) for part in (q, k))
        scores = self.op("Mul", self.op("MatMul", q, self.transpose(k, 0, 1, 3, 2)), self.parameter("temperature", 4, 1, 1, mean=1.5))
        out = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.linear(self.reshape(self.transpose(out, 0, 3, 1, 2), 0, 0, width), "out", width, width)

    def extra_codes(self, x: Tokens, width: int) -> str:
        """A table for each of three codes of a token."""
        codes = self.ids(f"codes_{x.length}", 12, x.length, 3)
        tables = [self.parameter(f"table.{i}", 12, width, std=0.3) for i in range(3)]
        columns = [self.op("Gather", codes, self.constant(i), axis=2) for i in range(3)]
        return self.op("Sum", *(self.op("Gather", table, column, axis=0) for table, column in zip(tables, columns)))

    def extra_swapped(self, x: Tokens, width: int) -> str:
        """An MLP on [length, batch, width]."""
        y = self.transpose(x.name, 1, 0, 2)
        y = self.op("MatMul", self.op("Relu", self.op("MatMul", y, self.parameter("up", width, 2 * width))), self.parameter("down", 2 * width, width))
        return self.transpose(y, 1, 0, 2)

    def extra_padded(self, x: Tokens, width: int) -> str:
        y = self.linear(x.name, "in", width, width)
        y = self.op("Pad", y, self.constant([0, 0, 0, 0, 0, width]))
        return self.linear(self.op("Softplus", y), "out", 2 * width, width)

    def extra_residual_in_hidden(self, x: Tokens, width: int) -> str:
        y = self.linear(x.name, "up", width, 2 * width)
        y = self.op("Add", y, self.op("Gelu", self.op("Mul", y, self.parameter("scale", 2 * width, mean=1.0))))
        z = self.linear(y, "middle", 2 * width, 2 * width)
        return self.linear(self.op("Add", self.op("Relu", z), y), "down", 2 * width, width)
