"""Configs of Hugging Face classes: full size, or shrunk by one rule for all.

A config is handled as the nested dict of `to_dict()` until it is built, so
that a class's own constructor checks it and derives what it derives.
"""

import json
import re

TINY_WIDTH = 64
TINY_LAYERS = 2
TINY_HEADS = 4
TINY_VOCAB = 128
TINY_PATCH = 4
TINY_IMAGE = 16
# Special tokens of a tiny vocabulary; the ones not named here follow.
TINY_TOKENS = {"pad": 0, "bos": 1, "image": 3, "video": 4, "eos": 5}
FIRST_WORD_ID = 16  # above all special tokens of a tiny vocabulary

# The first pattern that matches the whole key decides. One width for every
# module: then no class needs to say which widths must be equal.
_TINY_SIZES = (
    (r"(num_(hidden_)?|n_|(en|de)coder_)?layers?|depth", TINY_LAYERS),
    (r"(out_)?hidden_size|embed_dim|d_model|n_embd|projection_(dim|size)", TINY_WIDTH),
    (r"(proj\w+|encoder|moe|text)_hidden_size|word_embed_proj_dim|"
     r"(adapter|projector|vision)_(in|out)(put)?_(dim|size)", TINY_WIDTH),
    (r".*intermediate_size|n_inner|d_ff|((en|de)coder_)?ffn_dim", 112),
    (r"((num_|(en|de)coder_)?attention_|num_)heads|n_heads?", TINY_HEADS),
    (r"(.*_)?head_dim|d_kv", TINY_WIDTH // TINY_HEADS),
    (r"vocab_size.*", TINY_VOCAB),
    (r"image_size", TINY_IMAGE),
    (r"patch_size", TINY_PATCH),
    (r"rotary_dim", TINY_WIDTH // TINY_HEADS // 2),
    (r"max_position_embeddings|n_positions|n_ctx", 128),
    (r"num_position_embeddings", 36),
    (r"sliding_window", 8),
    (r"window_size", 4 * TINY_PATCH),
    (r"mm_tokens_per_image", 4),
    (r".*_indexes", TINY_LAYERS - 1),
)


class SettingError(ValueError):
    """The user asked for a class or a value that there is not."""


def make(config_class, preset, settings=(), overrides=None, start=None):
    """A config of `config_class`: its defaults, shrunk if `preset` is "tiny".

    start: a config in place of the defaults.
    overrides: {dotted key: value} that a class's adapter needs.
    settings: the user's "dotted.key=value" texts, which come last.
    Raises SettingError for a key that the config does not have.
    """
    tree = (start or config_class()).to_dict()
    if tree.get("vision_config", ...) is None:  # text alone by default
        vision_class = config_class.sub_configs["vision_config"]
        tree["vision_config"] = vision_class().to_dict()
    if preset == "tiny":
        _shrink(tree)
    for key, value in (overrides or {}).items():
        _assign(tree, key, value, new=True)
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator:
            raise SettingError(f"--set {setting}: expected KEY=VALUE")
        _assign(tree, key, _parse(value), new=False)
    _fit_layer_types(tree)
    return config_class.from_dict(tree)


def _parse(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _assign(tree, dotted, value, new):
    *parents, last = dotted.split(".")
    for parent in parents:
        if not isinstance(tree.get(parent), dict):
            raise SettingError(f"--set {dotted}: the config has no {parent}")
        tree = tree[parent]
    if not new and last not in tree:
        raise SettingError(f"--set {dotted}: the config has no {last}; it has "
                         + ", ".join(sorted(tree)))
    tree[last] = value


def _shrink(tree, tokens=None):
    """Shrinks `tree` and what is in it; `tokens` numbers the special tokens."""
    tokens = dict(TINY_TOKENS) if tokens is None else tokens
    layers = tree.get("num_hidden_layers")
    if tree.get("per_layer_config"):
        tree["per_layer_config"] = _tiny_per_layer(
            tree["per_layer_config"], tree.get("layer_types"))
    if isinstance(tree.get("num_key_value_heads"), int):
        tree["num_key_value_heads"] = _tiny_kv_heads(
            tree.get("num_attention_heads"), tree["num_key_value_heads"])
    for key in sorted(key for key in tree if isinstance(key, str)):
        value = tree[key]
        token = re.fullmatch(r"(\w+)_token_(id|index)", key)
        if isinstance(value, dict):
            _shrink(value, tokens)
        elif token and isinstance(value, int):
            tree[key] = tokens.setdefault(token[1], len(tokens))
        elif key.endswith("layer_types") and value:
            tree[key] = list(dict.fromkeys(value))  # one of each kind
        elif isinstance(value, list) and len(value) == layers:
            tree[key] = _tiny_value(key, value[:TINY_LAYERS])
        else:
            tree[key] = _tiny_value(key, value)


def _tiny_per_layer(configs, kinds):
    """{layer: config} of the tiny layers: the first of each kind, as there."""
    layers = ([kinds.index(kind) for kind in dict.fromkeys(kinds)] if kinds
              else range(TINY_LAYERS))
    configs = {int(layer): config for layer, config in configs.items()}
    return {str(tiny): configs[layer] for tiny, layer in enumerate(layers)
            if layer in configs}


def _tiny_kv_heads(heads, kv_heads):
    """Full, multi-query or grouped-query attention stays what it is."""
    return {heads: TINY_HEADS, 1: 1}.get(kv_heads, TINY_HEADS // 2)


def _tiny_value(key, value):
    for pattern, tiny in _TINY_SIZES:
        if re.fullmatch(pattern, key):
            if isinstance(value, list | tuple):
                count = 1 if key.endswith("_indexes") else len(value)
                return [tiny] * count
            return tiny if isinstance(value, int) else value
    return value


def _fit_layer_types(tree):
    """Lets lists of layers' kinds repeat, or end, where the number of layers says."""
    for value in tree.values():
        if isinstance(value, dict):
            _fit_layer_types(value)
    layers = tree.get("num_hidden_layers")
    for key, kinds in tree.items():
        if str(key).endswith("layer_types") and kinds and layers:
            tree[key] = [kinds[i % len(kinds)] for i in range(layers)]
