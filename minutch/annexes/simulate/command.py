"""simulate: what a fetch schedule would do with the pages of a crawl, judged by how often these
were seen to change.

The schedule and its settings are those of the configuration, `-D` included; beside them stand the
settings of the configuration files alone, and for each the best that anybody could do with as many
fetches (`rates`). Pages are the entries of the CrawlDb with a copy; what is yet to be fetched,
gone or a redirect is left out.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Final

from minutch import strictjson
from minutch.annexes.simulate.forecast import ForecastOptions
from minutch.annexes.simulate.simulate import Candidate, simulate
from minutch.annexes.simulate.simulated import as_json, svg, text
from minutch.commands.arguments import Arguments
from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import PROPERTY
from minutch.errors import StoreError
from minutch.inspect.query.crawl import open_crawl
from minutch.job import JobContext
from minutch.work.tables.install import WholeFile

SCHEDULES: Final = {
    "default": "org.apache.nutch.crawl.DefaultFetchSchedule",
    "adaptive": "org.apache.nutch.crawl.AdaptiveFetchSchedule",
    "mimeadaptive": "org.apache.nutch.crawl.MimeAdaptiveFetchSchedule",
}
DAYS: Final = 90
MOST_DAYS: Final = 3660
MOST_ROUNDS: Final = 24
SAMPLE: Final = 1_000_000


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command; exit code 0."""
    options = ForecastOptions(
        context.clock.now(),
        arguments.get("-days", DAYS),
        arguments.get("-rounds", 1),
        arguments["-budget"],
        arguments.get("-seed", 0),
    )
    if options.days > MOST_DAYS or options.rounds > MOST_ROUNDS:
        arguments.fail(f"expected at most {MOST_DAYS} days and {MOST_ROUNDS} rounds a day")
    candidates = _candidates(context.conf, arguments["-schedule"])
    crawl = open_crawl(arguments["crawl"])
    most, assumed = arguments.get("-sample", SAMPLE), arguments["-assume"]
    with nullcontext() if arguments["-svg"] is None else _picture(arguments["-svg"]) as picture:
        found = simulate(crawl, candidates, options, most=most, assumed=assumed, context=context)
        if picture is not None:
            picture.write(svg(found).encode())
    if arguments["-json"]:
        context.print(strictjson.dumps(as_json(found), indent=2))
    else:
        context.print(text(found))
    return 0


def _picture(path: Path) -> WholeFile:
    """Opened before the work begins, so that a place that can't be written is known at once."""
    try:
        return WholeFile(path, sums=False)
    except OSError as exc:
        raise StoreError(f"can't write {path}: {exc.strerror or exc}") from exc


def _candidates(conf: Configuration, names: str | None) -> list[Candidate]:
    """Returns the settings of the files first, then those that the command line names."""
    current = conf.of_files()
    found = [Candidate.from_conf(current, name=f"now: {_short(current)}")]
    for name in (
        [] if names is None else [name.strip() for name in names.split(",") if name.strip()]
    ):
        chosen = conf.with_values({PROPERTY: SCHEDULES.get(name.lower(), name)})
        found.append(Candidate.from_conf(chosen, name=_short(chosen)))
    if names is None and any(conf.source(name) == "command line" for name in conf):
        found.append(Candidate.from_conf(conf, name=_short(conf)))
    return found


def _short(conf: Configuration) -> str:
    """Returns a schedule's short name."""
    name = conf.get_trimmed(PROPERTY) or SCHEDULES["default"]
    return next(
        (short for short, long in SCHEDULES.items() if long == name), name.rpartition(".")[2]
    )
