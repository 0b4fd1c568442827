"""report: what came of a crawl, as one HTML page with plots and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.errors import FormatError, MinutchError, StoreError
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.report import page
from minutch.inspect.report.compare import is_same_crawl
from minutch.inspect.report.facts import Facts
from minutch.inspect.report.gather import Gathering
from minutch.job import JobContext
from minutch.terminal import counted
from minutch.work.tables.wholefile import WholeFile

USAGE: Final = """report <crawl> [-o <file>] [--compare <report>] [--force]
\tcrawl\tthe folder of a crawl
\t-o <file>\tthe file to write; <crawl>-report.html in the working directory is the default
\t--compare <report>\tan earlier report of the crawl, to show what has changed since
\t--force\treplace the file even if it is not a report"""
FLAGS: Final = (Flag("-o", value="file"), Flag("--compare", value="report"), Flag("--force"))
ENDING: Final = "-report.html"


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0."""
    given = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    crawl = open_crawl(given.positional[0])
    name = crawl.path.resolve().name or "crawl"
    target = Path(given["-o"] or f"{name}{ENDING}")
    _check(target, force=given["--force"])
    earlier = read(Path(given["--compare"])) if given["--compare"] else None
    facts = Gathering(crawl, context).facts(name)
    if earlier is not None and not is_same_crawl(earlier, facts):
        context.err.write(
            f"{given['--compare']}: no segment of it is one of {name}'s: is it a report of another"
            " crawl?\n"
        )
    _write(target, page.write(facts, earlier))
    urls, rounds = facts.total("urls") or 0, facts.total("rounds") or 0
    context.print(f"{target}: {counted(urls, 'URLs')}, {counted(rounds, 'rounds')}")
    return 0


def read(path: Path) -> Facts:
    """The facts of a report. Raises StoreError where there is none, FormatError for a damaged
    one.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = ""
    except OSError as exc:
        raise StoreError(f"{path}: {exc.strerror}") from exc
    try:
        found = page.read(text)
    except FormatError as exc:
        raise exc.at(path) from exc
    if found is None:
        raise StoreError(f"{path} is not a report that minutch has written")
    return found


def _check(target: Path, *, force: bool) -> None:
    """That the file may be written: there is none, or a report. Raises StoreError."""
    if target.is_dir():
        raise StoreError(f"{target} is a folder", hint="-o names a file")
    if not target.exists() or force:
        return
    try:
        with target.open("rb") as stream:
            is_report = stream.read(len(page.MARK)) == page.MARK.encode()
    except OSError as exc:
        raise StoreError(f"{target}: {exc.strerror}") from exc
    if not is_report:
        raise StoreError(
            f"{target} is there and is not a report",
            hint="-o names another file, --force replaces this one",
        )


def _write(target: Path, text: str) -> None:
    try:
        with WholeFile(target, sums=False) as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as exc:
        raise MinutchError(f"{exc.filename or target}: {exc.strerror or exc}") from exc
