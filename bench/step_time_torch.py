#!/usr/bin/env python3
"""Times PyTorch's training step on a model of models/: step_time's baseline.

    bench/step_time_torch.py --model llava_tiny --mode eager --threads 2

A step is forward, loss, backward, clipping by global norm and AdamW (PyTorch's
fused one), on the batches of golden_batches.py, in memory. Prints one JSON object:

    step_ms      median wall time of the timed steps, in milliseconds
    step_ms_min  fastest timed step
    peak_rss_mb  peak resident memory of the process, in MiB
    idle_rss_mb  the same before the model is built: Python and the libraries
    warmup_s     time of the untimed first steps (compilation included)
    losses       of every step, the untimed ones too
"""

import argparse
import json
import pathlib
import resource
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))

import torch

import export
import golden
import golden_batches

WARMUP_STEPS = 3


def make_step(module, compiled):
    """A function batch -> loss that trains one step."""
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=golden.LEARNING_RATE, betas=golden.BETAS,
        eps=golden.EPS, weight_decay=golden.WEIGHT_DECAY, fused=True)
    forward = torch.compile(golden.token_loss) if compiled else (
        golden.token_loss)

    def step(batch):
        loss, _ = forward(module, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def peak_rss_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", choices=sorted(export.MODELS),
                        default="llava_tiny")
    parser.add_argument("--mode", choices=("eager", "compile"),
                        default="eager")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    idle_rss = peak_rss_mb()
    model = export.MODELS[args.model].build(export.SEED)
    module = model.module
    batches = [{name: torch.from_numpy(array) for name, array in batch.items()}
               for batch in golden_batches.read(args.batch)]
    step = make_step(module, args.mode == "compile")

    start = time.perf_counter()
    losses = [step(batches[i]) for i in range(WARMUP_STEPS)]
    warmup = time.perf_counter() - start
    times = []
    for i in range(WARMUP_STEPS, WARMUP_STEPS + args.steps):
        start = time.perf_counter()
        losses.append(step(batches[i % len(batches)]))
        times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({
        "model": args.model, "mode": args.mode, "threads": args.threads,
        "batch": args.batch, "steps": args.steps, "torch": torch.__version__,
        "parameters": sum(p.numel() for p in module.parameters()
                          if p.grad is not None),
        "step_ms": statistics.median(times), "step_ms_min": min(times),
        "peak_rss_mb": peak_rss_mb(), "idle_rss_mb": idle_rss,
        "warmup_s": warmup,
        "losses": losses}))


if __name__ == "__main__":
    main()
