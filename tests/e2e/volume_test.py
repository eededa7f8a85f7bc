"""What a step sends over each mesh axis, as `oriel inspect` says it, against the formulas of each strategy.

The model is Llama 2 7B: L blocks, hidden size h, V tokens, f32, P bytes of parameters; a microbatch is [b, s].

A rank sends of a value of B bytes on n ranks, by a ring (Rajbhandari et al. 2020, "ZeRO", section 7.1):
    all-reduce 2 B (n-1)/n, reduce-scatter and all-gather B (n-1)/n, where B is the whole value.

Data parallelism (Rajbhandari et al. 2020, section 7):
    ZeRO-0  once a step an all-reduce of all gradients: 2 P (n-1)/n
    ZeRO-1  once a step a reduce-scatter of the gradients, and an all-gather of the parameters: the same
    ZeRO-2  the reduce-scatter for each microbatch, because only a rank's piece of the gradient is kept
    ZeRO-3  for each microbatch an all-gather of the parameters in forward, another one in backward, and the
            reduce-scatter: 3 P (n-1)/n; without the embedding's in backward, which does not read it
Tensor parallelism (Narayanan et al. 2021, "Megatron-LM on GPU clusters", section 2.3):
    2 all-reduces of [b, s, h] per block in forward, 2 in backward, which with a vocabulary that is split
    are one more in each: behind the embedding, and for the cotangent of the output layer's input;
    the loss completes 3 numbers per position (its maximum, sum of exponentials, logit of the label)
Sequence parallelism (Korthikanti et al. 2022, section 4.2.2):
    each all-reduce is a reduce-scatter and an all-gather; backward gathers the input of the column-parallel
    layers again for their weights' gradients; the norms' gradients are sums over the pieces of the sequence
"""

import json

from oriel_testing import SOURCE, OrielTestCase

SKELETON = SOURCE / "models" / "skeletons" / "llama_2_7b"
BATCH, MICRO, SEQUENCE = 16, 2, 1024
F32 = 4


class Volume:
    """Collectives of one axis and segment: bytes sent and counts, for a whole step."""

    def __init__(self):
        self.sent, self.counts = 0, {}

    def add(self, kind: str, count: int, sent: int) -> None:
        self.sent += sent
        self.counts[kind] = self.counts.get(kind, 0) + count

    def all_reduce(self, size: int, ranks: int, count: int = 1) -> None:
        self.add("all_reduce", count, 2 * count * (size - -(-size // ranks)))

    def reduce_scatter(self, size: int, ranks: int, count: int = 1) -> None:
        self.add("reduce_scatter", count, count * size * (ranks - 1) // ranks)

    def all_gather(self, size: int, ranks: int, count: int = 1) -> None:
        self.add("all_gather", count, count * size * (ranks - 1) // ranks)

    def each(self, kind: str, sizes: list[int], ranks: int, times: int = 1) -> None:
        for size in sizes:
            getattr(self, kind)(size, ranks, times)

    def merged_all_reduce(self, sizes: list[int], ranks: int) -> None:
        """One all-reduce of several values."""
        self.each("all_reduce", sizes, ranks)
        self.counts["all_reduce"] -= len(sizes) - 1


class Llama:
    """Sizes in bytes of Llama 2 7B over `tp` ranks of tensor parallelism."""

    def __init__(self, tp: int = 1):
        config = json.loads((SKELETON / "config.json").read_text())
        self.blocks, hidden = config["num_hidden_layers"], config["hidden_size"]
        inner, vocabulary = config["intermediate_size"], config["vocab_size"]
        self.embedding = F32 * vocabulary * hidden // tp  # and the output layer
        self.norm = F32 * hidden
        self.split = [F32 * hidden * hidden // tp] * 4 + [F32 * hidden * inner // tp] * 3  # of a block
        self.matrices = [self.embedding, *self.split * self.blocks, self.embedding]
        self.norms = [self.norm] * (2 * self.blocks + 1)
        self.parameters = self.matrices + self.norms
        self.activation = F32 * MICRO * SEQUENCE * hidden
        self.statistic = F32 * MICRO * SEQUENCE
        # Sums of squares that are added in the order of the parameters, and are completed once they meet
        # one of a parameter that is not split: the first norm's, behind the embedding and the first block.
        self.partial_norms = [F32] * (len(self.matrices) - len(self.split))


class VolumeTest(OrielTestCase):
    def inspect(self, mesh: str, *options: str) -> tuple[dict, str]:
        """The plan as JSON and as text."""
        text = (SKELETON / "recipe.yaml").read_text()
        for old, new in (("global: 1024, micro: 1}", f"global: {BATCH}, micro: {MICRO}}}"),
                         ("sequence: 4096", f"sequence: {SEQUENCE}")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        recipe, plan = self.folder / "recipe.yaml", self.folder / "p.oplan"
        recipe.write_text(text)
        # So that each collective is in the segment that it comes from.
        self.run_ok("oriel", "compile", SKELETON / "model.onnx", "--recipe", recipe, "--mesh", mesh, *options, "--overlap", "off",
                    "-o", plan)
        return (json.loads(self.run_ok("oriel", "inspect", "--json", plan).stdout),
                self.run_ok("oriel", "inspect", plan).stdout)

    def check(self, mesh: str, *options: str, expected: dict[tuple[str, str], Volume]) -> None:
        content, text = self.inspect(mesh, *options)
        (program,) = content["programs"]
        actual = {(line["axes"], line["segment"]): (line["sent_bytes"], line["counts"])
                  for line in program["volume"]}
        self.assertEqual(actual, {key: (volume.sent, volume.counts) for key, volume in expected.items()})
        self.assertEqual(program["sent_bytes_per_step"], sum(volume.sent for volume in expected.values()))
        # The same, for people.
        for axes, segment in expected:
            self.assertRegex(text, rf"\n  {axes.replace('+', '[+]')} +{segment} .* in .* over \d+ ranks")

    def data_parallel(self, ranks: int, zero: int) -> dict[tuple[str, str], Volume]:
        llama, microbatches = Llama(), BATCH // MICRO // ranks
        forward, backward, update = Volume(), Volume(), Volume()
        loss = [F32, F32]  # its sum and the number of its tokens
        if zero == 0:
            update.merged_all_reduce(llama.parameters + loss, ranks)
            return {("dp", "update"): update}
        scatters = update if zero == 1 else backward
        scatters.each("reduce_scatter", llama.parameters, ranks, 1 if zero == 1 else microbatches)
        update.merged_all_reduce(loss, ranks)
        update.all_reduce(F32, ranks)  # the square of the gradient's norm
        if zero < 3:
            update.each("all_gather", llama.parameters, ranks)
        else:
            forward.each("all_gather", llama.parameters, ranks, microbatches)
            backward.each("all_gather", llama.parameters[1:], ranks, microbatches)
        volumes = {("dp", "forward"): forward, ("dp", "backward"): backward, ("dp", "update"): update}
        return {key: volume for key, volume in volumes.items() if volume.counts}

    def tensor_parallel(self, ranks: int, microbatches: int, sequence: bool) -> dict[tuple[str, str], Volume]:
        """Without the update."""
        llama = Llama(ranks)
        forward, backward = Volume(), Volume()
        between = 2 * llama.blocks + 1
        for volume in (forward, backward):
            if sequence:
                volume.reduce_scatter(llama.activation, ranks, microbatches * between)
                volume.all_gather(llama.activation, ranks, microbatches * between)
            else:
                volume.all_reduce(llama.activation, ranks, microbatches * between)
        if sequence:
            backward.all_gather(llama.activation, ranks, microbatches * between)
        forward.all_reduce(llama.statistic, ranks, microbatches * 3)
        return {("tp", "forward"): forward, ("tp", "backward"): backward}

    def test_zero_0(self):
        self.check("dp=4", expected=self.data_parallel(4, 0))

    def test_zero_1(self):
        self.check("dp=4", "--zero", "1", expected=self.data_parallel(4, 1))

    def test_zero_2(self):
        self.check("dp=4", "--zero", "2", expected=self.data_parallel(4, 2))

    def test_zero_3(self):
        self.check("dp=4", "--zero", "3", expected=self.data_parallel(4, 3))

    def test_hsdp(self):
        """Groups of 2 that shard, and 4 copies of them: what a group has reduced is reduced over the copies."""
        llama, copies, group = Llama(), 4, 2
        over_copies, over_group, over_all = Volume(), Volume(), Volume()
        over_group.each("reduce_scatter", llama.parameters, group)
        over_copies.each("all_reduce", [size // group for size in llama.parameters], copies)
        over_group.each("all_gather", llama.parameters, group)
        over_group.all_reduce(F32, group)
        over_all.merged_all_reduce([F32, F32], copies * group)
        self.check("dp=8", "--zero", "1", "--hsdp", "2", expected={
            ("fsdp", "update"): over_group, ("dp", "update"): over_copies, ("dp+fsdp", "update"): over_all})

    def test_tensor_parallel(self):
        update = Volume()
        update.merged_all_reduce(Llama(4).partial_norms, 4)
        volumes = self.tensor_parallel(4, BATCH // MICRO, sequence=False)
        self.check("tp=4", expected={**volumes, ("tp", "update"): update})

    def test_sequence_parallel(self):
        update, llama = Volume(), Llama(4)
        update.merged_all_reduce(llama.norms, 4)
        update.merged_all_reduce(llama.partial_norms, 4)
        volumes = self.tensor_parallel(4, BATCH // MICRO, sequence=True)
        self.check("tp=4", "--sp", expected={**volumes, ("tp", "update"): update})

    def test_context_parallel(self):
        """An all-to-all of query, key, value and result in forward. In backward one of the cotangent and of the result
        (its own product wants it by positions), and three of the cotangents; and one of the value, whose
        reshape is made again. Each rank keeps 1/n of its 1/n (Jacobs et al. 2023, "DeepSpeed-Ulysses", section 3)."""
        ranks, microbatches, llama = 4, BATCH // MICRO, Llama()
        forward, backward, update = Volume(), Volume(), Volume()
        piece = llama.activation // ranks
        forward.add("all_to_all", 4 * llama.blocks * microbatches,
                    4 * llama.blocks * microbatches * piece * (ranks - 1) // ranks)
        backward.add("all_to_all", 6 * llama.blocks * microbatches,
                     6 * llama.blocks * microbatches * piece * (ranks - 1) // ranks)
        update.merged_all_reduce(llama.parameters + [F32, F32], ranks)
        self.check("cp=4", expected={("cp", "forward"): forward, ("cp", "backward"): backward, ("cp", "update"): update})

    def test_all_together(self):
        """ZeRO-3 over pieces of tensor parallelism, with copies: what one axis has cut, the next ones cut further."""
        dp, fsdp, tp = 2, 2, 2
        llama, microbatches = Llama(tp), BATCH // MICRO // dp // fsdp
        volumes = self.tensor_parallel(tp, microbatches, sequence=True)
        keys = [("fsdp", "forward"), ("fsdp", "backward"), ("fsdp", "update"), ("dp", "update"),
                ("dp+tp", "update"), ("dp+fsdp", "update"), ("tp", "update")]
        volumes.update({key: Volume() for key in keys})
        volumes["fsdp", "forward"].each("all_gather", llama.parameters, fsdp, microbatches)
        volumes["fsdp", "backward"].each("all_gather", llama.parameters[1:], fsdp, microbatches)
        volumes["fsdp", "backward"].each("reduce_scatter", llama.parameters, fsdp, microbatches)
        # The norms' gradients are pending over both.
        volumes["dp", "update"].merged_all_reduce([size // fsdp for size in llama.matrices], dp)
        volumes["dp+tp", "update"].merged_all_reduce([size // fsdp for size in llama.norms], dp * tp)
        volumes["dp+fsdp", "update"].merged_all_reduce([F32, F32], dp * fsdp)
        volumes["tp", "update"].merged_all_reduce(llama.partial_norms, tp)
        volumes["fsdp", "update"].all_reduce(F32, fsdp)
        self.check("dp=2,fsdp=2,tp=2", "--zero", "3", "--sp", expected=volumes)

    def test_transfers(self):
        """Between stages: an activation forward and its cotangent backward for each microbatch, each byte
        once on whatever mesh, and nothing else (masks and rotary tables are made again)."""
        for mesh, shares in (("dp=1", 1), ("tp=2", 1), ("dp=2,tp=2", 2)):
            with self.subTest(mesh):
                content, _ = self.inspect(mesh, "--stages", "4")
                actual = {}
                for channel in content["channels"]:
                    key = (channel["source_grid"], channel["target_grid"], channel["segment"].split(".")[0])
                    runs, size = actual.get(key, (0, 0))
                    actual[key] = (runs + channel["runs_per_step"], size + channel["bytes"])
                ranks = content["world"] // 4
                expected = {}
                for stage in range(3):
                    passes = (BATCH // MICRO // shares, shares * Llama().activation)
                    expected[stage, stage + 1, "forward"] = expected[stage + 1, stage, "backward"] = passes
                    # The square of the gradient's norm; back come its scale, the loss, the norm, the tokens.
                    expected[stage, 3, "update"] = (1, F32 * ranks)
                    expected[3, stage, "update"] = (4, 4 * F32 * ranks)
                self.assertEqual({key: value for key, value in actual.items() if key[2] != "eval"}, expected)
