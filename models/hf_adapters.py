"""What a Hugging Face class needs to become a training graph.

An adapter is a mixin put before the class (`hf.build`), so parameter names
stay the class's. `Adapter` fits any class that takes pixel values and token
ids; the others say how theirs differ, and replace what Hugging Face computes
in Python from the data although training has it fixed: one image of one
shape per sample. The first dimension of every input is the sample. The one
for patches packed into a sequence is in hf_patch_grid.py, those for classes
that are told shapes by tensors in hf_shapes.py, those for classes that take
more than this in hf_inputs.py.
"""

import inspect

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor
from transformers.modeling_outputs import BaseModelOutputWithPooling

import hf_complex
import hf_config
import hf_known

F32, I64 = torch.float32, torch.int64


class Adapter:
    """forward(pixel_values [batch, ...], input_ids [batch, sequence]).

    As in every adapter, a last input attention_mask [batch, sequence] may say
    which tokens are no padding.

    TINY: {dotted key: value} of the tiny config that the generic rule of
      hf_config.py does not give.
    OUTPUT: the name of the graph's output, and of the field of what the
      class's forward returns.
    """
    TINY = {}
    OUTPUT = "logits"

    def forward(self, pixel_values, input_ids, attention_mask=None):
        return self.run(input_ids=input_ids, attention_mask=attention_mask,
                        **self.image_arguments(pixel_values))

    def run(self, **arguments):
        """The output of the class's own forward."""
        with hf_complex.RealPairs():
            outputs = super().forward(use_cache=False, **arguments)
        return self.output_of(outputs)

    def output_of(self, outputs):
        """Of what a forward of the class returns, what the loss is of."""
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
        if not hasattr(vision, "image_size"):  # two towers, the first's image
            vision = getattr(vision, next(iter(vision.sub_configs)))
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

    def forward(self, pixel_values, input_ids, token_type_ids,
                attention_mask=None):
        return self.run(pixel_values=pixel_values, input_ids=input_ids,
                        token_type_ids=token_type_ids,
                        attention_mask=attention_mask)

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

    def forward(self, input_ids, attention_mask=None):
        return self.run(input_ids=input_ids, attention_mask=attention_mask)

    def rows_per_image(self):
        return 0

    def input_shapes(self, sequence):
        return {"input_ids": (I64, (sequence,))}


class Contrastive(Adapter):
    """An image and a text tower; the logits are [images, texts]."""
    OUTPUT = "logits_per_image"

    def run(self, **arguments):
        return super(Adapter, self).forward(**arguments).logits_per_image

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


class Pixtral(ByFeatures):
    """Hugging Face packs all images, of any size, into one sequence."""

    def class_arguments(self, pixel_values, **inputs):
        sizes = torch.tensor([self.pixel_shape()[1:]] * len(pixel_values))
        return {"pixel_values": pixel_values, "image_sizes": sizes, **inputs}

    def image_features(self, pixel_values):
        model = self.model
        tower = getattr(model, "vision_tower", None) or model.vision_encoder
        projector = (getattr(model, "multi_modal_projector", None) or
                     model.vision_projection)
        grid = tower.patch_conv(pixel_values)  # [batch, width, rows, columns]
        states = tower.ln_pre(grid.flatten(2).transpose(1, 2))
        rows, columns = grid.shape[2:]
        positions = torch.stack(torch.meshgrid(
            torch.arange(rows), torch.arange(columns), indexing="ij"), -1)
        states = tower.transformer(
            states, attention_mask=None,
            position_embeddings=tower.patch_positional_embedding(
                states, positions.flatten(0, 1))).last_hidden_state
        merger = projector.patch_merger
        merge = merger.spatial_merge_size
        grid = projector.norm(states).transpose(1, 2)
        merged = F.unfold(grid.unflatten(2, (rows, columns)), merge,
                          stride=merge)
        states = merger.merging_layer(merged.transpose(1, 2))
        states = projector.linear_1(states)
        return projector.linear_2(projector.act(states))


class LlavaNext(Llava):
    """One image size for all samples; Hugging Face loops over the batch.

    `pixel_values` are [batch, crops, channels, height, width]: the image, then
    the crops of its grid.
    """
    TINY = {"image_grid_pinpoints": [[16, 32], [32, 16], [32, 32]]}

    def class_arguments(self, pixel_values, **inputs):
        sizes = torch.tensor([self.image_size()] * len(pixel_values))
        return {"pixel_values": pixel_values, "image_sizes": sizes, **inputs}

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
        pack = self.model.pack_image_features
        options = {name: getattr(self.config, name)
                   for name in inspect.signature(pack).parameters
                   if hasattr(self.config, name)}
        packed, _ = pack(
            [features.permute(1, 2, 0, 3).flatten(2)], [self.image_size()],
            image_newline=self.model.image_newline.repeat(batch), **options)
        rows = len(packed[0])
        return packed[0].reshape(rows, batch, -1).transpose(0, 1)


class Idefics3(ByFeatures):
    """Hugging Face drops images that are all zero; here each sample has one."""

    def class_arguments(self, pixel_values, **inputs):
        return {"pixel_values": pixel_values[:, None], **inputs}

    def image_features(self, pixel_values):
        states = self.model.vision_model(pixel_values).last_hidden_state
        return self.connect(states)

    def connect(self, states):
        return self.model.connector(states)


class Idefics2(Idefics3):
    TINY = {"perceiver_config.resampler_n_latents": 4}

    def connect(self, states):
        every = torch.ones(states.shape[:2], dtype=torch.bool)
        return self.model.connector(states, attention_mask=every)


class Timm(Adapter):
    """The image tower is one of timm's, which knows the size of an image."""

    def pixel_shape(self):
        tower = next(part.timm_model for part in self.modules()
                     if hasattr(part, "timm_model"))
        shape = tower.pretrained_cfg["input_size"]
        arguments = self.config.vision_config.model_args or {}
        if "img_size" in arguments:
            shape = (shape[0], *arguments["img_size"])
        return tuple(shape)


class TimmTiles(Timm):
    """The class takes the image as its only tile."""

    def image_arguments(self, pixel_values):
        return {"pixel_values": pixel_values[:, None]}

    def class_arguments(self, pixel_values, **inputs):
        return {**self.image_arguments(pixel_values), **inputs}

    def image_features(self, pixel_values):
        return super().image_features(pixel_values[:, None])


def find_without_counting(model, config):
    """Lets the model find the image's tokens by their id alone: it compares
    their number with the features' outside of transformers' switch."""
    token = config.image_token_id

    def mask(input_ids, inputs_embeds, *_, **__):
        return (input_ids == token)[..., None].expand_as(inputs_embeds)
    model.get_placeholder_mask = mask


class Inkling(Adapter):
    """`pixel_values` are [batch, patches, frames, height, width, channels]; a
    patch makes a row."""
    TINY_PATCHES, FULL_PATCHES = 8, 256

    def prepare(self):
        find_without_counting(self.model, self.config)

    def image_arguments(self, pixel_values):
        return {"pixel_values": pixel_values.flatten(0, 1)}

    def class_arguments(self, pixel_values, **inputs):
        return {**self.image_arguments(pixel_values), **inputs}

    def rows_per_image(self):
        return self.pixel_shape()[0]

    def pixel_shape(self):
        vision = self.config.vision_config
        tiny = vision.patch_size == hf_config.TINY_PATCH
        return (self.TINY_PATCHES if tiny else self.FULL_PATCHES,
                vision.temporal_patch_size, vision.patch_size,
                vision.patch_size, vision.num_channels)


def keep_padding_row(embedding):
    """Lets the embedding look its row of padding up as a constant: PyTorch
    does not train it (`padding_idx`), which ONNX does not say. Initial weights
    are to leave the row as it is (`hf.initialize`). Of a module without values
    it stays a parameter."""
    with torch.no_grad():
        row = embedding(torch.tensor(embedding.padding_idx))
    if isinstance(row, FakeTensor) or row.is_meta:
        return  # has no values

    def look_up(module, arguments, rows):
        padding = arguments[0] == module.padding_idx
        return torch.where(padding[..., None], row, rows)
    embedding.register_forward_hook(look_up)
    embedding.keeps_padding_row = True


class Gemma3n(Timm):
    """A quantile of the normal distribution is a constant (erfinv)."""

    def prepare(self):
        keep_padding_row(self.model.language_model.embed_tokens_per_layer)

    def run(self, **arguments):
        with hf_known.KnownValues():
            return super().run(**arguments)


class Llama4(Adapter):
    # Four patches side by side.
    TINY = {"vision_config.intermediate_size": 4 * hf_config.TINY_WIDTH}

    def image_features(self, pixel_values):
        return self.get_image_features(pixel_values).last_hidden_state
