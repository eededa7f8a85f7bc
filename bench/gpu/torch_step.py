#!/usr/bin/env python3
"""Times PyTorch's training step of a case: the GPU benchmark's baseline.

    bench/gpu/torch_step.py --config CONFIG.json --batch 8 --sequence 1088 --mode compile

A step is forward, loss, backward, clipping by global norm and AdamW, as Oriel's: parameters,
gradients and activations are bf16, AdamW (PyTorch's fused one) steps f32 masters, a block's at a
time, so that gradients in f32 take little memory. A batch that does not fit into the device's
memory is halved. Prints one JSON object:

    step_ms       median wall time of the timed steps, each until the device is done
    batch         samples of a step
    peak_allocated_mb, peak_reserved_mb   by PyTorch's allocator, MiB
    in_use_mb     of the device's memory, MiB, by whomever: behind the timed steps, before the profiler
    outside       share of a step without any kernel, by PyTorch's profiler (GPU only)
    warmup_s      time of the untimed first steps (compilation included)
    losses        of the first step and the last one
    attention     the kernels that computed it, by the profiler
"""

import argparse
import contextlib
import gc
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import cases
import models

WARMUP_STEPS = 4


class MasterAdamW:
    """AdamW on f32 copies of the parameters; see above."""

    def __init__(self, module, learning_rate):
        groups = {}
        for name, parameter in module.named_parameters():
            parts = name.split(".")
            key = tuple(parts[:parts.index("blocks") + 2]) if "blocks" in parts else (name,)
            groups.setdefault(key, []).append((name, parameter))
        self.parameters = [parameter for _, parameter in module.named_parameters()]
        self.groups = []
        for members in groups.values():
            masters = [(parameter, parameter.detach().float(), self.decay(name)) for name, parameter in members]
            settings = [{"params": [master for _, master, own in masters if own == decay], "weight_decay": decay}
                        for decay in (0.0, 0.1)]
            settings = [setting for setting in settings if setting["params"]]
            optimizer = torch.optim.AdamW(settings, lr=learning_rate, betas=(0.9, 0.95), eps=1e-8, fused=True)
            self.groups.append(([p for p, _, _ in masters], [m for _, m, _ in masters], optimizer))

    @staticmethod
    def decay(name):
        return 0.0 if name.endswith("bias") or "norm" in name or "ln_" in name else 0.1

    @torch.no_grad()
    def step(self):
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for parameters, masters, optimizer in self.groups:
            for parameter, master in zip(parameters, masters):
                master.grad = parameter.grad.float()
                parameter.grad = None
            optimizer.step()
            torch._foreach_copy_(parameters, masters)
            for master in masters:
                master.grad = None


def covered(spans):
    """The length of the union of [begin, end) spans."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def profile(step, device):
    """(Share of a step without any kernel, names of the attention's kernels)."""
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    steps = 3
    with torch.profiler.profile(activities=activities) as profiler:
        torch.cuda.synchronize(device)
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize(device)
        wall = time.perf_counter() - start
    # Annotations have a range on the device, too, with its gaps.
    kernels = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA
               and not getattr(event, "is_user_annotation", False) and not event.name.startswith("Optimizer.")]
    busy = covered((event.time_range.start, event.time_range.end) for event in kernels) * 1e-6
    names = sorted({event.name[:80] for event in kernels
                    if any(word in event.name.lower() for word in ("flash", "fmha", "attention", "sdpa"))})
    return round(max(0.0, 1 - busy / wall), 4) if busy > 0 else None, names


def preferred_attention(name):
    """A context in which cuDNN's attention is tried before FlashAttention, which is PyTorch's own choice."""
    if name == "default":
        return contextlib.nullcontext()
    order = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")
    return sdpa_kernel([getattr(SDPBackend, backend) for backend in order], set_priority=True)


def train(args, figures, batch_size, device):
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with device:
        module = models.build(figures, args.sequence)
    optimizer = MasterAdamW(module, args.learning_rate)
    batch = models.random_batch(figures, batch_size, args.sequence, device, torch.bfloat16)
    forward = torch.compile(module) if args.mode == "compile" else module

    def step():
        with preferred_attention(args.attention):
            loss = forward(batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def settle():
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    losses, times = [], []
    start = time.perf_counter()
    for _ in range(WARMUP_STEPS):
        losses.append(step())
    settle()
    warmup = time.perf_counter() - start
    for _ in range(args.steps):
        start = time.perf_counter()
        losses.append(step())
        settle()
        times.append(1e3 * (time.perf_counter() - start))
    result = {"step_ms": statistics.median(times), "step_ms_min": min(times), "batch": batch_size,
              "warmup_s": round(warmup, 1), "losses": [losses[0].item(), losses[-1].item()],
              "parameters": sum(p.numel() for p in module.parameters())}
    if device.type == "cuda":
        result["peak_allocated_mb"] = round(torch.cuda.max_memory_allocated(device) / 2**20)
        result["peak_reserved_mb"] = round(torch.cuda.max_memory_reserved(device) / 2**20)
        free, total = torch.cuda.mem_get_info(device)
        result["in_use_mb"] = round((total - free) / 2**20)
        try:
            result["outside"], result["attention"] = profile(step, device)
        except Exception as error:  # what was timed counts, whatever a profiler does
            result["outside"], result["profile"] = None, str(error)[:300]
        result["cudnn"] = torch.backends.cudnn.version()
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path, required=True, help="a skeleton's config.json")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--sequence", type=int, required=True)
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    parser.add_argument("--attention", choices=("default", "cudnn"), default="default",
                        help="which of PyTorch's attentions is tried first")
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--steps", type=int, default=20, help="timed steps")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    figures = cases.read_figures(args.config)
    device = torch.device(args.device)
    batch = args.batch
    while True:
        try:
            result = train(args, figures, batch, device)
            break
        except torch.OutOfMemoryError as error:
            if batch == 1:
                print(f"error: out of memory with one sample: {str(error).splitlines()[0]}", file=sys.stderr)
                return 1
        # Outside of the handler, whose traceback keeps the tensors alive.
        batch //= 2
        torch._dynamo.reset()
        gc.collect()  # circles of references keep the model alive
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    print(json.dumps({"mode": args.mode, "torch": torch.__version__, **result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
