"""Adapters for classes with other inputs than an image and tokens for its rows.

What one sample has beside them follows from its image or its token ids.
"""

import torch
import torch.nn.functional as F

import hf_adapters
import hf_config
from hf_adapters import I64


class CrossAttention(hf_adapters.Adapter):
    """The decoder looks at the image's features; none is a token's."""

    def rows_per_image(self):
        return 0


class Git(CrossAttention):
    """The decoder's sequence is the image's rows and then the tokens, whose
    logits the class takes for its loss."""

    def output_of(self, outputs):
        first = self.git.encoder.layer[0].attention.self.image_patch_tokens
        return super().output_of(outputs)[:, first:]


class Mllama(CrossAttention):
    """`pixel_values` are [batch, tiles, channels, height, width], as many tiles
    as there can be, in the last of the config's arrangements."""
    TINY = {"vision_config.intermediate_layers_indices": [0],
            "vision_config.num_global_layers": hf_config.TINY_LAYERS,
            "vision_config.vision_output_dim": 2 * hf_config.TINY_WIDTH,
            "text_config.cross_attention_layers": [1]}

    def pixel_shape(self):
        return (self.config.vision_config.max_num_tiles,
                *super().pixel_shape())

    def image_arguments(self, pixel_values):
        batch, tiles = pixel_values.shape[:2]
        arrangement = len(self.config.vision_config.supported_aspect_ratios)
        return {"pixel_values": pixel_values[:, None],
                "aspect_ratio_ids": torch.full((batch, 1), arrangement),
                "aspect_ratio_mask": torch.ones(batch, 1, tiles, dtype=I64)}

    def class_arguments(self, pixel_values, **inputs):
        return {**self.image_arguments(pixel_values), **inputs}


class InstructBlip(hf_adapters.Adapter):
    """forward(pixel_values, input_ids, qformer_input_ids [batch, sequence])."""

    def forward(self, pixel_values, input_ids, qformer_input_ids,
                attention_mask=None):
        return self.run(pixel_values=pixel_values, input_ids=input_ids,
                        qformer_input_ids=qformer_input_ids,
                        attention_mask=attention_mask)

    def image_features(self, pixel_values):
        return self.get_image_features(
            pixel_values, torch.zeros(1, 1, dtype=I64)).pooler_output

    def input_shapes(self, sequence):
        return {**super().input_shapes(sequence),
                "qformer_input_ids": (I64, (sequence,))}

    def token_inputs(self, ids):
        return {"qformer_input_ids": ids}


class InstructBlipVideo(InstructBlip):
    """`pixel_values` are [batch, frames, channels, height, width]."""
    TINY = {"video_token_index": 3, "num_query_tokens": 4}
    FRAMES = 4

    def prepare(self):
        self.config.image_token_id = self.config.video_token_id

    def image_features(self, pixel_values):
        return self.get_video_features(
            pixel_values, torch.zeros(1, 1, dtype=I64)).pooler_output

    def pixel_shape(self):
        return (self.FRAMES, *super().pixel_shape())


class EncoderDecoder(hf_adapters.Adapter):
    """forward(pixel_values, input_ids, decoder_input_ids [batch, sequence]).

    The labels are the decoder's.
    """

    def forward(self, pixel_values, input_ids, decoder_input_ids,
                attention_mask=None):
        return self.run(pixel_values=pixel_values, input_ids=input_ids,
                        decoder_input_ids=decoder_input_ids,
                        attention_mask=attention_mask)

    def input_shapes(self, sequence):
        return {**super().input_shapes(sequence),
                "decoder_input_ids": (I64, (sequence,))}

    def token_inputs(self, ids):
        return {"decoder_input_ids": ids}


class Florence2(EncoderDecoder):
    """The config does not say an image's size."""
    TINY_IMAGE, FULL_IMAGE = 32, 768

    def pixel_shape(self):
        tiny = self.config.vision_config.embed_dim[0] == hf_config.TINY_WIDTH
        side = self.TINY_IMAGE if tiny else self.FULL_IMAGE
        return (3, side, side)


class T5Gemma2(EncoderDecoder):
    """The image is the encoder's."""

    def pixel_shape(self):
        size = self.config.encoder.vision_config.image_size
        return (3, size, size)


class ImageEncoder(CrossAttention):
    """forward(pixel_values, input_ids): the encoder has the image, the decoder
    the tokens."""

    def forward(self, pixel_values, input_ids, attention_mask=None):
        return self.run(**self.class_arguments(pixel_values, input_ids,
                                               attention_mask))

    def class_arguments(self, pixel_values, input_ids, attention_mask=None):
        inputs = {} if attention_mask is None else {
            "decoder_attention_mask": attention_mask}
        return {"decoder_input_ids": input_ids, **inputs,
                **self.image_arguments(pixel_values)}

    def pixel_shape(self):
        encoder = getattr(self.config, "encoder", None)
        size = (encoder or self.config.vision_config).image_size
        return (3, size, size)


class FlattenedPatches(hf_adapters.Adapter):
    """`pixel_values` are [batch, patches, values]; the class takes each patch
    behind its row and column in the image, from 1."""
    TINY_GRID, FULL_GRID = (4, 8), (32, 32)

    def grid(self):
        values = self.config.vision_config.patch_embed_hidden_size
        tiny = values == 3 * hf_config.TINY_PATCH**2
        return self.TINY_GRID if tiny else self.FULL_GRID

    def pixel_shape(self):
        rows, columns = self.grid()
        return (rows * columns,
                self.config.vision_config.patch_embed_hidden_size)

    def image_arguments(self, pixel_values):
        places = torch.cartesian_prod(*(torch.arange(1, size + 1)
                                        for size in self.grid()))
        places = places.to(pixel_values.dtype)
        places = places.expand(pixel_values.shape[0], -1, -1)
        return {"flattened_patches": torch.cat((places, pixel_values), -1)}


class Pix2Struct(FlattenedPatches, ImageEncoder):
    """Its text is the decoder's."""


class Idefics(CrossAttention):
    """Each token sees the image."""
    TINY = {"freeze_text_layers": False, "freeze_vision_layers": False}

    def class_arguments(self, pixel_values, input_ids, **inputs):
        seen = torch.ones_like(input_ids)[..., None]
        return {"pixel_values": pixel_values[:, None], "input_ids": input_ids,
                "image_attention_mask": seen, **inputs}

    def forward(self, pixel_values, input_ids, attention_mask=None):
        return self.run(**self.class_arguments(
            pixel_values, input_ids, attention_mask=attention_mask))


class DeepseekVLHybrid(hf_adapters.Adapter):
    """`pixel_values` are the image at its high resolution; the class also takes
    it at the low one."""

    def image_arguments(self, pixel_values):
        side = self.config.vision_config.image_size
        low = F.interpolate(pixel_values, (side, side), mode="bilinear")
        return {"pixel_values": low, "high_res_pixel_values": pixel_values}

    def class_arguments(self, pixel_values, **inputs):
        return {**self.image_arguments(pixel_values), **inputs}

    def image_features(self, pixel_values):
        return self.model.get_image_features(
            **self.image_arguments(pixel_values)).pooler_output

    def pixel_shape(self):
        side = self.config.high_res_vision_config.image_size
        return (3, side, side)


class Kosmos2(hf_adapters.Adapter):
    """A mask of the ids says where the features go."""
    TINY = {"latent_query_num": 4, "image_token_id": 3}

    def forward(self, pixel_values, input_ids, attention_mask=None):
        return self.run(attention_mask=attention_mask, **self.class_arguments(
            pixel_values=pixel_values, input_ids=input_ids))

    def class_arguments(self, input_ids, **inputs):
        image = input_ids == self.config.image_token_id
        return {"input_ids": input_ids, "image_embeds_position_mask": image,
                **inputs}

    def rows_per_image(self):
        return self.config.latent_query_num


class Kosmos2_5(FlattenedPatches, Kosmos2):
    """As Kosmos-2, of patches."""

    def class_arguments(self, pixel_values, **inputs):
        return {**super().class_arguments(**inputs),
                **self.image_arguments(pixel_values)}


class Chameleon(hf_adapters.Adapter):
    """Images are tokens of the vocabulary, by an autoencoder's codes."""
    TINY = {"image_token_id": 3, "vocabulary_map": {
                "<image>": 3, **{f"IMGIMG{digit}Z": 6 + code for code, digit
                                 in enumerate("ABCDEFGH")}},
            "vq_config.num_embeddings": 8, "vq_config.base_channels": 32,
            "vq_config.channel_multiplier": [1, 1],
            "vq_config.num_res_blocks": 1, "vq_config.latent_channels": 32,
            "vq_config.resolution": hf_config.TINY_IMAGE // 4}

    def prepare(self):
        self.model.vocabulary_mapping.img2bpe_mapping_tensor  # made once

    def pixel_shape(self):
        vision = self.config.vq_config
        return (vision.in_channels, vision.resolution, vision.resolution)
