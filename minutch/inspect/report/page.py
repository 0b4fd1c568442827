"""Writes a report as one HTML page that loads nothing: style, script and facts are in it. Pure:
facts in, HTML out.

Its policy (Content-Security-Policy) allows this style and this script, by their hashes, and nothing
else; without the script, tables can't be sorted, and that is all.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from minutch.inspect.report import cells, crawlsections, findings, pagesections
from minutch.inspect.report.compare import changes
from minutch.inspect.report.facts import TOTALS, Facts, from_json, to_json
from minutch.inspect.report.layout import Section
from minutch.terminal import visible_line
from minutch.web.htmlbuilder import Markup, element, joined

e = element

MARK: Final = "<!DOCTYPE html>\n<!-- minutch report 1 -->\n"
"""The beginning of a report."""
_FACTS: Final = '<script type="application/json" id="facts">'
_END: Final = "</script>"
SECTIONS: Final = (
    crawlsections.rounds,
    crawlsections.state,
    crawlsections.hosts,
    crawlsections.answers,
    pagesections.content,
    pagesections.depth,
    pagesections.freshness,
    findings.duplicates,
    findings.chains,
    findings.broken,
    findings.robots,
)
_TILES: Final = (
    "urls",
    "fetched",
    "waiting",
    "due",
    "gone",
    "duplicates",
    "hosts",
    "rounds",
    "bytes",
    "median_ms",
)
_SHOWN: Final = {"bytes": cells.size, "median_ms": cells.milliseconds}


def to_html(facts: Facts, earlier: Facts | None = None) -> str:
    """Returns the page; `earlier` are the facts of an earlier report to compare with."""
    shown = [made for part in SECTIONS if (made := part(facts))]
    if earlier is not None:
        shown.insert(0, changes(earlier, facts))
    return f"{MARK}{e('html', _head(facts), _body(facts, shown), lang='en')}\n"


def from_html(text: str) -> Facts | None:
    """Returns the facts of a report; None if the text is none. Raises FormatError (damage)."""
    if not text.startswith(MARK):
        return None
    return from_json(text.partition(_FACTS)[2].partition(_END)[0])


@cache
def _resource(name: str) -> str:
    return files("minutch.inspect.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def policy() -> str:
    """Returns the page's Content-Security-Policy."""
    allowed = f"style-src {_hash(_resource('style.css'))}; script-src {_hash(_resource('sort.js'))}"
    return f"default-src 'none'; img-src data:; {allowed}; base-uri 'none'; form-action 'none'"


def _head(facts: Facts) -> Markup:
    return e(
        "head",
        e("meta", charset="utf-8"),
        e("meta", http_equiv="Content-Security-Policy", content=policy()),
        e("meta", http_equiv="x-dns-prefetch-control", content="off"),
        e("meta", name="viewport", content="width=device-width, initial-scale=1"),
        e("meta", name="color-scheme", content="light dark"),
        e("meta", name="referrer", content="no-referrer"),
        e("title", f"Crawl report: {visible_line(facts.crawl)}"),
        e("link", rel="icon", href="data:,"),
        Markup(f"<style>{_resource('style.css')}</style>"),
    )


def _body(facts: Facts, shown: list[Section]) -> Markup:
    made = joined("As of ", cells.moment(facts.when), " UTC", _covered(facts))
    header = e(
        "header",
        e("h1", "Crawl report: ", e("bdi", visible_line(facts.crawl))),
        e("p", made, class_="said"),
        e(
            "nav",
            e("ul", *(e("li", e("a", one.title, href=f"#{one.name}")) for one in shown)),
            aria_label="Sections",
        ),
    )
    nothing = None if shown else e("section", e("p", "The crawl has neither entries nor segments."))
    footer = e(
        "footer",
        e(
            "p",
            "Made by ",
            e("code", "minutch report"),
            " from the files of the crawl. Times are UTC.",
        ),
    )
    return e(
        "body",
        e("a", "Skip to content", class_="skip", href="#report"),
        header,
        e(
            "main",
            _tiles(facts),
            nothing,
            *(one.markup for one in shown),
            id="report",
            tabindex="-1",
        ),
        footer,
        Markup(f"{_FACTS}{to_json(facts)}{_END}"),
        Markup(f"<script>{_resource('sort.js')}</script>"),
    )


def _covered(facts: Facts) -> Markup | None:
    frame = facts["rounds"]
    first, last = frame["started"].min(), frame["ended"].max()
    if first is None or last is None:
        return None
    return joined("; pages were fetched from ", cells.moment(first), " to ", cells.moment(last))  # type: ignore[arg-type]


def _tiles(facts: Facts) -> Markup | None:
    found = [(name, value) for name in _TILES if (value := facts.total(name)) is not None]
    tiles = [
        e("div", e("dt", TOTALS[name]), e("dd", _SHOWN.get(name, cells.count)(value)))
        for name, value in found
    ]
    return e("dl", *tiles, class_="tiles") if tiles else None
