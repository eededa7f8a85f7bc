"""LLaVA at sizes that train on a laptop: Hugging Face's class, random weights.

The class is transformers' `LlavaForConditionalGeneration` (CLIP vision tower,
two-layer projector, Llama decoder with grouped-query attention). `build` makes
it with seeded weights; `ExportableLlava` narrows its signature to the two
inputs and the one output of the training graph.
"""

import dataclasses
import math
import os
import zlib

# Hugging Face checks at run time that image tokens and image features match in
# number. The check traces to aten._is_all_true, which the ONNX exporter cannot
# translate; this is transformers' own switch for it. `oriel-run` checks the
# same thing on every batch (`images:` in the recipe).
os.environ.setdefault("TRANSFORMERS_DISABLE_TORCH_CHECK", "1")

import torch
from transformers import (CLIPVisionConfig, LlamaConfig, LlavaConfig,
                          LlavaForConditionalGeneration)
from transformers.modeling_outputs import BaseModelOutputWithPooling

import golden
import hf

IMAGE_SIZE = 28
PATCH_SIZE = 4
ROWS_PER_IMAGE = (IMAGE_SIZE // PATCH_SIZE)**2  # 49, without the class token
SEQUENCE_LENGTH = 64
BOS_TOKEN_ID = 1
EOS_TOKEN_ID = 2
IMAGE_TOKEN_ID = 3
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


@dataclasses.dataclass(frozen=True)
class Size:
    """The numbers in which one LLaVA of this family differs from another."""
    vision_hidden: int
    vision_heads: int
    decoder_hidden: int
    decoder_heads: int
    kv_heads: int
    decoder_ffn: int
    vocab: int
    vision_layers: int = 4
    decoder_layers: int = 4


TINY = Size(vision_hidden=64, vision_heads=4, decoder_hidden=64,
            decoder_heads=4, kv_heads=2, decoder_ffn=176, vocab=128)
DEEP = Size(vision_hidden=32, vision_heads=4, decoder_hidden=32,
            decoder_heads=4, kv_heads=2, decoder_ffn=88, vocab=128,
            decoder_layers=8)
MEDIUM_30M = Size(vision_hidden=512, vision_heads=8, decoder_hidden=512,
                  decoder_heads=8, kv_heads=4, decoder_ffn=1408, vocab=4096)


class ExportableLlava(LlavaForConditionalGeneration):
    """`forward(pixel_values, input_ids) -> logits`, the same numbers.

    Hugging Face's `get_image_features` iterates over the batch in Python
    (`list(image_features)`), which would freeze the batch size in the export.
    The features go in through `mm_encoder_outputs` instead, as one tensor;
    everything after that is Hugging Face's code.
    """

    def token_inputs(self, ids):
        """None beside the ids; see hf_adapters.Adapter."""
        return {}

    def forward(self, pixel_values, input_ids):
        """pixel_values [batch, 1, 28, 28] f32, input_ids [batch, 64] i64."""
        vision = self.model.vision_tower(pixel_values,
                                         output_hidden_states=True)
        layer = self.config.vision_feature_layer
        patches = vision.hidden_states[layer][:, 1:]  # drops the class token
        features = self.model.multi_modal_projector(patches)
        image = BaseModelOutputWithPooling(pooler_output=(features,))
        return super().forward(input_ids=input_ids,
                               mm_encoder_outputs={"image": image},
                               use_cache=False).logits


def config(size):
    """The Hugging Face config; what is not named here is its default."""
    vision = CLIPVisionConfig(
        hidden_size=size.vision_hidden,
        intermediate_size=4 * size.vision_hidden,
        projection_dim=size.vision_hidden,
        num_hidden_layers=size.vision_layers,
        num_attention_heads=size.vision_heads,
        num_channels=1,
        image_size=IMAGE_SIZE,
        patch_size=PATCH_SIZE)
    text = LlamaConfig(
        vocab_size=size.vocab,
        hidden_size=size.decoder_hidden,
        intermediate_size=size.decoder_ffn,
        num_hidden_layers=size.decoder_layers,
        num_attention_heads=size.decoder_heads,
        num_key_value_heads=size.kv_heads,
        max_position_embeddings=SEQUENCE_LENGTH,
        bos_token_id=BOS_TOKEN_ID,
        eos_token_id=EOS_TOKEN_ID,
        # None, else nn.Embedding zeroes one row's gradient outside the graph.
        pad_token_id=None,
        use_cache=False)
    return LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=IMAGE_TOKEN_ID,
        image_seq_length=ROWS_PER_IMAGE,
        vision_feature_layer=-1,
        tie_word_embeddings=False)


def build(size, seed):
    """The model in eval mode (it has no dropout) with `initialize`d weights."""
    model = ExportableLlava(config(size)).eval()
    initialize(model, seed)
    return model


@torch.no_grad()
def initialize(model, seed):
    """Normal weights of standard deviation 1/sqrt(fan-in), norms 1, biases 0.

    The position table has fan-in 1 (a one-hot product): weaker positions cost
    accuracy. Token and class embeddings get 1/sqrt(width). Each tensor has its
    own generator, seeded by its name, so that a layer more or less leaves the
    others' weights alone.
    """
    for name, parameter in model.named_parameters():
        generator = torch.Generator().manual_seed(
            zlib.crc32(name.encode()) * 1000003 + seed)
        if name.endswith("bias"):
            parameter.zero_()
        elif "norm" in name:
            parameter.fill_(1.0)
        else:
            fan_in = 1 if "position_embedding" in name else parameter[0].numel()
            if parameter.ndim == 1:  # the class embedding
                fan_in = parameter.numel()
            parameter.normal_(0.0, 1.0 / math.sqrt(fan_in),
                              generator=generator)


def make(size, seed):
    """The hf.Model of `build`."""
    inputs = {"pixel_values": (torch.float32, (1, IMAGE_SIZE, IMAGE_SIZE)),
              "input_ids": (torch.int64, (SEQUENCE_LENGTH,))}
    return hf.Model("llava", build(size, seed), inputs, "logits",
                    ROWS_PER_IMAGE, SEQUENCE_LENGTH)


def write_golden(model, folder):
    """PyTorch's numbers of 20 batches of 8 (golden.py)."""
    layout = golden.SampleLayout(
        pixels=lambda rng: golden.blobs(rng, IMAGE_SIZE, IMAGE_SIZE)[None],
        rows_per_image=ROWS_PER_IMAGE,
        sequence_length=SEQUENCE_LENGTH,
        vocab_size=model.module.config.text_config.vocab_size,
        bos_token_id=BOS_TOKEN_ID,
        image_token_id=IMAGE_TOKEN_ID,
        first_word_id=FIRST_WORD_ID)
    golden.write_training(model.module, folder,
                          golden.make_samples(layout, 160), batch_size=8,
                          whole=WHOLE_TENSORS,
                          whole_gradients=WHOLE_TENSORS)
