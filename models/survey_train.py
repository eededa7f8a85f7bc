"""A case of survey.py trained beside PyTorch: design section 9, (a) and (c)."""

import collections
import copy
import json
import math

import numpy as np
import torch
from safetensors.numpy import load_file

import golden
import survey_case
from survey_case import OPTIMIZER, STEPS

# Of the global norm: a gradient that is below the first in f64 is not compared,
# but must not be above the second.
ZERO_SHARE, ROUNDED_SHARE = 1e-7, 1e-4
DATA_SEED = 1


def train(case, folder, bin_dir, result):
    """Trains the case's export by Oriel and its module by PyTorch.

    Returns {"adapter": largest difference of the module's logits to the
    class's, "gradients": largest relative error, "parameter": where, "losses":
    largest relative error, "rounding": the same of PyTorch's losses in f32
    against f64, "compared": parameters, "zero": parameters left out, "missing":
    names without a counterpart} or {"stage", "reason"}.
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
        _, error = survey_case.oriel(bin_dir, *command)
        if error:
            return {"stage": "Oriel", "reason": error, "at": command[0]}
    losses = [json.loads(line)["loss"]
              for line in metrics.read_text().splitlines()]

    batches = golden.make_batches(samples, micro)
    inputs = {name: batches[0][name] for name in model.inputs}
    with torch.no_grad():
        adapter = model.module(**inputs) - model.class_output(inputs)
        if "attention_mask" in inputs:  # at padding the two may differ
            adapter *= inputs["attention_mask"][..., None]
    module64 = copy.deepcopy(model.module).double()
    reference = first_step(model.module, batches[0])
    reference64 = first_step(module64, batches[0])
    used = [name for names in reference for name in names]
    torch_losses, torch_losses64 = (
        golden.train(module, used, batches, adamw)[0]
        for module in (model.module, module64))
    return {"stage": "", "adapter": adapter.abs().max().item(),
            **compare_gradients(load_file(gradients), reference, reference64),
            "losses": compare_losses(losses, torch_losses),
            "rounding": compare_losses(torch_losses, torch_losses64)}


def first_step(module, batch):
    """{names: gradient} of the parameters that the loss depends on.

    A tied parameter has several names; an export keeps one of them.
    """
    module.zero_grad()
    golden.token_loss(module, batch)[0].backward()
    return gradients_by_names(module)


def gradients_by_names(module):
    """What first_step returns, of the backward that has been run."""
    names = collections.defaultdict(list)
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names[parameter].append(name)
    return {tuple(group): parameter.grad.numpy().copy()
            for parameter, group in names.items() if parameter.grad is not None}


def adamw(parameters):
    return torch.optim.AdamW(
        parameters.values(), lr=OPTIMIZER["lr"], betas=OPTIMIZER["betas"],
        weight_decay=OPTIMIZER["weight_decay"], foreach=False)


def compare_gradients(actual, expected, expected64):
    total = sum(np.linalg.norm(g)**2 for g in expected64.values())**0.5
    errors, zero, missing = {}, 0, set(actual)
    for names, gradient in expected.items():
        found = missing.intersection(names)
        if found:
            missing -= found
        else:
            missing.add(names[0])
        name = found.pop() if found else None
        if np.linalg.norm(expected64[names]) < ZERO_SHARE * total:
            # Rounding errors; else PyTorch does not train it, and Oriel does.
            share = np.linalg.norm(actual[name]) / total if name else 0
            if share <= ROUNDED_SHARE:
                zero += 1
            else:
                errors[name] = float(share)
        elif name:
            gradient = gradient.astype(np.float64)
            errors[name] = float(np.linalg.norm(actual[name] - gradient) /
                                 np.linalg.norm(gradient))
    errors = {name: error if math.isfinite(error) else math.inf
              for name, error in errors.items()}
    worst = max(errors, key=errors.get, default=None)
    return {"gradients": errors.get(worst), "parameter": worst,
            "compared": len(errors), "zero": zero, "missing": sorted(missing)}


def compare_losses(actual, expected):
    """The largest relative difference; NaN where one is."""
    return float(np.max([abs(a / e - 1)
                         for a, e in zip(actual, expected, strict=True)]))
