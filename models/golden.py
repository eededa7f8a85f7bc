"""PyTorch's numbers for a LLaVA of this folder: what a trainer must reproduce.

`write` makes the folder's generated files; golden/README.md says what each
holds and how it was computed. Everything is seeded and runs on one thread.
"""

import copy
import io
import json
import tarfile

import numpy as np
import torch
from safetensors.torch import save_file

import llava

BATCH = 8
SGD_STEPS = 5
ADAMW_STEPS = 20
LEARNING_RATE = 1e-3
BETAS = (0.9, 0.95)
EPS = 1e-8
WEIGHT_DECAY = 0.05
IGNORE = -100
SAMPLES_PER_SHARD = 80
DATA_SEED = 1234
FIRST_WORD_ID = 4  # below: padding and the special tokens

# One parameter of each kind; the other gradients are recorded by norm only.
WHOLE_TENSORS = (
    "lm_head.weight",
    "model.language_model.embed_tokens.weight",
    "model.language_model.layers.0.input_layernorm.weight",
    "model.language_model.layers.0.self_attn.k_proj.weight",
    "model.language_model.layers.0.self_attn.q_proj.weight",
    "model.language_model.layers.3.mlp.down_proj.weight",
    "model.language_model.layers.3.mlp.gate_proj.weight",
    "model.language_model.norm.weight",
    "model.multi_modal_projector.linear_1.bias",
    "model.multi_modal_projector.linear_1.weight",
    "model.vision_tower.embeddings.class_embedding",
    "model.vision_tower.embeddings.patch_embedding.weight",
    "model.vision_tower.embeddings.position_embedding.weight",
    "model.vision_tower.encoder.layers.0.self_attn.q_proj.bias",
    "model.vision_tower.encoder.layers.0.self_attn.q_proj.weight",
    "model.vision_tower.encoder.layers.3.layer_norm2.bias",
    "model.vision_tower.encoder.layers.3.mlp.fc1.weight",
    "model.vision_tower.pre_layrnorm.weight",
)


def make_sample(rng, index, vocab_size):
    """One synthetic sample: {input name: array}.

    Images are blobs with noise, multiples of 1/64 so that float16 holds them
    exactly. The image starts after 0 to 3 words, the labelled answer has 0 to
    7 tokens, and one sample in eight labels all its text, <bos> included (the
    shift by one must drop that one).
    """
    size = llava.IMAGE_SIZE
    coarse = rng.integers(-96, 97, (size // 4, size // 4))
    image = coarse.repeat(4, 0).repeat(4, 1) + rng.integers(-16, 17,
                                                            (size, size))
    before, prompt, answer = (rng.integers(0, 4), rng.integers(1, 4),
                              rng.integers(0, 8))
    words = rng.integers(FIRST_WORD_ID, vocab_size, before + prompt + answer)
    image_rows = [llava.IMAGE_TOKEN_ID] * llava.ROWS_PER_IMAGE
    ids = ([llava.BOS_TOKEN_ID] + words[:before].tolist() + image_rows +
           words[before:].tolist())
    input_ids = np.zeros(llava.SEQUENCE_LENGTH, np.int64)
    input_ids[:len(ids)] = ids
    labels = np.full(llava.SEQUENCE_LENGTH, IGNORE, np.int64)
    if index % BATCH == 5:
        text = input_ids[:len(ids)] != llava.IMAGE_TOKEN_ID
        labels[:len(ids)][text] = input_ids[:len(ids)][text]
    else:
        labels[len(ids) - answer:len(ids)] = ids[len(ids) - answer:]
    return {"pixel_values": (image[None] / 64).astype(np.float16),
            "input_ids": input_ids, "labels": labels}


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


def make_batches(samples, size=BATCH):
    """[{input name: tensor}] of `size` samples, pixel values as float32."""
    def stack(chunk, name):
        tensor = torch.from_numpy(np.stack([s[name] for s in chunk]))
        return tensor.float() if tensor.is_floating_point() else tensor
    return [{name: stack(samples[i:i + size], name) for name in samples[0]}
            for i in range(0, len(samples), size)]


def compute_loss(module, batch):
    """(loss, logits): sum of token losses / number of valid tokens."""
    dtype = next(module.parameters()).dtype
    logits = module(pixel_values=batch["pixel_values"].to(dtype),
                    input_ids=batch["input_ids"])
    targets = batch["labels"][:, 1:].reshape(-1)
    loss = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(targets.numel(), -1), targets,
        ignore_index=IGNORE, reduction="mean")
    return loss, logits.detach()


def used_parameters(module):
    """{name: parameter} of those that the graph reads.

    CLIP's post_layernorm normalises the pooled class token, which LLaVA does
    not use: it has no gradient and is not in the ONNX file.
    """
    return {name: p for name, p in module.named_parameters()
            if "post_layernorm" not in name}


def train(module, batches, make_optimizer):
    """Losses of one step per batch, from a copy of `module`; and the copy."""
    module = copy.deepcopy(module)
    optimizer = make_optimizer(used_parameters(module))
    losses = []
    for batch in batches:
        loss, _ = compute_loss(module, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, module


def sgd(parameters):
    return torch.optim.SGD(parameters.values(), lr=LEARNING_RATE)


def adamw(parameters):
    decayed = [p for p in parameters.values() if p.ndim >= 2]
    rest = [p for p in parameters.values() if p.ndim < 2]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": WEIGHT_DECAY},
         {"params": rest, "weight_decay": 0.0}],
        lr=LEARNING_RATE, betas=BETAS, eps=EPS, foreach=False)


def first_step(module, batch):
    """(loss, logits, {name: gradient}) of one batch."""
    module = copy.deepcopy(module)
    loss, logits = compute_loss(module, batch)
    loss.backward()
    return loss.item(), logits, {name: p.grad for name, p
                                 in used_parameters(module).items()}


def norms(tensors):
    """{name: 2-norm}, summed in float64."""
    return {name: t.detach().double().norm().item()
            for name, t in tensors.items()}


def total(norms_by_name):
    return sum(n**2 for n in norms_by_name.values())**0.5


def whole(tensors):
    return {name: tensors[name].detach().contiguous().clone()
            for name in WHOLE_TENSORS}


def write(module, folder):
    """Writes all generated files of the golden folder."""
    vocab_size = module.config.text_config.vocab_size
    rng = np.random.default_rng(DATA_SEED)
    samples = [make_sample(rng, i, vocab_size)
               for i in range(BATCH * ADAMW_STEPS)]
    write_shards(samples, folder / "data")
    batches = make_batches(samples)
    module64 = copy.deepcopy(module).double()

    loss, logits, gradients = first_step(module, batches[0])
    loss64, _, gradients64 = first_step(module64, batches[0])
    save_file({"logits": logits.contiguous()}, folder / "logits.safetensors")
    save_file(whole(gradients), folder / "gradients.safetensors")

    sgd_losses, after_sgd = train(module, batches[:SGD_STEPS], sgd)
    adamw_losses, after_adamw = train(module, batches, adamw)
    save_file(whole(used_parameters(after_sgd)),
              folder / "parameters_sgd.safetensors")
    save_file(whole(used_parameters(after_adamw)),
              folder / "parameters_adamw.safetensors")

    gradient_norms, gradient_norms64 = norms(gradients), norms(gradients64)
    scalars = {
        "batch": BATCH,
        "valid_tokens": [int((b["labels"][:, 1:] != IGNORE).sum())
                         for b in batches],
        "step1": {
            "loss": loss,
            "loss_f64": loss64,
            "gradient_norm": total(gradient_norms),
            "gradient_norm_f64": total(gradient_norms64),
            "gradient_norms": gradient_norms,
            "gradient_norms_f64": gradient_norms64,
        },
        "sgd": {
            "learning_rate": LEARNING_RATE,
            "losses": sgd_losses,
            "losses_f64": train(module64, batches[:SGD_STEPS], sgd)[0],
            "parameter_norms": norms(used_parameters(after_sgd)),
        },
        "adamw": {
            "learning_rate": LEARNING_RATE,
            "betas": BETAS,
            "eps": EPS,
            "weight_decay": WEIGHT_DECAY,
            "decayed": [name for name, p in used_parameters(module).items()
                        if p.ndim >= 2],
            "losses": adamw_losses,
            "losses_f64": train(module64, batches, adamw)[0],
            "parameter_norms": norms(used_parameters(after_adamw)),
        },
    }
    (folder / "golden.json").write_text(json.dumps(scalars, indent=1) + "\n")
