"""`oriel plan --html`: the page is well-formed, whole by itself, and says what the search says; bad input."""

import html.parser
import json

from oriel_testing import GOLDEN, SOURCE, OrielTestCase, run

# The elements that HTML never closes.
VOID = {"meta", "link", "br", "img", "hr", "input"}
SECTIONS = ["chosen", "model", "memory", "timeline", "frontier", "table"]


class Page(html.parser.HTMLParser):
    """What a page has; fails at the first tag that is closed out of order."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.sections, self.pictures, self.tags, self.links = [], [], {}, set(), []
        self.words = {}  # by section
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.add(tag)
        self.links += [value for name, value in attributes.items() if name in ("src", "href", "xlink:href")]
        if tag == "section":
            self.sections.append(attributes["id"])
        if tag == "svg":
            self.pictures.setdefault(self.sections[-1], []).append(attributes["aria-label"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()

    def handle_data(self, data):
        section = self.sections[-1] if self.sections else ""
        self.words[section] = self.words.get(section, "") + data


class ReportTest(OrielTestCase):
    def plan(self, *options, model="llava_tiny/model.onnx"):
        cluster = self.folder / "four & more.yaml"
        text = (SOURCE / "clusters" / "h100.yaml").read_text()
        text = text.replace("devices_per_node: 8", "devices_per_node: 4").replace("devices: 8", "devices: 4")
        cluster.write_text(text)
        return run("oriel", "plan", SOURCE / "models" / model, "--recipe", GOLDEN / "recipe_adamw.yaml", "--cluster",
                   cluster, *options)

    def check(self, *pins) -> tuple[Page, dict]:
        path = self.folder / "report.html"
        found = self.plan("--json", "--html", path, "--fix", ",".join(pins))
        self.assertEqual(found.returncode, 0, found.stderr)
        text = path.read_text()
        page = Page(text)
        self.assertEqual(page.sections, SECTIONS)
        self.assertEqual(page.links, [])
        self.assertFalse(page.tags & {"script", "link", "img", "iframe", "object"})
        for outside in ("http:", "https:", "@import", "url("):
            self.assertNotIn(outside, text)
        self.assertNotIn("{{", text)
        for number in ("nan", "inf"):
            self.assertNotIn(f'"{number}"', text)
        pictures = {section: len(labels) for section, labels in page.pictures.items()}
        self.assertEqual(pictures, {"model": 2, "memory": 1, "timeline": 1, "frontier": 1})
        self.assertLess(len(text), 2 << 20)
        return page, json.loads(found.stdout)

    def test_says_what_the_search_says(self):
        page, found = self.check("remat=none", "micro=2")
        best = found["strategies"][0]
        self.assertIn(best["text"], page.words["chosen"])
        self.assertIn("four & more.yaml", page.words["chosen"])
        self.assertIn(f"{100 * best['mfu']:.1f} %", page.words["chosen"])
        for strategy in found["strategies"]:
            self.assertIn(strategy["strategy"], page.words["table"])
        self.assertTrue(found["neighbours"])
        for neighbour in found["neighbours"]:
            self.assertIn(neighbour["reason"], page.words["table"])

    def test_pipeline(self):
        page, found = self.check("remat=none", "pp=2", "schedule=1f1b", "zero=0")
        best = found["strategies"][0]
        self.assertEqual(len(best["programs"]), 2)
        for program in best["programs"]:
            self.assertIn(program["program"], page.words["memory"])
            self.assertIn(program["program"], page.words["timeline"])
            self.assertIn(program["stages"], page.words["memory"])
        self.assertIn("stage 1", page.words["model"])
        self.assertIn("waiting for other stages", page.words["timeline"])

    def test_bad_input(self):
        absent = self.folder / "absent" / "report.html"
        failed = self.plan("--html", absent, "--fix", "tp=1,pp=1,remat=none,zero=0")
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("absent", failed.stderr)
        # Nothing is written of a search that fails.
        path = self.folder / "report.html"
        path.write_text("old")
        failed = self.plan("--html", path, "--fix", "tp=3")
        self.assertNotEqual(failed.returncode, 0)
        self.assertEqual(path.read_text(), "old")
