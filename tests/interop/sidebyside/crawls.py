"""A crawl by Nutch or by this crawler, and what it has stored."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from minutch.clock import SystemClock
from minutch.commands.flow import commands
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import LAYOUTS, segments_in
from minutch.errors import MinutchError
from minutch.job import JobContext
from tests.benchmarks.traps.nutchpeer import LOG, QUICK
from tests.interop.harness import Harness
from tests.interop.sidebyside.configurations import SideConfiguration
from tests.interop.sidebyside.web import SideWeb

ROUNDS: Final = 2
Records = dict[str, dict[str, list[str]]]
"""Part of a crawl → URL → its records, times and what else depends on the moment taken out."""
Step = Callable[..., bool]

_MOMENTS: Final = re.compile(
    r"(lastModified=|_ngt_=|_orphan_=|(?:nutch\.fetch\.time|nutch\.segment\.name|_ftk_) ?= ?)\d+"
    r"|(Date ?= ?)[^\n]*GMT"
)
"""Times of a crawl. In `_pst_` Nutch has the Last-Modified of the page before."""
_DATE: Final = re.compile(r"(?<= time: )\w{3} (\w{3} \d\d \d\d:\d\d:\d\d \w+ 20\d\d)")
_SCORE: Final = re.compile(r"(?<=Score: )\S+")
_UNORDERED: Final = re.compile(r"(?<=etadata:)\s.*?(?=\nParse Metadata:|\Z)", re.DOTALL)


def nutch_of(home: Path, folder: Path, configuration: SideConfiguration) -> Harness:
    """Nutch's classes with the rule files of a configuration, compiled in a folder that is made."""
    folder.mkdir(parents=True)
    (folder / "log4j2.xml").write_text(LOG, encoding="utf-8")
    configuration.write(folder)
    return Harness(folder, sorted((home / "lib").glob("*.jar")), [folder, home, home / "conf"])


def crawl(web: SideWeb, folder: Path, configuration: SideConfiguration, step: Step) -> list[str]:
    """Crawls into a folder; returns the steps that failed. The web's `asked` begins anew."""
    failed: list[str] = []

    def run(command: str, *words: str | Path) -> bool:
        is_done = step(command, *words, *configuration.options.get(command, ()))
        if not is_done:
            failed.append(f"{web.visit}.{command}")
        return is_done

    web.visit = 0
    web.asked.clear()
    crawldb, linkdb, segments = folder / "crawldb", folder / "linkdb", folder / "segments"
    segments.mkdir(parents=True)
    (seeds := folder / "seeds").mkdir()
    (seeds / "seeds.txt").write_text(web.seeds(), encoding="utf-8")
    run("inject", crawldb, seeds)
    for web.visit in range(ROUNDS):
        if not run("generate", crawldb, segments, "-topN", "1000"):
            break
        segment = max(segments.iterdir())
        run("fetch", segment)
        if configuration.changed.get("fetcher.parse") != "true":
            run("parse", segment)
        run("updatedb", crawldb, segment)
        run("invertlinks", linkdb, segment)
        run("dedup", crawldb)
        time.sleep(1)  # segments are named by the second
    return failed


def by_nutch(harness: Harness, folder: Path, properties: dict[str, str]) -> Step:
    """Steps of Nutch."""
    given = harness.properties({**QUICK, "hadoop.tmp.dir": str(folder / "tmp"), **properties})

    def step(command: str, *words: str | Path) -> bool:
        name = commands()[command].nutch_class
        try:
            return harness.run([("tool", folder / "out", name, given, *words)]) == ["exit 0"]
        except AssertionError:  # it has thrown something
            return False

    return step


def by_us(rules: Path, properties: dict[str, str]) -> Step:
    """Steps of this crawler."""
    conf = Configuration.load([rules]).with_values(properties).freeze()

    def step(command: str, *words: str | Path) -> bool:
        context = JobContext(conf, SystemClock(), out=io.StringIO(), err=io.StringIO())
        try:
            return commands()[command].run([str(word) for word in words], context) == 0
        except MinutchError:
            return False

    return step


def stored(folder: Path) -> Records:
    """Returns all records of a crawl."""
    found: Records = {}

    def add(part: str, records: Iterator[tuple[str, object]]) -> None:
        for url, value in records:
            found.setdefault(part, {}).setdefault(url, []).append(_plain(str(value), part))

    segments = segments_in(folder / "segments") if (folder / "segments").exists() else []
    for number, segment in enumerate(segments):
        for part in LAYOUTS:
            if segment.has(part):
                found[f"{number}.{part}"] = {}
                add(f"{number}.{part}", segment.records(part))
    for store in (CrawlDb(folder / "crawldb"), LinkDb(folder / "linkdb")):
        if (store.path / "current").is_dir():
            add(store.path.name, iter(store.items()))
    for values in (values for urls in found.values() for values in urls.values()):
        values.sort()
    return found


def _plain(text: str, part: str) -> str:
    if part == "linkdb":
        return "\n".join(sorted(text.splitlines()))
    head, content, body = text.partition("\nContent:\n")
    head = timeless(head)
    head = _SCORE.sub(lambda found: f"{float(found[0]):.5g}", head)
    head = _UNORDERED.sub(lambda found: " ".join(["", *sorted(found[0].split())]), head)
    return head + content + body


def timeless(text: str) -> str:
    """A text without what depends on the moment of a crawl."""
    return _DATE.sub(_hours, _MOMENTS.sub(r"\1\2", text))


def _hours(found: re.Match[str]) -> str:
    """A date by the hours from now: pages of both crawls are due after the same time."""
    date = datetime.strptime(found[1], "%b %d %H:%M:%S UTC %Y").replace(tzinfo=UTC)
    return f"in {round((date - datetime.now(UTC)).total_seconds() / 3600)} h"


def differences(nutch: Records, ours: Records, most: int = 2) -> Iterator[str]:
    """Yields what differs, part by part, of each at most so many URLs."""
    for part in sorted({*nutch, *ours}):
        theirs, mine = nutch.get(part, {}), ours.get(part, {})
        urls = sorted(url for url in {*theirs, *mine} if theirs.get(url) != mine.get(url))
        if (part in nutch) != (part in ours):
            yield f"{part}: only {'Nutch' if part in nutch else 'minutch'} has it"
        elif urls:
            yield f"{part}: {len(urls)} of {len({*theirs, *mine})} URLs differ"
        for url in urls[:most]:
            yield f"  {url}\n    Nutch   {theirs.get(url)}\n    minutch {mine.get(url)}"
