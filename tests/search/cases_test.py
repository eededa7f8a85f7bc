"""The ten cases of bench/search: that the checker accepts what they accept and refuses what they refuse (no build needed)."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "search"
sys.path.insert(0, str(FOLDER))

import check_cases  # noqa: E402
import strategy_facts  # noqa: E402

CASES, SOURCES = check_cases.load()


def strategy(text):
    return yaml.safe_load(text)


# What a guide of the case would pick, in several ways, and what none would.
ACCEPTED = {
    "small_lm_2_to_4": ["{mesh: {dp: 4}, microbatches: 4}", "{mesh: {dp: 2}, microbatches: 16, zero: 1}",
                        "{mesh: {fsdp: 4}, zero: 3, microbatches: 4, remat: selective}"],
    "vlm_2b_4": ["{mesh: {dp: 4}, zero: 1, microbatches: 8}", "{mesh: {fsdp: 4}, zero: 3, microbatches: 4}",
                 "{mesh: {dp: 2, tp: 2}, zero: 1, microbatches: 16}"],
    "lm_7b_8_a100_40": ["{mesh: {fsdp: 8}, zero: 3, microbatches: 4, remat: full}", "{mesh: {dp: 8}, zero: 2, microbatches: 24}",
                        "{mesh: {dp: 4, tp: 2}, zero: 1, microbatches: 48}",
                        "{mesh: {dp: 4}, stages: 2, zero: 1, microbatches: 24}"],
    "vlm_7b_8_h100": ["{mesh: {dp: 8}, zero: 1, microbatches: 8}", "{mesh: {fsdp: 8}, zero: 3, microbatches: 4, memory: 80 GiB}",
                      "{mesh: {dp: 4, tp: 2}, zero: 1, microbatches: 8}"],
    "lm_7b_4_nodes_slow": ["{mesh: {dp: 32}, hsdp: 8, zero: 3, microbatches: 4}", "{mesh: {dp: 4, fsdp: 8}, zero: 2, microbatches: 8}",
                           "{mesh: {dp: 8}, stages: 4, zero: 1, microbatches: 32}",
                           "{mesh: {dp: 2, tp: 4}, stages: 4, zero: 1, microbatches: 64, sequence_parallel: true}"],
    "lm_70b_64": ["{mesh: {fsdp: 64}, zero: 3, microbatches: 1, remat: full}", "{mesh: {dp: 64}, hsdp: 32, zero: 3, microbatches: 2}",
                  "{mesh: {fsdp: 8, tp: 8}, zero: 3, sequence_parallel: true, microbatches: 4, remat: full}",
                  "{mesh: {dp: 4, tp: 4}, stages: 16, schedule: interleaved, interleave: 4, zero: 1, sequence_parallel: true,"
                  " microbatches: 32}"],
    "vlm_100b_128": ["{mesh: {fsdp: 128}, zero: 3, microbatches: 2, remat: full}",
                     "{mesh: {dp: 4, tp: 8}, stages: 4, zero: 1, sequence_parallel: true, microbatches: 128}",
                     "{mesh: {dp: 4, tp: 8}, stages: ['0-70', '71-100', '101-130', '131-159'], zero: 1, sequence_parallel: true, microbatches: 64}",
                     "{mesh: {fsdp: 16, tp: 8}, modules: {vision: {parameters: ['*'], mesh: {dp: 128}}}, zero: 3, sequence_parallel: true,"
                     " microbatches: 2}"],
    "frozen_encoder_large_llm": ["{mesh: {fsdp: 64}, zero: 3, microbatches: 4, remat: full}",
                                 "{mesh: {dp: 2, tp: 8}, stages: 4, zero: 1, sequence_parallel: true, microbatches: 128}",
                                 "{mesh: {dp: 4, tp: 8}, stages: [[vision, llm.0-50], llm.51-111], zero: 1, sequence_parallel: true, microbatches: 32}"],
    "frozen_llm_trained_encoder": ["{mesh: {dp: 8}, microbatches: 8}", "{mesh: {dp: 8}, zero: 2, microbatches: 1, remat: full}"],
    "contrastive_batch_8": ["{mesh: {dp: 8}, microbatches: 16}", "{mesh: {dp: 8}, zero: 1, microbatches: 4, remat: full}"],
}
REFUSED = {
    "small_lm_2_to_4": ["{mesh: {tp: 4}, microbatches: 4}", "{mesh: {dp: 1}, stages: 4, microbatches: 32}",
                        "{mesh: {dp: 4}, microbatches: 4, remat: full}", "{mesh: {dp: 4}, microbatches: 128}",
                        "{mesh: {fsdp: 4}, zero: 3, microbatches: 16}"],
    "vlm_2b_4": ["{mesh: {dp: 4}, microbatches: 8}", "{mesh: {tp: 4}, zero: 1, microbatches: 32}",
                 "{mesh: {dp: 2}, stages: 2, zero: 1, microbatches: 16}", "{mesh: {dp: 4}, zero: 1, microbatches: 32}",
                 "{mesh: {dp: 4}, zero: 1, microbatches: 8, remat: full}"],
    "lm_7b_8_a100_40": ["{mesh: {dp: 8}, zero: 1, microbatches: 24}", "{mesh: {tp: 8}, microbatches: 48}",
                        "{mesh: {dp: 1}, stages: 8, microbatches: 192}", "{mesh: {dp: 4}, stages: 2, zero: 1, microbatches: 8}"],
    "vlm_7b_8_h100": ["{mesh: {dp: 8}, microbatches: 8}", "{mesh: {tp: 8}, microbatches: 32}",
                      "{mesh: {fsdp: 8}, zero: 3, microbatches: 1, remat: full}", "{mesh: {dp: 4}, stages: 2, zero: 1, microbatches: 16}",
                      "{mesh: {dp: 8}, zero: 1, microbatches: 16}"],
    "lm_7b_4_nodes_slow": ["{mesh: {fsdp: 32}, zero: 3, microbatches: 4}", "{mesh: {dp: 32}, zero: 1, microbatches: 4}",
                           "{mesh: {dp: 2, tp: 16}, zero: 1, microbatches: 32}", "{mesh: {dp: 8}, stages: 4, zero: 3, microbatches: 32}",
                           "{mesh: {dp: 8}, stages: 4, zero: 1, microbatches: 4}"],
    "lm_70b_64": ["{mesh: {dp: 4, tp: 16}, zero: 1, sequence_parallel: true, microbatches: 32}",
                  "{mesh: {dp: 8, tp: 8}, zero: 1, microbatches: 16}", "{mesh: {dp: 1, tp: 4}, stages: 16, microbatches: 128, sequence_parallel: true}",
                  "{mesh: {dp: 64}, zero: 2, microbatches: 2}", "{mesh: {dp: 4, tp: 4}, stages: 4, zero: 3, sequence_parallel: true, microbatches: 32}"],
    "vlm_100b_128": ["{mesh: {dp: 128}, zero: 2, microbatches: 4}", "{mesh: {dp: 8, tp: 16}, zero: 1, sequence_parallel: true, microbatches: 64}",
                     "{mesh: {dp: 4, tp: 8}, stages: [vision, llm.0-40, llm.41-80, llm.81-111], zero: 1, sequence_parallel: true, microbatches: 128}",
                     "{mesh: {dp: 2, tp: 1}, stages: 64, zero: 1, microbatches: 256}",
                     "{mesh: {dp: 16, tp: 8}, zero: 3, microbatches: 8}"],
    "frozen_encoder_large_llm": ["{mesh: {dp: 4, tp: 8}, stages: ['0-47', '48-159'], zero: 1, sequence_parallel: true, microbatches: 64}",
                                 "{mesh: {dp: 2, tp: 8}, stages: 4, zero: 1, sequence_parallel: true, microbatches: 8}",
                                 "{mesh: {dp: 4, tp: 16}, zero: 1, sequence_parallel: true, microbatches: 32}",
                                 "{mesh: {dp: 8, tp: 8}, zero: 3, microbatches: 8}", "{mesh: {dp: 64}, zero: 1, microbatches: 4}"],
    "frozen_llm_trained_encoder": ["{mesh: {fsdp: 8}, zero: 3, microbatches: 8}", "{mesh: {dp: 4, tp: 2}, microbatches: 8}",
                                   "{mesh: {dp: 8}, microbatches: 32}", "{mesh: {dp: 4}, stages: 2, microbatches: 16}"],
    "contrastive_batch_8": ["{mesh: {dp: 2, tp: 4}, microbatches: 64}", "{mesh: {dp: 4}, stages: 2, microbatches: 64}",
                            "{mesh: {dp: 8}, microbatches: 128}", "{mesh: {fsdp: 8}, zero: 3, microbatches: 32}"],
}


class Cases(unittest.TestCase):
    def test_what_the_guides_would_pick_is_accepted(self):
        for name, texts in ACCEPTED.items():
            for text in texts:
                with self.subTest(case=name, strategy=text):
                    self.assertEqual(check_cases.check(strategy(text), CASES[name]), [])

    def test_what_no_guide_would_pick_is_refused_by_a_rule(self):
        for name, texts in REFUSED.items():
            for text in texts:
                with self.subTest(case=name, strategy=text):
                    reasons = check_cases.check(strategy(text), CASES[name])
                    self.assertTrue([item for _, item in reasons if item], reasons)

    def test_every_rule_of_every_case_refuses_something(self):
        for name, case in CASES.items():
            found = [item for text in REFUSED[name] for _, item in check_cases.check(strategy(text), case)]
            for item in case["accept"]:
                if "free" not in item:
                    with self.subTest(case=name, why=item["why"]):
                        self.assertIn(item, found)

    def test_ten_cases_with_reasons_and_sources(self):
        self.assertEqual(len(CASES), 10)
        self.assertEqual(set(CASES), set(ACCEPTED))
        self.assertEqual(set(CASES), set(REFUSED))
        cited = set()
        for case in CASES.values():
            for item in case["accept"]:
                self.assertEqual(len({"rule", "any_of", "free"} & set(item)), 1, item)
                self.assertTrue(item["why"] and item["from"], item)
                cited |= set(item["from"])
            cited |= {case["model"]["figures"]} if "figures" in case["model"] else set()
        self.assertEqual(cited, set(SOURCES))

    def test_rules_ask_for_facts_that_there_are(self):
        facts = strategy_facts.read({"mesh": {"dp": 8}, "microbatches": 1}, check_cases.cluster_of({"preset": "h100"}), 8)
        for case in CASES.values():
            for item in case["accept"]:
                for rule in [item.get("rule", {}), item.get("when", {}), *item.get("any_of", [])]:
                    self.assertLessEqual(set(rule), set(facts))
                self.assertIn(item.get("free", "remat"), facts)

    def test_models_are_there(self):
        for case in CASES.values():
            model = case["model"]
            self.assertTrue((ROOT / model["skeleton"]).is_dir(), model)
            self.assertTrue((ROOT / model.get("recipe", model["skeleton"] + "/recipe.yaml")).is_file(), model)


class Facts(unittest.TestCase):
    def facts(self, text, preset="h100", nodes=1, batch=64, **more):
        return strategy_facts.read(strategy(text), check_cases.cluster_of({"preset": preset, "nodes": nodes}), batch, **more)

    def test_groups_that_leave_a_node(self):
        self.assertTrue(self.facts("{mesh: {dp: 2, tp: 8}, microbatches: 1}", nodes=2)["tp_within_node"])
        self.assertFalse(self.facts("{mesh: {tp: 16}, microbatches: 1}", nodes=2)["tp_within_node"])
        self.assertTrue(self.facts("{mesh: {dp: 16}, zero: 3, hsdp: 8, microbatches: 1}", nodes=2)["shards_within_node"])
        self.assertFalse(self.facts("{mesh: {dp: 16}, zero: 1, microbatches: 1}", nodes=2)["shards_within_node"])
        self.assertTrue(self.facts("{mesh: {dp: 16}, microbatches: 1}", nodes=2)["shards_within_node"])
        self.assertTrue(self.facts("{mesh: {dp: 4, fsdp: 2, tp: 2}, zero: 3, microbatches: 1}", nodes=2)["shards_within_node"])
        self.assertFalse(self.facts("{mesh: {fsdp: 8, tp: 2}, zero: 3, microbatches: 1}", nodes=2)["shards_within_node"])

    def test_a_group_of_a_later_grid_across_nodes(self):
        text = "{stages: [{blocks: '0-3', mesh: {dp: 4}}, {blocks: '4-9', mesh: {tp: 4, dp: 3}}], microbatches: 4}"
        facts = strategy_facts.read(strategy(text), {"nodes": 2, "devices_per_node": 8}, 48)
        self.assertTrue(facts["tp_within_node"])
        text = "{stages: [{blocks: '0-3', mesh: {dp: 6}}, {blocks: '4-9', mesh: {tp: 5, dp: 2}}], microbatches: 4}"
        facts = strategy_facts.read(strategy(text), {"nodes": 2, "devices_per_node": 8}, 48)
        self.assertFalse(facts["tp_within_node"])

    def test_context_parallel_ranks_share_samples_and_shards(self):
        facts = self.facts("{mesh: {dp: 2, cp: 4, tp: 2}, zero: 1, microbatches: 8}", nodes=2)
        self.assertEqual((facts["cp"], facts["data"], facts["shards"], facts["model_parallel"], facts["micro"]), (4, 2, 8, 8, 4))
        self.assertFalse(facts["shards_within_node"])

    def test_batch(self):
        facts = self.facts("{mesh: {dp: 2, tp: 2}, stages: 2, microbatches: 8}")
        self.assertEqual((facts["data"], facts["micro"], facts["pp"], facts["model_parallel"]), (2, 4, 2, 4))
        self.assertEqual(self.facts("{mesh: {dp: 8}}", micro=2)["microbatches"], 4)
        for text, micro in (("{mesh: {dp: 8}, microbatches: 3}", None), ("{mesh: {dp: 8}}", None), ("{mesh: {dp: 8}}", 3)):
            with self.assertRaises(strategy_facts.Refused):
                self.facts(text, micro=micro)

    def test_bubble(self):
        self.assertAlmostEqual(self.facts("{mesh: {dp: 2}, stages: 4, microbatches: 8}")["bubble"], 3 / 11)
        self.assertAlmostEqual(self.facts("{mesh: {dp: 2}, stages: 4, microbatches: 8, schedule: zb-h1}")["bubble"], 3 / 27)
        interleaved = self.facts("{mesh: {dp: 2}, stages: 8, microbatches: 8, schedule: interleaved}")
        self.assertEqual((interleaved["pp"], interleaved["interleave"]), (4, 2))
        self.assertAlmostEqual(interleaved["bubble"], 3 / 19)

    def test_defaults(self):
        facts = self.facts("{mesh: {dp: 8}, microbatches: 1}")
        self.assertEqual((facts["zero"], facts["remat"], facts["sequence_parallel"], facts["pp"]), (0, "none", False, 1))
        self.assertEqual(self.facts("{mesh: {dp: 8}, microbatches: 1, memory: 80 GiB}")["remat"], "auto")

    def test_zero_over_one_rank_is_none(self):
        self.assertEqual(self.facts("{mesh: {tp: 8}, zero: 3, microbatches: 1}")["zero"], 0)

    def test_the_widest_mesh_counts(self):
        facts = self.facts("{mesh: {tp: 8}, modules: {vision: {parameters: ['v*'], mesh: {dp: 8}}}, microbatches: 1}")
        self.assertEqual((facts["tp"], facts["data"]), (8, 1))

    def test_too_few_ranks(self):
        with self.assertRaisesRegex(strategy_facts.Refused, "4 ranks, the cluster 8 devices"):
            self.facts("{mesh: {dp: 4}, microbatches: 1}")

    def test_encoder_alone(self):
        def alone(stages, more=""):
            return self.facts(f"{{mesh: {{dp: 4}}, stages: {stages}, microbatches: 2{more}}}", encoder=6)["encoder_alone"]
        self.assertTrue(alone("[vision, llm]"))
        self.assertTrue(alone("['0-5', '6-20']"))
        self.assertTrue(alone("[vision_tower.0-4, [vision_tower.5, llm]]"))
        self.assertFalse(alone("['0-6', '7-20']"))
        self.assertFalse(alone("[[vision, llm.0-2], llm.3-9]"))
        self.assertFalse(alone("2"))
        # Interleaved, the first grid has the third stage, too.
        self.assertFalse(alone("['0-5', '6-9', '10-12', '13-20']", ", schedule: interleaved"))


class CommandLine(unittest.TestCase):
    def run_check(self, *arguments):
        return subprocess.run([sys.executable, FOLDER / "check_cases.py", *arguments], capture_output=True, text=True, check=False)

    def test_verdicts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "strategy.yaml"
            path.write_text("mesh: {fsdp: 64}\nzero: 3\nmicrobatches: 1\nremat: full\n")
            accepted = self.run_check(path, "lm_70b_64")
            self.assertEqual((accepted.returncode, accepted.stdout), (0, "accepted\n"))
            path.write_text("mesh: {dp: 4, tp: 16}\nzero: 1\nmicrobatches: 8\n")
            refused = self.run_check(path, "lm_70b_64")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("refused: tp_within_node is False, not True", refused.stdout)
            self.assertIn("arXiv:2104.04473", refused.stdout)

    def test_cluster_file(self):
        slow = yaml.safe_load(self.run_check("--cluster", "lm_7b_4_nodes_slow").stdout)
        self.assertEqual((slow["nodes"], slow["devices_per_node"]), (4, 8))
        self.assertEqual((slow["links"][-1]["name"], slow["links"][-1]["bandwidth"]), ("Ethernet", "12.5 Gb/s"))
        few = yaml.safe_load(self.run_check("--cluster", "small_lm_2_to_4").stdout)
        self.assertEqual((few["devices_per_node"], few["links"][0]["devices"]), (2, 2))


if __name__ == "__main__":
    unittest.main()
