"""The adapter for Qwen2-VL and its descendants: images as grids of patches."""

import math
import sys

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from transformers import vision_utils
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import hf_adapters
import hf_config


class PatchGrid(hf_adapters.ByFeatures):
    """forward(pixel_values, input_ids, position_ids [batch, 3, sequence]).

    Qwen2-VL and what descends from it: images are packed into one sequence of
    patches, and `image_grid_thw` says how. Here the grid is a constant, and so
    is all that Hugging Face computes from it in Python; the position ids of
    multimodal rotary embedding come from the batch. `pixel_values` are [batch,
    patches, channels * frames * height * width], as the processor gives them.
    """
    # Halves of the tiny head dimension.
    TINY = {"text_config.rope_parameters.mrope_section": [2, 3, 3]}
    TINY_GRID, FULL_GRID = (4, 8), (32, 32)

    def prepare(self):
        # Hugging Face's own path for packed sequences, one call per layer;
        # the name must contain "flash" for it to be taken.
        ALL_ATTENTION_FUNCTIONS.register("flash_per_image",
                                         attention_per_image)
        self.model.visual.config._attn_implementation = "flash_per_image"
        # Real tensors, whatever the parameters are: they are data.
        with unset_fake_temporarily(), torch.device("cpu"):
            self.constants = self.image_constants()
        if hasattr(self.model.language_model, "_deepstack_process"):
            self.model.language_model._deepstack_process = add_at_mask

    def forward(self, pixel_values, input_ids, position_ids,
                attention_mask=None):
        return self.run(input_ids=input_ids, attention_mask=attention_mask,
                        position_ids=position_ids.transpose(0, 1),
                        **self.image_arguments(pixel_values))

    def class_arguments(self, pixel_values, input_ids, position_ids, **inputs):
        """The class makes the position ids by itself."""
        grids = torch.tensor([self.grid()] * len(pixel_values))
        kinds = (input_ids == self.config.image_token_id).int()
        return {"pixel_values": pixel_values.flatten(0, 1),
                "input_ids": input_ids, "image_grid_thw": grids,
                "mm_token_type_ids": kinds, **inputs}

    def grid(self):
        """(frames, height, width) of one image, in patches."""
        tiny = self.config.vision_config.patch_size == hf_config.TINY_PATCH
        return (1, *(self.TINY_GRID if tiny else self.FULL_GRID))

    def pixel_shape(self):
        vision = self.config.vision_config
        values = (vision.in_channels * vision.temporal_patch_size *
                  vision.patch_size**2)
        return (math.prod(self.grid()), values)

    def input_shapes(self, sequence):
        return {**super().input_shapes(sequence),
                "position_ids": (hf_adapters.I64, (3, sequence))}

    def image_constants(self):
        """What the vision tower computes from the grid, for one image.

        {keyword of vision_utils: value}. Tensors have a row per patch, but for
        `window_index`; a tuple has the lengths of attention's segments. The
        tower's own module says which of them it uses.
        """
        visual, vision = self.model.visual, self.config.vision_config
        used = vars(sys.modules[type(visual).__module__])
        grid, merge = torch.tensor([self.grid()]), vision.spatial_merge_size
        patches = math.prod(self.grid())
        constants = {
            "position_ids": vision_utils.get_vision_position_ids(grid, merge),
            "cu_seqlens": (patches,), "max_seqlen": patches}
        if "get_vision_window_index" in used:
            index, ends = vision_utils.get_vision_window_index(
                grid, merge, vision.window_size, vision.patch_size)
            lengths = tuple((ends[1:] - ends[:-1]).tolist())
            constants |= {"window_index": index, "cu_window_seqlens": lengths,
                          "max_window_seqlen": max(lengths)}
        if "get_vision_interpolation_indices_and_weights" in used:
            indices, weights = (
                vision_utils.get_vision_interpolation_indices_and_weights(
                    grid, visual.num_grid_per_side, visual.interpolation_mode,
                    visual.interpolation_align_corners, merge))
            constants |= {"interp_indices": indices, "interp_weights": weights}
        return constants

    def vision_arguments(self, batch):
        """`image_constants` for `batch` images in one sequence."""
        arguments = {}
        for name, value in self.constants.items():
            if name == "window_index":
                first = torch.arange(batch)[:, None] * value.numel()
                value = (first + value).flatten()
            elif isinstance(value, torch.Tensor):
                value = value.repeat(batch, 1)
            arguments[name] = value
        return arguments

    def visual_outputs(self, pixel_values):
        batch = pixel_values.shape[0]
        return self.model.visual(pixel_values.flatten(0, 1), grid_thw=None,
                                 **self.vision_arguments(batch))

    def image_features(self, pixel_values):
        return self.visual_outputs(pixel_values).pooler_output

    def image_arguments(self, pixel_values):
        outputs = self.visual_outputs(pixel_values)
        outputs.pooler_output = (outputs.pooler_output,)
        if getattr(outputs, "deepstack_features", None):
            outputs.deepstack_features = [
                (feature,) for feature in outputs.deepstack_features]
        return {"mm_encoder_outputs": {"image": outputs}}

    def token_inputs(self, ids):
        """position_ids [3, sequence], by the class's rule."""
        ids = torch.as_tensor(ids)[None]
        kinds = (ids == self.config.image_token_id).int()
        positions, _ = self.model.get_rope_index(
            input_ids=ids, mm_token_type_ids=kinds,
            image_grid_thw=torch.tensor([self.grid()]))
        return {"position_ids": positions[:, 0].numpy()}


def attention_per_image(module, query, key, value, attention_mask, *,
                        cu_seq_lens_q, scaling, **_):
    """Attention within equal segments of images packed into one sequence.

    query, key, value: [1, heads, images * patches, dim]; cu_seq_lens_q: the
    lengths of one image's segments. Returns [1, images * patches, heads, dim].
    """
    if len(set(cu_seq_lens_q)) != 1:
        raise ValueError(f"windows of unequal sizes {cu_seq_lens_q}: the image "
                         "must be a multiple of the window")

    def split(packed):
        _, heads, _, dim = packed.shape
        return packed.reshape(heads, -1, cu_seq_lens_q[0], dim).transpose(0, 1)
    outputs, _ = sdpa_attention_forward(
        module, split(query), split(key), split(value), None,
        scaling=scaling, is_causal=False)
    return outputs.flatten(0, 1)[None], None


def add_at_mask(hidden_states, mask, features):
    """`hidden_states[mask] += features`, with static shapes."""
    spread = torch.zeros_like(hidden_states).masked_scatter(
        mask[..., None].expand_as(hidden_states), features)
    return hidden_states + spread
