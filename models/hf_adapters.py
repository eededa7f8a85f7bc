"""What a Hugging Face class needs to become a training graph.

An adapter is a mixin put before the class (`hf.build`), so parameter names
stay the class's. `Adapter` fits any class that takes pixel values and token
ids; the others say how theirs differ, and replace what Hugging Face computes
in Python from the data although training has it fixed: one image of one
shape per sample. The first dimension of every input is the sample.
"""

import inspect
import math
import sys

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers import vision_utils

import hf_config

F32, I64 = torch.float32, torch.int64


class Adapter:
    """forward(pixel_values [batch, ...], input_ids [batch, sequence]).

    TINY: {dotted key: value} of the tiny config that the generic rule of
      hf_config.py does not give.
    OUTPUT: the name of the graph's output, and of the field of what the
      class's forward returns.
    """
    TINY = {}
    OUTPUT = "logits"

    def forward(self, pixel_values, input_ids):
        outputs = super().forward(input_ids=input_ids, use_cache=False,
                                  **self.image_arguments(pixel_values))
        return getattr(outputs, self.OUTPUT)

    def class_arguments(self, **inputs):
        """The same inputs as the class's own forward takes them."""
        return inputs

    def prepare(self):
        """Called once, on the new module."""

    def image_arguments(self, pixel_values):
        """What the class's forward is given of the image."""
        return {"pixel_values": pixel_values}

    def image_features(self, pixel_values):
        """Image features; the second-last dimension is the row."""
        owner = self if hasattr(self, "get_image_features") else self.model
        features = owner.get_image_features(pixel_values)
        features = getattr(features, "pooler_output", features)
        if isinstance(features, list | tuple):
            features = torch.cat([f.flatten(0, -2) for f in features])
        return features

    def pixel_shape(self):
        """The shape of `pixel_values` for one sample."""
        vision = self.config.vision_config
        channels = getattr(vision, "num_channels", 3)
        size = vision.image_size
        height, width = size if isinstance(size, list | tuple) else (size, size)
        return (channels, height, width)

    def rows_per_image(self):
        with torch.no_grad():
            features = self.image_features(torch.zeros(1, *self.pixel_shape()))
        return features.numel() // features.shape[-1]

    def input_shapes(self, sequence):
        """{name: (dtype, shape of one sample)} of forward's arguments."""
        return {"pixel_values": (F32, self.pixel_shape()),
                "input_ids": (I64, (sequence,))}

    def token_inputs(self, ids):
        """The inputs that follow from one sample's token ids: {name: array}."""
        return {}


class TokenTypes(Adapter):
    """forward(pixel_values, input_ids, token_type_ids [batch, sequence]).

    The classes ask for it in training: tokens of an image (type 1) see each
    other both ways.
    """

    def forward(self, pixel_values, input_ids, token_type_ids):
        return super(Adapter, self).forward(
            pixel_values=pixel_values, input_ids=input_ids,
            token_type_ids=token_type_ids, use_cache=False).logits

    def input_shapes(self, sequence):
        return {**super().input_shapes(sequence),
                "token_type_ids": (I64, (sequence,))}

    def token_inputs(self, ids):
        return {"token_type_ids":
                (ids == self.config.image_token_id).astype(ids.dtype)}


class PaliGemma(TokenTypes):
    """Type 0 is the prefix (image and prompt), which sees itself both ways;
    type 1 the suffix, which is to be learnt. Half of the words each."""

    def token_inputs(self, ids):
        words = (ids != self.config.image_token_id).cumsum()
        return {"token_type_ids": (2 * words > words[-1]).astype(ids.dtype)}


class Decoder(Adapter):
    """A text model: forward(input_ids)."""

    def forward(self, input_ids):
        return super(Adapter, self).forward(input_ids=input_ids,
                                            use_cache=False).logits

    def rows_per_image(self):
        return 0

    def input_shapes(self, sequence):
        return {"input_ids": (I64, (sequence,))}


class Contrastive(Adapter):
    """An image and a text tower; the logits are [images, texts]."""
    OUTPUT = "logits_per_image"

    def forward(self, pixel_values, input_ids):
        return super(Adapter, self).forward(
            pixel_values=pixel_values, input_ids=input_ids).logits_per_image

    def rows_per_image(self):
        return 0


class ByFeatures(Adapter):
    """The image goes in as features that the adapter computes."""

    def image_arguments(self, pixel_values):
        features = self.image_features(pixel_values)
        return {"mm_encoder_outputs": {"image": BaseModelOutputWithPooling(
            pooler_output=(features.flatten(0, -2),))}}


class Llava(ByFeatures):
    """Hugging Face makes a list of the batch, which would freeze its size."""

    def image_features(self, pixel_values):
        config, model = self.config, self.model
        states = model.vision_tower(pixel_values,
                                    output_hidden_states=True).hidden_states
        first = 1 if config.vision_feature_select_strategy == "default" else 0
        return model.multi_modal_projector(
            states[config.vision_feature_layer][:, first:])


class LlavaNext(Llava):
    """One image size for all samples; Hugging Face loops over the batch.

    `pixel_values` are [batch, crops, channels, height, width]: the image, then
    the crops of its grid.
    """
    TINY = {"image_grid_pinpoints": [[16, 32], [32, 16], [32, 32]]}

    def class_arguments(self, pixel_values, input_ids):
        sizes = torch.tensor([self.image_size()] * len(pixel_values))
        return {"pixel_values": pixel_values, "input_ids": input_ids,
                "image_sizes": sizes}

    def pixel_shape(self):
        """The last of the config's grids; the crops are its squares."""
        channels, height, width = super().pixel_shape()
        rows, columns = self.image_size()
        crops = (rows // height) * (columns // width)
        return (1 + crops, channels, height, width)

    def image_size(self):
        return self.config.image_grid_pinpoints[-1]

    def image_features(self, pixel_values):
        # Packing moves rows and looks at no feature: so the samples can lie
        # side by side in the feature dimension, [crops, rows, batch * width].
        batch = pixel_values.shape[0]
        features = super().image_features(pixel_values.flatten(0, 1))
        features = features.reshape(batch, -1, *features.shape[1:])
        packed, _ = self.model.pack_image_features(
            [features.permute(1, 2, 0, 3).flatten(2)], [self.image_size()],
            self.config.vision_feature_select_strategy,
            self.model.image_newline.repeat(batch))
        rows = len(packed[0])
        return packed[0].reshape(rows, batch, -1).transpose(0, 1)


class Idefics3(ByFeatures):
    """Hugging Face drops images that are all zero; here each sample has one."""

    def class_arguments(self, pixel_values, input_ids):
        return {"pixel_values": pixel_values[:, None], "input_ids": input_ids}

    def image_features(self, pixel_values):
        states = self.model.vision_model(pixel_values).last_hidden_state
        return self.model.connector(states)


class PatchGrid(ByFeatures):
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

    def forward(self, pixel_values, input_ids, position_ids):
        outputs = super(Adapter, self).forward(
            input_ids=input_ids, use_cache=False,
            position_ids=position_ids.transpose(0, 1),
            **self.image_arguments(pixel_values))
        return outputs.logits

    def class_arguments(self, pixel_values, input_ids, position_ids):
        """The class makes the position ids by itself."""
        return {"pixel_values": pixel_values.flatten(0, 1),
                "input_ids": input_ids,
                "image_grid_thw": torch.tensor(
                    [self.grid()] * len(pixel_values)),
                "mm_token_type_ids":
                    (input_ids == self.config.image_token_id).int()}

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
                "position_ids": (I64, (3, sequence))}

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


_BY_NAME = {
    "LlavaForConditionalGeneration": Llava,
    "LlavaNextForConditionalGeneration": LlavaNext,
    "Idefics3ForConditionalGeneration": Idefics3,
    "SmolVLMForConditionalGeneration": Idefics3,
    "Gemma3ForConditionalGeneration": TokenTypes,
    "PaliGemmaForConditionalGeneration": PaliGemma,
}


def find(hf_class):
    """The adapter of a class: its own, or the generic one of its kind."""
    if hf_class.__name__ in _BY_NAME:
        return _BY_NAME[hf_class.__name__]
    if "vision_config" not in hf_class.config_class.sub_configs:
        return Decoder
    if hasattr(hf_class, "get_text_features"):
        return Contrastive
    get_features = getattr(hf_class, "get_image_features", None)
    if get_features and "image_grid_thw" in inspect.signature(
            get_features).parameters:
        return PatchGrid
    return Adapter
