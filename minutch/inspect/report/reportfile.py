"""report: writes what came of a crawl as one HTML file, and reads the facts of an earlier one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.errors import FormatError, MinutchError, StoreError
from minutch.inspect.audit.rules import rules_of
from minutch.inspect.query.crawl import Crawl, open_crawl
from minutch.inspect.report import page
from minutch.inspect.report.compare import is_same_crawl
from minutch.inspect.report.facts import Facts
from minutch.inspect.report.gather import FactsGatherer
from minutch.job import JobContext
from minutch.work.tables.install import WholeFile
from minutch.work.tables.parallel import memory_budget

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
    _write(file, page.to_html(facts, earlier))
    return Report(file, facts)


def gathered(crawl: Crawl, context: JobContext) -> Facts:
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
        facts = page.from_html(text)
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
            is_report = stream.read(len(page.MARK)) == page.MARK.encode()
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
