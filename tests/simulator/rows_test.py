"""How rows of published tables are read (no build needed): models, strategies, clusters, and what is refused."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "simulator"))

import decoder  # noqa: E402
import replay  # noqa: E402
import rows  # noqa: E402


def row(**changed) -> dict:
    """A GPT of 24 blocks on 32 A100s, as the columns of train_all.csv say it."""
    values = {"table_id": "t", "row_id": "t-1", "model": "GPT", "kind": "dense-lm pretrain", "layers": "24",
              "hidden": "2048", "heads": "16", "kv_heads": "16", "ffn": "8192", "vocab": "50257", "seq_len": "1024",
              "gbs_seqs": "64", "mbs_seqs": "2", "gpu_type": "A100-SXM-80GB", "n_gpus": "32", "tp": "4", "pp": "4",
              "vpp": "1", "cp": "1", "ep": "", "dp": "2", "dp_strategy": "ZeRO-1 distributed optimizer", "sp": "1",
              "recompute": "none", "precision": "bf16", "schedule": "1F1B", "iter_time_s": "2.5",
              "iter_time_s_derived": "", "peak_mem_gb": "", "mem_kind": "", "replay_ready": "1", "replay_grade": "A",
              "notes": "", "source": "megatron"}
    return {**values, **changed}


class Models(unittest.TestCase):
    def parameters(self, **changed) -> int:
        return rows.read(row(tp="1", pp="1", n_gpus="2", sp="0", schedule="", **changed)).figures.parameters()

    def test_gpt2(self):
        self.assertEqual(self.parameters(layers="12", hidden="768", heads="12", kv_heads="12", ffn="3072",
                                         vocab="50304"), 124475904)

    def test_llama_2_7b(self):
        self.assertEqual(self.parameters(model="Llama-2-7B", layers="32", hidden="4096", heads="32", kv_heads="32",
                                         ffn="11008", vocab="32000"), 6738415616)

    def test_grouped_queries_have_fewer_keys_and_values(self):
        figures = decoder.Decoder(1, 64, 8, 2, 128, 96, 32, 4, norm="rms", mlp="swiglu", biases=False, tied=False)
        self.assertIn("layers.0.attention.key.weight\", type = tensor<64x16xf32>", decoder.module_text(figures))

    def test_fp16_megatron_keeps_scores(self):
        figures = rows.read(row(precision="fp16")).figures
        self.assertFalse(figures.fused_attention)
        self.assertIn("oriel.softmax", decoder.module_text(figures))

    def test_vocabulary_is_padded_for_tp(self):
        self.assertEqual(rows.read(row()).figures.vocab, 50688)


class Memory(unittest.TestCase):
    def memory(self, **changed) -> tuple:
        run = rows.read(row(peak_mem_gb="40", **changed))
        return run.allocator, run.memory_beside

    def test_what_was_allocated_is_compared_with_the_arena(self):
        self.assertEqual(self.memory(mem_kind="max allocated GiB"), ("", 0))

    def test_what_was_reserved(self):
        self.assertEqual(self.memory(mem_kind="max reserved"), ("allocator=caching", 0))
        self.assertEqual(self.memory(mem_kind="max reserved", precision="fp16")[0],
                         "allocator=caching,step_gradients=copied")
        self.assertEqual(self.memory(mem_kind="max reserved", dp_strategy="FSDP FULL_SHARD", notes="mode PURE")[0],
                         "allocator=caching")

    def test_nvidia_smi_sees_the_context(self):
        self.assertEqual(self.memory(mem_kind="nvidia-smi")[1], rows.CONTEXT_BYTES)
        run = rows.read(row(peak_mem_gb="40", mem_kind="nvidia-smi"))
        self.assertIn("  reserved: 5.6 GiB\n", replay.inputs_of(run)["cluster.yaml"])

    def test_states_of_8_bits_are_not_compared(self):
        run = rows.read(row(peak_mem_gb="31", mem_kind="nvidia-smi", notes="31GB; --use-bnb-optimizer"))
        self.assertEqual((run.memory, run.allocator), (0, ""))
        self.assertIn("8 bits", run.memory_unlike)

    def test_ranks_that_divide_no_parameter(self):
        changed = {"peak_mem_gb": "31", "mem_kind": "nvidia-smi", "dp_strategy": "ZeRO-1", "dp": "3", "n_gpus": "48",
                   "gbs_seqs": "96"}
        self.assertIn("divide no parameter", rows.read(row(**changed)).memory_unlike)
        self.assertEqual(rows.read(row(hidden="2304", ffn="9216", **changed)).memory_unlike, "")
        self.assertEqual(rows.read(row(**{**changed, "dp_strategy": "DP"})).memory_unlike, "")

    def test_deepspeed_keeps_gradients_and_outputs(self):
        zero = {"mem_kind": "nvidia-smi", "dp_strategy": "ZeRO-1 (DeepSpeed)"}
        self.assertEqual(self.memory(precision="fp16", **zero)[0],
                         "allocator=caching,step_gradients=flat,stage_outputs=kept")
        self.assertEqual(self.memory(precision="bf16 (fp32 grad accumulation)", **zero)[0],
                         "allocator=caching,microbatch_gradients=kept,stage_outputs=kept")


class Strategies(unittest.TestCase):
    def strategy(self, **changed) -> list:
        return rows.read(row(**changed)).strategy.splitlines()

    def test_stages_have_equal_blocks(self):
        self.assertEqual(self.strategy(), [
            "mesh: {dp: 2, tp: 4}", "zero: 1", "sequence_parallel: true", "schedule: 1f1b",
            'stages: ["0-5", "6-11", "12-17", "18-23"]', "remat: none"])

    def test_first_and_last_stage_have_one_block_less(self):
        self.assertIn('stages: ["0-4", "5-10", "11-16", "17-21"]', self.strategy(layers="22"))

    def test_deepspeed_fills_one_stage_after_the_other(self):
        self.assertIn('stages: ["0-5", "6-11", "12-17", "18-21"]',
                      self.strategy(layers="22", schedule="1F1B (DeepSpeed pipeline)"))

    def test_interleaved(self):
        strategy = self.strategy(vpp="3", schedule="interleaved-1F1B", recompute="full (uniform, every layer)")
        self.assertEqual(strategy[3:5], ["schedule: interleaved", "interleave: 3"])
        self.assertEqual(strategy[-1], "remat: full")

    def test_full_shard(self):
        self.assertEqual(self.strategy(tp="1", pp="1", dp="32", dp_strategy="FSDP FULL_SHARD", recompute="True"),
                         ["mesh: {dp: 32}", "zero: 3", "remat: full"])

    def test_context_parallel(self):
        self.assertEqual(self.strategy(tp="1", pp="1", dp="4", cp="8", dp_strategy="ZeRO-1", schedule="")[:2],
                         ["mesh: {dp: 4, cp: 8}", "zero: 1"])

    def test_shards_within_a_node(self):
        self.assertEqual(self.strategy(tp="1", pp="1", dp="32", schedule="",
                                       dp_strategy="ZeRO-1 within 8 GPUs (hybrid)")[1:3], ["zero: 1", "hsdp: 8"])

    def test_cluster_has_as_many_nodes_as_the_run(self):
        self.assertIn("nodes: 8\ndevices_per_node: 4", rows.read(row(gpu_type="V100-32GB (4/node)")).cluster)


class Refusals(unittest.TestCase):
    def refuses(self, reason: str, **changed):
        with self.assertRaisesRegex(rows.Inexpressible, reason):
            rows.read(row(**changed))

    def test_fp8(self):
        self.refuses("precision fp8", precision="fp8")

    def test_schedule(self):
        self.refuses("schedule ZB-2p", schedule="ZB-2p")

    def test_recompute(self):
        self.refuses("recompute 'selective AC", recompute="selective AC (op)")

    def test_device(self):
        self.refuses("no cluster file for L40S", gpu_type="L40S")

    def test_degrees(self):
        self.refuses("not the number of devices", n_gpus="16")

    def test_batch(self):
        self.refuses("no multiple", gbs_seqs="63")

    def test_number(self):
        self.refuses("layers is 'many'", layers="many")


class Ranks(unittest.TestCase):
    def test_ties_share_a_place(self):
        self.assertEqual(replay.ranks([3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0])

    def test_spearman(self):
        self.assertEqual(replay.spearman([1, 2, 3], [10, 30, 20]), 0.5)


if __name__ == "__main__":
    unittest.main()
