"""report: writes what came of a crawl as one HTML file, and reads the facts of an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.errors import FormatError, MinutchError, StoreError
from minutch.inspect.audit.findings import rules_of
from minutch.inspect.query.crawl import CrawlFolder, open_crawl
from minutch.inspect.report import crawlsections, pagesections
from minutch.inspect.report.facts import TOTALS, Facts, from_json, to_json
from minutch.inspect.report.gather import FactsGatherer
from minutch.inspect.report.layout import MOST_ROWS, Section, section
from minutch.job import JobContext
from minutch.terminal import visible_line
from minutch.web import cells, frame
from minutch.web.cells import Column, number
from minutch.web.frame import Markup, element, joined
from minutch.work.tables.install import WholeFile
from minutch.work.tables.parallel import memory_budget

# Shows what has changed since an earlier report of the same crawl. Pure: two reports' facts in,
# markup out.

_BETTER: Final = {
    "fetched": 1, "median_ms": -1, "p90_ms": -1, "p99_ms": -1, "broken": -1, "gone": -1,
}  # fmt: skip
"""Totals of which more (1) or less (-1) is better."""
_FORMATS: Final[Mapping[str, Callable[[float | None], str]]] = {
    "bytes": cells.size,
    "median_ms": cells.milliseconds,
    "p90_ms": cells.milliseconds,
    "p99_ms": cells.milliseconds,
}


def is_same_crawl(earlier: Facts, facts: Facts) -> bool:
    """Returns True if both may be of one crawl: they share a segment, or one has none."""
    mine, theirs = set(facts["rounds"]["segment"]), set(earlier["rounds"]["segment"])
    return bool(mine & theirs) or not mine or not theirs


def changes(earlier: Facts, facts: Facts) -> Section:
    """Makes the section."""
    rounds = set(facts["rounds"]["segment"]) - set(earlier["rounds"]["segment"])
    said = joined(
        "Compared with the report of ", cells.moment(earlier.when), f"; {len(rounds):,} round",
        "" if len(rounds) == 1 else "s", " since.",
        None if is_same_crawl(earlier, facts) else " No segment is in both: is it the same crawl?",
    )  # fmt: skip
    totals = cells.table("Totals", _totals(earlier, facts), _columns("What"))
    statuses = cells.table(
        "Statuses",
        _both("statuses", "status", "urls", earlier, facts),
        _columns("Status", cells.status),
    )
    codes = cells.table(
        "Answers",
        _both("codes", "code", "requests", earlier, facts),
        _columns("Answer", cells.code),
    )
    pair = e("div", totals, e("div", statuses, codes), class_="pair")
    return section("changes", "Since the earlier report", said, pair, _hosts(earlier, facts))


def _totals(earlier: Facts, facts: Facts) -> list[dict[str, Any]]:
    rows = []
    for name, title in TOTALS.items():
        before, now = earlier.total(name), facts.total(name)
        if before is not None and now is not None:
            rows.append({"name": title, "key": name, "before": before, "now": now})
    return rows


def _both(table: str, key: str, value: str, earlier: Facts, facts: Facts) -> list[dict[str, Any]]:
    """Returns the rows of a table of both reports, by key; a missing row counts 0."""
    then = earlier[table].select(name=key, before=value)
    found = (
        facts[table]
        .select(name=key, now=value)
        .join(then, on="name", how="full", coalesce=True)
        .fill_null(0)
    )
    return (
        found.sort("now", descending=True, maintain_order=True)
        .head(MOST_ROWS)
        .with_columns(key=pl.lit(""))
        .to_dicts()
    )


def _columns(title: str, shown: Callable[[str], Markup] = cells.words) -> list[Column]:
    return [
        Column(title, lambda row: shown(row["name"])),
        Column("Before", lambda row: _shown(row, row["before"]), lambda row: row["before"]),
        Column("Now", lambda row: _shown(row, row["now"]), lambda row: row["now"]),
        Column("Change", _change, lambda row: row["now"] - row["before"]),
    ]


def _shown(row: Mapping[str, Any], value: float) -> str:
    return _FORMATS.get(row["key"], cells.count)(value)


def _change(row: Mapping[str, Any]) -> Markup:
    less, more = row["before"], row["now"]
    if less == more:
        return joined("–")
    sign = "+" if more > less else "−"
    better = _BETTER.get(row["key"], 0) * (1 if more > less else -1)
    kind = {1: "good", -1: "bad"}.get(better)
    share = f" ({sign}{abs(more - less) / less:.0%})" if less else ""
    return e("span", f"{sign}{_shown(row, abs(more - less))}{share}", class_=kind)


def _hosts(earlier: Facts, facts: Facts) -> Markup | None:
    """Shows the hosts whose number of URLs has changed most, of those that both reports list."""
    then = earlier["hosts"].select("host", before="urls")
    both = facts["hosts"].select("host", now="urls").join(then, on="host").drop_nulls()
    moved = both.with_columns(change=pl.col("now") - pl.col("before")).filter(pl.col("change") != 0)
    if moved.is_empty():
        return None
    rows = (
        moved.sort(pl.col("change").abs(), descending=True, maintain_order=True)
        .head(MOST_ROWS // 2)
        .to_dicts()
    )
    change = Column(
        "Change", lambda row: f"{row['change']:+,}".replace("-", "−"), lambda row: row["change"]
    )
    columns = [
        cells.text("Host", "host"),
        number("URLs before", "before"),
        number("URLs now", "now"),
        change,
    ]
    return cells.table("Hosts that have changed most", rows, columns)


# Writes a report as one HTML page that loads nothing: style, script and facts are in it. Pure:
# facts in, HTML out.
#
# Without the script, tables can't be sorted, and that is all.

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
    pagesections.broken,
    pagesections.chains,
    pagesections.duplicates,
    pagesections.robots,
)
"""In their order, behind the summary of findings and what has changed."""
_TILES: Final = (
    "urls", "fetched", "waiting", "due", "gone", "duplicates", "hosts", "rounds", "bytes",
    "median_ms",
)  # fmt: skip
_TILE_FORMATS: Final = {"bytes": cells.size, "median_ms": cells.milliseconds}


def to_html(facts: Facts, earlier: Facts | None = None) -> str:
    """Returns the page; `earlier` are the facts of an earlier report to compare with."""
    first = [pagesections.summary(facts), earlier and changes(earlier, facts)]
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
        [(TOTALS[name], _TILE_FORMATS.get(name, cells.count)(value)) for name, value in found]
    )


FILE_ENDING: Final = "-report.html"


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of report."""

    file: Path | None = None
    """The file to write; None: the crawl's name with FILE_ENDING, in the working directory."""
    compare: Path | None = None
    """An earlier report, to show what has changed since."""
    force: bool = False
    """Replaces the file even if it is no report."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written: its file and its facts."""

    file: Path
    facts: Facts


_DEFAULTS: Final = ReportOptions()


def report(crawl: Path, options: ReportOptions = _DEFAULTS, *, context: JobContext) -> Report:
    """Writes the report of a crawl.

    Raises StoreError if there is no crawl, the earlier report is none, or the file must not be
    replaced; FormatError for a damaged file.
    """
    opened = open_crawl(crawl)
    name = opened.path.resolve().name or "crawl"
    file = options.file or Path(f"{name}{FILE_ENDING}")
    _check_replaceable(file, force=options.force)
    earlier = None if options.compare is None else read_facts(options.compare)
    facts = gathered(opened, context)
    if earlier is not None and not is_same_crawl(earlier, facts):
        context.err.write(
            f"{options.compare}: no segment of it is one of {name}'s: is it a report of another"
            " crawl?\n"
        )
    _write(file, to_html(facts, earlier))
    return Report(file, facts)


def gathered(crawl: CrawlFolder, context: JobContext) -> Facts:
    """Returns the facts of a crawl as it is now. Raises FormatError (damage)."""
    memory = memory_budget(context.conf)
    rules = rules_of(context.conf).values()
    gatherer = FactsGatherer(crawl, rules, context.clock.now(), memory, context.progress)
    return gatherer.facts(crawl.path.resolve().name or "crawl")


def read_facts(path: Path) -> Facts:
    """Returns the facts of a report. Raises StoreError if it is none, FormatError (damage)."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = ""
    except OSError as exc:
        raise StoreError(f"{path}: {exc.strerror}") from exc
    try:
        facts = from_html(text)
    except FormatError as exc:
        raise exc.at(path) from exc
    if facts is None:
        raise StoreError(f"{path} is not a report that minutch has written")
    return facts


def _check_replaceable(file: Path, *, force: bool) -> None:
    """Raises StoreError if something other than a report would be replaced."""
    if file.is_dir():
        raise StoreError(f"{file} is a folder", hint="-o names a file")
    if not file.exists() or force:
        return
    try:
        with file.open("rb") as stream:
            is_report = stream.read(len(MARK)) == MARK.encode()
    except OSError as exc:
        raise StoreError(f"{file}: {exc.strerror}") from exc
    if not is_report:
        raise StoreError(
            f"{file} exists and is not a report",
            hint="-o names another file, --force replaces this one",
        )


def _write(file: Path, text: str) -> None:
    """Writes the whole file, or none of it."""
    try:
        with WholeFile(file, sums=False) as stream:
            stream.write(text.encode("utf-8", "replace"))
    except OSError as exc:
        raise MinutchError(f"{exc.filename or file}: {exc.strerror or exc}") from exc
