"""ONNX's LinearAttention trains as the recurrence that it stands for, which a Scan goes through position by position."""

import numpy
from forms_testing import FormsTestCase
from onnx_writer import Graph

BATCH, HEADS, KEY, VALUE, WIDTH = 2, 2, 4, 8, 16


def scanned(graph: Graph, rule: str, shared: int, scale: float) -> None:
    """S' = exp(g) S + k (beta (v - exp(g) Sᵀ k))ᵀ, less what the rule leaves out; o = scale S'ᵀ q."""
    gated, delta = "gated" in rule, "delta" in rule
    body = Graph()
    body.input("s", numpy.float32, [BATCH, HEADS, KEY, VALUE])
    rows = ["q", "k", "v"] + ["g"] * gated + ["beta"] * delta
    for row in rows:
        body.input(f"{row}_row", numpy.float32, [BATCH, "columns"])

    def heads(row: str, *last: int) -> str:
        body.initializer(f"{row}_shape", numpy.array([BATCH, HEADS, *last]))
        return body.node("Reshape", [f"{row}_row", f"{row}_shape"], f"{row}_heads")

    q, k, v = heads("q", shared, KEY), heads("k", KEY, 1), heads("v", 1, VALUE)
    state = "s"
    if gated:
        state = body.node("Mul", [state, body.node("Exp", [heads("g", -1, 1)], "factor")], "decayed")
    if delta:
        body.initializer("beta_shape", numpy.array([BATCH, -1, 1, 1]))
        beta = body.node("Reshape", ["beta_row", "beta_shape"], "beta_heads")
        read = body.node("MatMul", [body.node("Transpose", [k], "kt", perm=[0, 1, 3, 2]), state], "read")
        v = body.node("Mul", [beta, body.node("Sub", [v, read], "missing")], "update")
    body.node("Add", [state, body.node("MatMul", [k, v], "written")], "next")
    body.initializer("factor_of_q", numpy.array(scale, "f4"))
    body.initializer("out_shape", numpy.array([BATCH, HEADS * shared * VALUE]))
    found = body.node("Mul", [body.node("MatMul", [q, "next"], "found"), "factor_of_q"], "scaled")
    body.node("Reshape", [found, "out_shape"], "o")
    body.output("next", numpy.float32, [BATCH, HEADS, KEY, VALUE])
    body.output("o", numpy.float32, [BATCH, HEADS * shared * VALUE])
    graph.node_of_several("Scan", ["past", *rows], ["", "o_all"], body=body, num_scan_inputs=len(rows),
                          scan_input_axes=[1] * len(rows), scan_output_axes=[1])


class LinearAttentionTest(FormsTestCase):
    batch, width, opset = BATCH, WIDTH, 27

    def add_constants(self, graph: Graph) -> None:
        graph.initializer("past", numpy.linspace(0, 1, BATCH * HEADS * KEY * VALUE, dtype="f4").reshape(BATCH, HEADS, KEY, VALUE))

    def check(self, name: str, rule: str, tokens: int, shared: int = 1, gates: int = HEADS, betas: int = HEADS, scale: float = 0.0,
              resets: bool = False):
        gated, delta = "gated" in rule, "delta" in rule
        self.tokens = tokens
        widths = {"q": HEADS * shared * KEY, "k": HEADS * KEY, "v": HEADS * VALUE}
        widths |= ({"g": gates} if gated else {}) | ({"beta": betas} if delta else {})
        self.shapes = {f"w{row}": (WIDTH, width) for row, width in widths.items()} | {"wo": (HEADS * shared * VALUE, WIDTH)}

        def build(graph: Graph, is_op: bool) -> None:
            for row in widths:
                graph.node("MatMul", ["x", f"w{row}"], f"{row}_raw" if row in ("g", "beta") else row)
            if gated:
                graph.node("Neg", [graph.node("Softplus", ["g_raw"], "positive")], "g_usual" if resets else "g")
            if resets:
                row = numpy.where(numpy.arange(tokens) == tokens // 2, -1e6, 0).astype("f4").reshape(1, tokens, 1)
                graph.node("Add", ["g_usual", graph.initializer("reset", row)], "g")
            if delta:
                graph.node("Sigmoid", ["beta_raw"], "beta")
            if is_op:
                operands = ["q", "k", "v", "past", "g" if gated else "", "beta" if delta else ""]
                graph.node_of_several("LinearAttention", operands, ["o_all", "state"], update_rule=rule,
                                      q_num_heads=HEADS * shared, kv_num_heads=HEADS, scale=scale)
            else:
                scanned(graph, rule, shared, scale or KEY ** -0.5)
            graph.node("MatMul", ["o_all", "wo"], "y")

        self.compare(name, build)

    def test_rules(self):
        for rule in ("linear", "gated", "delta", "gated_delta"):
            self.check(rule, rule, tokens=7)

    def test_chunks(self):
        """More positions than a chunk has, which it does not divide."""
        self.check("chunks", "gated_delta", tokens=67, scale=0.3)

    def test_resets(self):
        """A decay that leaves nothing of the state, and ordinary ones behind it in the same chunk."""
        for rule in ("gated", "gated_delta"):
            self.check(f"reset_{rule}", rule, tokens=8, resets=True)

    def test_decays_of_columns(self):
        self.check("columns", "gated_delta", tokens=19, gates=HEADS * KEY)
        self.check("columns_without_delta", "gated", tokens=19, gates=HEADS * KEY)

    def test_heads_that_share_keys(self):
        self.check("shared", "gated_delta", tokens=19, shared=2, betas=1)
        self.check("shared_columns", "gated_delta", tokens=19, shared=2, gates=HEADS * KEY)
