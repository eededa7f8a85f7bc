"""The software that published runs were measured with, and what of it is numbers.

A stack has at most four numbers (`oriel simulate --stack`). They, and the efficiency files of `clusters/efficiency/`,
may be fitted to the rows of `FIXED_ON` and to nothing else of train_all.csv. That list was made before any error was
looked at: about a third of the tables that can be replayed, with each kind of device and each large stack in it.
"""

import re

FIXED_ON = (
    "sc21_table1",                             # A100, Megatron-LM of 2021: 1.7 B to 1 T, tp, pp and interleaving
    "bigscience_gpt2_v100",                    # V100, Megatron-DeepSpeed: the V100 table with most shapes
    "mosaic_mpt_a100_80gb_with_1600_gbps_nod",  # A100, FSDP: 125 M to 70 B, sequences of 512 to 65,536
    "dgxc_25_04",                              # H100, Megatron-Core: tp with sp, 16 to 2,048 devices
    "simumax_b200",                            # B200, Megatron-Core: the only table of that device
)

# Of memory there is one number: what a GPU has in use beside an allocator's memory (rows.py).
MEMORY_FIXED_ON = ("bigscience_gpt2_v100",)

# `kernel_overhead` and `overlap` are what the simulator takes by itself; nothing asked for others. `pointwise` and
# `attention` were fitted by eye to a few rows of tables of `FIXED_ON`; docs/simulator_accuracy.md says how.
STACKS = {
    # Bias, dropout and residual are one kernel there; as ops of the model they read and write more often.
    "megatron-2021": {"kernel_overhead": "6us", "pointwise": 0.75, "overlap": 1.0, "attention": 1.0},
    "megatron-deepspeed": {"kernel_overhead": "6us", "pointwise": 2.0, "overlap": 1.0, "attention": 1.0},
    "megatron-core": {"kernel_overhead": "6us", "pointwise": 1.0, "overlap": 1.0, "attention": 1.0},
    # FlashAttention of 2022, in Triton: the error without this number grows with the sequence.
    "fsdp": {"kernel_overhead": "6us", "pointwise": 1.15, "overlap": 1.0, "attention": 1.9},
}

# The first pattern found in a row's strategy, schedule and source decides.
_PATTERNS = (
    ("megatron-deepspeed", r"deepspeed|bigscience"),
    ("fsdp", r"fsdp|llm-foundry|torchtitan|zero-3"),
)


def stack_of(row: dict) -> str:
    words = " ".join(row[column] for column in ("dp_strategy", "schedule", "source", "notes")).lower()
    for stack, pattern in _PATTERNS:
        if re.search(pattern, words):
            return stack
    # Megatron-LM without flash attention trained in fp16; with it, and Megatron-Core, in bf16.
    return "megatron-2021" if row["precision"].startswith("fp16") else "megatron-core"


def allocator_option(stack: str, narrow_gradients: bool, shards_optimizer: bool) -> str:
    """Where software gets memory, and what it keeps beside the values of a program; all from its sources, no number."""
    deepspeed = stack == "megatron-deepspeed"
    words = ["allocator=caching"]
    if narrow_gradients and stack.startswith("megatron"):
        # Before a step in f32: a copy of each gradient (Megatron's Float16OptimizerWithFloat16Params), one of a rank's
        # whole share (DeepSpeed's ZeRO: single_partition_of_fp32_groups; its estimator counts 4 + 16 / ranks bytes).
        words.append("step_gradients=" + ("flat" if deepspeed and shards_optimizer else "copied"))
    elif deepspeed:
        words.append("microbatch_gradients=kept")  # BF16_Optimizer adds them to f32 ones behind a backward
    if deepspeed:
        words.append("stage_outputs=kept")  # PipelineEngine's pipe_buffers["outputs"]
    return ",".join(words)


def stack_option(stack: str) -> str:
    return ",".join(f"{name}={value}" for name, value in STACKS[stack].items())
