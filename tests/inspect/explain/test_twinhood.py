"""explain: of which page a page is a twin by its canonical link, and why a link is not believed."""

from __future__ import annotations

import json
from pathlib import Path

from minutch.inspect.explain.explainer import explain
from minutch.inspect.explain.facts import to_json
from minutch.inspect.explain.settings import ExplainOptions
from minutch.inspect.explain.textpages import explanation_lines
from tests.cycle.crawldb.test_twins import CONF, ROOT, Crawl, Page, prose
from tests.support.crawldbs import context

SETTINGS = {"http.agent.name": "tester", **CONF}


def said(crawl: Crawl, name: str, **conf: str) -> str:
    """The sentence, which is in the text and in the JSON."""
    found = explain(
        crawl.path, f"{ROOT}/{name}", ExplainOptions(), context=context(SETTINGS | conf)
    )
    if found.twin is None:
        return ""
    lines = list(explanation_lines(found))
    assert lines[lines.index("Canonical link") + 1] == f"  {found.twin.text}"
    assert json.loads(to_json(found))["twin"]["text"] == found.twin.text
    return found.twin.text.replace(f"{ROOT}/", "")


def test_before_and_after_dedup_and_when_things_change(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.fetch(
        {
            "original": Page(prose(1), "original"),
            "equal": Page(prose(1), "original"),
            "near": Page(prose(1, "Printed on 3 May"), "original"),
            "other": Page(prose(2), "original"),
            "plain": Page(prose(3)),
        }
    )
    equal = (
        "twin of original, because its canonical link leads there, and both have the same content"
    )
    near = equal.replace("the same content", "nearly the same text")
    assert said(crawl, "equal") == f"{equal}; marked when dedup runs"
    none = {"db.canonical": "none"}
    off = "its canonical link names original, which dedup does not follow (db.canonical=none)"
    assert said(crawl, "equal", **none) == off
    crawl.dedup()
    assert (said(crawl, "equal"), said(crawl, "near")) == (equal, near)
    unlike = "its canonical link, original, is not believed: the pages have different texts"
    assert said(crawl, "other") == unlike
    assert said(crawl, "original") == said(crawl, "plain") == ""
    assert said(crawl, "equal", **none) == (
        "twin of original, as dedup found before, which follows none now (db.canonical=none)"
    )
    crawl.gone("original")
    assert said(crawl, "near") == (
        "its canonical link, original, is not believed: the page that it names is not fetched;"
        " it was a twin of original, and comes back when dedup runs"
    )
    crawl.dedup()
    assert said(crawl, "near").endswith("is not fetched")
