"""Writes a report as one HTML page that loads nothing: style, script and facts are in it. Pure:
facts in, HTML out.

Without the script, tables can't be sorted, and that is all.
"""

from __future__ import annotations

from typing import Final

from minutch.inspect.report import crawlsections, findings, pagesections
from minutch.inspect.report.compare import changes
from minutch.inspect.report.facts import TOTALS, Facts, from_json, to_json
from minutch.inspect.report.layout import Section
from minutch.terminal import visible_line
from minutch.web import cells, frame
from minutch.web.frame import Markup, element, joined

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
    findings.broken,
    findings.chains,
    findings.duplicates,
    findings.robots,
)
"""In their order, behind the summary of findings and what has changed."""
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
    first = [findings.summary(facts), earlier and changes(earlier, facts)]
    shown = [made for made in (*first, *(part(facts) for part in SECTIONS)) if made]
    return _page(facts, shown)


def from_html(text: str) -> Facts | None:
    """Returns the facts of a report; None if the text is none. Raises FormatError (damage)."""
    if not text.startswith(MARK):
        return None
    return from_json(text.partition(_FACTS)[2].partition(_END)[0])


SCRIPT: Final = frame.resource("sort.js")
POLICY: Final = frame.policy(SCRIPT, "form-action 'none'")


def _page(facts: Facts, shown: list[Section]) -> str:
    made = joined("As of ", cells.moment(facts.when), " UTC", _covered(facts))
    head = joined(
        e("meta", http_equiv="Content-Security-Policy", content=POLICY),
        e("meta", http_equiv="x-dns-prefetch-control", content="off"),
        e("meta", name="referrer", content="no-referrer"),
    )
    header = [
        e("h1", "Crawl report: ", e("bdi", visible_line(facts.crawl))),
        e("p", made, class_="said"),
        _tiles(facts),
        frame.navigation("Sections", [e("a", one.title, href=f"#{one.name}") for one in shown]),
    ]
    nothing = None if shown else e("section", e("p", "The crawl has neither entries nor segments."))
    footer = joined(
        "Made by ", e("code", "minutch report"), " from the files of the crawl. Times are UTC."
    )
    return frame.page(
        f"Crawl report: {visible_line(facts.crawl)}",
        header,
        [nothing, *(one.markup for one in shown)],
        e("p", footer),
        head=head,
        script=SCRIPT,
        data=Markup(f"{_FACTS}{to_json(facts)}{_END}"),
        doctype=MARK,
    )


def _covered(facts: Facts) -> Markup | None:
    frame = facts["rounds"]
    first, last = frame["started"].min(), frame["ended"].max()
    if first is None or last is None:
        return None
    return joined("; pages were fetched from ", cells.moment(first), " to ", cells.moment(last))  # type: ignore[arg-type]


def _tiles(facts: Facts) -> Markup | None:
    found = [(name, value) for name in _TILES if (value := facts.total(name)) is not None]
    return frame.tiles(
        [(TOTALS[name], _SHOWN.get(name, cells.count)(value)) for name, value in found]
    )
