"""A case of survey.py trained beside PyTorch: design section 9, (a) and (c)."""

import copy
import json

import numpy as np
import torch
from safetensors.numpy import load_file

import golden
import survey

STEPS = 20
OPTIMIZER = {"kind": "adamw", "lr": 1.0e-3, "betas": [0.9, 0.95],
             "weight_decay": 0.05}
ZERO_SHARE = 1e-7  # of the global norm: a gradient below it is not compared
DATA_SEED = 1


def train(case, folder, bin_dir, result):
    """Trains the case's export by Oriel and its module by PyTorch.

    Returns {"adapter": largest difference of the module's logits to the
    class's, "gradients": largest relative error, "parameter": where, "losses":
    largest relative error, "compared": parameters, "zero": parameters left out,
    "missing": names without a counterpart} or {"stage", "reason"}.
    """
    model = case.build()
    if model.output != "logits":
        return {"stage": "", "reason": "no token logits"}
    micro = result["recipe"]["batch"]["micro"]
    rng = np.random.default_rng(DATA_SEED)
    samples = [model.sample(rng) for _ in range(micro * STEPS)]
    golden.write_shards(samples, folder / "data")

    plan, metrics = folder / "plan.oplan", folder / "metrics.jsonl"
    gradients = folder / "gradients.safetensors"
    for command in (
            ("oriel", "compile", folder / "model.onnx", "--recipe",
             folder / "recipe.yaml", "-o", plan),
            ("oriel-run", plan, "--data", folder / "data", "-n", 1,
             "--no-shuffle", "--metrics", metrics, "--dump-gradients",
             gradients)):
        _, error = survey.oriel(bin_dir, *command)
        if error:
            return {"stage": "Oriel", "reason": error, "at": command[0]}
    losses = [json.loads(line)["loss"]
              for line in metrics.read_text().splitlines()]

    batches = golden.make_batches(samples, micro)
    inputs = {name: batches[0][name] for name in model.inputs}
    with torch.no_grad():
        adapter = model.module(**inputs) - model.class_output(inputs)
    reference = first_step(model.module, batches[0])
    double = first_step(copy.deepcopy(model.module).double(), batches[0])
    return {"stage": "", "adapter": adapter.abs().max().item(),
            **compare_gradients(load_file(gradients), reference,
                                             double),
            "losses": compare_losses(losses, torch_losses(model.module,
                                                          batches))}


def loss_of(module, batch):
    """Σ token losses / number of labels that count, labels shifted by one."""
    dtype = next(module.parameters()).dtype
    inputs = {name: t.to(dtype) if t.is_floating_point() else t
              for name, t in batch.items() if name != "labels"}
    logits, targets = module(**inputs)[:, :-1], batch["labels"][:, 1:]
    return torch.nn.functional.cross_entropy(
        logits.reshape(targets.numel(), -1), targets.reshape(-1),
        ignore_index=golden.IGNORE)


def first_step(module, batch):
    """{name: gradient} of the parameters that the loss depends on.

    A tied parameter is listed under each of its names.
    """
    module.zero_grad()
    loss_of(module, batch).backward()
    return {name: p.grad.numpy().copy()
            for name, p in module.named_parameters(remove_duplicate=False)
            if p.grad is not None}


def torch_losses(module, batches):
    """The loss of each step of AdamW, one step per batch."""
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=OPTIMIZER["lr"], betas=OPTIMIZER["betas"],
        weight_decay=OPTIMIZER["weight_decay"], foreach=False)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(module, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare_gradients(actual, expected, expected64):
    total = sum(np.linalg.norm(g)**2 for g in expected64.values())**0.5
    zero = {name for name, g in expected64.items()
            if np.linalg.norm(g) < ZERO_SHARE * total}
    errors = {}
    for name in actual.keys() & (expected.keys() - zero):
        gradient = expected[name].astype(np.float64)
        errors[name] = float(np.linalg.norm(actual[name] - gradient) /
                             np.linalg.norm(gradient))
    worst = max(errors, key=errors.get, default=None)
    return {"gradients": errors.get(worst), "parameter": worst,
            "compared": len(errors), "zero": len(zero),
            "missing": sorted(actual.keys() ^ expected.keys())}


def compare_losses(actual, expected):
    return max(abs(a / e - 1) for a, e in zip(actual, expected, strict=True))
