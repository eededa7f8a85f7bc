"""The models of the GPU benchmark, and what a training step of them computes.

    case = CASES["llava_7b"]
    figures = read_figures(folder / case.skeleton / "config.json")
    flops_per_sample(figures, case.sequence)

A case is a skeleton (models/skeletons), a batch and a length. llava_tiny is for tests of the
scripts: it takes seconds on the emulator, and its figures mean nothing.
"""

import dataclasses
import json
import pathlib


@dataclasses.dataclass(frozen=True)
class Case:
    skeleton: str
    batch: int  # samples of a step, which is one microbatch
    sequence: int  # tokens of a sample, those that stand for image rows included
    learning_rate: float


CASES = {
    "gpt2_124m": Case("gpt2_124m", 64, 1024, 6e-4),
    "llava_2b": Case("llava_2b", 8, 576 + 512, 2e-5),
    "llava_7b": Case("llava_1_5_7b", 4, 576 + 512, 2e-5),
    "llava_7b_batch8": Case("llava_1_5_7b", 8, 576 + 512, 2e-5),
    "llava_tiny": Case("llava_small", 2, 24, 1e-3),
}


@dataclasses.dataclass(frozen=True)
class Decoder:
    hidden: int
    layers: int
    heads: int
    ffn: int
    vocab: int
    gated: bool  # three products in a feed-forward, else two


@dataclasses.dataclass(frozen=True)
class Encoder:
    hidden: int
    layers: int  # that are computed
    heads: int
    ffn: int
    image: int
    patch: int

    @property
    def rows(self):
        """Of an image, without the class token."""
        return (self.image // self.patch) ** 2


@dataclasses.dataclass(frozen=True)
class Figures:
    decoder: Decoder
    encoder: Encoder | None = None
    image_token: int | None = None


def read_figures(path: pathlib.Path) -> Figures:
    """A skeleton's config.json."""
    config = json.loads(path.read_text())
    if "n_embd" in config:  # GPT-2
        hidden = config["n_embd"]
        return Figures(Decoder(hidden, config["n_layer"], config["n_head"], 4 * hidden,
                               config["vocab_size"], gated=False))
    text, vision = config["text_config"], config["vision_config"]
    decoder = Decoder(text["hidden_size"], text["num_hidden_layers"], text["num_attention_heads"],
                      text["intermediate_size"], text["vocab_size"], gated=True)
    # vision_feature_layer -2: the features are what enters the last layer.
    layers = vision["num_hidden_layers"] + 1 + config["vision_feature_layer"]
    encoder = Encoder(vision["hidden_size"], layers, vision["num_attention_heads"],
                      vision["intermediate_size"], vision["image_size"], vision["patch_size"])
    return Figures(decoder, encoder, config["image_token_index"])


def products(hidden: int, ffn: int, gated: bool) -> int:
    """Parameters of a layer's products: four of attention, two or three of the feed-forward."""
    return 4 * hidden * hidden + (3 if gated else 2) * hidden * ffn


def flops_per_sample(figures: Figures, sequence: int) -> int:
    """Operations of a training step, of what the model is, for one sample; README.md has the formula.

    A multiply-add counts two; the backward computes each product twice (gradients of both factors), but
    that of the patches once; nothing that is computed again counts.
    """
    decoder = figures.decoder
    parameters = decoder.layers * products(decoder.hidden, decoder.ffn, decoder.gated)
    parameters += decoder.hidden * decoder.vocab
    forward = 2 * sequence * parameters
    # Scores and their product with the values, 2 s² h each: causal, so half of them.
    forward += decoder.layers * 2 * sequence * sequence * decoder.hidden
    total = 3 * forward
    if figures.encoder is not None:
        encoder = figures.encoder
        rows, tokens = encoder.rows, encoder.rows + 1
        forward = encoder.layers * (2 * tokens * products(encoder.hidden, encoder.ffn, False) +
                                    4 * tokens * tokens * encoder.hidden)
        forward += 2 * rows * (encoder.hidden * decoder.hidden + decoder.hidden * decoder.hidden)
        total += 3 * forward
        total += 2 * 2 * rows * 3 * encoder.patch**2 * encoder.hidden
    return total
