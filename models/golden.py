"""PyTorch's numbers for a model of this folder: what a trainer must reproduce.

`write_training` and `write_logits_sum` make the generated files of a model's
golden folder; its README.md says what each holds and how it was computed.
Everything is seeded and runs on one thread.
"""

import copy
import dataclasses
import io
import json
import tarfile
from collections.abc import Callable

import numpy as np
import torch
from safetensors.torch import save_file

SGD_STEPS = 5
ADAMW_STEPS = 20
LEARNING_RATE = 1e-3
BETAS = (0.9, 0.95)
EPS = 1e-8
WEIGHT_DECAY = 0.05
IGNORE = -100
SAMPLES_PER_SHARD = 80
DATA_SEED = 1234


@dataclasses.dataclass(frozen=True)
class SampleLayout:
    """What synthetic samples of a model look like; see `make_samples`.

    pixels: rng -> the image, any shape, float16.
    other_inputs: ids [sequence_length] -> {input name: array}.
    """
    pixels: Callable
    rows_per_image: int
    sequence_length: int
    vocab_size: int
    bos_token_id: int
    image_token_id: int
    first_word_id: int  # below: padding and the special tokens
    other_inputs: Callable = lambda ids: {}


def blobs(rng, *shape):
    """[..., height, width] blobs with noise.

    Multiples of 1/64, so that float16 holds them exactly.
    """
    *outer, height, width = shape
    coarse = rng.integers(-96, 97, (*outer, height // 4, width // 4))
    return ((coarse.repeat(4, -2).repeat(4, -1) +
             rng.integers(-16, 17, shape)) / 64).astype(np.float16)


def make_sample(rng, layout, labels_all):
    """One synthetic sample: {input name: array}.

    The image starts after 0 to 3 words, and the labelled answer has 0 to 7
    tokens; if `labels_all` is true, all the text has labels, <bos> included
    (the shift by one must drop that one).
    """
    pixels = layout.pixels(rng)
    before, prompt, answer = (rng.integers(0, 4), rng.integers(1, 4),
                              rng.integers(0, 8))
    words = rng.integers(layout.first_word_id, layout.vocab_size,
                         before + prompt + answer)
    image_rows = [layout.image_token_id] * layout.rows_per_image
    ids = ([layout.bos_token_id] + words[:before].tolist() + image_rows +
           words[before:].tolist())
    input_ids = np.zeros(layout.sequence_length, np.int64)
    input_ids[:len(ids)] = ids
    labels = np.full(layout.sequence_length, IGNORE, np.int64)
    if labels_all:
        text = input_ids[:len(ids)] != layout.image_token_id
        labels[:len(ids)][text] = input_ids[:len(ids)][text]
    else:
        labels[len(ids) - answer:len(ids)] = ids[len(ids) - answer:]
    return {"pixel_values": pixels, "input_ids": input_ids,
            **layout.other_inputs(input_ids), "labels": labels}


def make_samples(layout, count):
    """`count` samples, of which one in eight labels all its text."""
    rng = np.random.default_rng(DATA_SEED)
    return [make_sample(rng, layout, labels_all=i % 8 == 5)
            for i in range(count)]


def write_shards(samples, folder):
    """WebDataset-style shards in the order of use."""
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(samples), SAMPLES_PER_SHARD):
        shard = folder / f"golden-{first // SAMPLES_PER_SHARD:05d}.tar"
        with tarfile.open(shard, "w", format=tarfile.USTAR_FORMAT) as tar:
            for i, sample in enumerate(samples[first:first + SAMPLES_PER_SHARD],
                                       first):
                for name, array in sample.items():
                    buffer = io.BytesIO()
                    np.save(buffer, array)
                    info = tarfile.TarInfo(f"golden-{i:04d}.{name}.npy")
                    info.size = buffer.tell()
                    buffer.seek(0)
                    tar.addfile(info, buffer)


def make_batches(samples, size):
    """[{input name: tensor}] of `size` samples, pixel values as float32."""
    def stack(chunk, name):
        tensor = torch.from_numpy(np.stack([s[name] for s in chunk]))
        return tensor.float() if tensor.is_floating_point() else tensor
    return [{name: stack(samples[i:i + size], name) for name in samples[0]}
            for i in range(0, len(samples), size)]


def forward(module, batch):
    """The module's logits for a batch, of which it does not see the labels."""
    dtype = next(module.parameters()).dtype
    return module(**{name: tensor.to(dtype) if tensor.is_floating_point()
                     else tensor for name, tensor in batch.items()
                     if name != "labels"})


def token_loss(module, batch):
    """(loss, logits): sum of token losses / number of valid tokens."""
    logits = forward(module, batch)
    targets = batch["labels"][:, 1:].reshape(-1)
    loss = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(targets.numel(), -1), targets,
        ignore_index=IGNORE, reduction="mean")
    return loss, logits.detach()


def logits_sum(module, batch):
    """(sum of the logits, logits)."""
    logits = forward(module, batch)
    return logits.sum(), logits.detach()


def train(module, used, batches, make_optimizer):
    """Losses of one step per batch, from a copy of `module`; and the copy's
    parameters of the names `used`."""
    module = copy.deepcopy(module)
    parameters = select(module, used)
    optimizer = make_optimizer(parameters)
    losses = []
    for batch in batches:
        loss, _ = token_loss(module, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, parameters


def named_parameters(module):
    """{name: parameter}; a tied one goes by its last name, as in ONNX."""
    names = {p: name for name, p
             in module.named_parameters(remove_duplicate=False)}
    return {name: p for p, name in names.items()}


def select(module, names):
    return {name: p for name, p in named_parameters(module).items()
            if name in names}


def sgd(parameters):
    return torch.optim.SGD(parameters.values(), lr=LEARNING_RATE)


def adamw(parameters):
    decayed = [p for p in parameters.values() if p.ndim >= 2]
    rest = [p for p in parameters.values() if p.ndim < 2]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": WEIGHT_DECAY},
         {"params": rest, "weight_decay": 0.0}],
        lr=LEARNING_RATE, betas=BETAS, eps=EPS, foreach=False)


def first_step(module, batch, compute_loss=token_loss):
    """(loss, logits, {name: gradient}) of one batch.

    A parameter without a gradient is one that the graph does not read; it is
    not in the ONNX file (LLaVA ignores CLIP's post_layernorm).
    """
    module = copy.deepcopy(module)
    loss, logits = compute_loss(module, batch)
    loss.backward()
    return loss.item(), logits, {name: p.grad for name, p
                                 in named_parameters(module).items()
                                 if p.grad is not None}


def norms(tensors):
    """{name: 2-norm}, summed in float64."""
    return {name: t.detach().double().norm().item()
            for name, t in tensors.items()}


def total(norms_by_name):
    return sum(n**2 for n in norms_by_name.values())**0.5


def write_tensors(path, tensors, names=None):
    """Those of `names`, or all."""
    save_file({name: tensors[name].detach().contiguous().clone()
               for name in names or tensors}, path)


def step_scalars(module, batch, compute_loss):
    """{name: number} of the first step, and its logits and gradients."""
    loss, logits, gradients = first_step(module, batch, compute_loss)
    loss64, _, gradients64 = first_step(copy.deepcopy(module).double(), batch,
                                        compute_loss)
    gradient_norms, gradient_norms64 = norms(gradients), norms(gradients64)
    return {
        "loss": loss,
        "loss_f64": loss64,
        "gradient_norm": total(gradient_norms),
        "gradient_norm_f64": total(gradient_norms64),
        "gradient_norms": gradient_norms,
        "gradient_norms_f64": gradient_norms64,
    }, logits, gradients


def run_scalars(module, used, batches, make_optimizer):
    """{name: number} of a run, and the parameters after it."""
    losses, parameters = train(module, used, batches, make_optimizer)
    losses64, _ = train(copy.deepcopy(module).double(), used, batches,
                        make_optimizer)
    return {"losses": losses, "losses_f64": losses64,
            "parameter_norms": norms(parameters)}, parameters


def write_json(path, tree):
    path.write_text(json.dumps(tree, indent=1) + "\n")


def write_training(module, folder, samples, batch_size, whole,
                   whole_gradients=None):
    """Logits and gradients of the first batch, 5 steps of SGD, 20 of AdamW.

    The batches follow one another in the order of `samples`, and begin again
    where they end. `whole`: names of the parameters that are written with all
    their values after the runs, `whole_gradients` the same of the first
    gradients; None: all. Of the others only the norms are.
    """
    write_shards(samples, folder / "data")
    batches = make_batches(samples, batch_size)
    batches = [batches[i % len(batches)] for i in range(ADAMW_STEPS)]
    step1, logits, gradients = step_scalars(module, batches[0], token_loss)
    write_tensors(folder / "logits.safetensors", {"logits": logits})
    write_tensors(folder / "gradients.safetensors", gradients,
                  whole_gradients)

    used = set(gradients)
    sgd_run, after_sgd = run_scalars(module, used, batches[:SGD_STEPS], sgd)
    adamw_run, after_adamw = run_scalars(module, used, batches, adamw)
    write_tensors(folder / "parameters_sgd.safetensors", after_sgd, whole)
    write_tensors(folder / "parameters_adamw.safetensors", after_adamw, whole)
    write_json(folder / "golden.json", {
        "batch": batch_size,
        "valid_tokens": [int((b["labels"][:, 1:] != IGNORE).sum())
                         for b in batches],
        "step1": step1,
        "sgd": {"learning_rate": LEARNING_RATE, **sgd_run},
        "adamw": {
            "learning_rate": LEARNING_RATE,
            "betas": BETAS,
            "eps": EPS,
            "weight_decay": WEIGHT_DECAY,
            "decayed": [name for name, p in select(module, used).items()
                        if p.ndim >= 2],
            **adamw_run,
        },
    })


def write_logits_sum(module, folder, samples):
    """Logits of one batch, and the gradients of their sum."""
    write_shards(samples, folder / "data")
    (batch,) = make_batches(samples, len(samples))
    step1, logits, gradients = step_scalars(module, batch, logits_sum)
    write_tensors(folder / "logits.safetensors", {"logits": logits})
    write_tensors(folder / "gradients.safetensors", gradients)
    write_json(folder / "golden.json", {"batch": len(samples), "step1": step1})
