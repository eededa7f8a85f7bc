"""The rule that shrinks a Hugging Face config, on configs made up here (no PyTorch)."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models"))

import hf_config  # noqa: E402


class Config:
    """As much of a transformers config class as `make` uses."""

    def __init__(self, tree=None):
        self.tree = tree or {
            "image_token_id": 50000,
            "text_config": {
                "hidden_size": 4096,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "num_hidden_layers": 6,
                "layer_types": ["sliding", "sliding", "full"] * 2,
                "pad_token_id": None,
                "eos_token_id": 49999,
                "rms_norm_eps": 1e-6,
            },
            "vision_config": {"depth": 27, "image_size": [448, 448], "num_heads": 16},
        }

    def to_dict(self):
        return self.tree

    @classmethod
    def from_dict(cls, tree):
        return cls(tree)


def make(preset, *settings, **options):
    return hf_config.make(Config, preset, settings, **options).tree


class HfConfigTest(unittest.TestCase):
    def test_full_is_the_default(self):
        self.assertEqual(make("full"), Config().tree)

    def test_tiny_shrinks_every_part(self):
        tree = make("tiny")
        self.assertEqual(tree["text_config"]["hidden_size"], hf_config.TINY_WIDTH)
        self.assertEqual(tree["vision_config"]["depth"], hf_config.TINY_LAYERS)
        self.assertEqual(tree["vision_config"]["image_size"], [hf_config.TINY_IMAGE] * 2)
        self.assertEqual(tree["text_config"]["rms_norm_eps"], 1e-6)

    def test_tiny_keeps_the_kind_of_attention(self):
        self.assertEqual(make("tiny")["text_config"]["num_key_value_heads"], 2)
        self.assertEqual(make("tiny")["text_config"]["num_attention_heads"], 4)

    def test_tiny_has_a_layer_of_each_kind(self):
        self.assertEqual(make("tiny")["text_config"]["layer_types"], ["sliding", "full"])

    def test_special_tokens_differ_and_lie_below_words(self):
        tree = make("tiny")
        tokens = [tree["image_token_id"], tree["text_config"]["eos_token_id"]]
        self.assertEqual(len(set(tokens)), 2)
        self.assertLess(max(tokens), hf_config.FIRST_WORD_ID)
        self.assertIsNone(tree["text_config"]["pad_token_id"])

    def test_settings_come_last_and_layer_types_follow(self):
        text = make("tiny", "text_config.num_hidden_layers=3")["text_config"]
        self.assertEqual(text["layer_types"], ["sliding", "full", "sliding"])
        text = make("full", "text_config.num_hidden_layers=2")["text_config"]
        self.assertEqual(text["layer_types"], ["sliding", "sliding"])

    def test_overrides_may_be_new(self):
        tree = make("tiny", overrides={"vision_config.window": 8})
        self.assertEqual(tree["vision_config"]["window"], 8)

    def test_unknown_setting(self):
        for setting in ("text_config.layers=3", "audio_config.depth=3", "text_config.depth"):
            with self.assertRaises(hf_config.SettingError, msg=setting):
                make("tiny", setting)


if __name__ == "__main__":
    unittest.main()
