#!/usr/bin/env python3
"""Holds strategies against the cases of cases.yaml: what the field's guides would accept. README.md.

    check_cases.py STRATEGY.yaml CASE [--micro N]     # 0 accepted, 1 refused with the reasons and their sources, 2 wrong use
    check_cases.py --list
    check_cases.py --cluster CASE [--variant N]       # the cluster file of a case
"""

import argparse
import pathlib
import sys

import yaml

import strategy_facts

HERE = pathlib.Path(__file__).resolve().parent
CLUSTERS = HERE.parents[1] / "clusters"


def load(path=HERE / "cases.yaml"):
    """({case name: case}, {source name: source})."""
    file = yaml.safe_load(path.read_text())
    return {case["name"]: case for case in file["cases"]}, file["sources"]


def cluster_of(variant):
    """The cluster file that an entry of `clusters` stands for, as a mapping."""
    cluster = yaml.safe_load((CLUSTERS / f"{variant['preset']}.yaml").read_text())
    for key in ("nodes", "devices_per_node"):
        cluster[key] = variant.get(key, cluster.get(key, 1))
    for name, changes in variant.get("links", {}).items():
        (link,) = [link for link in cluster["links"] if link["name"] == name]
        link.update(changes)
    for link in cluster["links"]:
        if "devices" in link:
            link["devices"] = min(link["devices"], cluster["devices_per_node"])
    return cluster


def holds(rule, value):
    """Whether a fact is what a rule asks: a value, one of a list, or between `min` and `max`."""
    if isinstance(rule, dict):
        unknown = set(rule) - {"min", "max"}
        if unknown or not rule:
            raise ValueError(f"a range has min and max, not {rule}")
        return rule.get("min", value) <= value <= rule.get("max", value)
    return value in rule if isinstance(rule, list) else value == rule


def broken(rules, facts):
    """What of {fact: rule} doesn't hold, as words."""
    return [f"{name} is {facts[name]}, not {wanted(rule)}" for name, rule in rules.items() if not holds(rule, facts[name])]


def wanted(rule):
    if isinstance(rule, dict):
        low, high = rule.get("min"), rule.get("max")
        return f"{low} to {high}" if None not in (low, high) else f"at least {low}" if high is None else f"at most {high}"
    return " or ".join(map(str, rule)) if isinstance(rule, list) else str(rule)


def failure(item, facts):
    """Why an item of `accept` doesn't hold, or None."""
    if "free" in item or ("when" in item and broken(item["when"], facts)):
        return None
    if "rule" in item:
        return "; ".join(broken(item["rule"], facts)) or None
    ways = [broken(way, facts) for way in item["any_of"]]
    return None if [] in ways else " / ".join("; ".join(way) for way in ways)


def facts_of(strategy, case, variant, micro=None):
    """The facts of a strategy on one of the case's clusters. Raises strategy_facts.Refused."""
    blocks = case["model"].get("encoder", {}).get("blocks", 0)
    return strategy_facts.read(strategy, cluster_of(variant), case["batch"], blocks, micro)


def check(strategy, case, micro=None):
    """[(why not, item of `accept` or None)]; empty if the strategy is accepted."""
    facts, reasons = None, []
    for variant in case["clusters"]:
        try:
            facts = facts_of(strategy, case, variant, micro)
        except strategy_facts.Refused as error:
            reasons.append((str(error), None))
    if facts is None:
        return reasons
    failures = [(failure(item, facts), item) for item in case["accept"]]
    return [(text, item) for text, item in failures if text]


def report(reasons, sources):
    for text, item in reasons:
        print(f"refused: {text}")
        if item:
            print(f"  because: {' '.join(item['why'].split())}")
            for source, says in item["from"].items():
                print(f"  {sources[source]['document']}: {says}")
    print("refused" if reasons else "accepted")
    return 1 if reasons else 0


def main():
    cases, sources = load()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("strategy", nargs="?", type=pathlib.Path)
    parser.add_argument("case", nargs="?", choices=list(cases), metavar="CASE")
    parser.add_argument("--micro", type=int, help="batch.micro of the recipe, if the strategy has no microbatches")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--cluster", choices=list(cases), metavar="CASE")
    parser.add_argument("--variant", type=int, default=0)
    args = parser.parse_args()
    if args.list:
        for case in cases.values():
            print(f"{case['name']:28} {case['title']}")
        return 0
    if args.cluster:
        variants = cases[args.cluster]["clusters"]
        if not 0 <= args.variant < len(variants):
            parser.error(f"{args.cluster} has {len(variants)} clusters")
        print(yaml.safe_dump(cluster_of(variants[args.variant]), sort_keys=False), end="")
        return 0
    if not args.case:
        parser.error("STRATEGY.yaml and CASE are needed")
    strategy = yaml.safe_load(args.strategy.read_text())
    return report(check(strategy, cases[args.case], args.micro), sources)


if __name__ == "__main__":
    sys.exit(main())
