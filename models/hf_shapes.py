"""The adapter for classes that are told the shapes of images by tensors."""

import inspect
import math

import torch
from torch.overrides import TorchFunctionMode

import hf_adapters
import hf_config
import hf_known

# Arguments of get_image_features: whoever takes one is served here.
_PACKED = {"image_grid_hw", "image_grid_thw"}
_PATCHES = {*_PACKED, "image_position_ids", "spatial_shapes", "target_sizes"}
SHAPES = {*_PATCHES, "image_sizes"}


def _accepted(function, arguments):
    """Those of the arguments by name that the function has."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in arguments.items() if name in names}


class KnownShapes(hf_adapters.Adapter):
    """forward(pixel_values, input_ids[, position_ids [batch, 3, sequence]]).

    The last is of classes with multimodal rotary embedding. An image's shape is
    a constant, and so is all that get_image_features computes from it
    (hf_known.py). The class may loop over the images: the batch is fixed.

    TINY_GRID, FULL_GRID: (height, width) in patches of an image of a class
      whose processor makes them: pixel_values are [batch, patches, values].
    PATCH_RANK: dimensions of a patch: 1, or 3 (channels, height, width).
    """
    TINY_GRID, FULL_GRID = (4, 8), (32, 32)
    PATCH_RANK = 1

    def forward(self, pixel_values, input_ids, position_ids=None,
                attention_mask=None):
        arguments = self.image_arguments(pixel_values)
        if position_ids is not None:
            arguments["position_ids"] = position_ids.transpose(0, 1)
        return self.run(input_ids=input_ids, attention_mask=attention_mask,
                        **arguments)

    def class_arguments(self, pixel_values, input_ids, position_ids=None,
                        **inputs):
        """The class makes the position ids by itself."""
        if position_ids is not None:
            inputs = {**self.rope_arguments(input_ids), **inputs}
        return {"input_ids": input_ids, **inputs,
                **self.feature_arguments(pixel_values)}

    def image_arguments(self, pixel_values):
        return {"mm_encoder_outputs": {"image": self.outputs(pixel_values)}}

    def image_features(self, pixel_values):
        features = self.outputs(pixel_values).pooler_output
        return torch.cat([image.flatten(0, -2) for image in features])

    def outputs(self, pixel_values):
        """What the class computes of the images."""
        with hf_known.KnownValues():
            outputs = self.features_owner().get_image_features(
                **self.feature_arguments(pixel_values))
        if isinstance(getattr(outputs, "pooler_output", None), torch.Tensor):
            outputs.pooler_output = (outputs.pooler_output,)
        return outputs

    def feature_arguments(self, pixel_values):
        """The arguments of get_image_features for a batch of images."""
        batch = int(pixel_values.shape[0])
        if self.features_take(_PACKED):
            pixel_values = pixel_values.flatten(0, 1)
        return {"pixel_values": pixel_values,
                **{name: torch.tensor([shape] * batch)
                   for name, shape in self.shapes().items()}}

    def features_owner(self):
        """The class or its part that has get_image_features in full."""
        model = getattr(self, "model", None)
        return model if hasattr(model, "get_image_features") else self

    def shapes(self):
        """{argument of get_image_features: what says one image's shape}."""
        shapes = {"image_merge_sizes": 2}  # patches that make a row, per side
        if self.takes_patches():
            height, width = self.grid()
            shapes |= {
                "image_grid_thw": (1, height, width),
                "image_grid_hw": (height, width),
                "image_position_ids": [(column, row) for row in range(height)
                                       for column in range(width)],
                "spatial_shapes": (height, width),
                "target_sizes": (height, width),
                "pixel_attention_mask": [True] * (height * width)}
        else:
            shapes["image_sizes"] = self.image_size()
        return _accepted(self.features_owner().get_image_features, shapes)

    def takes_patches(self):
        return self.features_take(_PATCHES)

    def features_take(self, names):
        """Whether get_image_features has one of these arguments."""
        return bool(_accepted(self.features_owner().get_image_features,
                              dict.fromkeys(names)))

    def image_size(self):
        return self.pixel_shape()[-2:]

    def grid(self):
        tiny = self.config.vision_config.patch_size == hf_config.TINY_PATCH
        return self.TINY_GRID if tiny else self.FULL_GRID

    def pixel_shape(self):
        if not self.takes_patches():
            return super().pixel_shape()
        vision = self.config.vision_config

        def first(names, default):
            return next((getattr(vision, name) for name in names
                         if hasattr(vision, name)), default)
        side = first(("model_patch_size", "patch_size"), None)
        patch = (first(("in_channels", "num_channels"), 3) *
                 first(("temporal_patch_size", "patch_temporal"), 1),
                 side, side)
        if self.PATCH_RANK == 1:
            patch = (math.prod(patch),)
        return (math.prod(self.grid()), *patch)

    def input_shapes(self, sequence):
        shapes = super().input_shapes(sequence)
        if self.rope_index():
            shapes["position_ids"] = (hf_adapters.I64, (3, sequence))
        return shapes

    def rope_index(self):
        """The class's function for positions in three dimensions, or None."""
        return getattr(self.features_owner(), "get_rope_index",
                       getattr(self, "get_rope_index", None))

    def rope_arguments(self, ids):
        """What it takes of the ids, beside them."""
        kinds = (ids == self.config.image_token_id).int()
        known = {"mm_token_type_ids": kinds,
                 "attention_mask": torch.ones_like(ids)}
        return _accepted(self.rope_index(), known)

    def token_inputs(self, ids):
        """position_ids [3, sequence], by the class's rule."""
        if not self.rope_index():
            return {}
        ids = torch.as_tensor(ids)[None]
        shapes = {name: torch.tensor([shape])
                  for name, shape in self.shapes().items()}
        positions, _ = self.rope_index()(
            input_ids=ids, **self.rope_arguments(ids),
            **_accepted(self.rope_index(), shapes))
        return {"position_ids": positions[:, 0].numpy()}


class SquareGrid(KnownShapes):
    """A window of 3 x 3 patches makes a row, or a patch of 9 times the size."""
    TINY_GRID, FULL_GRID = (6, 6), (48, 48)


class Gemma4(SquareGrid):
    """Each layer's own embedding looks the image's tokens up as padding."""

    def prepare(self):
        decoder = self.model.language_model
        if hasattr(decoder, "embed_tokens_per_layer"):
            hf_adapters.keep_padding_row(decoder.embed_tokens_per_layer)


class PatchImages(KnownShapes):
    """The patches are small images."""
    PATCH_RANK = 3


class MiniCPM(KnownShapes):
    """The patches are side by side in an image of one patch's height."""

    def pixel_shape(self):
        patch = self.config.vision_config.patch_size
        return (3, patch, math.prod(self.grid()) * patch)

    def feature_arguments(self, pixel_values):
        arguments = super().feature_arguments(pixel_values)
        packed = pixel_values.permute(1, 2, 0, 3).flatten(2)
        return {**arguments, "pixel_values": packed[None]}


class Granite4Vision(KnownShapes, hf_adapters.LlavaNext):
    """Crops as LLaVA-NeXT's; features for several layers of the decoder."""
    TINY = {**hf_adapters.LlavaNext.TINY, "downsample_rate": "1/2",
            "deepstack_layer_map": [[0, 0], [1, 1]],
            "spatial_target_layers": [0, 0, 1, 1]}
    image_size = hf_adapters.LlavaNext.image_size

    def image_features(self, pixel_values):
        _, images = self.outputs(pixel_values).deepstack_features[0]
        return torch.cat(list(images))


class GraniteDocling(KnownShapes):
    """An image is one tile."""

    def pixel_shape(self):
        return (1, *super().pixel_shape())

    def shapes(self):
        return {"pixel_attention_mask": [True]}  # no tile is padding


class HunYuanVL(KnownShapes):
    """The class numbers the images of a batch through; here a sample's are
    numbered from 0, as if it were alone."""

    def prepare(self):
        hf_adapters.find_without_counting(self.model, self.config)

    def class_arguments(self, position_ids, **inputs):
        return {**super().class_arguments(**inputs),
                "position_ids": position_ids.transpose(0, 1)}


class Inkling2(KnownShapes):
    """A patch is a square of the encoder's, channels last, and makes a row."""
    TINY_GRID = (2, 4)

    def prepare(self):
        hf_adapters.find_without_counting(self.model, self.config)

    def pixel_shape(self):
        vision = self.config.vision_config
        side = vision.patch_size * vision.spatial_merge_size
        return (math.prod(self.grid()), side, side, vision.num_channels)


class Glm5Next(KnownShapes):
    """Groups of keys that are full in no sample stay, as their number depends
    on the data; they are masked all the same."""

    def run(self, **arguments):
        with _EveryGroup():
            return super().run(**arguments)


class _EveryGroup(TorchFunctionMode):
    """`full.any(0)`, by which the class selects groups, selects all."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.any and args[1:] == (0,):
            return slice(None)
        return function(*args, **(kwargs or {}))


class Emu3(KnownShapes):
    """Images are tokens of the vocabulary, by an autoencoder's codes; a row of
    codes ends with a token of its own."""
    TINY = {"image_token_id": 3, "vocabulary_map": {
                "<image>": 3, "<|extra_200|>": 6,
                **{f"<|visual token {code:06}|>": 7 + code
                   for code in range(8)}},
            "vq_config.codebook_size": 8, "vq_config.base_channels": 64,
            "vq_config.channel_multiplier": [1, 1],
            "vq_config.num_res_blocks": 1, "vq_config.attn_resolutions": []}
    TINY_IMAGE, FULL_IMAGE = 4, 512

    def prepare(self):
        self.model.vocabulary_mapping.img2bpe_mapping_tensor  # made once

    def pixel_shape(self):
        tiny = self.config.vq_config.base_channels == hf_config.TINY_WIDTH
        side = self.TINY_IMAGE if tiny else self.FULL_IMAGE
        return (self.config.vq_config.in_channels, side, side)

    def feature_arguments(self, pixel_values):
        sizes = [self.image_size()] * int(pixel_values.shape[0])
        return {"pixel_values": pixel_values, "image_sizes": sizes}


class Molmo2(KnownShapes):
    """pixel_values [batch, patches, values]; windows of 2 x 2 patches are
    pooled, which tensors of positions in the batch's patches say."""
    TINY = {"vision_config.num_position_embeddings": 16,
            "adapter_config.vision_feature_layer": [1, 0],
            "image_patch_id": 3}

    def takes_patches(self):
        return True

    def grid(self):
        vision = self.config.vision_config
        return tuple(size // vision.patch_size for size in vision.image_size)

    def feature_arguments(self, pixel_values):
        batch, patches = map(int, pixel_values.shape[:2])
        rows, columns = (size // 2 for size in self.grid())
        windows = torch.arange(patches).reshape(rows, 2, columns, 2)
        windows = windows.transpose(1, 2).reshape(-1, 4)
        first = torch.arange(batch)[:, None, None] * patches
        return {"pixel_values": pixel_values,
                "image_token_pooling": (first + windows).flatten(0, 1),
                "image_grids": torch.tensor([(rows, columns, 0, 0)] * batch)}
