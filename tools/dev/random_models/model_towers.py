"""Attention, blocks, towers and whole models of model_parts.py's layers, at random."""

import numpy

from model_extras import Extras
from model_parts import LOWEST, Layers, Tokens


def rotations(length: int, depth: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    angles = numpy.arange(length)[:, None] * 100.0 ** (-numpy.arange(depth // 2) / (depth // 2))
    angles = numpy.concatenate([angles, angles], 1)
    return numpy.cos(angles).astype("f4"), numpy.sin(angles).astype("f4")


class Attention(Layers):
    """Queries, keys and values are [batch, positions, heads, depth] until they are transposed."""

    def heads(self, width: int) -> tuple[int, int, int]:
        """Query heads, key heads, depth."""
        count = self.style("heads", 4, 2, 8, 4, 4, 8, 2, 6, 8, 3)
        depth = width // count if width % count == 0 and self.style("square", True, True, True, False) else 8
        shared = [n for n in range(1, count) if count % n == 0]
        return count, self.style("kv_heads", count, count, *shared), depth

    def projections(self, x: Tokens, context: Tokens | None, heads: int, shared: int, depth: int) -> list[str]:
        width, source = x.width, context or x
        if context or self.style("latent", *[False] * 5, True):
            q = self.linear(x.name, "q", width, heads * depth)
            form = self.style("kv", "separate", "fused", "latent")
            if form == "separate" and context:
                k, v = (self.linear(source.name, name, source.width, shared * depth) for name in "kv")
            elif form == "fused":
                k, v = self.pieces(self.linear(source.name, "kv", source.width, 2 * shared * depth), 2, shared * depth, shared * depth)
            else:
                latent = self.norm(self.linear(source.name, "kv_down", source.width, 12), "kv_norm", 12, "rms")
                both = self.reshape(self.linear(latent, "kv_up", 12, 2 * shared * depth), 0, 0, shared, 2 * depth)
                return [self.reshape(q, 0, 0, heads, depth), *self.pieces(both, 3, depth, depth)]
        else:
            layout = self.style("qkv", "separate", "separate", "split", "slice", "3hd", "3hd_first", "h3d", "h_3d", "grouped")
            if shared != heads and layout in ("3hd", "3hd_first", "h3d", "h_3d"):
                layout = "split"
            if layout != "separate":
                return self.fused(x, layout, heads, shared, depth)
            q, k, v = (self.linear(x.name, name, width, n * depth) for name, n in zip("qkv", (heads, shared, shared)))
        return [self.reshape(part, 0, 0, n, depth) for part, n in zip((q, k, v), (heads, shared, shared))]

    def fused(self, x: Tokens, layout: str, heads: int, shared: int, depth: int) -> list[str]:
        counts = (heads, shared, shared)
        both = self.linear(x.name, "qkv", x.width, sum(counts) * depth)
        if layout in ("split", "slice"):
            parts = self.pieces(both, 2, *(n * depth for n in counts), how=layout)
            return [self.reshape(part, 0, 0, n, depth) for part, n in zip(parts, counts)]
        if layout == "3hd":
            both = self.reshape(both, 0, 0, 3, heads, depth)
            return [self.op("Gather", both, self.constant(i), axis=2) for i in range(3)]
        if layout == "3hd_first":
            both = self.transpose(self.reshape(both, 0, x.length, 3, heads, depth), 2, 0, 1, 3, 4)
            return [self.op("Squeeze", part, self.constant([0])) for part in self.pieces(both, 0, 1, 1, 1)]
        if layout == "h3d":
            both = self.reshape(both, 0, 0, heads, 3, depth)
            return [self.op("Squeeze", part, self.constant([3])) for part in self.pieces(both, 3, 1, 1, 1)]
        if layout == "h_3d":
            return self.pieces(self.reshape(both, 0, 0, heads, 3 * depth), 3, depth, depth, depth)
        both = self.reshape(both, 0, 0, shared, heads // shared + 2, depth)
        q, k, v = self.pieces(both, 3, heads // shared, 1, 1, how="slice")
        return [self.reshape(part, 0, 0, n, depth) for part, n in zip((q, k, v), counts)]

    def normed(self, x: str, name: str, heads: int, depth: int) -> str:
        kind = self.style("qk_norm", *["none"] * 5, "head", "all", "layer_head", "l2")
        if kind == "none":
            return x
        if kind == "all":
            return self.reshape(self.norm(self.reshape(x, 0, 0, heads * depth), name, heads * depth, "rms"), 0, 0, heads, depth)
        if kind == "l2":
            with self.scope(name):
                return self.op("Mul", self.op("LpNormalization", x, axis=-1, p=2), self.parameter("scale", heads, 1, mean=2.0, std=0.2))
        return self.norm(x, name, depth, "rms" if kind == "head" else "layer")

    def rotated(self, x: str, length: int, depth: int) -> str:
        """x: [batch, heads, positions, depth]."""
        kind = self.style("rotary", "none", "none", "halves", "pairs", "part")
        if kind == "none" or depth % 4:
            return x
        if kind == "pairs":
            cos, sin = (self.constant(table[:, : depth // 2], "f4") for table in rotations(length, depth))
            even, odd = (self.slice(x, 3, i, depth, 2) for i in (0, 1))
            even, odd = (self.op("Sub", self.op("Mul", even, cos), self.op("Mul", odd, sin)),
                         self.op("Add", self.op("Mul", even, sin), self.op("Mul", odd, cos)))
            both = self.op("Concat", self.unsqueeze(even, 4), self.unsqueeze(odd, 4), axis=4)
            return self.op("Reshape", both, self.constant([0, 0, 0, depth]))
        rest = []
        if kind == "part":
            depth //= 2
            x, *rest = self.pieces(x, 3, depth, depth)
        cos, sin = (self.constant(table, "f4") for table in rotations(length, depth))
        first, second = self.pieces(x, 3, depth // 2, depth // 2)
        turned = self.op("Concat", self.op("Neg", second), first, axis=3)
        x = self.op("Add", self.op("Mul", x, cos), self.op("Mul", turned, sin))
        return self.op("Concat", x, *rest, axis=3) if rest else x

    def repeated(self, x: str, times: int, heads: int, length: int, depth: int) -> str:
        if times == 1:
            return x
        form = self.style("repeat", "expand", "tile", "concat")
        x = self.unsqueeze(x, 2)
        if form == "expand":
            x = self.op("Expand", x, self.constant([1, 1, times, 1, 1]))
        elif form == "tile":
            x = self.op("Tile", x, self.constant([1, 1, times, 1, 1]))
        else:
            x = self.op("Concat", *[x] * times, axis=2)
        return self.reshape(x, 0, heads, length, depth)

    def masked(self, scores: str, heads: int, length: int, keys: int, causal: bool) -> str:
        kind = self.style("mask", "none", "none", "input", "window", "alibi", "table", "distances", "input_floats")
        seen = numpy.ones((length, keys), bool)
        if causal:
            seen = numpy.tril(seen)
        if kind == "window":
            seen &= ~numpy.tril(seen, -3)
        if not seen.all():
            if self.style("mask_form", "add", "where") == "add":
                scores = self.op("Add", scores, self.constant(numpy.where(seen, 0, LOWEST), "f4"))
            else:
                scores = self.op("Where", self.constant(seen, "?"), scores, self.number(LOWEST))
        if kind in ("input", "input_floats"):
            def draw(rng):
                return (rng.random(keys) < 0.8) | (numpy.arange(keys) == 0)
            mask = self.input(f"mask_{keys}", "?", (keys,), draw)
            mask = self.unsqueeze(mask, 1, 2)
            if kind == "input":
                return self.op("Where", mask, scores, self.number(LOWEST))
            hidden = self.op("Sub", self.number(1), self.op("Cast", mask, to=1))
            return self.op("Add", scores, self.op("Mul", hidden, self.number(LOWEST)))
        distance = abs(numpy.arange(length)[:, None] - numpy.arange(keys))
        if kind == "alibi":
            slopes = 2.0 ** -numpy.arange(1, heads + 1).reshape(heads, 1, 1)
            return self.op("Add", scores, self.constant(-slopes * distance, "f4"))
        if kind == "table":
            return self.op("Add", scores, self.parameter("score_bias", heads, length, keys, std=0.5))
        if kind == "distances":
            rows = self.op("Gather", self.parameter("distance_bias", max(length, keys), heads, std=0.5), self.constant(distance))
            return self.op("Add", scores, self.unsqueeze(self.transpose(rows, 2, 0, 1), 0))
        return scores

    def attend(self, q: str, k: str, v: str, heads: int, shared: int, depth: int, lengths: tuple[int, int], causal: bool) -> str:
        """Of [batch, heads, positions, depth]."""
        length, keys = lengths
        scale, form = depth**-0.5, self.style("scale", "scores", "queries", "both", "divided", "op")
        if form == "op":
            return self.op("Attention", q, k, v, is_causal=int(causal))
        grouped = shared != heads and self.style("grouped_product", False, False, True)
        times = heads // shared
        if grouped:
            q, k, v = self.reshape(q, 0, shared, times, length, depth), self.unsqueeze(k, 2), self.unsqueeze(v, 2)
        else:
            k, v = (self.repeated(x, times, heads, keys, depth) for x in (k, v))
        if form in ("queries", "both"):
            q = self.op("Mul", q, self.number(scale if form == "queries" else scale**0.5))
        if form == "both":
            k = self.op("Mul", k, self.number(scale**0.5))
        k = self.transpose(k, 0, 1, 2, 4, 3) if grouped else self.transpose(k, 0, 1, 3, 2)
        scores = self.op("MatMul", q, k)
        if grouped:
            scores = self.reshape(scores, 0, heads, length, keys)
        if form in ("scores", "divided"):
            scores = self.op("Mul", scores, self.number(scale)) if form == "scores" else self.op("Div", scores, self.number(depth**0.5))
        if self.style("score_cap", *[False] * 8, True):
            scores = self.op("Mul", self.op("Tanh", self.op("Div", scores, self.number(5))), self.number(5))
        weights = self.op("Softmax", self.masked(scores, heads, length, keys, causal), axis=-1)
        if grouped:
            weights = self.reshape(weights, 0, shared, times, length, keys)
        out = self.op("MatMul", weights, v)
        return self.reshape(out, 0, heads, length, depth) if grouped else out

    def attention(self, x: Tokens, causal: bool, context: Tokens | None = None, given: tuple | None = None, join: bool = False):
        """What goes to the output layer, its width, and keys and values for others: [batch, positions, heads, depth], heads, depth, positions.
        `given`: such ones of another layer, in place of own (`join`: through layers, and beside own)."""
        heads, shared, depth = self.heads(x.width)
        length, keys = x.length, (context or x).length
        if given and not join:
            k, v, shared, depth, keys = given
            heads = heads if heads % shared == 0 else shared
            q = self.reshape(self.linear(x.name, "q", x.width, heads * depth), 0, 0, heads, depth)
            q = self.normed(q, "q_norm", heads, depth)
        else:
            q, k, v = self.projections(x, context, heads, shared, depth)
            q, k = self.normed(q, "q_norm", heads, depth), self.normed(k, "k_norm", shared, depth)
            if given:
                k, v, keys = self.with_given(k, v, given, shared, depth, keys)
        own = (k, v, shared, depth, keys)
        q, k, v = (self.transpose(part, 0, 2, 1, 3) for part in (q, k, v))
        if not context and keys == length:
            q, k = self.rotated(q, length, depth), self.rotated(k, keys, depth)
        out = self.attend(q, k, v, heads, shared, depth, (length, keys), causal and keys == length)
        joined = heads * depth
        out = self.transpose(out, 0, 2, 1, 3)
        gate = self.style("attention_gate", *["none"] * 6, "elements", "heads")
        if gate == "heads":
            gates = self.op("Sigmoid", self.linear(x.name, "gate", x.width, heads))
            out = self.op("Mul", out, self.unsqueeze(gates, 3))
        out = self.reshape(out, 0, 0, joined)
        if gate == "elements":
            out = self.op("Mul", out, self.op("Sigmoid", self.linear(x.name, "gate", x.width, joined)))
        if self.style("attention_norm", *[False] * 6, True):
            out = self.norm(out, "out_norm", joined)
        return out, joined, own

    def with_given(self, k: str, v: str, given: tuple, shared: int, depth: int, keys: int) -> tuple[str, str, int]:
        other_k, other_v, other_shared, other_depth, other_keys = given
        width = other_shared * other_depth
        others = [self.reshape(other, 0, 0, width) for other in (other_k, other_v)]
        others = [self.linear(other, name, width, shared * depth) for other, name in zip(others, ("other_k", "other_v"))]
        others = [self.reshape(other, 0, 0, shared, depth) for other in others]
        if self.style("given_alone", False, True):
            return *others, other_keys
        return self.op("Concat", others[0], k, axis=1), self.op("Concat", others[1], v, axis=1), keys + other_keys


class Blocks(Attention, Extras):
    """`condition`: [batch, width] of each sample, which scales and shifts what layers take."""

    def chunks(self, condition: Tokens | None, width: int, count: int) -> list[str] | None:
        if condition is None:
            return None
        form = self.style("condition", "split", "slice", "rows", "table", "gather", "separate")
        silu = self.op("Mul", condition.name, self.op("Sigmoid", condition.name))
        if form == "separate":
            return [self.unsqueeze(self.linear(silu, f"modulation.{i}", condition.width, width, rank=2), 1) for i in range(count)]
        with self.scope("modulation"):
            all_of = self.linear(silu, "all", condition.width, count * width, rank=2)
            if form in ("split", "slice"):
                return [self.unsqueeze(part, 1) for part in self.pieces(all_of, 1, *[width] * count, how=form)]
            all_of = self.reshape(all_of, -1, count, width)
            if form == "table":
                all_of = self.op("Add", all_of, self.parameter("table", count, width, std=0.3))
            if form == "gather":
                return [self.unsqueeze(self.op("Gather", all_of, self.constant(i), axis=1), 1) for i in range(count)]
            return self.pieces(all_of, 1, *[1] * count)

    def modulated(self, x: str, chunks: list[str] | None, at: int) -> str:
        if not chunks:
            return x
        return self.op("Add", self.op("Mul", x, self.op("Add", chunks[at], self.number(1))), chunks[at + 1])

    def added(self, x: str, y: str, name: str, width: int, chunks: list[str] | None, at: int) -> str:
        if chunks:
            y = self.op("Mul", y, chunks[at + 2])
        kind = self.style("residual", *["plain"] * 5, "layer_scale", "number", "gate", "both_scaled")
        with self.scope(name):
            if kind == "layer_scale":
                y = self.op("Mul", y, self.parameter("gamma", width, mean=0.5))
            elif kind == "number":
                y = self.op("Mul", y, self.number(0.3))
            elif kind == "gate":
                y = self.op("Mul", y, self.op("Tanh", self.parameter("gate", 1, mean=0.6)))
            elif kind == "both_scaled":
                x = self.op("Mul", x, self.parameter("alpha", width, mean=1.0))
                y = self.op("Mul", y, self.parameter("beta", width, mean=1.0))
        return self.op("Add", *((x, y) if self.style("order", 0, 1) == 0 else (y, x)))

    def block(self, x: Tokens, causal: bool, context: Tokens | None, condition: Tokens | None, given: tuple | None, join: bool):
        """Tokens, and keys and values for others."""
        width, kind = x.width, self.style("placement", "pre", "pre", "post", "none", "sandwich", "parallel", "parallel_two", "joined", "joined")
        chunks = self.chunks(condition, width, 6)

        def as_tokens(name: str) -> Tokens:
            return Tokens(name, x.length, width)

        def front(y: str, name: str, at: int) -> str:
            y = y if kind in ("post", "none") else self.norm(y, name, width)
            return self.modulated(y, chunks, at)

        def attended(y: str):
            with self.scope("attention"):
                return self.attention(as_tokens(y), causal, None, given, join)

        y = front(x.name, "norm1", 0)
        out, joined, own = attended(y)
        if kind == "joined":
            with self.scope("mlp"):
                hidden = self.hidden_of(width)
                inner = self.mlp_hidden(y, width, hidden)
            both = self.op("Concat", *((out, inner) if self.style("joined_order", 0, 1) == 0 else (inner, out)), axis=2)
            y = self.linear(both, "out", joined + hidden, width)
            return as_tokens(self.added(x.name, y, "add", width, chunks, 0)), own
        with self.scope("attention"):
            out = self.linear(out, "out", joined, width)
        if kind.startswith("parallel"):
            other = y if kind == "parallel" else front(x.name, "norm2", 3)
            both = self.op("Add", out, self.feed_forward(as_tokens(other)))
            return as_tokens(self.added(x.name, both, "add", width, chunks, 0)), own

        def behind(y: str, name: str) -> str:
            return self.norm(y, name, width) if kind == "sandwich" else y

        def whole(y: str, name: str) -> str:
            return self.norm(y, name, width) if kind == "post" else y

        y = whole(self.added(x.name, behind(out, "norm1b"), "add1", width, chunks, 0), "norm1")
        if context:
            with self.scope("cross"):
                z, joined, _ = self.attention(as_tokens(y if kind in ("post", "none") else self.norm(y, "norm", width)), False, context)
                z = self.linear(z, "out", joined, width)
                y = whole(self.added(y, z, "add", width, None, 0), "norm")
        z = self.feed_forward(as_tokens(front(y, "norm2", 3)))
        return as_tokens(whole(self.added(y, behind(z, "norm2b"), "add2", width, chunks, 3), "norm2")), own

    def tower(self, name: str, x: Tokens, causal: bool = False, context: Tokens | None = None, condition: Tokens | None = None,
              given: list | None = None) -> tuple[Tokens, list]:
        """Tokens, and keys and values of each layer. `given`: those of another tower's layers."""
        with self.scope(name, style=True):
            layers = self.pick("layers", 2, 1, 2, 1, 3)
            mixed = self.pick("mixed", *[False] * 4, True)
            shares = self.pick("shares_layers", *[False] * 7, True)
            keeps_keys = self.pick("keys_of_previous", *[False] * 6, True) and not given
            skips = self.pick("skips", *["none"] * 5, "concat", "add")
            mean = self.pick("mean_of_layers", *["none"] * 6, "mean", "weighted")
            outs, all_own, own = [x], [], None
            for i in range(layers):
                with self.scope("layers"), self.scope(str(0 if shares and i % 2 else i), style=mixed):
                    if skips != "none" and i >= (layers + 1) // 2:
                        x = self.skip(x, outs[layers - i], skips)
                    before = given[min(i, len(given) - 1)] if given else own if keeps_keys and i % 2 else None
                    x, own = self.block(x, causal, context, condition, before, bool(given))
                    if added := self.extra(x):
                        x = Tokens(self.op("Add", x.name, added), x.length, x.width)
                outs.append(x)
                all_own.append(own)
            return self.mean_of(outs[1:], mean), all_own

    def skip(self, x: Tokens, early: Tokens, kind: str) -> Tokens:
        if kind == "add":
            return Tokens(self.op("Add", x.name, early.name), x.length, x.width)
        both = self.op("Concat", x.name, early.name, axis=2)
        return Tokens(self.linear(both, "skip", 2 * x.width, x.width), x.length, x.width)

    def mean_of(self, outs: list[Tokens], kind: str) -> Tokens:
        last = outs[-1]
        if kind == "none" or len(outs) < 2:
            return last
        if kind == "mean":
            return Tokens(self.op("Mean", *(out.name for out in outs)), last.length, last.width)
        weights = self.op("Softmax", self.parameter("layer_weights", len(outs), std=0.5), axis=0)
        parts = [self.op("Mul", out.name, self.slice(weights, 0, i, i + 1)) for i, out in enumerate(outs)]
        return Tokens(self.op("Sum", *parts), last.length, last.width)


