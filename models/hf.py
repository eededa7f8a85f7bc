"""Hugging Face classes as training graphs: inputs by name in, logits out.

    model = hf.build("Qwen3VLForConditionalGeneration", preset="tiny")
    model.module           # the class, its forward narrowed to model.inputs
    model.inputs           # {name: (dtype, shape of one sample)}
    model.output           # "logits", or "logits_per_image"
    model.example_inputs(batch)   # {name: tensor}, to trace with
    model.sample(rng)      # {name: array} of one valid sample, with labels
    model.images           # the recipe's `images:` (None: no image merge)

`build` only constructs: under `torch.device("meta")` or FakeTensorMode the
parameters take no memory. `initialize(model.module, seed)` gives seeded
weights. Parameter names are Hugging Face's. hf_config.py makes the configs;
hf_adapters.py has what a class needs beyond the generic path, hf_tiny.py what
its tiny config needs, hf_complex.py makes complex numbers real.
"""

import dataclasses
import inspect
import math
import os
import zlib

# Hugging Face checks at run time that image tokens and image features match in
# number. The check traces to aten._is_all_true, which the ONNX exporter cannot
# translate; this is transformers' own switch for it. `oriel-run` checks the
# same thing on every batch (`images:` in the recipe).
os.environ.setdefault("TRANSFORMERS_DISABLE_TORCH_CHECK", "1")

import numpy as np
import torch
import transformers

import hf_adapters
import hf_complex
import hf_config
import hf_experts
import hf_inputs
import hf_patch_grid
import hf_shapes
import hf_tiny
from hf_config import SettingError

# Other classes: find_adapter.
ADAPTERS = {
    "BlipForConditionalGeneration": hf_inputs.CrossAttention,
    "ChameleonForConditionalGeneration": hf_inputs.Chameleon,
    "Cosmos3OmniForConditionalGeneration": hf_patch_grid.PatchGrid,
    "DeepseekVLHybridForConditionalGeneration": hf_inputs.DeepseekVLHybrid,
    "Dots3NoteForConditionalGeneration": hf_shapes.KnownShapes,
    "Emu3ForConditionalGeneration": hf_shapes.Emu3,
    "FastVlmForConditionalGeneration": hf_adapters.Timm,
    "Florence2ForConditionalGeneration": hf_inputs.Florence2,
    "Gemma3ForConditionalGeneration": hf_adapters.TokenTypes,
    "Gemma3nForConditionalGeneration": hf_adapters.Gemma3n,
    "Gemma4ForConditionalGeneration": hf_shapes.Gemma4,
    "Gemma4UnifiedForConditionalGeneration": hf_shapes.SquareGrid,
    "GitForCausalLM": hf_inputs.Git,
    "Glm5NextForConditionalGeneration": hf_shapes.Glm5Next,
    "GlmOcrForConditionalGeneration": hf_patch_grid.PatchGrid,
    "Granite4VisionForConditionalGeneration": hf_shapes.Granite4Vision,
    "GraniteDoclingForConditionalGeneration": hf_shapes.GraniteDocling,
    "HunYuanVLForConditionalGeneration": hf_shapes.HunYuanVL,
    "Idefics2ForConditionalGeneration": hf_adapters.Idefics2,
    "Idefics3ForConditionalGeneration": hf_adapters.Idefics3,
    "IdeficsForVisionText2Text": hf_inputs.Idefics,
    "Inkling2ForConditionalGeneration": hf_shapes.Inkling2,
    "InklingForConditionalGeneration": hf_adapters.Inkling,
    "InstructBlipForConditionalGeneration": hf_inputs.InstructBlip,
    "InstructBlipVideoForConditionalGeneration": hf_inputs.InstructBlipVideo,
    "Kimi_K25ForConditionalGeneration": hf_shapes.PatchImages,
    "Kosmos2ForConditionalGeneration": hf_inputs.Kosmos2,
    "Kosmos2_5ForConditionalGeneration": hf_inputs.Kosmos2_5,
    "LightOnOcrForConditionalGeneration": hf_adapters.Pixtral,
    "Llama4ForConditionalGeneration": hf_adapters.Llama4,
    "LlavaForConditionalGeneration": hf_adapters.Llava,
    "LlavaNextForConditionalGeneration": hf_adapters.LlavaNext,
    "LlavaNextVideoForConditionalGeneration": hf_adapters.LlavaNext,
    "LlavaOnevisionForConditionalGeneration": hf_adapters.LlavaNext,
    "MiniCPMOcrForConditionalGeneration": hf_shapes.MiniCPM,
    "MiniCPMV4_6ForConditionalGeneration": hf_shapes.MiniCPM,
    "MiniCPMV4_7ForConditionalGeneration": hf_shapes.MiniCPM,
    "Mistral3ForConditionalGeneration": hf_adapters.Pixtral,
    "MistralLarge4ForConditionalGeneration": hf_adapters.Pixtral,
    "MllamaForConditionalGeneration": hf_inputs.Mllama,
    "Molmo2ForConditionalGeneration": hf_shapes.Molmo2,
    "PaddleOCRVLForConditionalGeneration": hf_shapes.PatchImages,
    "PaliGemmaForConditionalGeneration": hf_adapters.PaliGemma,
    "PerceptionLMForConditionalGeneration": hf_adapters.TimmTiles,
    "Pix2StructForConditionalGeneration": hf_inputs.Pix2Struct,
    "PPFormulaNetForConditionalGeneration": hf_inputs.ImageEncoder,
    "Qwen2_5_VLForConditionalGeneration": hf_patch_grid.PatchGrid,
    "Qwen2VLForConditionalGeneration": hf_patch_grid.PatchGrid,
    "Qwen3_5ForConditionalGeneration": hf_patch_grid.PatchGrid,
    "Qwen3_5MoeForConditionalGeneration": hf_patch_grid.PatchGrid,
    "Qwen3VLForConditionalGeneration": hf_patch_grid.PatchGrid,
    "Qwen3VLMoeForConditionalGeneration": hf_patch_grid.PatchGrid,
    "SmolVLMForConditionalGeneration": hf_adapters.Idefics3,
    "T5Gemma2ForConditionalGeneration": hf_inputs.T5Gemma2,
    "VisionEncoderDecoderModel": hf_inputs.ImageEncoder,
}

IGNORE = -100
TINY_WORDS = 8  # beside the image's rows
FULL_SEQUENCE = 2048


class BuildError(Exception):
    """A class could not be built, or did not take an image."""


def first_cause(error):
    """The first line of an error's first cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else '(no message)'}"


@dataclasses.dataclass(frozen=True)
class Model:
    """A class of transformers, ready to export and to feed; see above."""
    name: str
    module: torch.nn.Module
    inputs: dict
    output: str
    rows_per_image: int
    sequence: int

    @property
    def images(self):
        if not self.rows_per_image:
            return None
        return {"per_sample": 1, "rows_per_image": self.rows_per_image}

    def example_inputs(self, batch=3):
        """{name: tensor [batch, ...]}; on the default device."""
        rng = np.random.default_rng(0)
        samples = [self.sample(rng) for _ in range(batch)]
        return {name: torch.tensor(np.stack([s[name] for s in samples]))
                for name in self.inputs}

    def class_output(self, inputs):
        """What the class itself gives for `inputs`, without the adapter."""
        hf_class = type(self.module).__bases__[1]
        config = hf_class.config_class.from_dict(self.module.config.to_dict())
        untouched = hf_class(config).eval()
        untouched.load_state_dict(self.module.state_dict())
        with torch.no_grad():
            outputs = untouched(**self.module.class_arguments(**inputs))
        return self.module.output_of(outputs)

    def sample(self, rng):
        """{name: array}: random pixels and words, the image after 0-2 words.

        The words have labels, but for the first two; of a model that takes an
        attention mask, the last 0-2 are padding. A model without token logits
        has no labels.
        """
        shape = self.inputs.get("pixel_values", (None, ()))[1]
        pixels = rng.standard_normal(shape).astype(np.float32)
        vocab = self.module.config.get_text_config().vocab_size
        ids = rng.integers(hf_config.FIRST_WORD_ID, vocab, self.sequence)
        image = np.zeros(self.sequence, bool)
        if self.rows_per_image:
            start = rng.integers(0, 3)
            image[start:start + self.rows_per_image] = True
            token = self.module.config.image_token_id
            ids[ids == token] = hf_config.FIRST_WORD_ID
            ids[image] = token
        real = np.arange(self.sequence) < self.sequence - rng.integers(0, 3)
        sample = {"pixel_values": pixels, "input_ids": ids,
                  **self.module.token_inputs(ids),
                  "attention_mask": real.astype(np.int64)}
        sample = {name: sample[name] for name in self.inputs}
        if self.output == "logits":
            labels = np.where(image, IGNORE, ids)
            labels[:2] = IGNORE
            if "attention_mask" in sample:
                labels[~real] = IGNORE
            sample["labels"] = labels
        return sample


def find_adapter(hf_class):
    """The adapter of a class: its own, or the generic one of its kind."""
    if hf_class.__name__ in ADAPTERS:
        return ADAPTERS[hf_class.__name__]
    if "vision_config" not in hf_class.config_class.sub_configs:
        return hf_adapters.Decoder
    if hasattr(hf_class, "get_text_features"):
        return hf_adapters.Contrastive
    get_features = getattr(hf_class, "get_image_features", None)
    if get_features and hf_shapes.SHAPES & set(
            inspect.signature(get_features).parameters):
        return hf_shapes.KnownShapes
    return hf_adapters.Adapter


def class_of(pretrained):
    """The name of the class that a pretrained model says it is of."""
    try:
        config = transformers.AutoConfig.from_pretrained(pretrained)
    except Exception as error:  # of files, hub and classes
        raise SettingError(f"--pretrained {pretrained}: {first_cause(error)}"
                           ) from error
    if not config.architectures:
        raise SettingError(f"--pretrained {pretrained}: its config.json names "
                           "no architecture: give the class, --hf CLASS")
    return config.architectures[0]


def _load(hf_class, pretrained, config, dtype):
    """The pretrained model, all of whose parameters are in its files. The
    class itself: which names files have, transformers knows of it alone."""
    module, info = hf_class.from_pretrained(
        pretrained, config=config, dtype=dtype, output_loading_info=True)
    lost = [*info["missing_keys"], *info["mismatched_keys"]]
    if lost:
        raise BuildError(f"{pretrained} has no weights of this shape for "
                         f"{lost[0]} and {len(lost) - 1} more")
    return module


def build(name, preset="full", settings=(), sequence=None, attention=None,
          padding=False, pretrained=None, dtype=torch.float32):
    """The `Model` of class `name` of transformers, in evaluation mode.

    pretrained: a folder, or a name of the hub, with config and weights, which
      are converted to `dtype`; else the weights are the class's.
    preset: "full" (the config's defaults) or "tiny" (see hf_config.py).
    settings: "dotted.key=value" texts over the config.
    sequence: tokens per sample; default: the image's rows and a few words for
      "tiny", else 2048 or the longest that the model has positions for.
    attention: "sdpa" (PyTorch's op), "eager" (decomposed), or the class's own
      choice, which is "sdpa" where it can be.
    padding: whether there is an input attention_mask, of the tokens that are no
      padding.
    Raises SettingError if transformers has no such class, or no such setting,
    and BuildError if the class is not to be had this way.
    """
    hf_class = getattr(transformers, name, None)
    if not isinstance(hf_class, type) or not getattr(hf_class, "config_class",
                                                     None):
        raise SettingError(f"transformers {transformers.__version__} has no "
                           f"model class {name}")
    adapter = find_adapter(hf_class)
    overrides = ({**adapter.TINY, **hf_tiny.TINY.get(name, {})}
                 if preset == "tiny" else {})
    try:
        start = (hf_class.config_class.from_pretrained(pretrained)
                 if pretrained else None)
        config = hf_config.make(hf_class.config_class, preset, settings,
                                overrides, start)
        if attention:
            config._attn_implementation = attention
        # Some classes give parameters random values that initialize() keeps.
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            module_class = type(name, (adapter, hf_class), {})
            if pretrained:
                module = _load(hf_class, pretrained, config, dtype)
                module.__class__ = module_class  # which only adds methods
            else:
                module = module_class(config)
            module.eval()
        hf_complex.replace_buffers(module)
        hf_experts.make_dense(module)
        module.prepare()
        rows = module.rows_per_image()
    except (hf_config.SettingError, BuildError):
        raise
    except Exception as error:  # the class's code raises whatever it meets
        raise BuildError(
            f"{name}: cannot be built and given an image this way: "
            f"{first_cause(error)}; it needs an adapter in "
            "models/hf_adapters.py") from error
    if rows and getattr(config, "image_token_id", None) is None:
        raise BuildError(f"{name}: its config sets no image token; give one by "
                         "--set image_token_index=3, or image_token_id")
    if sequence is None:
        sequence = rows + TINY_WORDS if preset == "tiny" else FULL_SEQUENCE
        longest = getattr(config.get_text_config(), "max_position_embeddings",
                          None)
        sequence = min(sequence, longest or sequence)
    inputs = module.input_shapes(sequence)
    if padding:
        inputs["attention_mask"] = (torch.int64, (sequence,))
    return Model(name, module, inputs, adapter.OUTPUT, rows, sequence)


@torch.no_grad()
def initialize(module, seed):
    """Normal weights of standard deviation 1/sqrt(fan-in); vectors (biases,
    norms) get noise of 0.1 on top of what their class gives them, so that no
    two are equal. Each tensor has its own generator, seeded by its name. A row
    of padding that is kept is zero, as its class has it.
    """
    for name, parameter in module.named_parameters():
        generator = torch.Generator().manual_seed(
            zlib.crc32(name.encode()) * 1000003 + seed)
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.ndim < 2:
            parameter.add_(noise, alpha=0.1)
        else:
            parameter.copy_(noise / math.sqrt(parameter[0].numel()))
    for part in module.modules():
        if hasattr(part, "keeps_padding_row"):
            part.weight[part.padding_idx] = 0
