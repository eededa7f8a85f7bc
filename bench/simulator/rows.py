"""What a row of a published table says, as input of `oriel simulate`: model, recipe, strategy, cluster.

    run = read(row)          # a Run, or an Inexpressible whose text says what Oriel has no strategy for

Nothing here looks at a table's name: a column, or a word in it, decides. docs/simulator_accuracy.md says why.
"""

import dataclasses
import pathlib
import re

import decoder
import stacks

COLUMNS = ("table_id row_id model kind layers hidden heads kv_heads ffn vocab seq_len gbs_seqs mbs_seqs gpu_type n_gpus "
           "tp pp vpp cp ep dp dp_strategy sp recompute precision schedule iter_time_s iter_time_s_derived peak_mem_gb "
           "mem_kind replay_ready replay_grade notes source").split()

# Beside what an allocator has reserved, nvidia-smi sees the CUDA context with the kernels that were loaded, and what
# cuBLAS, NCCL (for each communicator) and a framework's buckets take. By the rows of stacks.MEMORY_FIXED_ON: their
# mean error is below 1 % with it.
CONTEXT_BYTES = int(5.6 * 2**30)

_CLUSTERS = pathlib.Path(__file__).resolve().parent / "clusters"
_PRESETS = pathlib.Path(__file__).resolve().parents[2] / "clusters"

# The first pattern that is found in the type of device, with what it says of the network.
_DEVICES = (
    (r"h100.*96gb", _CLUSTERS / "h100_96gb.yaml"),
    (r"gh200|gb200|gb300|b300|h200.nvl|l40s|mi3", None),
    (r"v100.16gb.*4/node", _CLUSTERS / "jean_zay_v100_16gb.yaml"),
    (r"v100.*4/node", _CLUSTERS / "jean_zay_v100.yaml"),
    (r"v100.*16gb", _CLUSTERS / "p3_16xlarge.yaml"),
    (r"v100", _PRESETS / "v100.yaml"),
    (r"a100.*omni-path", _CLUSTERS / "jean_zay_a100.yaml"),
    (r"a100.*4x100gb", _CLUSTERS / "a100_80gb_400gbps.yaml"),
    (r"a800", _CLUSTERS / "a800.yaml"),
    (r"a100.*40gb", _PRESETS / "a100-40.yaml"),
    (r"a100", _PRESETS / "a100-80.yaml"),
    (r"h800", _CLUSTERS / "h800.yaml"),
    (r"h100", _PRESETS / "h100.yaml"),
    (r"h200", _PRESETS / "h200.yaml"),
    (r"b200", _PRESETS / "b200.yaml"),
)


class Inexpressible(Exception):
    """Why Oriel cannot be given this row."""


@dataclasses.dataclass(frozen=True)
class Run:
    figures: decoder.Decoder
    recipe: str
    strategy: str
    cluster: str
    stack: str
    seconds: float             # of a step, published
    memory: float              # bytes per rank, published; 0 where the row says nothing
    memory_beside: float       # of it, what is not in the plan
    memory_unlike: str         # why the row's memory is not that of the plan; `memory` is 0 then
    allocator: str             # of the stack, where the published bytes are what an allocator reserved


def read(row: dict) -> Run:
    degrees = _degrees(row)
    stack = stacks.stack_of(row)
    unlike = _memory_unlike(row, degrees) if row["peak_mem_gb"] else ""
    gib = 0 if unlike else float(row["peak_mem_gb"] or 0)
    beside = CONTEXT_BYTES if re.search(r"nvidia-smi|per gpu", row["mem_kind"], re.IGNORECASE) else 0
    return Run(figures=_figures(row, stack, degrees), recipe=_recipe(row), strategy=_strategy(row, degrees),
               cluster=_cluster(row), stack=stack, seconds=_seconds(row), memory=gib * 2**30,
               memory_beside=beside, memory_unlike=unlike,
               allocator=_allocator(row, stack) if gib and "allocated" not in row["mem_kind"] else "")


def _integer(row: dict, column: str, missing: int = 0) -> int:
    text = row[column].strip()
    if not text and missing:
        return missing
    if not re.fullmatch(r"\d+", text):
        raise Inexpressible(f"{column} is '{text}', which is no number")
    return int(text)


def _seconds(row: dict) -> float:
    for column in ("iter_time_s", "iter_time_s_derived"):
        if row[column]:
            return float(row[column])
    raise Inexpressible("no step time")


def _degrees(row: dict) -> dict:
    """tp, pp, vpp, dp, cp; what else a row splits, Oriel does not."""
    degrees = {name: _integer(row, name, 1) for name in ("tp", "pp", "vpp", "dp", "cp", "ep")}
    if re.search(r"moe", row["kind"], re.IGNORECASE) or degrees["ep"] > 1:
        raise Inexpressible("a mixture of experts")
    if re.search(r"lora", row["kind"], re.IGNORECASE):
        raise Inexpressible("low-rank adapters")
    if re.search(r"fp8|fp4", row["precision"], re.IGNORECASE):
        raise Inexpressible(f"precision {row['precision']}")
    if row["notes"].startswith("async TP"):
        raise Inexpressible("collectives of tp cut into pieces between pieces of products (async TP)")
    if degrees["tp"] * degrees["cp"] * degrees["pp"] * degrees["dp"] != _integer(row, "n_gpus"):
        raise Inexpressible("tp x cp x pp x dp is not the number of devices")
    if _integer(row, "gbs_seqs") % (_integer(row, "mbs_seqs") * degrees["dp"]):
        raise Inexpressible("the global batch is no multiple of the microbatch on all data-parallel ranks")
    return degrees


def _figures(row: dict, stack: str, degrees: dict) -> decoder.Decoder:
    hidden, ffn, model = _integer(row, "hidden"), _integer(row, "ffn"), row["model"].lower()
    sizes = {"layers": _integer(row, "layers"), "hidden": hidden, "heads": _integer(row, "heads"),
             "kv_heads": _integer(row, "kv_heads", _integer(row, "heads")), "ffn": ffn,
             "vocab": _integer(row, "vocab"), "sequence": _integer(row, "seq_len"),
             "batch": _integer(row, "mbs_seqs") * degrees["dp"]}
    if stack.startswith("megatron"):  # pads the vocabulary to a multiple of 128 x tp
        step = 128 * degrees["tp"]
        sizes["vocab"] = -(-sizes["vocab"] // step) * step
    if "nemotron" in model:
        return decoder.Decoder(**sizes, positions="rope", mlp="squared_relu", biases=False, tied=False)
    if re.search(r"llama|internlm|mistral|qwen|yi-", model) or ffn < 4 * hidden:
        return decoder.Decoder(**sizes, norm="rms", positions="rope", mlp="swiglu", biases=False, tied=False)
    # A GPT. Flash attention came to Megatron with bf16; what trained in fp16 before keeps scores and applies dropout.
    unfused = stack == "megatron-deepspeed" or row["precision"].startswith("fp16")
    bloom = "bloom" in model
    # The zero-bubble and vocabulary-parallel forks of Megatron have an output layer of its own.
    untied = re.search(r"sail-sg|zero bubble", row["source"], re.IGNORECASE)
    return decoder.Decoder(**sizes, positions="none" if bloom else "learned", fused_attention=not unfused,
                           dropout=unfused and not bloom, tied=not untied)


def _memory_unlike(row: dict, degrees: dict) -> str:
    """Why this row's memory is of something that Oriel has no strategy for, while its time compares."""
    if "bnb-optimizer" in row["notes"]:
        return "an optimizer whose states have 8 bits"
    sizes = _integer(row, "hidden"), _integer(row, "ffn") // degrees["tp"]
    if re.search(r"zero|dist", row["dp_strategy"].lower()) and all(size % degrees["dp"] for size in sizes):
        return "an optimizer sharded over ranks that divide no parameter (Oriel shards over some of them)"
    return ""


def _has_narrow_gradients(row: dict) -> bool:
    """Of 16 bits: fp16 without f32 accumulation, and FSDP's mixed precision PURE."""
    return row["precision"].startswith("fp16") or "mode PURE" in row["notes"]


def _allocator(row: dict, stack: str) -> str:
    return stacks.allocator_option(stack, _has_narrow_gradients(row), "zero" in row["dp_strategy"].lower())


def _recipe(row: dict) -> str:
    batch = _integer(row, "mbs_seqs")
    return (f"inputs: {{labels: {{dtype: int64, shape: [micro_batch, {_integer(row, 'seq_len')}]}}}}\n"
            "loss: {logits: logits, labels: labels}\n"
            "optimizer: {kind: adamw, lr: 1.0e-4, weight_decay: 0.1, clip_norm: 1.0}\n"
            f"precision: {{compute: bf16, gradients: {'bf16' if _has_narrow_gradients(row) else 'f32'}}}\n"
            f"batch: {{global: {_integer(row, 'gbs_seqs')}, micro: {batch}}}\n"
            "steps: 1\n")


def _strategy(row: dict, degrees: dict) -> str:
    mesh = [f"{axis}: {degrees[axis]}" for axis in ("dp", "cp", "tp") if degrees[axis] > 1] or ["dp: 1"]
    lines = [f"mesh: {{{', '.join(mesh)}}}"]
    if degrees["dp"] * degrees["cp"] > 1:
        lines += _sharding(row, degrees["dp"])
    if row["sp"] == "1" and degrees["tp"] > 1:
        lines.append("sequence_parallel: true")
    if degrees["pp"] > 1:
        lines += _pipeline(row, degrees)
    elif not re.match(r"none|1f1b|gpipe|$", row["schedule"], re.IGNORECASE):
        raise Inexpressible(f"schedule {row['schedule']}")
    lines.append(f"remat: {_remat(row['recompute'])}")
    return "\n".join(lines) + "\n"


def _sharding(row: dict, dp: int) -> list:
    """ZeRO's stage by the names that frameworks have for it."""
    name = row["dp_strategy"].lower()
    hybrid = re.search(r"within (\d+) gpus", name)
    if re.search(r"grad_op|zero-2", name):
        zero = 2
    elif re.search(r"fsdp|zero-3|full_shard", name):
        zero = 3
    elif re.search(r"zero-1|dist", name):
        zero = 1
    elif re.match(r"none|dp|ddp|$", name):
        zero = 0
    else:
        raise Inexpressible(f"data parallelism '{row['dp_strategy']}'")
    lines = [f"zero: {zero}"] if zero else []
    if hybrid and dp > int(hybrid[1]):
        lines.append(f"hsdp: {hybrid[1]}")
    return lines


def _pipeline(row: dict, degrees: dict) -> list:
    name, vpp = row["schedule"].lower(), degrees["vpp"]
    if re.search(r"2p|zb-v|zb-h2|vocab-|interlaced", name):
        raise Inexpressible(f"schedule {row['schedule']}")
    schedule = ("interleaved" if vpp > 1 else "gpipe" if "gpipe" in name else
                "zb-h1" if re.search(r"zb-1p|zb-h1", name) else "1f1b")
    lines = [f"schedule: {schedule}"]
    if vpp > 1:
        lines.append(f"interleave: {vpp}")
    if "redis" in name:  # blocks were moved away from the stage of the output layer: the compiler's own cuts
        return lines + [f"stages: {degrees['pp'] * vpp}"]
    starts, blocks = 0, []
    for count in _blocks_of_stages(row, degrees["pp"] * vpp):
        if count < 1:
            raise Inexpressible("a stage without blocks")
        blocks.append(f'"{starts}-{starts + count - 1}"' if count > 1 else f'"{starts}"')
        starts += count
    return lines + [f"stages: [{', '.join(blocks)}]"]


def _blocks_of_stages(row: dict, stages: int) -> list:
    layers = _integer(row, "layers")
    if layers % stages == 0:
        return [layers // stages] * stages
    deepspeed = "deepspeed" in row["schedule"].lower()
    # Embedding and output layer count as a block each.
    if (layers + 2) % stages == 0 and (not deepspeed or "embedding" in row["notes"]):
        each = (layers + 2) // stages
        return [each - 1] + [each] * (stages - 2) + [each - 1]
    if deepspeed:  # fills one stage after the other up to the smallest possible maximum
        each = -(-layers // stages)
        return [min(each, layers - each * stage) for stage in range(stages)]
    raise Inexpressible(f"{layers} blocks on {stages} stages")


def _remat(recompute: str) -> str:
    if re.match(r"none|false|$", recompute, re.IGNORECASE):
        return "none"
    if re.match(r"true$|full( \(|$)", recompute, re.IGNORECASE):
        return "full"
    if recompute == "selective (core attention)":
        return "selective"
    raise Inexpressible(f"recompute '{recompute}'")


def _cluster(row: dict) -> str:
    device = row["gpu_type"].lower()
    path = next((path for pattern, path in _DEVICES if re.search(pattern, device)), None)
    if path is None:
        raise Inexpressible(f"no cluster file for {row['gpu_type']}")
    text = path.read_text()
    per_node = int(re.search(r"^devices_per_node: (\d+)", text, re.MULTILINE)[1])
    nodes = -(-_integer(row, "n_gpus") // per_node)
    return re.sub(r"^nodes: \d+", f"nodes: {nodes}", text, flags=re.MULTILINE)
