"""A Qwen3-VL at a size for tests: Hugging Face's class, random weights.

Patches come unfolded; positions of multimodal rotary embedding are an input;
features of two vision layers join the first two decoder layers (DeepStack);
the embedding is tied. No two modules have the same width.
"""

import torch

import golden
import hf
import hf_config

SEQUENCE_LENGTH = 32
BOS_TOKEN_ID = 1
SETTINGS = (
    "tie_word_embeddings=true",
    "vision_config.depth=3",
    "vision_config.hidden_size=16",
    "vision_config.num_heads=2",
    "vision_config.intermediate_size=24",
    "vision_config.out_hidden_size=32",
    "vision_config.deepstack_visual_indexes=[0, 1]",
    "text_config.num_hidden_layers=3",
    "text_config.hidden_size=32",
    "text_config.num_key_value_heads=2",
    "text_config.intermediate_size=48",
    "text_config.vocab_size=64",
)

# One parameter of each kind; of the others the golden holds the norms.
WHOLE_PARAMETERS = (
    "lm_head.weight",
    "model.language_model.layers.0.mlp.gate_proj.weight",
    "model.language_model.layers.0.self_attn.k_norm.weight",
    "model.language_model.layers.1.self_attn.k_proj.weight",
    "model.language_model.layers.2.self_attn.q_proj.weight",
    "model.language_model.norm.weight",
    "model.visual.blocks.0.attn.qkv.bias",
    "model.visual.blocks.0.attn.qkv.weight",
    "model.visual.blocks.2.mlp.linear_fc1.weight",
    "model.visual.blocks.2.norm1.weight",
    "model.visual.deepstack_merger_list.1.linear_fc2.weight",
    "model.visual.merger.linear_fc2.weight",
    "model.visual.patch_embed.proj.weight",
    "model.visual.pos_embed.weight",
)


def build(seed):
    """The hf.Model with seeded weights."""
    torch.manual_seed(seed)  # Hugging Face draws class embeddings
    model = hf.build("Qwen3VLForConditionalGeneration", "tiny", SETTINGS,
                     SEQUENCE_LENGTH)
    hf.initialize(model.module, seed)
    return model


def write_golden(model, folder):
    """PyTorch's numbers of 5 batches of 4, taken four times (golden.py)."""
    patches, values = model.module.pixel_shape()
    layout = golden.SampleLayout(
        pixels=lambda rng: golden.blobs(rng, patches, values),
        rows_per_image=model.rows_per_image,
        sequence_length=SEQUENCE_LENGTH,
        vocab_size=model.module.config.text_config.vocab_size,
        bos_token_id=BOS_TOKEN_ID,
        image_token_id=model.module.config.image_token_id,
        first_word_id=hf_config.FIRST_WORD_ID,
        other_inputs=model.module.token_inputs)
    golden.write_training(model.module, folder,
                          golden.make_samples(layout, 20), batch_size=4,
                          whole=WHOLE_PARAMETERS)
