"""Ops of ONNX Runtime's own domain train as the ones of ONNX that compute the same."""

import numpy
from forms_testing import FormsTestCase
from onnx_writer import Graph

BATCH, TOKENS, HEADS, GROUPS, HEAD = 2, 6, 4, 2, 8
WIDTH, KEYS = HEADS * HEAD, GROUPS * HEAD
SHAPES = {"wq": (WIDTH, WIDTH), "wk": (WIDTH, KEYS), "wv": (WIDTH, KEYS), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH),
          "gamma": (WIDTH,), "beta": (WIDTH,), "bias": (WIDTH,), "bias3": (3 * WIDTH,), "packed": (WIDTH, 3 * WIDTH), "sink": (HEADS,)}
GROUPED = {"q_num_heads": HEADS, "kv_num_heads": GROUPS}
WHOLE = {"q_num_heads": HEADS, "kv_num_heads": HEADS}


def with_constants(graph: Graph) -> None:
    angles = numpy.outer(numpy.arange(16), 10.0 ** -numpy.arange(HEAD // 2)).astype("f4")
    graph.initializer("cos", numpy.cos(angles))
    graph.initializer("sin", numpy.sin(angles))
    graph.initializer("positions", numpy.tile(numpy.arange(TOKENS), (BATCH, 1)))
    graph.initializer("offset", numpy.array([2]))
    graph.initializer("shifted", numpy.tile(numpy.arange(TOKENS) + 2, (BATCH, 1)))
    graph.initializer("lengths", numpy.full(BATCH, TOKENS - 1, "i4"))
    graph.initializer("total", numpy.array(TOKENS, "i4"))
    graph.initializer("shown", numpy.array([[1] * 6, [1] * 4 + [0] * 2], "i4"))
    graph.initializer("seen", numpy.array([[1] * 6, [1] * 4 + [0] * 2], "?").reshape(BATCH, 1, 1, TOKENS))


def products(graph: Graph, *names: str) -> list[str]:
    return [graph.node("MatMul", ["x", name], f"{name}_of_x") for name in names]


def rotated(graph: Graph, value: str, heads: int, positions: str = "positions", **attributes) -> str:
    return graph.node("RotaryEmbedding", [value, "cos", "sin", positions], f"{value}_turned", num_heads=heads, **attributes)


def grouped_query(graph: Graph, contrib: bool, rotary: bool, window: int, scale: float) -> None:
    q, k, v = products(graph, "wq", "wk", "wv")
    if contrib:
        tables = ["cos", "sin"] if rotary else ["", ""]
        graph.node("com.microsoft.GroupQueryAttention", [q, k, v, "", "", "lengths", "total", *tables], "y", num_heads=HEADS,
                   kv_num_heads=GROUPS, do_rotary=int(rotary), local_window_size=window, scale=scale)
        return
    if rotary:
        q, k = rotated(graph, q, HEADS), rotated(graph, k, GROUPS)
    # The window is a mask: one of the standard op came after operator set 23.
    distance = numpy.arange(TOKENS)[:, None] - numpy.arange(TOKENS)
    graph.initializer("window", (distance >= 0) & (distance < window if window > 0 else True))
    graph.node("Attention", [q, k, v, "window"], "y", **GROUPED, scale=scale)


def sunk_query(graph: Graph, contrib: bool, smooth: bool) -> None:
    """Rows whose exponentials are divided by their sum and that of a sink, which is 0 for a smooth softmax."""
    q, k, v = products(graph, "wq", "wk", "wv")
    if contrib:
        sink = [] if smooth else ["", "", "", "", "sink"]
        graph.node("com.microsoft.GroupQueryAttention", [q, k, v, "", "", "lengths", "total", *sink], "y", num_heads=HEADS,
                   kv_num_heads=GROUPS, smooth_softmax=int(smooth), scale=0.3)
        return
    for name, values in (("split", [0, 0, -1, HEAD]), ("merged", [0, 0, WIDTH]), ("pairs", [0, 0, 1, 1]), ("last", [-1]),
                         ("heads", [HEADS, 1, 1])):
        graph.initializer(name, numpy.array(values))
    graph.initializer("scale", numpy.array(0.3, "f4"))
    graph.initializer("causal", numpy.tril(numpy.ones((TOKENS, TOKENS), "?")))
    q, k, v = (graph.node("Reshape", [value, "split"], f"{value}_heads") for value in (q, k, v))
    k, v = (graph.node("Gather", [value, "pairs"], f"{value}_repeated", axis=2) for value in (k, v))
    q, v = (graph.node("Transpose", [value], f"{value}_first", perm=[0, 2, 1, 3]) for value in (q, v))
    k = graph.node("Transpose", [k], f"{k}_columns", perm=[0, 2, 3, 1])
    scores = graph.node("Mul", [graph.node("MatMul", [q, k], "products"), "scale"], "scores")
    ones = graph.node("Cast", ["causal"], "ones", to=1)  # FLOAT
    shown = graph.node("Mul", [graph.node("Exp", [scores], "exps"), ones], "shown_exps")
    sink = graph.initializer("zero", numpy.array(0, "f4")) if smooth else graph.node("Reshape", ["sink", "heads"], "sinks")
    total = graph.node("Add", [graph.node("ReduceSum", [shown, "last"], "sums"), graph.node("Exp", [sink], "share")], "total_exps")
    context = graph.node("MatMul", [graph.node("Div", [shown, total], "p"), v], "context")
    graph.node("Reshape", [graph.node("Transpose", [context], "rows", perm=[0, 2, 1, 3]), "merged"], "y")


def packed_query(graph: Graph, contrib: bool) -> None:
    if contrib:
        product = graph.node("MatMul", ["x", "packed"], "product")
        graph.node("com.microsoft.GroupQueryAttention", [product, "", "", "", "", "lengths", "total", "cos", "sin", "positions"],
                   "y", num_heads=HEADS, kv_num_heads=HEADS, do_rotary=1, rotary_interleaved=1)
        return
    graph.node("MatMul", ["x", "packed"], "product")
    graph.node_of_several("Split", ["product"], ["q", "k_", "v_"], axis=-1, num_outputs=3)
    q, k = (rotated(graph, name, HEADS, interleaved=1) for name in ("q", "k_"))
    graph.node("Attention", [q, k, "v_"], "y", **WHOLE, is_causal=1)


def multi_head(graph: Graph, contrib: bool) -> None:
    q, k, v = products(graph, "wq", "k", "v")
    if contrib:
        graph.node("com.microsoft.MultiHeadAttention", [q, k, v, "bias3", "shown"], "y", num_heads=HEADS)
        return
    graph.node_of_several("Split", ["bias3"], ["b0", "b1", "b2"], axis=0, num_outputs=3)
    q, k, v = (graph.node("Add", [value, bias], f"{value}_biased") for value, bias in ((q, "b0"), (k, "b1"), (v, "b2")))
    graph.node("Attention", [q, k, v, "seen"], "y", **WHOLE)


def packed_heads(graph: Graph, contrib: bool, parts: int) -> None:
    """Keys and values, or queries too, in pieces of each head."""
    product = graph.node("MatMul", ["x", "packed"], "product")
    graph.initializer("heads", numpy.array([0, 0, HEADS, 3, HEAD]))
    split = graph.node("Reshape", [product, "heads"], "split")
    if contrib and parts == 3:
        graph.node("com.microsoft.MultiHeadAttention", [split, "", "", "bias3"], "y", num_heads=HEADS)
        return
    graph.node_of_several("Split", [split], ["q5", "k5", "v5"], axis=3, num_outputs=3)
    graph.initializer("merged", numpy.array([0, 0, WIDTH]))
    q, k, v = (graph.node("Reshape", [value, "merged"], f"{value}_merged") for value in ("q5", "k5", "v5"))
    if contrib:
        pairs = graph.node("Concat", ["k5", "v5"], "pairs", axis=3)
        graph.node("com.microsoft.MultiHeadAttention", [q, pairs, "", "bias3"], "y", num_heads=HEADS)
        return
    graph.node_of_several("Split", ["bias3"], ["b0", "b1", "b2"], axis=0, num_outputs=3)
    q, k, v = (graph.node("Add", [value, bias], f"{value}_biased") for value, bias in ((q, "b0"), (k, "b1"), (v, "b2")))
    graph.node("Attention", [q, k, v], "y", **WHOLE)


def packed_attention(graph: Graph, contrib: bool) -> None:
    if contrib:
        graph.node("com.microsoft.Attention", ["x", "packed", "bias3"], "y", num_heads=HEADS, unidirectional=1)
        return
    graph.node("Add", [graph.node("MatMul", ["x", "packed"], "product"), "bias3"], "sum")
    graph.node_of_several("Split", ["sum"], ["q", "k_", "v_"], axis=-1, num_outputs=3)
    graph.node("Attention", ["q", "k_", "v_"], "y", **WHOLE, is_causal=1)


def rotary(graph: Graph, contrib: bool) -> None:
    (q,) = products(graph, "wq")
    if contrib:
        graph.node("com.microsoft.RotaryEmbedding", [q, "offset", "cos", "sin"], "y")
    else:
        graph.node("Identity", [rotated(graph, q, HEADS, "shifted")], "y")


def skip_norm(graph: Graph, contrib: bool) -> None:
    (q,) = products(graph, "wq")
    if contrib:
        graph.node_of_several("com.microsoft.SkipLayerNormalization", ["x", q, "gamma", "beta", "bias"], ["normed", "", "", "sum"],
                              epsilon=1e-5)
    else:
        graph.node("Add", [graph.node("Add", ["x", q], "half"), "bias"], "sum")
        graph.node("LayerNormalization", ["sum", "gamma", "beta"], "normed", epsilon=1e-5)
    graph.node("Add", ["normed", "sum"], "y")


def skip_rms_norm(graph: Graph, contrib: bool) -> None:
    (q,) = products(graph, "wq")
    if contrib:
        graph.node("com.microsoft.SkipSimplifiedLayerNormalization", ["x", q, "gamma"], "y", epsilon=1e-6)
    else:
        graph.node("RMSNormalization", [graph.node("Add", ["x", q], "sum"), "gamma"], "y", epsilon=1e-6)


def gelus(graph: Graph, contrib: bool) -> None:
    (q,) = products(graph, "wq")
    if contrib:
        graph.node("com.microsoft.BiasGelu", [graph.node("com.microsoft.FastGelu", [q, "gamma"], "h"), "bias"], "y")
    else:
        h = graph.node("Gelu", [graph.node("Add", [q, "gamma"], "a")], "h", approximate="tanh")
        graph.node("Gelu", [graph.node("Add", [h, "bias"], "b")], "y")


def fused_product(graph: Graph, contrib: bool) -> None:
    if contrib:
        graph.node("com.microsoft.FusedMatMul", ["x", "k"], "y", alpha=0.5, transB=1)
        return
    graph.initializer("half", numpy.array(0.5, "f4"))
    graph.node("MatMul", ["x", graph.node("Transpose", ["k"], "kt", perm=[1, 0])], "product")
    graph.node("Mul", ["product", "half"], "y")


class ContribOpsTest(FormsTestCase):
    batch, tokens, width, shapes = BATCH, TOKENS, WIDTH, SHAPES

    def add_constants(self, graph: Graph) -> None:
        with_constants(graph)

    def test_grouped_query_attention(self):
        for rotary_, window, scale in ((False, -1, 0.3), (True, -1, 0.3), (True, 3, 0.5)):
            self.compare(f"grouped_{rotary_}_{window}",
                         lambda graph, contrib, r=rotary_, w=window, s=scale: grouped_query(graph, contrib, r, w, s))
        self.compare("packed", packed_query)
        for smooth in (False, True):
            self.compare(f"sunk_{smooth}", lambda graph, contrib, s=smooth: sunk_query(graph, contrib, s))

    def test_attention(self):
        self.compare("multi_head", multi_head)
        for parts in (2, 3):
            self.compare(f"packed_heads_{parts}", lambda graph, contrib, p=parts: packed_heads(graph, contrib, p))
        self.compare("packed_attention", packed_attention)
        self.compare("rotary", rotary)

    def test_norms_and_activations(self):
        self.compare("skip_norm", skip_norm)
        self.compare("skip_rms_norm", skip_rms_norm)
        self.compare("gelus", gelus)
        self.compare("fused_product", fused_product)
