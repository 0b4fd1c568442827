"""Crawls with Apache Nutch itself: inject, then rounds of generate, fetch, parse and updatedb."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from minutch.commands.flow import commands
from tests.benchmarks.fetchers import PROPERTIES
from tests.interop.harness import Harness

QUICK: Final = {
    "mapreduce.client.progressmonitor.pollinterval": "10",
    "mapreduce.client.completion.pollinterval": "10",
    "mapreduce.task.io.sort.mb": "16",
}
"""Jobs end when they are done, not up to 5 s later; decides nothing."""
LOG: Final = """<Configuration><Appenders><Console name="log" target="SYSTEM_ERR"/></Appenders>
<Loggers><Root level="warn"><AppenderRef ref="log"/></Root></Loggers></Configuration>"""
"""Nutch's own file logs to standard output, which is the harness's."""


def crawl_by_nutch(
    home: Path,
    folder: Path,
    seeds: Sequence[str],
    settings: Mapping[str, str],
    *,
    rounds: int,
    left: Callable[[], int],
) -> None:
    """Crawls in one JVM, as its files are shipped, by at most as many requests as are left. Raises
    AssertionError, with the end of the log, if a job fails.
    """
    database, segments = folder / "crawldb", folder / "segments"
    (folder / "seeds").mkdir()
    (folder / "seeds" / "seeds.txt").write_text("\n".join(seeds), encoding="utf-8")
    (made := folder / "harness").mkdir()
    (made / "log4j2.xml").write_text(LOG, encoding="utf-8")
    jars = sorted((home / "lib").glob("*.jar"))
    with Harness(made, jars, [made, home, home / "conf"]) as harness:
        given = harness.properties(
            {
                "plugin.includes": PROPERTIES["plugin.includes"],
                "hadoop.tmp.dir": str(folder / "tmp"),
                **QUICK,
                **settings,
            }
        )

        def run(command: str, *words: str | Path) -> str:
            name = commands()[command].nutch_class
            return harness.run([("tool", folder / "out", name, given, *words)])[0]

        def checked(command: str, *words: str | Path) -> None:
            if (said := run(command, *words)) != "exit 0":
                raise AssertionError(f"nutch {command}: {said}")

        checked("inject", database, folder / "seeds")
        for _ in range(rounds):
            if left() <= 0:
                return
            said = run("generate", database, segments, "-topN", str(left()), "-noFilter")
            if said == "exit 1":  # nothing is due
                return
            segment = max(segments.iterdir())
            checked("fetch", segment)
            checked("parse", segment)
            checked("updatedb", database, segment)
