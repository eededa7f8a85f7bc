"""A CLIP at a size for tests: Hugging Face's class, random weights."""

import numpy as np
import torch

import golden
import hf
import hf_config

SAMPLES = 4
BOS_TOKEN_ID = 1
SETTINGS = (
    "projection_dim=24",
    "vision_config.hidden_size=32",
    "vision_config.intermediate_size=48",
    "text_config.hidden_size=48",
    "text_config.intermediate_size=64",
    "text_config.vocab_size=64",
    "text_config.max_position_embeddings=16",
)


def build(seed):
    """The hf.Model with seeded weights."""
    torch.manual_seed(seed)  # Hugging Face draws class embeddings
    model = hf.build("CLIPModel", "tiny", SETTINGS, sequence=16)
    hf.initialize(model.module, seed)
    return model


def make_sample(rng, model):
    """{input name: array}: an image, and <bos>, 3 to 10 words, <eos>."""
    pixels = golden.blobs(rng, *model.module.pixel_shape())
    text = model.module.config.text_config
    words = rng.integers(hf_config.FIRST_WORD_ID, text.vocab_size,
                         rng.integers(3, 11)).tolist()
    ids = [BOS_TOKEN_ID, *words, text.eos_token_id]
    input_ids = np.zeros(model.sequence, np.int64)
    input_ids[:len(ids)] = ids
    return {"pixel_values": pixels, "input_ids": input_ids}


def write_golden(model, folder):
    """The logits of one batch and the gradients of their sum (golden.py)."""
    rng = np.random.default_rng(golden.DATA_SEED)
    golden.write_logits_sum(model.module, folder,
                            [make_sample(rng, model) for _ in range(SAMPLES)])
