"""A GPT (Radford et al. 2019) as ONNX: embeddings, blocks of pre-norm attention and MLP, output layer."""

import dataclasses

import numpy
from onnx_writer import Graph


@dataclasses.dataclass(frozen=True)
class Gpt:
    blocks: int = 2
    hidden: int = 64
    heads: int = 4
    sequence: int = 32
    vocabulary: int = 96
    key_heads: int = 0  # of keys and values, each for as many heads of queries (Ainslie et al. 2023); 0: all
    tied: bool = False  # the output layer is the embedding
    gelu: str = "none"  # or tanh, its approximation
    gated: bool = False  # the MLP
    post_norm: bool = False  # norms behind the sums (Vaswani et al. 2017)
    fused: bool = False  # query, key and value are of one weight, gate and up as well
    joined_bias: bool = False  # of the fused weight: the query's, zeros and the value's (BEiT, Bao et al. 2021)
    sliced: bool = False  # query, key and value are of slices of one weight (torch.nn.MultiheadAttention)
    stacked: bool = False  # query, key and value are of one weight [3, heads, hidden, depth] of an einsum (Gemma in JAX)
    merged: bool = False  # batch and heads are one dimension behind the positions (torch.nn.MultiheadAttention)
    head_norms: bool = False  # of queries and keys, over all heads (OLMo 2, 2025)
    head_rms_norms: bool = False  # the same as root mean squares (InternViT-6B, Chen et al. 2023)
    position_bias: bool = False  # of each head by distance, learned, one table for all blocks (T5, Raffel et al. 2020)
    row_tables: bool = False  # queries of each position, times a table of its own, are added to scores (MViTv2, Li et al. 2022)
    grid: int = 0  # rows of an image of positions: queries times a table of its rows, and one of its columns, are added to scores (MViTv2)
    sinks: bool = False  # each head has a score more, learned, that has no value (gpt-oss, OpenAI 2025)
    alibi: bool = False  # a bias of the attention for each head, by distance (Press et al. 2022)
    experts: int = 0  # in place of each MLP, for all tokens, with gates from a softmax (Shazeer et al. 2017)
    chosen: int = 0  # the experts of a token, of the largest gates; 0: all
    gates: str = "scattered"  # the chosen ones' gates: scattered to zeros, or a softmax of "masked" scores; "inputs": scattered, of what experts read
    flat_rows: bool = False  # experts are on one row of all samples' tokens (transformers)
    adapters: int = 0  # columns of a low-rank product that is added to each linear layer's (LoRA, Hu et al. 2021)
    packed: int = 0  # samples of a fixed batch, of whose attention, in one sequence, and MLP each has its turn (vision towers)
    chunk: int = 0  # positions of a chunk: a delta rule in place of attention, which inverts a matrix row by row (Yang et al. 2024)
    dropout: float = 0  # of embeddings, probabilities and what blocks add (Vaswani et al. 2017), as exported in training mode
    skipped: float = 0  # of the samples, in each sublayer (stochastic depth, Huang et al. 2016), as exported in training mode
    scanned: bool = False  # the blocks are one Scan over weights that have all of theirs
    own_loss: bool = False  # the model takes the labels and gives the mean of the tokens' losses, of flattened logits
    entropy: bool = False  # less a tenth of the entropy of what the model predicts (policies, Mnih et al. 2016)
    shifted: bool = False  # that loss is a cross entropy op, of all positions but the last (transformers)
    mask_values: bool = False  # the mask is values of the model, the lowest f32; the first row hides everything

    def model(self) -> bytes:
        """Input ids [batch, sequence] -> logits [batch, sequence, vocabulary]."""
        graph, random = Graph(), numpy.random.default_rng(0)
        whole, scanned = graph, []  # where parameters are; those with a row for each block
        hidden, heads, sequence = self.hidden, self.heads, self.sequence

        def parameter(name: str, value: numpy.ndarray) -> str:
            if graph is whole:
                return graph.initializer(name, value.astype("f4"))
            stacked = numpy.stack([value] + [value + 0.02 * random.standard_normal(value.shape) for _ in range(self.blocks - 1)])
            scanned.append(whole.initializer(name, stacked.astype("f4")))
            graph.input(f"{name}.row", numpy.float32, list(value.shape))
            return f"{name}.row"

        def dropped(x: str) -> str:
            if not self.dropout:
                return x
            ratio, training = constant(f"{x}.ratio", self.dropout, "f4"), constant(f"{x}.training", True, "?")
            return graph.node("Dropout", [x, ratio, training], f"{x}.dropped")

        def weight(name: str, *shape: int) -> str:
            return parameter(name, 0.02 * random.standard_normal(shape))

        def constant(name: str, values, dtype="i8") -> str:
            return graph.initializer(name, numpy.array(values, dtype))

        def norm(x: str, name: str) -> str:
            ones, zeros = parameter(f"{name}.weight", numpy.ones(hidden)), parameter(f"{name}.bias", numpy.zeros(hidden))
            return graph.node("LayerNormalization", [x, ones, zeros], f"{name}.out")

        def rms_norm(x: str, name: str) -> str:
            mean = graph.node("ReduceMean", [graph.node("Mul", [x, x], f"{name}.squares"), constant(f"{name}.last", [-1])], f"{name}.mean")
            root = graph.node("Sqrt", [graph.node("Add", [mean, constant(f"{name}.epsilon", 1e-3, "f4")], f"{name}.variance")], f"{name}.root")
            normed = graph.node("Div", [x, root], f"{name}.normed")
            return graph.node("Mul", [normed, parameter(f"{name}.weight", 1 + 0.1 * random.standard_normal(hidden))], f"{name}.out")

        def linear(x: str, name: str, inputs: int, outputs: int, bias: str = "") -> str:
            product = graph.node("MatMul", [x, weight(f"{name}.weight", inputs, outputs)], f"{name}.product")
            out = graph.node("Add", [product, bias or weight(f"{name}.bias", outputs)], f"{name}.out")
            if not self.adapters:
                return out
            low = graph.node("MatMul", [x, weight(f"{name}.lora_A", inputs, self.adapters)], f"{name}.low")
            added = graph.node("MatMul", [low, weight(f"{name}.lora_B", self.adapters, outputs)], f"{name}.added")
            added = graph.node("Mul", [added, constant(f"{name}.scaling", 2, "f4")], f"{name}.adapter")
            return graph.node("Add", [out, added], f"{name}.adapted")

        def parts(x: str, size: int, count: int) -> list[str]:
            """The last dimension in pieces of `size`."""
            last = constant(f"{x}.axis", [-1])
            bounds = [constant(f"{x}.bound{i}", [i * size]) for i in range(count + 1)]
            return [graph.node("Slice", [x, bounds[i], bounds[i + 1], last], f"{x}.part{i}") for i in range(count)]

        split = constant("split", [0, -1, hidden // heads] if self.merged else [0, 0, heads, hidden // heads])
        joined = constant("joined", [0, -1, hidden] if self.merged else [0, 0, hidden])
        scale = constant("scale", (hidden / heads) ** -0.5, "f4")
        if self.mask_values:
            values = numpy.triu(numpy.full((1, 1, sequence, sequence), numpy.finfo("f4").min, "f4"), 1)
            values[:, :, 0] = numpy.finfo("f4").min
            mask = graph.initializer("mask", values)
        else:
            seen = graph.initializer("seen", numpy.tril(numpy.ones((1, 1, sequence, sequence), "i8")))
            seen = graph.node("Cast", [seen], "visible", to=9)  # BOOL
            mask = graph.node("Where", [seen, constant("zero", 0, "f4"), constant("hidden", -numpy.inf, "f4")], "mask")

        if self.alibi:
            slopes = constant("slopes", -numpy.arange(1, heads + 1).reshape(1, heads, 1, 1))
            ahead = constant("ahead", numpy.arange(sequence)[:, None] - numpy.arange(sequence))
            bias = graph.node("Cast", [graph.node("Mul", [slopes, ahead], "distances")], "bias", to=1)  # FLOAT
            bias = graph.node("Mul", [bias, constant("slope", 0.1, "f4")], "sloped")
            mask = graph.node("Add", [bias, mask], "mask.alibi")

        if self.position_bias:
            distances = constant("distances", abs(numpy.arange(sequence)[:, None] - numpy.arange(sequence)))
            bias = graph.node("Gather", [weight("bias.weight", sequence, heads), distances], "bias.rows")
            bias = graph.node("Transpose", [bias], "bias.heads", perm=[2, 0, 1])
            mask = graph.node("Add", [bias, mask], "mask.bias")

        if self.merged:
            mask = graph.node("Reshape", [mask, constant("one", [1, sequence, sequence])], "mask.merged")

        def sliced_linear(x: str, name: str) -> list[str]:
            weights = parts(weight(f"{name}.qkv.weight", hidden, 3 * hidden), hidden, 3)
            biases = parts(weight(f"{name}.qkv.bias", 3 * hidden), hidden, 3)
            products = [graph.node("MatMul", [x, each], f"{name}.{part}.product") for part, each in zip("qkv", weights)]
            return [graph.node("Add", [product, bias], f"{name}.{part}.out")
                    for part, product, bias in zip("qkv", products, biases)]

        def stacked_einsum(x: str, name: str) -> list[str]:
            products = graph.node("Einsum", [x, weight(f"{name}.qkv.weight", 3, heads, hidden, hidden // heads)],
                                  f"{name}.products", equation="btd,sndh->btsnh")
            products = graph.node("Add", [products, weight(f"{name}.qkv.bias", 3, heads, hidden // heads)], f"{name}.all")
            slices = [slice_of(products, (2, part, part + 1)) for part in range(3)]
            return [graph.node("Reshape", [x, constant(f"{x}.rows", [0, 0, hidden])], f"{x}.out") for x in slices]

        def queries_keys_values(x: str, name: str) -> list[str]:
            if self.stacked:
                return stacked_einsum(x, name)
            if self.sliced:
                return sliced_linear(x, name)
            if self.joined_bias:
                biases = [weight(f"{name}.q.bias", hidden), constant(f"{name}.k.bias", numpy.zeros(hidden), "f4"),
                          weight(f"{name}.v.bias", hidden)]
                bias = graph.node("Concat", biases, f"{name}.bias", axis=0)
                return parts(linear(x, f"{name}.qkv", hidden, 3 * hidden, bias), hidden, 3)
            if self.fused:
                return parts(linear(x, f"{name}.qkv", hidden, 3 * hidden), hidden, 3)
            widths = (hidden, *(2 * [hidden // heads * (self.key_heads or heads)]))
            return [linear(x, f"{name}.{part}", hidden, width) for part, width in zip("qkv", widths)]

        def grid_biases(q: str, name: str) -> str:
            """Of each query, [.., rows, columns] as keys are."""
            rows, columns, depth = self.grid, sequence // self.grid, hidden // heads
            lead, zeros = ("n", [0]) if self.merged else ("bh", [0, 0])
            q = graph.node("Reshape", [q, constant(f"{name}.grid", [*zeros, rows, columns, depth])], f"{name}.q.grid")
            biases = []
            for part, at, size, axis in (("rows", "y", rows, -1), ("columns", "x", columns, -2)):
                table = weight(f"{name}.{part}", size, size, depth)
                bias = graph.node("Einsum", [q, table], f"{name}.{part}.products", equation=f"{lead}yxd,{at}kd->{lead}yxk")
                biases.append(graph.node("Unsqueeze", [bias, constant(f"{name}.{part}.axis", [axis])], f"{name}.{part}.biases"))
            both = graph.node("Add", biases, f"{name}.biases")
            return graph.node("Reshape", [both, constant(f"{name}.scores.shape", [*zeros, sequence, sequence])], f"{name}.by_grid")

        def for_all_queries(x: str, name: str) -> str:
            """Each head as many times as there are queries for it."""
            count, depth = self.key_heads, hidden // heads
            x = graph.node("Reshape", [x, constant(f"{name}.own", [0, 0, count, 1, depth])], f"{name}.apart")
            x = graph.node("Expand", [x, constant(f"{name}.times", [1, 1, 1, heads // count, 1])], f"{name}.repeated")
            return graph.node("Reshape", [x, constant(f"{name}.all", [0, 0, hidden])], f"{name}.for_all")

        def with_sinks(scores: str, name: str) -> str:
            sinks = parameter(f"{name}.sinks", random.standard_normal(heads))
            sinks = graph.node("Reshape", [sinks, constant(f"{name}.sinks.shape", [1, heads, 1, 1])], f"{name}.sinks.heads")
            rows = graph.node("Shape", [scores], f"{name}.rows", start=0, end=3)
            rows = graph.node("Concat", [rows, constant(f"{name}.sinks.column", [1])], f"{name}.sinks.rows", axis=0)
            column = graph.node("Expand", [sinks, rows], f"{name}.sinks.expanded")
            return graph.node("Concat", [scores, column], f"{name}.with_sinks", axis=-1)

        def attention(x: str, name: str) -> str:
            if self.merged:
                x = graph.node("Transpose", [x], f"{name}.positions", perm=[1, 0, 2])
            outs = queries_keys_values(x, name)
            if self.head_norms or self.head_rms_norms:
                norm_heads = rms_norm if self.head_rms_norms else norm
                outs[:2] = [norm_heads(out, f"{name}.{part}_norm") for part, out in zip("qk", outs)]
            rows, columns = ([1, 0, 2], [1, 2, 0]) if self.merged else ([0, 2, 1, 3], [0, 2, 3, 1])
            heads_of = {}
            for part, order, out in zip("qkv", (rows, columns, rows), outs):
                if self.key_heads and part != "q":
                    out = for_all_queries(out, f"{name}.{part}")
                out = graph.node("Reshape", [out, split], f"{name}.{part}.heads")
                heads_of[part] = graph.node("Transpose", [out], f"{name}.{part}.rows", perm=order)
            scores = graph.node("MatMul", [heads_of["q"], heads_of["k"]], f"{name}.scores")
            scores = graph.node("Mul", [scores, scale], f"{name}.scaled")
            if self.row_tables:
                table = weight(f"{name}.table", sequence, sequence, hidden // heads)
                equation = "nqd,qkd->nqk" if self.merged else "bhqd,qkd->bhqk"
                rows_of = graph.node("Einsum", [heads_of["q"], table], f"{name}.by_rows", equation=equation)
                scores = graph.node("Add", [scores, rows_of], f"{name}.scores.by_rows")
            if self.grid:
                scores = graph.node("Add", [scores, grid_biases(heads_of["q"], name)], f"{name}.scores.by_grid")
            scores = graph.node("Add", [scores, mask], f"{name}.masked")
            if self.sinks:
                scores = with_sinks(scores, name)
            probabilities = dropped(graph.node("Softmax", [scores], f"{name}.probabilities"))
            if self.sinks:
                probabilities = slice_of(probabilities, (3, 0, sequence))
            context = graph.node("MatMul", [probabilities, heads_of["v"]], f"{name}.context")
            context = graph.node("Transpose", [context], f"{name}.context.rows", perm=rows)
            context = graph.node("Reshape", [context, joined], f"{name}.joined")
            out = linear(context, f"{name}.out", hidden, hidden)
            return graph.node("Transpose", [out], f"{name}.samples", perm=[1, 0, 2]) if self.merged else out

        def slice_of(x: str, *ranges: tuple[int, int, int]) -> str:
            """(dimension, start, end) of each."""
            slices = [constant(f"{x}[{ranges}].{what}", values) for what, values in zip(("dims", "starts", "ends"), zip(*ranges))]
            return graph.node("Slice", [x, slices[1], slices[2], slices[0]], f"{x}[{ranges}]")

        def packed_attention(x: str, name: str) -> str:
            rows = self.packed * sequence
            flat = constant(f"{name}.flat", [1, rows, heads, hidden // heads])
            q, k, v = (graph.node("Transpose", [graph.node("Reshape", [out, flat], f"{out}.flat")], f"{out}.rows", perm=[0, 2, 1, 3])
                       for out in queries_keys_values(x, name))
            contexts = []
            for sample in range(self.packed):
                of = (2, sample * sequence, (sample + 1) * sequence)
                keys = graph.node("Transpose", [slice_of(k, of)], f"{name}.{sample}.keys", perm=[0, 1, 3, 2])
                scores = graph.node("MatMul", [slice_of(q, of), keys], f"{name}.{sample}.scores")
                scores = graph.node("Mul", [scores, scale], f"{name}.{sample}.scaled")
                scores = graph.node("Add", [scores, mask], f"{name}.{sample}.masked")
                probabilities = graph.node("Softmax", [scores], f"{name}.{sample}.probabilities")
                contexts.append(graph.node("MatMul", [probabilities, slice_of(v, of)], f"{name}.{sample}.context"))
            context = graph.node("Concat", contexts, f"{name}.context", axis=2)
            context = graph.node("Transpose", [context], f"{name}.context.rows", perm=[0, 2, 1, 3])
            context = graph.node("Reshape", [context, constant(f"{name}.samples", [self.packed, sequence, hidden])], f"{name}.joined")
            return linear(context, f"{name}.out", hidden, hidden)

        def delta_rule(x: str, name: str) -> str:
            size, chunks = self.chunk, sequence // self.chunk
            cut = constant(f"{name}.cut", [0, chunks, size, heads, hidden // heads])
            q, k, v = (graph.node("Transpose", [graph.node("Reshape", [out, cut], f"{out}.cut")], f"{out}.chunks", perm=[0, 3, 1, 2, 4])
                       for out in queries_keys_values(x, name))
            keys = graph.node("Transpose", [k], f"{name}.keys", perm=[0, 1, 2, 4, 3])
            below = graph.node("Trilu", [graph.node("MatMul", [k, keys], f"{name}.gram"), constant(f"{name}.below", -1)], f"{name}.lower", upper=0)
            inverse = graph.node("Neg", [below], f"{name}.rows.0")
            for row in range(1, size):
                before, behind = (slice_of(inverse, (3, row, row + 1), (4, low, high)) for low, high in ((0, row), (row, size)))
                known = slice_of(inverse, (3, 0, row), (4, 0, row))
                new = graph.node("Add", [before, graph.node("MatMul", [before, known], f"{name}.products.{row}")], f"{name}.row.{row}")
                pieces = [slice_of(inverse, (3, 0, row)), graph.node("Concat", [new, behind], f"{name}.whole.{row}", axis=4)]
                pieces += [slice_of(inverse, (3, row + 1, size))] if row + 1 < size else []
                inverse = graph.node("Concat", pieces, f"{name}.rows.{row}", axis=3)
            one = graph.node("Cast", [constant(f"{name}.eye", numpy.eye(size))], f"{name}.one", to=1)  # FLOAT
            inverse = graph.node("Add", [inverse, one], f"{name}.inverse")
            values, decays = (graph.node("MatMul", [inverse, y], f"{y}.solved") for y in (v, k))
            scores = graph.node("Trilu", [graph.node("MatMul", [q, keys], f"{name}.all_scores"), constant(f"{name}.seen", 0)], f"{name}.scores", upper=0)
            state, outs = "", []
            for chunk in range(chunks):
                q_i, scores_i, keys_i, new, decay = (slice_of(y, (2, chunk, chunk + 1)) for y in (q, scores, keys, values, decays))
                if state:
                    new = graph.node("Sub", [new, graph.node("MatMul", [decay, state], f"{name}.{chunk}.old")], f"{name}.{chunk}.new")
                out = graph.node("MatMul", [scores_i, new], f"{name}.{chunk}.inner")
                if state:
                    out = graph.node("Add", [out, graph.node("MatMul", [q_i, state], f"{name}.{chunk}.outer")], f"{name}.{chunk}.out")
                outs.append(out)
                added = graph.node("MatMul", [keys_i, new], f"{name}.{chunk}.added")
                state = graph.node("Add", [state, added], f"{name}.{chunk}.state") if state else added
            out = graph.node("Transpose", [graph.node("Concat", outs, f"{name}.chunks", axis=2)], f"{name}.positions", perm=[0, 2, 3, 1, 4])
            return linear(graph.node("Reshape", [out, constant(f"{name}.joined", [0, sequence, hidden])], f"{name}.all"), f"{name}.out", hidden, hidden)

        def mlp(x: str, name: str) -> str:
            wide = 4 * hidden
            if self.gated and self.fused:
                gate, up = parts(linear(x, f"{name}.gate_up", hidden, 2 * wide), wide, 2)
            else:
                up = linear(x, f"{name}.up", hidden, wide)
                gate = linear(x, f"{name}.gate", hidden, wide) if self.gated else up
            out = graph.node("Gelu", [gate], f"{name}.gelu", approximate=self.gelu)
            out = graph.node("Mul", [out, up], f"{name}.gated") if self.gated else out
            return linear(out, f"{name}.down", wide, hidden)

        def packed_mlp(x: str, name: str) -> str:
            """Neighbouring positions change places and back, as where patches are merged."""
            sizes = (hidden, 4 * hidden), (4 * hidden, hidden)
            layers = [(weight(f"{name}.{layer}.weight", *size), weight(f"{name}.{layer}.bias", size[1]))
                      for layer, size in zip(("up", "down"), sizes)]
            pairs, rows = constant(f"{name}.pairs", [sequence // 2, 2, hidden]), constant(f"{name}.rows", [1, sequence, hidden])
            outs = []
            for sample in range(self.packed):
                out, at = slice_of(x, (0, sample, sample + 1)), f"{name}.{sample}"
                out = graph.node("Reshape", [out, pairs], f"{at}.pairs")
                out = graph.node("Transpose", [out], f"{at}.turned", perm=[1, 0, 2])
                for layer, (matrix, bias) in zip(("up", "down"), layers):
                    out = graph.node("MatMul", [out, matrix], f"{at}.{layer}.product")
                    out = graph.node("Add", [out, bias], f"{at}.{layer}")
                    out = graph.node("Gelu", [out], f"{at}.gelu", approximate=self.gelu) if layer == "up" else out
                out = graph.node("Transpose", [out], f"{at}.positions", perm=[1, 0, 2])
                outs.append(graph.node("Reshape", [out, rows], f"{at}.out"))
            return graph.node("Concat", outs, f"{name}.out", axis=0)

        def mixture(x: str, name: str) -> str:
            """All experts' columns are of one product."""
            wide, count, rows = 2 * hidden, self.experts, "bs"
            samples = x
            if self.flat_rows:
                rows = "t"
                x = graph.node("Reshape", [x, constant(f"{name}.flat", [-1, hidden])], f"{name}.tokens")
            gates = linear(x, f"{name}.router", hidden, count)
            if self.gates != "masked":
                gates = graph.node("Softmax", [gates], f"{name}.gates")
            if self.chosen:
                largest, choice = graph.node_of_several("TopK", [gates, constant(f"{name}.chosen", [self.chosen])],
                                                        [f"{name}.largest", f"{name}.choice"])
                elsewhere = graph.node("Expand", [constant(f"{name}.lowest", -numpy.inf if self.gates == "masked" else 0, "f4"),
                                                  graph.node("Shape", [gates], f"{name}.shape")], f"{name}.elsewhere")
                gates = graph.node("ScatterElements", [elsewhere, choice, largest], f"{name}.scattered", axis=-1)
            if self.gates == "masked":
                gates = graph.node("Softmax", [gates], f"{name}.gates")
            gates = graph.node("Unsqueeze", [gates, constant(f"{name}.last", [-1])], f"{name}.gates.columns")
            up_weight = weight(f"{name}.up.weight", count, hidden, wide)
            if self.gates == "inputs":
                each = graph.node("Unsqueeze", [x, constant(f"{name}.experts.dim", [-2])], f"{name}.rows")
                each = graph.node("Mul", [each, gates], f"{name}.rows.gated")
                up = graph.node("Einsum", [each, up_weight], f"{name}.up", equation=f"{rows}ed,edf->{rows}ef")
            else:
                up = graph.node("Einsum", [x, up_weight], f"{name}.up", equation=f"{rows}d,edf->{rows}ef")
            out = graph.node("Gelu", [up], f"{name}.gelu", approximate=self.gelu)
            out = graph.node("Einsum", [out, weight(f"{name}.down.weight", count, wide, hidden)], f"{name}.down",
                             equation=f"{rows}ef,efd->{rows}ed")
            if self.gates != "inputs":
                out = graph.node("Mul", [out, gates], f"{name}.gated")
            out = graph.node("ReduceSum", [out, constant(f"{name}.experts", [-2])], f"{name}.sum", keepdims=0)
            if self.flat_rows:
                out = graph.node("Reshape", [out, graph.node("Shape", [samples], f"{name}.samples.shape")], f"{name}.samples")
            return out

        mixer = packed_attention if self.packed else delta_rule if self.chunk else attention
        graph.input("input_ids", numpy.int64, [self.packed or "batch", sequence])
        x = graph.node("Gather", [weight("embedding.weight", self.vocabulary, hidden), "input_ids"], "tokens")
        x = dropped(graph.node("Add", [x, weight("positions.weight", sequence, hidden)], "embedded"))

        def some_samples(x: str) -> str:
            """Of an MLP as transformers' drop_path has it, else as `bernoulli_` does."""
            if not self.skipped:
                return x
            uniform = graph.node("RandomUniformLike", [slice_of(x, (1, 0, 1), (2, 0, 1))], f"{x}.uniform")
            kept = constant(f"{x}.kept", 1 - self.skipped, "f4")
            if "down" in x:
                chosen = graph.node("Floor", [graph.node("Add", [kept, uniform], f"{x}.sum")], f"{x}.chosen")
                return graph.node("Mul", [graph.node("Div", [x, kept], f"{x}.scaled"), chosen], f"{x}.some")
            chosen = graph.node("Cast", [graph.node("Less", [uniform, kept], f"{x}.below")], f"{x}.chosen", to=1)  # FLOAT
            return graph.node("Mul", [x, graph.node("Div", [chosen, kept], f"{x}.factor")], f"{x}.some")

        def block(x: str, name: str) -> str:
            before, behind = (lambda y, _: y, norm) if self.post_norm else (norm, lambda y, _: y)
            out = some_samples(dropped(mixer(before(x, f"{name}.norm1"), f"{name}.attention")))
            x = behind(graph.node("Add", [x, out], f"{name}.x1"), f"{name}.norm1")
            out = (mixture if self.experts else packed_mlp if self.packed else mlp)(before(x, f"{name}.norm2"), name)
            return behind(graph.node("Add", [x, some_samples(dropped(out))], f"{name}.x2"), f"{name}.norm2")

        if self.scanned:
            graph = Graph()
            graph.input("block.x", numpy.float32, ["batch", sequence, hidden])
            graph.output(block("block.x", "blocks"), numpy.float32, ["batch", sequence, hidden])
            x = whole.node("Scan", [x, *scanned], "scanned", body=graph, num_scan_inputs=len(scanned))
            graph = whole
        else:
            for number in range(self.blocks):
                x = block(x, f"blocks.{number}")
        x = x if self.post_norm else norm(x, "norm")
        head = (graph.node("Transpose", ["embedding.weight"], "head", perm=[1, 0]) if self.tied
                else weight("head.weight", hidden, self.vocabulary))
        graph.node("MatMul", [x, head], "logits")
        if self.own_loss:
            graph.input("labels", numpy.int64, ["batch", sequence])
            if self.shifted:
                rows = graph.node("Reshape", [slice_of("logits", (1, 0, -1)), constant("rows", [-1, self.vocabulary])], "flat")
                index = graph.node("Reshape", [slice_of("labels", (1, 1, sequence)), constant("flat.index", [-1])], "index")
                graph.node("SoftmaxCrossEntropyLoss", [rows, index], "loss", ignore_index=-100)
                graph.output("loss", numpy.float32, [])
                return graph.model()
            rows = graph.node("Reshape", ["logits", constant("rows", [-1, self.vocabulary])], "flat")
            index = graph.node("Reshape", ["labels", constant("column", [-1, 1])], "index")
            chosen = graph.node("GatherElements", [graph.node("LogSoftmax", [rows], "logs", axis=1), index], "chosen", axis=1)
            if self.entropy:
                share = graph.node("Mul", [graph.node("Softmax", [rows], "share", axis=1), "logs"], "certainty")
                certainty = graph.node("ReduceSum", [share, constant("classes", [1])], "certainty.sum", keepdims=1)
                certainty = graph.node("Mul", [certainty, constant("tenth", 0.1, "f4")], "certainty.tenth")
                chosen = graph.node("Sub", [chosen, certainty], "chosen.uncertain")
            graph.node("Neg", [graph.node("ReduceMean", [chosen], "mean", keepdims=0)], "loss")
            graph.output("loss", numpy.float32, [])
            return graph.model()
        graph.output("logits", numpy.float32, [self.packed or "batch", sequence, self.vocabulary])
        return graph.model()

    def recipe(self, batch: int, micro: int, trainable: str = "*", precision: str = "f32") -> str:
        of_logits = f"""inputs:
  labels: {{dtype: int64, shape: [micro_batch, {self.sequence}]}}
loss: {{kind: token_cross_entropy, logits: logits, labels: labels, shift: true, ignore_index: -100}}"""
        return f"""
model: {{bind: {{{"" if self.packed else "batch: micro_batch"}}}}}
{"loss: {kind: sum, output: loss, over: microbatch}" if self.own_loss else of_logits}
parameters: {{trainable: ["{trainable}"], frozen: []}}
optimizer: {{kind: sgd, lr: 1.0e-2}}
schedule: {{kind: constant}}
batch: {{global: {batch}, micro: {micro}}}
precision: {precision}
steps: 3
seed: 0
"""
